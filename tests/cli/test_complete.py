"""`promptkit complete`: the completions that a client would receive."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from promptkit.cli import main

RECIPE = """
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
def project(recipes, tmp_path, monkeypatch):
    """Prompts with completers of each kind, in the current folder."""
    recipes(shelf=RECIPE)
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
def test_values(argv, values, capsys):
    """The values are printed one per line, best match first."""
    assert main(["complete", *argv]) == 0
    assert capsys.readouterr().out.splitlines() == values


def test_json(capsys):
    """`--json` prints what a client receives: at most 100 values, and their total number."""
    assert main(["complete", "review", "branch", "x", "--json"]) == 0

    completion = json.loads(capsys.readouterr().out)["completion"]
    assert (len(completion["values"]), completion["total"], completion["hasMore"]) == (100, 150, True)


def test_control_characters(project, run, run_on_terminal):
    """Control characters are escaped on a terminal and unchanged in a pipe."""
    assert run_on_terminal("complete", "review", "shown") == (0, "a\\x1b[31mb\n")
    assert run("complete", "review", "shown") == (0, "a\x1b[31mb\n", "")


@pytest.mark.parametrize(
    ("argv", "code", "message"),
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
        (["zzz", "x"], 2, "unknown prompt 'zzz': run 'promptkit list' to see all names"),
        (["mail://x", "x"], 2, "unknown resource 'mail://x': run 'promptkit list' to see all names"),
        (["review", "bad"], 1, "completing 'bad' failed at recipes/shelf.py:10"),
        (["page", "section"], 2, "unknown prompt 'page'; did you mean 'docs://{section}'?"),
    ],
    ids=str,
)
def test_errors(argv, code, message, capsys):
    """An unknown name is a usage error, and a failing completer is not."""
    exit_code = main(["complete", *argv])

    captured = capsys.readouterr()
    assert (exit_code, captured.out) == (code, "")
    assert captured.err.splitlines()[-1].removeprefix("promptkit: ") == message


class TestOtherArguments:
    @pytest.mark.parametrize(
        ("argv", "values"),
        [
            (["chooses", "seen"], []),
            (["chooses", "seen", "leaked=a b", "slow=x=y"], ["leaked is a b", "slow is x=y"]),
            (["chooses", "seen", "slow=1", "is"], ["slow is 1"]),
            (["chooses", "seen", "is", "slow=1"], ["slow is 1"]),
            (["chooses", "seen", "half=2", "is 2", "slow=1"], ["half is 2"]),
            (["chooses", "seen", "https://x?slow=1", "slow=1"], []),
            (["chooses", "seen", "slow=@file.txt", "half=@@x"], ["half is @x", "slow is in a file"]),
            (["chooses", "seen", "data=@file.txt"], ["data is aW4gYSBmaWxl"]),
            (["chooses", "--json", "seen", "slow=1", "--target", "recipes"], ["slow is 1"]),
            (["git://{repository}/{branch}", "branch", "", "repository=mine"], ["repository is mine"]),
        ],
        ids=" ".join,
    )
    def test_arguments_are_passed_to_the_completer(self, argv, values, project, capsys):
        """Other arguments have the syntax of `render`, in any position."""
        (project / "file.txt").write_text("in a file")

        assert main(["complete", *argv]) == 0
        captured = capsys.readouterr().out
        completion = (
            json.loads(captured)["completion"]["values"] if "--json" in argv else captured.splitlines()
        )
        assert completion == values

    def test_argument_from_standard_input(self, project, run):
        """`@-` reads standard input."""
        argv = ["complete", "chooses", "seen", "slow=@-"]

        assert run(*argv, stdin=b"piped") == (0, "slow is piped\n", "")

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["slw=1"], "prompt 'chooses': 'slw' is not an argument of this prompt (did you mean 'slow'?)"),
            (["slow=1", "slow=2"], "'slow' was given twice: pass it only once"),
            (["slow=@nowhere"], "'slow' cannot be read from 'nowhere': No such file or directory"),
            (["key=@hunter2hunter2"], "'key' cannot be read from '<secret>': No such file or directory"),
        ],
        ids=" ".join,
    )
    def test_usage_errors(self, words, message, capsys):
        """Errors are the same as those of `render`."""
        assert main(["complete", "chooses", "seen", *words]) == 2
        assert capsys.readouterr() == ("", f"promptkit: {message}\n")

    def test_two_values(self, capsys):
        """A second value to complete is an error."""
        with pytest.raises(SystemExit) as exit:
            main(["complete", "chooses", "seen", "a", "b"])

        assert exit.value.code == 2
        error = capsys.readouterr().err.splitlines()[-1]
        assert error == (
            "promptkit complete: error: unexpected argument 'b': write other arguments as KEY=VALUE"
        )

    @pytest.mark.parametrize("argv", [[], ["--json"], ["fail"]], ids=str)
    def test_secret_is_hidden(self, argv, capsys):
        """A secret is hidden in values and in errors of a completer."""
        main(["complete", "chooses", "leaked", *argv, "key=hunter2hunter2"])

        out, err = capsys.readouterr()
        assert "<secret>" in out + err
        assert "hunter2" not in out + err


def test_invalid_unicode(capsys):
    """A value with a lone surrogate is an error in JSON and escaped in text."""
    assert main(["complete", "chooses", "half", "--json"]) == 1
    assert capsys.readouterr().err.startswith("promptkit: a completion cannot be sent: ")
    assert main(["complete", "chooses", "half"]) == 0
    assert capsys.readouterr().out == "a\\ud800\n"


def test_time_limit(monkeypatch, capsys):
    """A completer has the time limit of a server."""
    monkeypatch.setattr("promptkit.server.timeouts.Limits", lambda: SimpleNamespace(timeout=0.05))

    location = Path("recipes", "shelf.py")

    assert main(["complete", "chooses", "slow"]) == 1
    assert capsys.readouterr() == (
        "",
        f"promptkit: completing 'slow' took longer than its limit of 0.05 s, and was at {location}:21\n",
    )
