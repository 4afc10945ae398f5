"""Each command in each of its formats: output and exit code on a terminal and in a pipe."""

import json
import re
import shutil
import subprocess

import pytest

from tests.terminal import in_shell, outcome_on_terminal

RECIPE = """
from typing import Annotated, Literal
from promptkit import Arg, PromptError, prompt, resource

@prompt
def review(
    code: Annotated[str, Arg("The code", examples=["x"])], language: Literal["python", "rust"] = "python"
):
    'Review it.'
    return f"Review this {language}: {code}"

@resource("style://{language}")
def style(language: Annotated[str, Arg(complete=["python", "rust"])]) -> str:
    return f"Write plain {language}."
"""
FAULTY = """
from promptkit import prompt

@prompt
def bare(text):
    return text

@prompt
def fails(text: str = "x"):
    return text[5]
"""

LISTED = """\
prompt review: Review it.
    code: str, required: The code
    language: Literal['python', 'rust'], default python
template style (style://{language})
    language: str, required
"""
MESSAGES = {
    "description": "Review it.",
    "messages": [{"role": "user", "content": {"type": "text", "text": "Review this rust: x"}}],
}
CONTENTS = {"contents": [{"uri": "style://go", "mimeType": "text/plain", "text": "Write plain go."}]}
CHECKED = {
    "prompts": ["review"],
    "resources": ["style://{language}"],
    "skills": [],
    "diagnostics": [],
    "not_described": [],
}
COMPLETED = {"completion": {"values": ["rust"], "total": 1, "hasMore": False}}
NEEDS = "not rendered because they need examples: style://{language}"
SERVED = "1 prompt and 1 resource can be served\n"
BARE = "prompt 'bare': parameter 'text' has no annotation"
FAILS = "prompt 'fails': it fails for its defaults: IndexError: string index out of range"
ABSENT = "nofile: the file cannot be read: No such file or directory"

#: Command lines, their exit codes, their text output, and the data of `--json`.
VALID = [
    (["list"], 0, LISTED, None),
    (["render", "review", "code=x", "language=rust"], 0, "[user]\nReview this rust: x\n", MESSAGES),
    (["render", "style://go"], 0, "[style://go]\nWrite plain go.\n", CONTENTS),
    (["check"], 0, SERVED, CHECKED),
    (
        ["check", "--render"],
        0,
        f"{SERVED}{NEEDS}\n",
        {**CHECKED, "not_rendered": {"style://{language}": "it needs examples"}},
    ),
    (
        ["check", "--token-file", "nofile"],
        1,
        f"{SERVED}a server would not start: {ABSENT}\n",
        {**CHECKED, "refused": [ABSENT]},
    ),
    (["complete", "review", "language", "r"], 0, "rust\n", COMPLETED),
    (["complete", "style://{language}", "language", "r"], 0, "rust\n", COMPLETED),
    (["complete", "review", "code"], 0, "", {"completion": {"values": [], "total": 0, "hasMore": False}}),
    (
        ["diff"],
        0,
        "nothing that clients see has changed since HEAD\n",
        {"revision": "HEAD", "breaking": False, "changes": [], "not_compared": []},
    ),
]

#: Invalid command lines, their exit codes, and the last line on standard error.
WRONG = [
    (["list", "nowhere"], 2, "promptkit: cannot load 'nowhere': there is no such folder, file or module"),
    (["render", "revew"], 2, "promptkit: unknown prompt 'revew'; did you mean 'review'?"),
    (["render", "review"], 1, "promptkit: prompt 'review': 'code' is missing"),
    (
        ["render", "style:/go"],
        2,
        "promptkit: unknown resource 'style:/go': run 'promptkit list' to see all names",
    ),
    (["check", "nowhere"], 2, "promptkit: cannot load 'nowhere': there is no such folder, file or module"),
    (
        ["check", "--client", "zedd"],
        2,
        "promptkit check: error: argument --client: unknown client 'zedd': did you mean 'zed'?",
    ),
    (["diff", "nope"], 2, "promptkit: unknown revision 'nope': use a commit, a branch or a tag"),
    (
        ["complete", "review", "langage"],
        2,
        "promptkit: prompt 'review': 'langage' is not an argument of this prompt (did you mean 'language'?)",
    ),
]


@pytest.fixture
def project(recipes, tmp_path, request, monkeypatch):
    """A prompt and a resource in the current folder, which is a git repository if a revision is needed."""
    recipes(shelf=RECIPE)
    monkeypatch.chdir(tmp_path)
    if "argv" in request.fixturenames and request.getfixturevalue("argv")[0] == "diff":
        request.getfixturevalue("in_process")
        author = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        for words in (["init"], ["add", "--all"], [*author, "commit", "--message=One"]):
            subprocess.run(["git", *words], cwd=tmp_path, capture_output=True, check=True)  # noqa: S607
    return tmp_path


@pytest.fixture
def new_project(recipes, tmp_path, monkeypatch):
    """A function that creates a home without clients, and a project as the current folder."""
    home, project = tmp_path / "home", tmp_path / "shelf"
    recipes(folder="kept/recipes", shelf=RECIPE)
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", "/nonexistent")

    def begin():
        for folder in (home, project):
            shutil.rmtree(folder, ignore_errors=True)
        home.mkdir()
        shutil.copytree(tmp_path / "kept", project)
        monkeypatch.chdir(project)

    return begin


@pytest.fixture
def faulty(recipes, tmp_path, monkeypatch):
    """A prompt that cannot be served, and a prompt that fails, in the current folder."""
    recipes(faulty=FAULTY)
    monkeypatch.chdir(tmp_path)


def case_id(value):
    """Return the id of a case."""
    return " ".join(map(str, value)) if isinstance(value, list) else ""


@pytest.mark.parametrize(("argv", "code", "text", "data"), VALID, ids=case_id)
class TestValid:
    def test_text(self, argv, code, text, data, *, project, run, run_on_terminal):
        """A pipe and a terminal get the same text, and standard error is empty."""
        assert run(*argv) == (code, text, "")
        assert run_on_terminal(*argv, columns=200, NO_COLOR="1") == (code, text)
        assert run_on_terminal(*argv, stream="stderr") == (code, "")

    def test_json(self, argv, code, text, data, *, project, run, run_on_terminal):
        """`--json` prints one JSON document, the same in a pipe and on a terminal."""
        exit_code, out, err = run(*argv, "--json")

        assert (exit_code, err) == (code, "")
        assert run_on_terminal(*argv, "--json") == (code, out)
        document = json.loads(out)
        if data is None:  # names are enough for `list`, whose items are tested elsewhere
            assert [item["name"] for key in ("prompts", "resourceTemplates") for item in document[key]] == [
                "review",
                "style",
            ]
        else:
            assert document == data


@pytest.mark.parametrize(("argv", "code", "message"), WRONG, ids=case_id)
def test_wrong_usage(argv, code, message, *, project, run, run_on_terminal):
    """Standard output stays empty in both formats, and a terminal shows the same error as a pipe."""
    for option in ([], ["--json"]):
        exit_code, out, err = run(*argv, *option)
        assert (exit_code, out) == (code, "")
        assert err.splitlines()[-1].startswith(message)
    exit_code, output = run_on_terminal(*argv, stream="stderr", NO_COLOR="1")
    assert exit_code == code
    assert output.splitlines()[-1].startswith(message)


#: Previous commands, a command line that writes, its exit code, and the first line of its output.
WRITING = [
    ([], ["new", "project"], 0, "wrote project/prompts/review.py"),
    ([["new", "project"]], ["new", "project"], 1, ""),
    ([], ["install", "zed"], 0, "Zed now has the server 'shelf'"),
    ([], ["install", "--list"], 0, "claude-code: not found"),
    ([["install", "zed"]], ["uninstall", "zed"], 0, "Zed no longer has the server 'shelf'"),
]


@pytest.mark.parametrize(("before", "argv", "code", "first"), WRITING, ids=case_id)
def test_commands_that_write(before, argv, code, first, *, new_project, run, run_on_terminal):
    """A pipe and a terminal get the same output from the same state."""

    def prepare():
        new_project()
        for command_line in before:
            assert run(*command_line)[0] == 0

    prepare()
    exit_code, out, err = run(*argv)

    assert exit_code == code
    assert out.splitlines()[:1] == ([first] if first else [])
    assert (err == "") == (code == 0)
    prepare()
    assert run_on_terminal(*argv, columns=500) == (code, out)


class TestErrors:
    def test_check(self, faulty, run, run_on_terminal):
        """Each format reports each diagnostic and exits with 1, on a terminal and in a pipe."""
        for form, terminal in [(f, t) for f in ("text", "json", "github") for t in (False, True)]:
            argv = ["check", "--render", "--format", form]
            if terminal:
                code, output = run_on_terminal(*argv, columns=200, NO_COLOR="1")
            else:
                code, output, err = run(*argv)
                assert err == ""
            assert code == 1
            assert BARE in output
            assert FAILS in output
            has_source = re.search(r"^ +\d+ \| def bare\(text\):$", output, re.MULTILINE) is not None
            assert has_source == (form == "text" and terminal)

    def test_github_format(self, faulty, run, run_on_terminal):
        """A terminal and a pipe get the same workflow commands, one per line."""
        argv = ["check", "--render", "--format", "github"]
        code, out, _ = run(*argv)

        assert run_on_terminal(*argv) == (code, out)
        assert [line.partition(" ")[0] for line in out.splitlines()] == ["::error", "::error"]

    def test_list(self, faulty, run, run_on_terminal):
        """Served prompts are listed, and errors go to standard error."""
        code, out, err = run("list")
        exit_code, output = run_on_terminal("list", "--json")

        assert (code, out) == (1, "prompt fails\n    text: str, default x\n")
        assert BARE in err
        assert (exit_code, [prompt["name"] for prompt in json.loads(output)["prompts"]]) == (1, ["fails"])

    def test_render(self, faulty, run, run_on_terminal):
        """A failing prompt prints its traceback, on a terminal and in a pipe."""
        code, out, err = run("render", "fails", "--json")
        exit_code, output = run_on_terminal("render", "fails", stream="stderr")

        assert (code, out, exit_code) == (1, "", 1)
        assert output == err
        assert output.splitlines()[-2] == "IndexError: string index out of range"


@pytest.mark.parametrize("argv", [["list"], ["check"], ["render", "style://go"]], ids=case_id)
def test_closed_pipe(argv, project):
    """A pipe that is closed early, as by `head -1`, causes no traceback."""
    _, _, err = in_shell(f"promptkit {' '.join(argv)} | true", cwd=project)

    assert err == b""


def test_real_terminal(project):
    """A process on a pseudoterminal prints the same as a command on the imitated terminal."""
    argv, code, text, _ = VALID[0]

    assert outcome_on_terminal(*argv, cwd=project, columns=200, NO_COLOR="1") == (code, text)
