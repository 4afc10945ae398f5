"""Each command in each of its forms: what it prints and how it ends, on a terminal and in a pipe."""

import json
import re
import shutil
import subprocess

import pytest

from tests.terminal import command, ended_on_terminal, in_shell

pytestmark = [pytest.mark.sampled, pytest.mark.slow]

SHELF = """
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
CHECKED = {"prompts": ["review"], "resources": ["style://{language}"], "skills": [], "diagnostics": []}
COMPLETED = {"completion": {"values": ["rust"], "total": 1, "hasMore": False}}
NEEDS = "not rendered, because they need examples: style://{language}"
SERVED = "1 prompt and 1 resource can be served\n"
BARE = "prompt 'bare': parameter 'text' has no annotation"
FAILS = "prompt 'fails': it fails for its defaults: IndexError: string index out of range"
ABSENT = "nofile: cannot be read: No such file or directory"

#: Command lines, how they end, what they print as text, and the data that they print with ``--json``.
SOUND = [
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
        f"{SERVED}no server starts with {ABSENT}\n",
        {**CHECKED, "refused": [ABSENT]},
    ),
    (["complete", "review", "language", "r"], 0, "rust\n", COMPLETED),
    (["complete", "style://{language}", "language", "r"], 0, "rust\n", COMPLETED),
    (["complete", "review", "code"], 0, "", {"completion": {"values": [], "total": 0, "hasMore": False}}),
    (
        ["diff"],
        0,
        "nothing that clients see has changed since HEAD\n",
        {"revision": "HEAD", "breaking": False, "changes": []},
    ),
]

#: Command lines that fail, how they end, and the last line on standard error.
WRONG = [
    (["list", "nowhere"], 2, "promptkit: cannot load 'nowhere': there is no such folder, file or module"),
    (["render", "revew"], 2, "promptkit: unknown prompt 'revew'; did you mean 'review'?"),
    (["render", "review", "--no-input"], 1, "promptkit: prompt 'review': 'code' is missing"),
    (
        ["render", "style:/go"],
        2,
        "promptkit: unknown resource 'style:/go': promptkit list shows all names",
    ),
    (["check", "nowhere"], 2, "promptkit: cannot load 'nowhere': there is no such folder, file or module"),
    (
        ["check", "--client", "zedd"],
        2,
        "promptkit check: error: argument --client: there is no client 'zedd': did you mean 'zed'?",
    ),
    (["diff", "nope"], 2, "promptkit: there is no revision 'nope' here: name a commit, a branch or a tag"),
    (
        ["complete", "review", "langage"],
        2,
        "promptkit: prompt 'review': 'langage' is not an argument of this prompt (did you mean 'language'?)",
    ),
]


@pytest.fixture
def shelf(recipes, tmp_path, request):
    """A prompt and a resource, in the current folder; in a repository where a revision is needed."""
    recipes(shelf=SHELF)
    if request.getfixturevalue("argv")[0] == "diff":
        author = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        for words in (["init"], ["add", "--all"], [*author, "commit", "--message=One"]):
            subprocess.run(["git", *words], cwd=tmp_path, capture_output=True, check=True)  # noqa: S607
    return tmp_path


@pytest.fixture
def begins(recipes, tmp_path, monkeypatch):
    """A function that makes a home without clients, and a project; it returns the folder of that."""
    home, project = tmp_path / "home", tmp_path / "shelf"
    recipes(folder="kept/recipes", shelf=SHELF)
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", "/nonexistent")

    def begin():
        for folder in (home, project):
            shutil.rmtree(folder, ignore_errors=True)
        home.mkdir()
        return shutil.copytree(tmp_path / "kept", project)

    return begin


@pytest.fixture
def faulty(recipes, tmp_path):
    """A prompt that cannot be served, and one that fails."""
    recipes(faulty=FAULTY)
    return tmp_path


def name(value):
    """How a case is called: by its command line."""
    return " ".join(map(str, value)) if isinstance(value, list) else ""


@pytest.mark.parametrize(("argv", "code", "text", "data"), SOUND, ids=name)
class TestSound:
    def test_text(self, argv, code, text, data, shelf):
        """
        A pipe and a terminal are shown the same, and nothing is on standard error.
        """
        assert command(*argv, cwd=shelf) == (code, text.encode(), b"")
        assert ended_on_terminal(*argv, cwd=shelf, columns=200, NO_COLOR="1") == (code, text)
        assert ended_on_terminal(*argv, cwd=shelf, stream="stderr") == (code, "")

    def test_json(self, argv, code, text, data, shelf):
        """
        ``--json`` prints one document of JSON, the same in a pipe and on a terminal.
        """
        ended, out, err = command(*argv, "--json", cwd=shelf)

        assert (ended, err) == (code, b"")
        assert ended_on_terminal(*argv, "--json", cwd=shelf) == (code, out.decode())
        printed = json.loads(out)
        if data is None:  # of a list, names are enough: what a client receives is tested where it is made
            assert [one["name"] for key in ("prompts", "resourceTemplates") for one in printed[key]] == [
                "review",
                "style",
            ]
        else:
            assert printed == data


@pytest.mark.parametrize(("argv", "code", "said"), WRONG, ids=name)
def test_wrong_usage(argv, code, said, shelf):
    """
    Standard output stays empty, as text and as JSON, and a terminal is told the same as a pipe.
    """
    for more in ([], ["--json"]):
        ended, out, err = command(*argv, *more, cwd=shelf)
        assert (ended, out) == (code, b"")
        assert err.decode().splitlines()[-1].startswith(said)
    ended, shown = ended_on_terminal(*argv, cwd=shelf, stream="stderr", columns=80, NO_COLOR="1")
    assert ended == code
    assert shown.splitlines()[-1].startswith(said)


#: Command lines that write, after others that come first; how they end, and the first line that they print.
WRITING = [
    ([], ["new", "project"], 0, "wrote project/pyproject.toml"),
    ([["new", "project"]], ["new", "project"], 1, ""),
    ([], ["install", "zed"], 0, "Zed has the server 'shelf'"),
    ([], ["install", "--list"], 0, "claude-code: not found"),
    ([["install", "zed"]], ["uninstall", "zed"], 0, "Zed no longer has the server 'shelf'"),
]


@pytest.mark.parametrize(("before", "argv", "code", "first"), WRITING, ids=name)
def test_commands_that_write(before, argv, code, first, begins):
    """
    A pipe and a terminal are told the same, each time from the same beginning; ``--json`` is JSON on both.
    """

    def begin():
        project = begins()
        for command_line in before:
            assert command(*command_line, cwd=project)[0] == 0
        return project

    ended, out, err = command(*argv, cwd=begin())
    json_ended, json_out, _ = command(*argv, "--json", cwd=begin())

    assert (ended, json_ended) == (code, code)
    assert out.decode().splitlines()[:1] == ([first] if first else [])
    assert (err == b"") == (code == 0)
    assert json_out == b"" if code else json.loads(json_out)
    assert ended_on_terminal(*argv, cwd=begin(), columns=500) == (code, out.decode())
    assert ended_on_terminal(*argv, "--json", cwd=begin()) == (code, json_out.decode())


class TestFaults:
    def test_of_a_check(self, faulty):
        """
        Each format tells each fault, and ends with 1, wherever it is printed.
        """
        for form, terminal in [(f, t) for f in ("text", "json", "github") for t in (False, True)]:
            argv = ["check", "--render", "--format", form]
            if terminal:
                code, shown = ended_on_terminal(*argv, cwd=faulty, columns=200, NO_COLOR="1")
            else:
                code, out, err = command(*argv, cwd=faulty)
                shown = out.decode()
                assert err == b""
            assert code == 1
            assert BARE in shown
            assert FAILS in shown
            has_source = re.search(r"^ +\d+ \| def bare\(text\):$", shown, re.MULTILINE) is not None
            assert has_source == (form == "text" and terminal)

    def test_of_github(self, faulty):
        """
        A terminal and a pipe are given the same commands, one on a line.
        """
        argv = ["check", "--render", "--format", "github"]
        code, out, _ = command(*argv, cwd=faulty)

        assert ended_on_terminal(*argv, cwd=faulty) == (code, out.decode())
        assert [line.partition(" ")[0] for line in out.decode().splitlines()] == ["::error", "::error"]

    def test_beside_a_list(self, faulty):
        """
        What can be served is listed, and the rest is told on standard error.
        """
        code, out, err = command("list", cwd=faulty)
        ended, shown = ended_on_terminal("list", "--json", cwd=faulty)

        assert (code, out) == (1, b"prompt fails\n    text: str, default x\n")
        assert BARE in err.decode()
        assert (ended, [one["name"] for one in json.loads(shown)["prompts"]]) == (1, ["fails"])

    def test_of_a_rendering(self, faulty):
        """
        A prompt that fails is told with its traceback, on a terminal as in a pipe.
        """
        code, out, err = command("render", "fails", "--json", cwd=faulty)
        ended, shown = ended_on_terminal("render", "fails", cwd=faulty, stream="stderr")

        assert (code, out, ended) == (1, b"", 1)
        assert shown == err.decode()
        assert shown.splitlines()[-1] == "IndexError: string index out of range"


@pytest.mark.parametrize("argv", [argv for argv, *_ in SOUND], ids=name)
def test_a_reader_that_has_seen_enough(argv, shelf):
    """
    Whatever closes the pipe early, as ``head -1`` does, no traceback is left behind.
    """
    line = f"promptkit {' '.join(map(repr, argv))} | true"

    _, _, err = in_shell(line, cwd=shelf)

    assert err == b""
