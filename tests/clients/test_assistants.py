"""
Real assistants start the server that `install` has added to their configuration, and send its prompts.

The model is scripted, and on loopback. The tests compare the rows of these clients in docs/clients.md, and
``pytest -n0 --snapshot-update`` writes them.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest

from tests.clients.node_clients import RUNNING, TEST_TIMEOUT, install
from tests.clients.outing import ENTERED, FIELDS, PLAN
from tests.clients.outing import RECIPE as OUTING
from tests.clients.scripted_model import ScriptedModel
from tests.clients.skill_model import SkillModel

HERE = Path(__file__).parent

RECIPE = '''
from promptkit import prompt

@prompt
def greet(name: str = "you"):
    """Say hello."""
    return f"Hello, {name}."
'''

PLANS = '''
from promptkit import prompt

@prompt
def plan(topic: str):
    """Have the name of a command of others."""
    return f"Our plan for {topic}."

@prompt
def sing(topic: str):
    """Sing."""
    return f"Sing of {topic}."

@prompt
def place(topic: str, town: str, note: str = "no note", days: int = 3):
    """Find a place."""
    return f"Find {topic} in <{town}> in {days:03} days, with {note}."

@prompt
def count(topic: str, days: int):
    """Count."""
    return f"Count {topic} in {days:03} days."
'''

#: The executable of each client. Packages run no install scripts, so this is the real program.
PROGRAMS = {
    "claude-code": "@anthropic-ai/claude-code-*/claude",
    "codex": ".bin/codex",
    "copilot-cli": ".bin/copilot",
    "gemini-cli": ".bin/gemini",
    "opencode": "opencode-*/bin/opencode",
    "qwen-code": ".bin/qwen",
}

#: The arguments of each client's status command, and the pattern of its output for a connected server.
STATUS = {
    "claude-code": (["mcp", "get", "team"], r"Status: .*Connected(?s:.*)Args: serve \S+/prompts"),
    "gemini-cli": (["mcp", "list"], r"team: \S+ serve \S+/prompts \(stdio\) - Connected"),
    "opencode": (["mcp", "list"], r"team .*connected"),
    # Qwen Code asks before it starts a project's server.
    "qwen-code": (["mcp", "list"], r"team: \S+ serve \S+/prompts \(stdio\) - (Connected|Pending approval)"),
}

#: Attempts to see the server connected: on a busy machine, clients give up after some seconds.
ATTEMPTS = 4

#: How each client sends one text to the scripted model at a URL: its arguments and variables.
ASKING = {
    "codex": lambda url, text: (
        ["exec", *codex_options(url), "--skip-git-repo-check", text],
        {"KEY": "none"},
    ),
    "copilot-cli": lambda url, text: (
        ["--allow-all-tools", "--prompt", text],
        {"COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_BASE_URL": f"{url}/v1", "COPILOT_MODEL": "scripted"},
    ),
    "gemini-cli": lambda url, text: (
        ["--model", "gemini-2.5-flash", "--prompt", text],
        {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "none"},
    ),
    "qwen-code": lambda url, text: (
        ["--auth-type", "openai", "--prompt", text],
        {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "none", "OPENAI_MODEL": "scripted"},
    ),
}


DOWN, ENTER = "\x1b[B", "\r"

#: Texts of Copilot CLI in a terminal, each with the keys to press then.
COPILOT_FORM = [
    ("Do you trust the files", [ENTER]),
    ("needs topic, tone and days", [ENTERED["topic"], ENTER]),
    ("\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT} warm", [DOWN, ENTER]),
    ("a whole number", ["3", ENTER]),
]


def codex_options(url):
    """Return Codex's options for the scripted model at *url*."""
    provider = f'{{name="own", base_url="{url}/v1", wire_api="responses", env_key="KEY"}}'
    settings = ("model=scripted", "model_provider=own", f"model_providers.own={provider}")
    return [word for setting in settings for word in ("-c", setting)]


pytestmark = [pytest.mark.slow, pytest.mark.installs, pytest.mark.timeout(2 * TEST_TIMEOUT)]


@pytest.fixture(scope="session")
def assistants(installations):
    """The folder in which the clients are installed."""
    return install(HERE / "assistants", installations, optional=True) / "node_modules"


@pytest.fixture
def user(assistants, tmp_path):
    """A project with prompts, and the environment of a user who has `claude` on the PATH."""
    home, project, programs = (tmp_path / name for name in ("home", "team", "bin"))
    for folder in (home / ".gemini", project / "prompts", programs):
        folder.mkdir(parents=True)
    (project / "prompts" / "greet.py").write_text(RECIPE)
    (project / "prompts" / "plans.py").write_text(PLANS)
    (project / "prompts" / "outing.py").write_text(OUTING)
    # The clients start no servers in untrusted folders, or from a project's file that is not approved.
    security = {"folderTrust": {"enabled": False}, "auth": {"selectedType": "gemini-api-key"}}
    (home / ".gemini" / "settings.json").write_text(json.dumps({"security": security}))
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text('{"enableAllProjectMcpServers": true}')
    (programs / "claude").symlink_to(program("claude-code", assistants))
    own = ("XDG_", "ANTHROPIC_", "CLAUDE", "OPENCODE_")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    path = os.pathsep.join([str(programs), sysconfig.get_path("scripts"), os.environ["PATH"]])
    return project, {**variables, "HOME": str(home), "PATH": path, "CI": "1", "NO_PROXY": "127.0.0.1"}


@pytest.fixture
def run_as_user(user):
    """A function that runs a command as the user, and returns its output."""
    project, environment = user

    def run(*command, **variables):
        completed = subprocess.run(
            [str(word) for word in command],
            cwd=project,
            env={**environment, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        assert completed.returncode == 0, completed.stdout
        return completed.stdout

    return run


@pytest.fixture
def ask_client(assistants, run_as_user):
    """A function that types text in a client, and returns the text and tool results that the model gets."""

    def ask(client, text, tool="", **arguments):
        with ScriptedModel(tool, arguments) as model:
            words, variables = ASKING[client](model.url, text)
            run_as_user(program(client, assistants), *words, **variables)
        return model.texts, model.tool_results

    return ask


@pytest.fixture(scope="session")
def versions(assistants):
    """The versions of the clients."""
    packages = json.loads((HERE / "assistants" / "package.json").read_text(encoding="utf-8"))
    pinned = {**packages["dependencies"], **packages["optionalDependencies"]}
    names = {"@anthropic-ai/claude-code": "claude-code", "@github/copilot": "copilot-cli"}
    names |= {"@openai/codex": "codex", "@google/gemini-cli": "gemini-cli"}
    names |= {"@qwen-code/qwen-code": "qwen-code", "opencode-linux-x64": "opencode"}
    return {names[package]: version for package, version in pinned.items()}


def program(client, assistants):
    """Return the executable of a client; if several match, the one with the shortest path."""
    executables = sorted(assistants.glob(PROGRAMS[client]), key=lambda path: len(str(path)))
    if not executables:
        pytest.skip(f"{client} has nothing for this machine")
    return executables[0]


def run_promptkit(run_as_user, *argv):
    """Run a promptkit command, and return its output."""
    return run_as_user(sys.executable, "-m", "promptkit", *argv)


def changed_file(output):
    """Return the file that a promptkit command has changed."""
    return Path(re.search("^    file: (.*)$", output, re.MULTILINE)[1])


@pytest.mark.parametrize("scope", ["user", "project"])
@pytest.mark.parametrize("client", STATUS)
def test_client_starts_the_server(client, scope, assistants, run_as_user):
    """
    The client reports the installed server as connected, and no longer lists it after `uninstall`. This holds
    for a project's file as well, whose paths must work for every user.
    """
    command, pattern = STATUS[client]
    run_promptkit(run_as_user, "install", client, "--scope", scope, "--env", "TEAM=core")
    for _ in range(ATTEMPTS):
        output = run_as_user(program(client, assistants), *command)
        if re.search(pattern, output):
            break
    assert re.search(pattern, output), output

    run_promptkit(run_as_user, "uninstall", client, "--scope", scope)
    assert "team" not in run_as_user(program(client, assistants), "mcp", "list").replace("/team", "")


def test_codex_reads_the_entry(assistants, run_as_user):
    """Codex lists the command, or the URL, of each installed entry."""
    output = run_promptkit(run_as_user, "install", "codex", "--env", "TEAM=core")
    command_entry = tomllib.loads(changed_file(output).read_text())["mcp_servers"]["team"]
    run_promptkit(run_as_user, "install", "codex", "--url", "http://127.0.0.1:9/mcp", "--name", "reached")
    printed = run_as_user(program("codex", assistants), "mcp", "list", "--json")
    entries = {entry["name"]: entry for entry in json.loads(printed[printed.index("[\n") :])}

    assert entries["team"]["enabled"]
    assert {key: entries["team"]["transport"][key] for key in command_entry} == command_entry
    assert entries["reached"]["transport"]["url"] == "http://127.0.0.1:9/mcp"


#: The clients that connect to servers in their status command, and two that connect in a session.
HEADERS = [*STATUS, "codex", "copilot-cli"]


@pytest.mark.parametrize("client", HEADERS)
def test_client_sends_the_token(client, assistants, run_as_user):
    """With `--token-env`, the client sends the variable's value as a bearer token."""
    with ScriptedModel() as server:
        url = ("--url", f"{server.url}/mcp", "--name", "team")
        run_promptkit(run_as_user, "install", client, *url, "--token-env", "TEAM_TOKEN")
        if client in STATUS:
            words, variables = ["mcp", "list"], {}
        else:
            words, variables = ASKING[client](server.url, "Hello.")
        run_as_user(program(client, assistants), *words, **variables, TEAM_TOKEN="sesame")  # noqa: S106

    assert set(server.authorizations) == {"Bearer sesame"}


#: The options with which another program types, and shows forms.
STREAMS = ("--input-format", "stream-json", "--output-format", "stream-json")


@pytest.fixture
def ask_claude_code(assistants, run_as_user, user):
    """
    A function that types a command in Claude Code and fills in its forms.

    It returns the forms, and the text that the model has received. With JSON as input and output, the program
    that has started Claude Code shows the forms, as an editor does.
    """
    project, environment = user
    run_promptkit(run_as_user, "install", "claude-code", "--name", "team")

    def run_command(command, answers=ENTERED):
        forms = []
        with (
            ScriptedModel() as model,
            subprocess.Popen(
                [program("claude-code", assistants), "-p", "--verbose", *STREAMS],
                cwd=project,
                env={
                    **environment,
                    "ANTHROPIC_BASE_URL": model.url,
                    "ANTHROPIC_API_KEY": "none",
                    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                    "MCP_CONNECTION_NONBLOCKING": "false",  # otherwise it ignores a slow server
                    "MCP_CONNECT_TIMEOUT_MS": "60000",
                },
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            ) as process,
        ):
            send(process, {"type": "user", "message": {"role": "user", "content": command}})
            for message in map(json.loads, process.stdout):
                if message["type"] == "result":
                    process.stdin.close()
                elif message["type"] == "control_request":
                    forms.append(message["request"])
                    answer = {"action": "accept", "content": answers}
                    reply = {"request_id": message["request_id"], "subtype": "success", "response": answer}
                    send(process, {"type": "control_response", "response": reply})
        return forms, model.texts

    return run_command


def send(process, message):
    """Write a message to Claude Code."""
    process.stdin.write(f"{json.dumps(message)}\n")
    process.stdin.flush()


@pytest.mark.parametrize(
    ("typed", "fields"),
    [
        ("/mcp__team__outing", FIELDS),
        ("/mcp__team__outing bees and trees", {**FIELDS, "topic": {"type": "string", "default": "bees"}}),
    ],
    ids=["alone", "with words"],
)
def test_claude_code_shows_the_form(typed, fields, ask_claude_code, observe, versions):
    """
    Claude Code shows a form for text, a choice and a number, and the model gets exactly the entered values.

    If words are typed after the command, each argument gets one word. Two of these words are invalid, so the
    form asks for all arguments, with the valid word as a default.
    """
    forms, texts = ask_claude_code(typed)

    assert [form["subtype"] for form in forms] == ["elicitation"]
    assert forms[0]["requested_schema"]["properties"] == fields
    assert forms[0]["requested_schema"]["required"] == [*FIELDS]
    assert PLAN in texts
    if typed == "/mcp__team__outing":
        observe("claude-code", versions["claude-code"], typed, "yes", PLAN)


def test_claude_code_asks_for_the_first_prompt(ask_claude_code, run_as_user, user):
    """
    For the prompt that `promptkit new` writes, a form asks for the code if the command has no arguments.
    """
    project, _ = user
    run_as_user(sys.executable, "-m", "promptkit", "new", "first")
    shutil.copy(project / "first" / "prompts" / "review.py", project / "prompts")

    forms, texts = ask_claude_code("/mcp__team__review", {"code": "x = 1"})

    assert forms[0]["requested_schema"]["required"] == ["code"]
    assert any(text.startswith("Review this python code.\n\n```python\nx = 1\n```") for text in texts)


def test_claude_code_drops_words(ask_claude_code):
    """Without a form, each argument gets one word, and the remaining words are lost."""
    forms, texts = ask_claude_code("/mcp__team__greet bees and trees")

    assert forms == []
    assert "Hello, bees." in texts


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("team:place", "Find bees in <trees and hives> in 003 days, with no note."),
        ("team:count", "bees trees and hives"),
        ("team:outing", "bees trees and hives"),
    ],
    ids=["optional", "required", "choice"],
)
def test_opencode_fills_in_the_text(  # noqa: PLR0917
    name, text, assistants, run_as_user, user, observe, versions
):
    """
    For each argument, opencode sends a placeholder, and replaces it in the rendered text with a typed word.

    The last placeholder in the text gets all remaining words. Optional arguments keep their defaults. If a
    placeholder is invalid as an argument, the prompt is lost, and the model gets only the words.
    """
    _, environment = user
    with ScriptedModel() as model:
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{model.url}/v1", "apiKey": "none"},
            "models": {"scripted": {}},
        }
        settings = {"autoupdate": False, "model": "own/scripted", "provider": {"own": provider}}
        file = Path(environment["HOME"], ".config", "opencode", "opencode.json")
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(settings))
        run_promptkit(run_as_user, "install", "opencode", "--name", "team")
        run_as_user(
            program("opencode", assistants), "run", "--command", name, "bees", "trees", "and", "hives"
        )

    assert text in model.texts
    if name == "team:outing":
        observe("opencode", versions["opencode"], f"/{name} bees trees and hives", "no", text)


@pytest.mark.parametrize("client", ["gemini-cli", "qwen-code"])
class TestGeminiAndQwen:
    def test_named_arguments(self, client, ask_client, run_as_user, observe, versions):
        """Arguments that are typed with their names get all of their text; the model gets a JSON string."""
        run_promptkit(run_as_user, "install", client, "--name", "team")
        typed = '/outing --topic="bees and trees" --tone=plain --days=3'
        texts, _ = ask_client(client, typed)
        expected = '"Plan bees and trees in 003 days, plain."'

        assert expected in texts
        observe(client, versions[client], typed, "no", expected)

    def test_only_argument_gets_all_words(self, client, ask_client, run_as_user):
        """If a prompt has a single, required argument, the argument gets everything that is typed."""
        run_promptkit(run_as_user, "install", client, "--name", "team")

        assert '"Sing of bees and trees."' in ask_client(client, "/sing bees and trees")[0]

    def test_own_command_hides_a_prompt(self, client, ask_client, run_as_user):
        """`install` reports a prompt with the name of a client's own command, which hides the prompt."""
        output = run_promptkit(run_as_user, "install", client, "--name", "team")
        with suppress(AssertionError):  # Qwen Code exits with an error, because its command needs a terminal
            assert not any("Our plan" in text for text in ask_client(client, "/plan --topic=bees")[0])

        assert "has its own command 'plan'" in output


def test_copilot_cli_calls_tools(ask_client, run_as_user):
    """
    Copilot CLI does not show prompts to the user, but the model can call them as tools, and gets the text.
    """
    run_promptkit(run_as_user, "install", "copilot-cli", "--name", "team")

    assert PLAN in ask_client("copilot-cli", "Hello.", "outing", **ENTERED)[1]


def test_copilot_cli_declines_without_a_terminal(ask_client, run_as_user):
    """Without a terminal, Copilot CLI declines forms, and the model gets the error."""
    run_promptkit(run_as_user, "install", "copilot-cli", "--name", "team")
    expected = "MCP server 'team': prompt 'outing': 'tone' is missing; 'days' is missing"

    assert ask_client("copilot-cli", "Hello.", "outing", topic="bees")[1] == [expected]


def test_copilot_cli_shows_the_form(assistants, run_as_user, user, observe, versions):
    """In a terminal, Copilot CLI shows a form for missing arguments, and sends the entered values."""
    pexpect = pytest.importorskip("pexpect", reason="Windows has no such terminals")
    project, environment = user
    run_promptkit(run_as_user, "install", "copilot-cli", "--name", "team")
    _, variables = ASKING["copilot-cli"]("", "")
    with ScriptedModel("outing", {}) as model:
        terminal = pexpect.spawn(
            str(program("copilot-cli", assistants)),
            ["--allow-all-tools", "--interactive", "Hello."],
            cwd=project,
            env={**environment, **variables, "COPILOT_PROVIDER_BASE_URL": f"{model.url}/v1", "TERM": "xterm"},
            dimensions=(50, 120),
            encoding="utf-8",
            timeout=RUNNING,
        )
        terminal.delaybeforesend = 0.5  # text that arrives all at once counts as pasted
        for text, presses in COPILOT_FORM:
            terminal.expect(text)
            for keys in presses:
                terminal.send(keys)
        while not model.tool_results:
            terminal.expect(pexpect.TIMEOUT, timeout=0.5)  # keep reading: the terminal redraws
        terminal.terminate(force=True)

    assert model.tool_results == [PLAN]
    observe("copilot-cli", versions["copilot-cli"], "tool call without arguments", "yes", PLAN)


def test_codex_shows_the_form(assistants, run_as_user, user, observe, versions):
    """Codex shows a form for arguments that the model omits, and the entered values reach the model."""
    project, environment = user
    run_promptkit(run_as_user, "install", "codex", "--name", "team")
    forms = []
    with (
        ScriptedModel("outing", {}) as model,
        subprocess.Popen(
            [program("codex", assistants), "app-server", *codex_options(model.url)],
            cwd=project,
            env={**environment, "KEY": "none"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process,
    ):
        send(
            process,
            {"id": 0, "method": "initialize", "params": {"clientInfo": {"name": "t", "version": "1"}}},
        )
        send(process, {"method": "initialized"})
        send(process, {"id": 1, "method": "thread/start", "params": {"sandbox": "danger-full-access"}})
        for message in map(json.loads, process.stdout):
            params = message.get("params", {})
            match message:
                case {"id": 1, "result": {"thread": {"id": thread}}}:
                    turn = {"threadId": thread, "input": [{"type": "text", "text": "Hello."}]}
                case {"method": "mcpServer/startupStatus/updated"} if params["status"] == "ready":
                    send(process, {"id": 2, "method": "turn/start", "params": turn})
                case {"method": "mcpServer/elicitation/request", "id": number}:
                    forms.append(params["requestedSchema"])
                    send(process, {"id": number, "result": {"action": "accept", "content": ENTERED}})
                case {"method": "turn/completed"}:
                    process.stdin.close()

    assert [form["properties"] for form in forms] == [FIELDS]
    assert PLAN in model.tool_results
    observe("codex", versions["codex"], "tool call without arguments", "yes", PLAN)


SKILL = """\
---
name: ship-it
description: Release a version. Use it when the user wants to publish.
---
Tag as in [steps](references/steps.md).
"""

#: The names of the two tools in each client.
TOOLS = {
    "codex": ("find_skills", "read_skill"),
    "gemini-cli": ("mcp_team_find_skills", "mcp_team_read_skill"),
}


@pytest.fixture
def skill_folder(user):
    """The folder of a skill with a file, in the user's project."""
    project, _ = user
    folder = project / "prompts" / "skills" / "ship-it"
    (folder / "references").mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)
    (folder / "references" / "steps.md").write_text("1. Run the tests.")
    return folder


@pytest.fixture
def type_in(skill_folder, assistants, run_as_user, user):
    """A function that types a request, or a command, in Codex or Gemini CLI with a scripted model."""
    _, environment = user

    def type_in(client, typed, model):
        install_options = ["install", client, "--name", "team", "--", "--skills-as", "tools,prompts"]
        run_as_user(sys.executable, "-m", "promptkit", *install_options)
        if client == "codex":
            provider = f'{{name = "own", base_url = "{model.url}/v1", wire_api = "responses"}}'
            options = ["-c", f"model_providers.own={provider}", "-c", "model_provider=own", "-m", "scripted"]
            return run_as_user(program(client, assistants), "exec", "--skip-git-repo-check", *options, typed)
        environment.update({"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": model.url})
        return run_as_user(program(client, assistants), "--yolo", "-m", "gemini-2.5-flash", "-p", typed)

    return type_in


@pytest.mark.parametrize("client", TOOLS)
def test_model_finds_and_reads_a_skill_by_tools(client, type_in):
    """In a host without the skills extension, a model finds a skill, and reads its text and its file."""
    find, read = TOOLS[client]
    calls = [
        (find, {"query": "publish a version"}),
        (read, {"name": "ship-it"}),
        (read, {"name": "ship-it", "file": "references/steps.md"}),
    ]
    with SkillModel(*calls) as model:
        output = type_in(client, "publish a version", model)

    found, text, steps = model.results[-3:] or [output] * 3
    assert "references/steps.md" in found
    assert "Tag as in [steps](references/steps.md)." in text
    assert "1. Run the tests." in steps


def test_gemini_cli_offers_a_skill_as_a_prompt(type_in):
    """A user of Gemini CLI types a skill like a command, with the task as an argument."""
    with SkillModel() as model:
        type_in("gemini-cli", '/ship-it --task="2.0"', model)

    (text,) = [text for text in model.texts if "Tag as in" in text]
    assert "Task: 2.0" in text
    assert "references/steps.md" in text
