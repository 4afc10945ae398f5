"""`promptkit complete`: what a client would be offered."""

import json

import pytest

from promptkit.cli import main
from tests.terminal import command, on_terminal

SHELF = """
from enum import Enum
from typing import Annotated, Literal
from promptkit import Arg, prompt, resource

def branches(typed, chosen):
    return [f"{typed}-{n}" for n in range(150)]

def broken():
    raise ValueError("a bug")

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
        (["docs://{sectio}", "x"], 2, "unknown resource 'docs://{sectio}'; did you mean 'docs://{section}'?"),
        (["review", "bad"], 1, "ValueError: a bug"),
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
