"""Asking for missing arguments, on a real pseudo-terminal."""

import subprocess
import sys

import pytest

from promptkit.errors.distribution import install_command
from tests.terminal import ESCAPES, Person, command

pytest.importorskip("pty", reason="Windows has no pseudoterminals")

SHELF = """
from typing import Annotated, Literal
from promptkit import Arg, prompt

@prompt
def review(
    code: Annotated[str, Arg("The code to review")],
    language: Literal["python", "rust", "go"],
    depth: int,
    tone: str = "plain",
) -> str:
    return f"{language} {depth} {tone}: {code}"

@prompt
def hides(key: Annotated[str, Arg(secret=True)]) -> str:
    return f"{len(key)} characters"

@prompt
def look(data: bytes) -> str:
    return f"{data!r}"
"""


@pytest.fixture(autouse=True)
def shelf(recipes, tmp_path):
    """Prompts that require something."""
    recipes(shelf=SHELF)
    (tmp_path / "file.txt").write_text("in a file")
    return tmp_path


@pytest.fixture
def person(shelf):
    """A function that puts somebody at a terminal, in front of a command."""
    seated = []

    def sit(*argv, **env):
        seated.append(Person(shelf, *argv, **env))
        return seated[-1]

    yield sit
    for one in seated:
        one.leaves()


def test_what_is_missing_is_asked_for(person):
    """
    Each required argument that was not given is asked for, with its hint; optional ones are not.
    """
    someone = person("render", "review", "depth=2")
    someone.sees("code (The code to review):")
    someone.types("x = 1\r")
    someone.sees("language (one of python, rust, go):")
    someone.types("GO\r")

    assert someone.ends() == (0, "[user]\ngo 2 plain: x = 1\n")


def test_the_json_is_not_garbled(person):
    """
    Questions go to standard error, so that what is printed can be piped.
    """
    someone = person("render", "hides", "--json")
    someone.sees("key (")
    someone.types("x\r")
    code, out = someone.ends()

    assert code == 0
    assert out.startswith("{\n")
    assert out.endswith("}\n")


def test_an_answer_that_does_not_fit_is_asked_for_again(person):
    """
    The reason is shown while the answer can be corrected.
    """
    someone = person("render", "review", "code=x", "language=go")
    someone.sees("depth (")
    someone.types("many\r")
    someone.sees("'depth' is 'many', not a whole number")
    someone.types("\x153\r")  # Ctrl-U removes what was typed

    assert someone.ends() == (0, "[user]\ngo 3 plain: x\n")


def test_an_answer_is_completed(person):
    """
    While it is typed, what a client would be offered is shown, and Tab takes it.
    """
    someone = person("render", "review", "code=x", "depth=1")
    someone.sees("language (one of python, rust, go):")
    someone.types("ru")
    someone.sees("rust")
    someone.types("\t\r")

    assert someone.ends() == (0, "[user]\nrust 1 plain: x\n")


def test_a_secret_is_not_shown(person):
    """
    What is typed for a secret stays out of the terminal.
    """
    someone = person("render", "hides")
    someone.sees("key (")
    someone.types("hunter2\r")

    assert someone.ends() == (0, "[user]\n7 characters\n")
    assert "hunter2" not in someone.shown
    assert "*******" in ESCAPES.sub("", someone.shown)


def test_an_answer_may_be_a_file(person):
    """
    ``@FILE`` is read as on the command line, and its name alone is refused; standard input is the terminal.
    """
    someone = person("render", "look")
    someone.sees("data (")
    someone.types("@-\r")
    someone.sees("standard input is this terminal")
    someone.types("\x15file.txt\r")
    someone.sees("is the name of a file")
    someone.types("\x15@file.txt\r")

    assert someone.ends() == (0, "[user]\nb'in a file'\n")


def test_ctrl_c_ends_it(person):
    """
    The exit code is that of an interruption, and nothing is printed.
    """
    someone = person("render", "hides")
    someone.sees("key (")
    someone.types("\x03")

    assert someone.ends() == (130, "")


def test_the_end_of_input(person):
    """
    Ctrl-D stops asking: what is missing is told as ever.
    """
    someone = person("render", "hides")
    someone.sees("key (")
    someone.types("\x04")

    assert someone.ends() == (1, "")
    assert "promptkit: prompt 'hides': 'key' is missing" in someone.shown


def test_nobody_is_asked_who_does_not_want_to_be(person):
    """
    With ``--no-input`` a terminal is told what a pipe is told.
    """
    someone = person("render", "hides", "--no-input")

    assert someone.ends() == (1, "")
    assert someone.shown == "promptkit: prompt 'hides': 'key' is missing\r\n"


def test_a_pipe_is_not_asked(shelf):
    """
    Where nobody can answer, the error is there at once.
    """
    assert command("render", "hides", cwd=shelf, input=b"x\n") == (
        1,
        b"",
        b"promptkit: prompt 'hides': 'key' is missing\n",
    )


def test_without_the_library(person, shelf):
    """
    What asks is an extra; where it is missing, the command that installs it is named.
    """
    (shelf / "lacking").mkdir()
    (shelf / "lacking" / "prompt_toolkit.py").write_text("raise ModuleNotFoundError('prompt_toolkit')\n")
    someone = person("render", "hides", PYTHONPATH=str(shelf / "lacking"))

    assert someone.ends() == (1, "")
    assert someone.shown.splitlines() == [
        f"promptkit: to be asked for missing arguments, run: {install_command('cli')}",
        "promptkit: prompt 'hides': 'key' is missing",
    ]


def test_only_asking_imports_the_library(shelf):
    """
    A prompt that lacks nothing is rendered without it.
    """
    script = "import sys; from promptkit.cli import main; main(sys.argv[1:]); print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", script, "render", "hides", "key=x"],
        cwd=shelf,
        capture_output=True,
        text=True,
        check=True,
    )

    assert "promptkit.cli.render" in ran.stdout.split()
    assert "prompt_toolkit" not in ran.stdout.split()
