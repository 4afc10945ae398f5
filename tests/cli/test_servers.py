"""Commands with `--server`: the prompts of another MCP server, which is not trusted."""

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.foreign.scripted import EVIL

PROMPTS = [
    {
        "name": "review",
        "description": "Review code.",
        "arguments": [
            {"name": "code", "description": "The code", "required": True},
            {"name": "tone", "description": "The tone"},
        ],
    },
    {"name": "plan", "title": "Plan", "description": "Plan it.", "_meta": {"x/y": 1}},
]
TOOL = {"name": "add", "description": "Add.", "inputSchema": {"type": "object"}}


def build_reply(text, role="user"):
    """Return the reply of a prompt with one message."""
    return {"messages": [{"role": role, "content": {"type": "text", "text": text}}]}


UNKNOWN = {"error": {"code": -32602, "message": "unknown"}}
REPLIES = {
    "prompts/list": {"prompts": PROMPTS},
    "prompts/get": {"review": build_reply("Review it."), "plan": build_reply("Plan it."), **UNKNOWN},
    "resources/list": {"resources": [{"uri": "docs://a", "name": "a", "description": "A"}]},
    "resources/templates/list": {"resourceTemplates": []},
    "resources/read": UNKNOWN,
    "tools/list": {"tools": [TOOL]},
}

CASES = """
[review."a mean"]
code = "def mean(xs): ..."

[review.kind]
code = "x"
tone = "kind"
"""


@pytest.fixture
def server(scripted, tmp_path, monkeypatch):
    """
    A function that returns the option for a scripted server with other replies; the current folder is empty.
    """
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return lambda **replies: [
        "--server",
        scripted(replies={**REPLIES, **{name.replace("_", "/"): reply for name, reply in replies.items()}}),
    ]


def write_cases(text=CASES):
    """Write the cases into the current folder."""
    Path("cases.toml").write_text(text, encoding="utf-8")


def test_list_shows_prompts_with_their_arguments_and_resources(run, server):
    lines = (
        "prompt plan (Plan): Plan it.\n"
        "prompt review: Review code.\n"
        "    code: str, required: The code\n"
        "    tone: str, optional: The tone\n"
        "resource a (docs://a): A\n"
    )

    assert run("list", *server()) == (0, lines, "")


def test_list_prints_as_json_what_the_server_sent(run, server):
    code, output, _ = run("list", *server(), "--json")

    data = json.loads(output)
    assert code == 0
    assert data["prompts"] == PROMPTS
    assert data["tools"] == [TOOL]
    assert (data["server"], data["revision"]) == ("scripted 1.0", "2025-11-25")


def test_render_requests_the_prompt_with_the_given_arguments(run, server):
    assert run("render", *server(), "review", "code=x") == (0, "[user]\nReview it.\n", "")


def test_render_reports_a_missing_argument_without_a_request(run, server):
    code, _, errors = run("render", *server(prompts_get=build_reply("never")), "review", "tone=x")

    assert code == 1
    assert "'code' is missing" in errors


def test_render_reports_the_error_of_the_server(run, server):
    code, _, errors = run("render", *server(prompts_get=UNKNOWN), "plan")

    assert (code, errors) == (1, "promptkit: unknown (code -32602)\n")


def test_render_suggests_a_similar_name(run, server):
    code, _, errors = run("render", *server(), "reveiw", "code=x")

    assert (code, errors) == (2, "promptkit: unknown prompt 'reveiw'; did you mean 'review'?\n")


def test_cases_are_in_the_current_folder(run, server):
    write_cases()

    code, output, _ = run("render", *server(), "review", "--cases")

    assert code == 0
    assert output == "# a mean\n\n[user]\nReview it.\n\n# kind\n\n[user]\nReview it.\n"
    assert run("render", *server(), "review", "--case", "a mean")[0] == 0
    assert "did you mean 'kind'?" in run("render", *server(), "review", "--case", "kin")[2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[review", "it is not valid TOML"),
        ("review = 1", "[review] must be a table"),
        ('[review."a"]\ncode = 5', "the argument 'code' of the case 'a' is not text: write it in quotes"),
    ],
)
def test_invalid_cases_are_an_error(run, server, text, message):
    write_cases(text)

    code, _, errors = run("list", *server())

    assert code == 2
    assert errors.startswith("promptkit: cannot load 'cases.toml': ")
    assert message in errors


def test_check_names_the_prompt_and_no_line(run, server):
    prompts = [{"name": "a b", "arguments": [{"name": "x", "description": "as JSON"}]}]

    code, output, _ = run("check", *server(prompts_list={"prompts": prompts}))

    assert code == 1
    first, *lines = [line for line in output.splitlines() if not line.startswith(" ")]
    assert first.startswith("<server>: error PK201: prompt 'a b': a name must have 1 to 64 characters")
    assert lines == [
        "<server>: warning PK805: prompt 'a b': it has no description",
        "<server>: warning PK808: prompt 'a b': users must write JSON for the argument 'x'",
        "1 prompt, 1 resource and 1 tool checked, 1 error, 2 warnings",
    ]


def test_check_reports_a_case_of_an_unknown_prompt(run, server):
    write_cases("\n[reviw.kind]\ncode = 'x'\n")

    code, output, _ = run("check", *server())

    assert code == 1
    assert "cases.toml: error PK230: prompt 'reviw': the server has no such prompt" in output
    assert "did you mean 'review'?" in output


def test_check_renders_only_if_asked(run, server, tmp_path):
    for options, requested in (([], False), (["--render"], True)):
        reply = build_reply("Bye.", role="assistant")
        code, output, _ = run("check", *server(prompts_get=reply), *options)

        assert code == 0
        assert ("PK211" in output) is requested


def test_check_renders_the_cases(run, server):
    write_cases()
    rejected = {"error": {"code": -32602, "message": "too long"}}

    code, output, _ = run(
        "check", "--render", *server(prompts_get={"plan": build_reply("x"), "review": rejected, **UNKNOWN})
    )

    assert code == 1
    assert "cases.toml: error PK231: prompt 'review': the case 'a mean' is rejected: too long" in output


def test_check_reports_the_limitations_of_clients(run, server):
    _, output, _ = run("check", "--client", "zed", "--client", "claude-code", *server())

    assert "PK501: prompt 'review': Zed hides it, because it has 2 arguments" in output
    assert "PK503: prompt 'review': Claude Code gives 'code' only one word" in output


def test_check_ignores_what_the_configuration_ignores(run, server):
    Path("pyproject.toml").write_text('[tool.promptkit]\nignore = ["PK805"]\n', encoding="utf-8")

    code, output, _ = run(
        "check", *server(tools_list={"tools": [{**TOOL, "description": ""}]}), "--fail-on", "warning"
    )

    assert (code, output) == (0, "2 prompts, 1 resource and 1 tool checked\n")


def test_diff_compares_two_servers(run, server):
    write_cases()
    arguments = [{**PROMPTS[0]["arguments"][0]}, {**PROMPTS[0]["arguments"][1], "required": True}]
    new = server(
        prompts_list={"prompts": [{**PROMPTS[0], "arguments": arguments}]},
        prompts_get={"review": build_reply("Look at it."), **UNKNOWN},
    )

    code, output, _ = run("diff", *server(), *new)

    assert code == 1
    assert "breaking: prompt 'plan': was removed" in output
    assert "breaking: prompt 'review': argument 'tone' is now required" in output
    assert "harmless: prompt 'review': renders different text for kind" in output


def test_diff_of_a_server_with_itself_is_empty(run, server):
    write_cases()

    for options in ([], ["--text"]):
        assert run("diff", *server(), *server(), *options)[0] == 0
    assert run("diff", *server(), *server(), "--json")[1].count('"changes": []') == 1


def test_diff_compares_a_file_with_a_server(run, server):
    write_cases()
    Path("old.json").write_text(run("list", "--json", "--texts", *server())[1], encoding="utf-8")

    same = run("diff", *server(), "old.json")
    code, output, _ = run("diff", "--text", *server(prompts_get=build_reply("Look at it.")), "old.json")

    assert same == (0, "nothing that clients see has changed since old.json\n", "")
    assert code == 0
    assert "prompt 'review': 'kind' renders different text" in output
    assert "[-Review-]{+Look at+} it." in output


def test_the_text_of_recipes_is_in_the_list_as_well(run, recipes):
    source = 'from promptkit import prompt\n\n@prompt\ndef a(x: str):\n    return x\n\na.case("one", "X")\n'
    folder = recipes(one=source)

    _, output, _ = run("list", "--json", "--texts", str(folder))

    assert json.loads(output)["texts"] == {"a": {"one": "[user]\nX"}}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("list --texts --server x", "--texts requires --json"),
        ("list recipes --server x", "--server cannot be combined with a target or --markdown"),
        ("render recipes name --server x", "--server cannot be combined with a target or --markdown"),
        ("list --server x --server y", "only diff accepts more than one --server"),
        ("diff --server x", "name a second --server, or a file"),
        (
            "diff --server x --server y file",
            "too many sides to compare: name two servers, or one file and one server",
        ),
        ("diff --server x --repeat --text file", "--repeat cannot be combined with --server"),
        ("list --server x --env PROMPTKIT_NO_SUCH_VARIABLE", "'PROMPTKIT_NO_SUCH_VARIABLE' is not set"),
        ("list --server http://x --header a", "'a' is not a valid HTTP header"),
    ],
)
def test_wrong_usage_is_reported(run, words, message):
    code, _, errors = run(*shlex.split(words))

    assert code == 2
    assert message in errors


def test_a_file_that_list_did_not_write_is_an_error(run, server):
    Path("old.json").write_text('{"prompts": 5}', encoding="utf-8")

    for name in ("old.json", "none.json"):
        code, _, errors = run("diff", *server(), name)

        assert code == 2
        assert errors.startswith(f"promptkit: cannot load '{name}': ")


def test_a_command_is_not_run_by_a_shell(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    code, _, errors = run("list", "--server", "true; touch owned && $(touch owned) | `touch owned`")

    assert code == 2
    assert "there is no program 'true;'" in errors
    assert not Path("owned").exists()


def test_without_the_official_client_the_extra_is_named(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "promptkit.foreign.connection", None)

    code, _, errors = run("list", "--server", "true")

    assert code == 2
    assert "is not installed: run" in errors
    assert "[servers]'" in errors


HOSTILE = {
    "prompts/list": {
        "prompts": [
            {
                "name": f"a{EVIL}",
                "title": EVIL,
                "description": EVIL,
                "arguments": [{"name": f"x{EVIL}", "description": EVIL}],
            }
        ]
    },
    "prompts/get": {"error": {"code": -32000, "message": EVIL}},
    "resources/list": {"resources": [{"uri": f"a:{EVIL}", "name": EVIL, "description": EVIL}]},
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": f"b:{{x}}{EVIL}", "name": EVIL}]},
    "resources/read": {"error": {"code": -32000, "message": EVIL}},
    "tools/list": {"tools": [{"name": EVIL, "inputSchema": {"$schema": EVIL}}]},
}


@pytest.mark.parametrize(
    "words",
    [
        "list",
        "list --json",
        "check",
        "check --render",
        "check --json",
        "check --render --format github",
        "render x",
    ],
)
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_no_text_of_a_server_controls_the_terminal(run_on_terminal, scripted, words, stream):
    command = scripted(replies=HOSTILE, stderr=EVIL)

    _, output = run_on_terminal(*shlex.split(words), "--server", command, stream=stream)

    shown = re.sub("\x1b\\[[0-9;]*m", "", output)  # promptkit's own colours
    assert "\x1b" not in shown
    assert not {"\x07", "\x9b", "\u202e"} & set(shown)


def test_the_output_of_a_server_that_fails_is_escaped(run, tmp_path):
    code = "import sys; sys.stdout.write('\\x1b[2J\\n'); sys.exit('\\x1b]0;x\\x07')"

    exit_code, _, errors = run("list", "--server", shlex.join([sys.executable, "-c", code]))

    assert exit_code == 2
    assert "\x1b" not in errors
    assert "\x07" not in errors
    assert "it ended the connection instead of answering the handshake" in errors
