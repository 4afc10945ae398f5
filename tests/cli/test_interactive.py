"""Questions for missing arguments, on a real pseudoterminal."""

import subprocess
import sys

import pytest

from promptkit.errors.distribution import install_command
from tests.terminal import ESCAPES, Person, command

pytest.importorskip("pty", reason="Windows has no pseudoterminals")

RECIPE = """
from enum import Enum
from typing import Annotated, Literal
from promptkit import Arg, prompt

class Tone(Enum):
    KIND = "kind"
    "Praises first."
    STRICT = "strict"

@prompt
def write(tone: Tone) -> str:
    return tone.name

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
def project(recipes, tmp_path):
    """Prompts with required arguments."""
    recipes(shelf=RECIPE)
    (tmp_path / "file.txt").write_text("in a file")
    return tmp_path


@pytest.fixture
def start(project):
    """A function that starts a command on a terminal and returns its user."""
    users = []

    def start_command(*argv, **env):
        users.append(Person(project, *argv, **env))
        return users[-1]

    yield start_command
    for user in users:
        user.leaves()


def test_missing_arguments_are_asked_for(start):
    """Each missing required argument is asked for with its hint; optional ones are not."""
    user = start("render", "review", "depth=2")
    user.sees("code (The code to review):")
    user.types("x = 1\r")
    user.sees("language (one of python, rust, go):")
    user.types("GO\r")

    assert user.ends() == (0, "[user]\ngo 2 plain: x = 1\n")


def test_questions_go_to_stderr(start):
    """Questions go to standard error, so that the JSON can be piped."""
    user = start("render", "hides", "--json")
    user.sees("key (")
    user.types("x\r")
    code, out = user.ends()

    assert code == 0
    assert out.startswith("{\n")
    assert out.endswith("}\n")


def test_invalid_answer_is_asked_for_again(start):
    """The reason is shown while the answer can be corrected."""
    user = start("render", "review", "code=x", "language=go")
    user.sees("depth (")
    user.types("many\r")
    user.sees("'depth' is 'many', not a whole number")
    user.types("\x153\r")  # Ctrl-U clears the line

    assert user.ends() == (0, "[user]\ngo 3 plain: x\n")


def test_completion(start):
    """Completions are shown while typing, and Tab accepts one."""
    user = start("render", "review", "code=x", "depth=1")
    user.sees("language (one of python, rust, go):")
    user.types("ru")
    user.sees("rust")
    user.types("\t\r")

    assert user.ends() == (0, "[user]\nrust 1 plain: x\n")


def test_completions_have_meanings(start):
    """The meaning of a choice is shown next to its completion."""
    user = start("render", "write")
    user.sees("tone (one of kind (Praises first), strict):")
    user.types("ki")
    user.sees("Praises first")
    user.types("\t\r")

    assert user.ends() == (0, "[user]\nKIND\n")


def test_secret_is_not_echoed(start):
    """A typed secret is masked."""
    user = start("render", "hides")
    user.sees("key (")
    user.types("hunter2\r")

    assert user.ends() == (0, "[user]\n7 characters\n")
    assert "hunter2" not in user.shown
    assert "*******" in ESCAPES.sub("", user.shown)


def test_file_as_answer(start):
    """
    `@FILE` is read like on the command line, its name alone is rejected, and standard input is the terminal.
    """
    user = start("render", "look")
    user.sees("data (")
    user.types("@-\r")
    user.sees("standard input is this terminal")
    user.types("\x15file.txt\r")
    user.sees("is the name of a file")
    user.types("\x15@file.txt\r")

    assert user.ends() == (0, "[user]\nb'in a file'\n")


def test_ctrl_c(start):
    """Ctrl-C exits with 130 and prints nothing."""
    user = start("render", "hides")
    user.sees("key (")
    user.types("\x03")

    assert user.ends() == (130, "")


def test_ctrl_d(start):
    """Ctrl-D ends the questions, and the missing argument is an error."""
    user = start("render", "hides")
    user.sees("key (")
    user.types("\x04")

    assert user.ends() == (1, "")
    assert "promptkit: prompt 'hides': 'key' is missing" in user.shown


def test_no_input(start):
    """With `--no-input` a terminal gets the error that a pipe gets."""
    user = start("render", "hides", "--no-input")

    assert user.ends() == (1, "")
    assert user.shown == "promptkit: prompt 'hides': 'key' is missing\r\n"


def test_pipe_is_not_asked(project):
    """In a pipe, a missing argument is an error without a question."""
    assert command("render", "hides", cwd=project, input=b"x\n") == (
        1,
        b"",
        b"promptkit: prompt 'hides': 'key' is missing\n",
    )


def test_missing_library(start, project):
    """Questions need an extra; without it, the command that installs it is shown."""
    (project / "lacking").mkdir()
    (project / "lacking" / "prompt_toolkit.py").write_text("raise ModuleNotFoundError('prompt_toolkit')\n")
    user = start("render", "hides", PYTHONPATH=str(project / "lacking"))

    assert user.ends() == (1, "")
    assert user.shown.splitlines() == [
        f"promptkit: to enter missing arguments interactively, run: {install_command('cli')}",
        "promptkit: prompt 'hides': 'key' is missing",
    ]


def test_library_is_imported_lazily(project):
    """A prompt without missing arguments is rendered without importing the library."""
    script = "import sys; from promptkit.cli import main; main(sys.argv[1:]); print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", script, "render", "hides", "key=x"],
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
    )

    assert "promptkit.cli.render" in result.stdout.split()
    assert "prompt_toolkit" not in result.stdout.split()
