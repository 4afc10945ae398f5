"""`promptkit complete`: what a client would be offered."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from promptkit.cli import main
from tests.terminal import command, on_terminal

SHELF = """
import time
from enum import Enum
from typing import Annotated, Literal
from promptkit import Arg, prompt, resource

def branches(typed, chosen):
    return [f"{typed}-{n}" for n in range(150)]

def broken():
    raise ValueError("a bug")

def chosen_so_far(typed, chosen):
    return [f"{name} is {value}" for name, value in sorted(chosen.items())]

def leaks(typed, chosen):
    if typed == "fail":
        raise ValueError(f"bad key {chosen['key']}")
    return [f"with {chosen['key']}"]

def hangs():
    time.sleep(60)

def half():
    return ["a\\ud800"]

@prompt
def chooses(
    seen: Annotated[str, Arg(complete=chosen_so_far)],
    leaked: Annotated[str, Arg(complete=leaks)] = "",
    slow: Annotated[str, Arg(complete=hangs)] = "",
    half: Annotated[str, Arg(complete=half)] = "",
    key: Annotated[str, Arg(secret=True)] = "",
    data: bytes = b"",
) -> str:
    return seen

@resource("git://{repository}/{branch}")
def branch(repository: str, branch: Annotated[str, Arg(complete=chosen_so_far)]) -> str:
    return branch

@prompt
def review(
    language: Literal["python", "rust", "go"],
    branch: Annotated[str, Arg(complete=branches)] = "",
    shown: Annotated[str, Arg(complete=["a\\x1b[31mb"])] = "",
    bad: Annotated[str, Arg(complete=broken)] = "",
    free: str = "",
) -> str:
    return language

@prompt
def untyped(x) -> str:
    return x

@resource("docs://{section}")
def page(section: Annotated[str, Arg(complete=["intro", "end"])]) -> str:
    return section
"""


@pytest.fixture(autouse=True)
def shelf(recipes, tmp_path, monkeypatch):
    """Prompts with completers of each kind, in the current folder."""
    recipes(shelf=SHELF)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("argv", "values"),
    [
        (["review", "language"], ["python", "rust", "go"]),
        (["review", "language", "r"], ["rust"]),
        (["review", "language", "zz"], []),
        (["review", "free", "x"], []),
        (["review", "language", "--target", "recipes"], ["python", "rust", "go"]),
        (["docs://{section}", "section", "in"], ["intro"]),
    ],
    ids=" ".join,
)
def test_values_are_lines(argv, values, capsys):
    """
    Best first, one on a line, and nothing where nothing matches.
    """
    assert main(["complete", *argv]) == 0
    assert capsys.readouterr().out.splitlines() == values


def test_for_machines(capsys):
    """
    The JSON is what a client receives: at most a hundred values, and how many there are.
    """
    assert main(["complete", "review", "branch", "x", "--json"]) == 0

    offered = json.loads(capsys.readouterr().out)["completion"]
    assert (len(offered["values"]), offered["total"], offered["hasMore"]) == (100, 150, True)


def test_control_characters_are_shown_and_not_obeyed(shelf):
    """
    A terminal is sent their escapes; a pipe gets the value as it is.
    """
    assert on_terminal("complete", "review", "shown", cwd=shelf) == "a\\x1b[31mb\n"
    assert command("complete", "review", "shown", cwd=shelf) == (0, b"a\x1b[31mb\n", b"")


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["revew", "x"], 2, "unknown prompt 'revew'; did you mean 'review'?"),
        (
            ["review", "langage"],
            2,
            "prompt 'review': 'langage' is not an argument of this prompt (did you mean 'language'?)",
        ),
        (
            ["docs://{section}", "zzz"],
            2,
            "resource 'page': 'zzz' is not an argument of this resource, which takes section",
        ),
        (["docs://{sectio}", "x"], 2, "unknown resource 'docs://{sectio}'; did you mean 'docs://{section}'?"),
        (["zzz", "x"], 2, "unknown prompt 'zzz': promptkit list shows all names"),
        (["mail://x", "x"], 2, "unknown resource 'mail://x': promptkit list shows all names"),
        (["review", "bad"], 1, "ValueError: a bug"),
        (["page", "section"], 2, "unknown prompt 'page'; did you mean 'docs://{section}'?"),
    ],
    ids=str,
)
def test_what_goes_wrong(argv, code, said, capsys):
    """
    What does not exist is wrong usage; a completer that fails is the author's fault.
    """
    ended = main(["complete", *argv])

    printed = capsys.readouterr()
    assert (ended, printed.out) == (code, "")
    assert printed.err.splitlines()[-1].removeprefix("promptkit: ") == said


class TestChosen:
    @pytest.mark.parametrize(
        ("argv", "values"),
        [
            (["chooses", "seen"], []),
            (["chooses", "seen", "leaked=a b", "slow=x=y"], ["leaked is a b", "slow is x=y"]),
            (["chooses", "seen", "slow=1", "is"], ["slow is 1"]),
            (["chooses", "seen", "is", "slow=1"], ["slow is 1"]),
            (["chooses", "seen", "seen=is 2", "slow=1", "half=2"], ["half is 2"]),
            (["chooses", "seen", "https://x?slow=1", "slow=1"], []),
            (["chooses", "seen", "slow=@file.txt", "half=@@x"], ["half is @x", "slow is in a file"]),
            (["chooses", "seen", "data=@file.txt"], ["data is aW4gYSBmaWxl"]),
            (["chooses", "--json", "seen", "slow=1", "--target", "recipes"], ["slow is 1"]),
            (["git://{repository}/{branch}", "branch", "", "repository=mine"], ["repository is mine"]),
        ],
        ids=" ".join,
    )
    def test_a_function_is_given_what_was_chosen(self, argv, values, shelf, capsys):
        """
        Other arguments are written as for `render`, wherever they stand. The argument's own was typed.
        """
        (shelf / "file.txt").write_text("in a file")

        assert main(["complete", *argv]) == 0
        printed = capsys.readouterr().out
        offered = json.loads(printed)["completion"]["values"] if "--json" in argv else printed.splitlines()
        assert offered == values

    def test_from_standard_input(self, shelf):
        """
        ``@-`` is read, too.
        """
        argv = ["complete", "chooses", "seen", "slow=@-"]

        assert command(*argv, cwd=shelf, input=b"piped") == (0, b"slow is piped\n", b"")

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["slw=1"], "prompt 'chooses': 'slw' is not an argument of this prompt (did you mean 'slow'?)"),
            (["slow=1", "slow=2"], "'slow' is given twice"),
            (["x", "seen=y"], "'seen' is given twice"),
            (["slow=@nowhere"], "'slow' cannot be read from 'nowhere': No such file or directory"),
            (["key=@hunter2hunter2"], "'key' cannot be read from '<secret>': No such file or directory"),
        ],
        ids=" ".join,
    )
    def test_wrong_usage(self, words, said, capsys):
        """
        It is told as `render` tells it.
        """
        assert main(["complete", "chooses", "seen", *words]) == 2
        assert capsys.readouterr() == ("", f"promptkit: {said}\n")

    def test_two_words_that_may_have_been_typed(self, capsys):
        """
        One of them was meant to be something else.
        """
        with pytest.raises(SystemExit) as ended:
            main(["complete", "chooses", "seen", "a", "b"])

        assert ended.value.code == 2
        told = capsys.readouterr().err.splitlines()[-1]
        assert told == (
            "promptkit complete: error: unexpected argument 'b': other arguments are written KEY=VALUE"
        )

    @pytest.mark.parametrize("argv", [[], ["--json"], ["fail"]], ids=str)
    def test_a_secret_is_hidden(self, argv, capsys):
        """
        In what is offered, and in what an author's function says of it.
        """
        main(["complete", "chooses", "leaked", *argv, "key=hunter2hunter2"])

        out, err = capsys.readouterr()
        assert "<secret>" in out + err
        assert "hunter2" not in out + err


def test_text_that_cannot_be_sent(capsys):
    """
    A client would be told of an error; text shows what is wrong.
    """
    assert main(["complete", "chooses", "half", "--json"]) == 1
    assert capsys.readouterr().err.startswith("promptkit: a value cannot be sent: ")
    assert main(["complete", "chooses", "half"]) == 0
    assert capsys.readouterr().out == "a\\ud800\n"


def test_the_time_limit(monkeypatch, capsys):
    """
    A function has the time that a server gives to it.
    """
    monkeypatch.setattr("promptkit.server.user_code.Limits", lambda: SimpleNamespace(timeout=0.05))

    place = Path("recipes", "shelf.py")

    assert main(["complete", "chooses", "slow"]) == 1
    assert capsys.readouterr() == (
        "",
        f"promptkit: completing 'slow' took longer than its limit of 0.05 s, and was at {place}:21\n",
    )
