"""`pytest --promptkit --promptkit-server`: a test for each prompt of a server and for each case."""

import pytest

pytest_plugins = ["pytester"]

UNKNOWN = {"error": {"code": -32602, "message": "unknown"}}
PROMPTS = [
    {"name": "review", "description": "Review.", "arguments": [{"name": "code", "description": "The code"}]},
    {"name": "bare"},
]


def build_reply(text):
    """Return the reply of a prompt with one message."""
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}


@pytest.fixture
def server(pytester, scripted):
    """
    A function that returns pytest's options for a server whose prompt renders text, next to a file of cases.
    """
    pytester.makefile(".toml", cases='[review."a mean"]\ncode = "x"\n')

    def options(text="Review it."):
        replies = {
            "prompts/list": {"prompts": PROMPTS},
            "prompts/get": {"review": build_reply(text), **UNKNOWN},
            "resources/list": {"resources": []},
            "tools/list": {"tools": []},
        }
        return ["--promptkit", "--promptkit-server", scripted(replies=replies)]

    return options


def test_each_prompt_and_case_is_a_test(run, server):
    result = run(*server(), "-v")

    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines_random(
        [
            "*cases.toml::the server PASSED*",
            "*cases.toml::review PASSED*",
            "*cases.toml::bare FAILED*",
            "*cases.toml::review[[]a mean[]] PASSED*",
            "*warning PK805: prompt 'bare': it has no description",
        ]
    )


def test_a_changed_text_fails_against_its_snapshot(run, server, pytester):
    run(*server(), "--snapshot-update")
    snapshot = pytester.path / "__snapshots__" / "cases" / "review[a mean].md"

    same, changed = run(*server()), run(*server("Look at it."))

    assert snapshot.read_text(encoding="utf-8") == "[user]\nReview it.\n"
    same.assert_outcomes(passed=3, failed=1)
    changed.assert_outcomes(passed=2, failed=2)
    changed.stdout.fnmatch_lines(["*- Review it.", "*+ Look at it."])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--promptkit-server", "true"], "*--promptkit-server requires --promptkit*"),
        (["--promptkit", "--promptkit-server", "'"], "*unclosed quote*"),
        (
            ["--promptkit", "--promptkit-server", "promptkit-no-such-program"],
            "*cannot connect to*no program*",
        ),
    ],
)
@pytest.mark.usefixtures("server")
def test_a_server_that_cannot_be_tested_is_an_error(run, options, message):
    result = run(*options)

    assert result.ret != 0
    assert any(message.strip("*").split("*")[0] in line for line in (*result.outlines, *result.errlines))


def test_cases_are_required(run):
    result = run("--promptkit", "--promptkit-server", "true")

    assert any("tests the cases in cases.toml" in line for line in result.errlines)
