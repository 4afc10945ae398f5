"""Two folders with the same name, each with a prefix: served, installed, compared, exported and tested."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from contextlib import closing

import anyio
import pytest
from mcp import Client, StdioServerParameters
from starlette.testclient import TestClient

from promptkit.asgi import app
from promptkit.cli import main
from promptkit.clients.profiles import INSTALLABLE
from promptkit.clients.servers import command_in
from promptkit.compiler.compilation import compile
from promptkit.preview.live import LiveCatalog
from promptkit.preview.routes import create_application
from tests.cli.diff.repositories import GIT, git
from tests.http_server import http_server
from tests.posting import answer_to
from tests.preview.conftest import HOST, TOKEN
from tests.preview.test_pages import extract_text
from tests.wire import modern

RECIPE = '''
from promptkit import prompt, skill
from ._words import TEAM

@prompt
def review(code: str) -> str:
    """Review code."""
    return f"{TEAM} reviews {code}"

review.case("short", "x = 1")

@skill(description="Deploy it. Use it to deploy.")
def deploy() -> str:
    return f"Ask {TEAM}."
'''

TARGETS = ("review=team/prompts", "ops=ops/prompts")
CONFIGURATION = '[tool.promptkit]\ntargets = {review = "team/prompts", ops = "ops/prompts"}\n'


@pytest.fixture
def project(recipes, tmp_path, monkeypatch):
    """A project with two folders of the same name, as the current folder."""
    for team in ("team", "ops"):
        recipes(f"project/{team}/prompts", review=RECIPE, _words=f"TEAM = {team!r}")
    monkeypatch.chdir(tmp_path / "project")
    for name in [name for name in sys.modules if name.partition(".")[0] == "prompts"]:
        monkeypatch.delitem(sys.modules, name)  # otherwise the package would have another name
    return tmp_path / "project"


async def fetch_all(client):
    """Return the names of prompts and tools, the text of each prompt, and the last line of each skill."""
    prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
    tools = [tool.name for tool in (await client.list_tools()).tools]
    texts = [(await client.get_prompt(name, {"code": "x"})).messages[0].content.text for name in prompts]
    files = [await client.read_resource(f"skill://{prefix}/deploy/SKILL.md") for prefix in ("review", "ops")]
    skills = [file.contents[0].text.splitlines()[-1] for file in files]
    return prompts, tools, texts, skills


EXPECTED = (
    ["ops-review", "review-review"],
    ["ops-review", "review-review"],
    ["ops reviews x", "team reviews x"],
    ["Ask team.", "Ask ops."],
)


def over_stdio(command, folder):
    """Return what the official client receives from a command."""

    async def connect():
        program, *arguments = command
        server = StdioServerParameters(command=program, args=arguments, cwd=folder, env=dict(os.environ))
        async with Client(server) as client:
            return await fetch_all(client)

    return anyio.run(connect)


SERVE = (sys.executable, "-m", "promptkit", "serve", "--tools")


class TestServing:
    def test_stdio(self, project):
        """The official client sees both folders over stdio."""
        assert over_stdio([*SERVE, *TARGETS], project) == EXPECTED

    def test_configuration(self, project):
        """The targets of the configuration are served, from a subfolder as well."""
        (project / "pyproject.toml").write_text(CONFIGURATION, encoding="utf-8")

        assert over_stdio(SERVE, project / "ops") == EXPECTED

    def test_http(self, project):
        """The official client sees both folders over HTTP."""

        async def connect(url):
            async with Client(url) as client:
                return await fetch_all(client)

        with http_server(TARGETS[0], TARGETS[1], "--tools") as url:
            assert anyio.run(connect, url) == EXPECTED

    def test_application(self, project):
        """The ASGI application serves both folders."""
        application = app(TARGETS, tools=True, watch=False)
        params = {"name": "ops-review", "arguments": {"code": "x"}}

        answer = answer_to(application, modern(1, "tools/call", params))

        assert answer.json["result"]["content"] == [{"type": "text", "text": "ops reviews x"}]


class TestInstall:
    @pytest.fixture
    def home(self, tmp_path, monkeypatch):
        """The home of a user without any client."""
        for name in ("HOME", "USERPROFILE"):
            monkeypatch.setenv(name, str(tmp_path / "home"))
        (tmp_path / "home").mkdir()
        for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
            monkeypatch.delenv(name, raising=False)
        return tmp_path / "home"

    def test_entry_serves_both(self, project, home, tmp_path):
        """The entry in a client's configuration serves both folders from any folder."""
        assert main(["install", "claude-code", *TARGETS, "--", "--tools"]) == 0
        (entry,) = json.loads((home / ".claude.json").read_text())["mcpServers"].values()

        command = command_in(INSTALLABLE["claude-code"], entry)
        assert command[-3:-1] == [f"review={project}/team/prompts", f"ops={project}/ops/prompts"]
        assert over_stdio(command, tmp_path) == EXPECTED

    def test_project_scope(self, project, home):
        """In project scope, the paths are relative to the project, after the prefixes."""
        (project / "pyproject.toml").write_text(CONFIGURATION, encoding="utf-8")
        assert main(["install", "claude-code", "--scope", "project"]) == 0
        (entry,) = json.loads((project / ".mcp.json").read_text())["mcpServers"].values()

        assert command_in(INSTALLABLE["claude-code"], entry)[-2:] == [
            "review=${CLAUDE_PROJECT_DIR:-.}/team/prompts",
            "ops=${CLAUDE_PROJECT_DIR:-.}/ops/prompts",
        ]
        assert main(["install", "claude-code", "--scope", "project"]) == 0

    def test_other_project(self, project, home, tmp_path, capsys):
        """
        An entry with prefixes belongs to the project of its targets, and another project cannot replace it.
        """
        assert main(["install", "claude-code", *TARGETS]) == 0
        other = shutil.copytree(project, tmp_path / "other" / "project")
        os.chdir(other)

        assert main(["install", "claude-code", *TARGETS]) == 1
        assert (
            f"serves review={project}/team/prompts, which belongs to another project"
            in capsys.readouterr().err
        )

    def test_codex(self, project, home):
        """The entry in Codex's TOML configuration serves both folders as well."""
        assert main(["install", "codex", *TARGETS]) == 0
        (entry,) = tomllib.loads((home / ".codex" / "config.toml").read_text())["mcp_servers"].values()

        assert over_stdio(command_in(INSTALLABLE["codex"], entry), project) == EXPECTED


class TestCommands:
    @pytest.fixture(autouse=True)
    def _configured(self, project):
        (project / "pyproject.toml").write_text(CONFIGURATION, encoding="utf-8")

    def test_list_and_check(self, capsys):
        """`list` shows the names that clients see, and `check` counts the prompts of both folders."""
        assert main(["check", "--render"]) == 0
        assert "2 prompts and 2 skills can be served" in capsys.readouterr().out
        assert main(["list", "--json"]) == 0
        assert [prompt["name"] for prompt in json.loads(capsys.readouterr().out)["prompts"]] == EXPECTED[0]

    def test_words_of_arguments(self, capsys):
        """Commands whose words are arguments accept targets with prefixes as `--target`."""
        options = [word for target in TARGETS for word in ("--target", target)]
        assert main(["render", *options, "ops-review", "code=y"]) == 0
        assert capsys.readouterr().out == "[user]\nops reviews y\n"
        assert main(["render", "ops-review", "--case", "short", *options]) == 0
        assert capsys.readouterr().out == "[user]\nops reviews x = 1\n"
        assert main(["complete", *options, "ops-review", "code", "x"]) == 0

    @pytest.mark.parametrize(
        ("words", "reason"),
        [
            (["ops=ops/prompts", "ops-review"], "a target with a prefix, write --target ops=ops/prompts"),
            (["--target", "ops=ops/prompts", "ops", "ops-review"], "unexpected argument 'ops'"),
        ],
    )
    def test_wrong_words(self, words, reason, capsys):
        """
        Passing `render` a target with a prefix as a word, or two targets in different places, is an error.
        """
        with pytest.raises(SystemExit) as end:
            main(["render", *words])

        assert end.value.code == 2
        assert reason in capsys.readouterr().err

    def test_unknown_names(self, capsys):
        """The name without its prefix is unknown, and the nearest name is suggested."""
        assert main(["render", "review-revie", "code=x"]) == 2
        assert "did you mean 'review-review'?" in capsys.readouterr().err

    def test_prompts_with_errors(self, project, capsys):
        """A prompt with an error is reported under the requested name."""
        file = project / "ops" / "prompts" / "bad.py"
        file.write_text("from promptkit import prompt\n\n@prompt\ndef bad(x): return 'x'\n", encoding="utf-8")

        assert main(["render", "ops-bad"]) == 1
        err = capsys.readouterr().err
        assert "PK301: prompt 'ops-bad': " in err
        assert err.endswith("prompt 'ops-bad' cannot be rendered\n")

    def test_batch(self, project, capsys):
        """`batch` finds a prompt by its whole name."""
        (project / "rows.csv").write_text("code\nx\n", encoding="utf-8")
        words = ["batch", "ops-review", "rows.csv", "--for", "openai-chat", "--model", "m", "--workers", "2"]
        assert main(words) == 0
        (line,) = (project / "batch").glob("*.jsonl")

        assert "ops reviews x" in line.read_text(encoding="utf-8")

    def test_live_commands(self, project, tmp_path):
        """The commands of a live export pass targets with prefixes as options, and work in any folder."""
        outside = tmp_path / "commands"
        assert main(["export", "claude-commands", str(outside), "--live", *targets_as_options()]) == 0
        text = (outside / "ops-review.md").read_text(encoding="utf-8")

        words = f"promptkit render --target review={project}/team/prompts --target ops={project}/ops/prompts"
        assert f"{words} ops-review" in text
        command = [sys.executable, "-m", *shlex.split(words), "ops-review", "code=x"]
        assert subprocess.run(command, capture_output=True, check=True, cwd=tmp_path).stdout == (
            b"[user]\nops reviews x\n"
        )

    def test_skills_in_a_folder(self, project, capsys):
        """Two skills with the same name cannot be in one folder, and the error names both URIs."""
        assert main(["export", "skills", str(project / "out")]) == 1
        err = capsys.readouterr().err

        assert "skill://ops/deploy/SKILL.md" in err
        assert "skill://review/deploy/SKILL.md" in err

    def test_preview(self, project):
        """The preview shows the names with prefixes in commands, and the author's names in Python code."""
        live = LiveCatalog(compile(list(TARGETS)))
        application = create_application(live, TARGETS, TOKEN, [HOST])
        with closing(TestClient(application, base_url=f"http://{HOST}")) as client:
            client.get(f"/?access-token={TOKEN}")

            def show(name, tab, **data):
                text = extract_text(client.post(f"/prompts/{name}/tabs/{tab}", data=data).text)
                return re.sub(r" ?([^\w '-]) ?", r"\1", text)  # of highlighted code

            command = show("ops-review", "command-line", code="x")
            case, failing = show("review-review", "new-case", code="x"), show("review-review", "new-case")

        assert "promptkit render --target ops=ops/prompts ops-review code=x" in command
        assert 'review.case_wire("a name",' in case
        assert 'review.case_wire("a name",{})' in failing


def targets_as_options():
    """Return the words for both targets."""
    return [word for target in TARGETS for word in ("--target", target)]


class TestDiff:
    @pytest.fixture
    def repository(self, project, monkeypatch):
        """The project in a git repository with one commit."""
        for name, value in GIT.items():
            monkeypatch.setenv(name, value)
        git(project, "init", "--quiet", "--initial-branch=main", "--template=")
        git(project, "add", ".")
        git(project, "commit", "--quiet", "--message=before")
        return project

    def test_changes_of_one_folder(self, repository, capsys):
        """A change in one folder is a change of its prompt only, and of its skill."""
        file = repository / "ops" / "prompts" / "_words.py"
        file.write_text("TEAM = 'ops too'", encoding="utf-8")

        assert main(["diff", *targets_as_options(), "--format", "json"]) == 0
        changes = json.loads(capsys.readouterr().out)["changes"]
        assert {change["of"] for change in changes} == {
            "prompt 'ops-review'",
            "skill 'skill://ops/deploy/SKILL.md'",
        }

    def test_configured_targets(self, repository, capsys):
        """The configured targets are compared, each with its committed version."""
        (repository / "pyproject.toml").write_text(CONFIGURATION, encoding="utf-8")
        file = repository / "ops" / "prompts" / "review.py"
        file.write_text(RECIPE.replace("code: str", "code: int"), encoding="utf-8")

        assert main(["diff", "--format", "github"]) == 1
        out = capsys.readouterr().out
        assert "file=ops/prompts/review.py" in out
        assert "prompt 'ops-review'" in out
        assert "review-review" not in out
