"""Completion in the shell, as argcomplete's shell functions ask for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.terminal import environment

pytestmark = [
    pytest.mark.sampled,
    pytest.mark.skipif(os.name == "nt", reason="the shells that are asked are not there"),
]

PROGRAM = Path(sys.executable).with_name("promptkit")

SHELF = """
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal
from promptkit import Arg, prompt, resource

Path(__file__).with_name("imported").touch()

class Tone(Enum):
    WARM = "warm"
    COLD = "cold"

@prompt
def review(
    code: str,
    language: Literal["python", "rust", "two words"],
    tone: Tone | None = None,
    strict: bool = False,
) -> str:
    return code

@prompt
def report(
    level: Literal[1, 2],
    team: Annotated[str, Arg(complete=["core", "two words", "tab\\tab", "half\\ud800"])] = "core",
    branch: Annotated[str, Arg(complete=lambda: ["main"])] = "main",
    key: Annotated[str, Arg(secret=True)] = "",
) -> str:
    return str(level)

@resource("docs://guide")
def guide() -> str:
    return "x"

@resource("style://{language}/{page}")
def style(language: Literal["python", "rust"], page: Annotated[str, Arg(complete=["intro", "end"])]) -> str:
    return page
"""

#: Where bash begins a new word.
BREAKS = " \t\n\"'><=;|&(:"


@pytest.fixture
def shelf(recipes, tmp_path):
    """A folder that holds a folder of recipes."""
    recipes(shelf=SHELF)
    return tmp_path


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """The same folder, for tests that change nothing in it."""
    folder = tmp_path_factory.mktemp("shared")
    (folder / "recipes").mkdir()
    (folder / "recipes" / "shelf.py").write_text(SHELF, encoding="utf-8")
    return folder


def offered(typed, folder, **env):
    """The words that the shell gets when TAB is pressed after *typed*."""
    answer = folder / "answer.txt"
    answer.unlink(missing_ok=True)
    asked = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_COMP_WORDBREAKS": BREAKS,
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": typed,
        "COMP_POINT": str(len(typed.encode())),
    }
    environ = environment(**asked, **env)
    ran = subprocess.run([PROGRAM], cwd=folder, env=environ, capture_output=True, check=False)
    assert ran.stdout == b""
    words = answer.read_text().split("\n") if answer.exists() else []
    return [word.rstrip() for word in words if word]


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("promptkit re", ["render"]),
        ("promptkit check --fo", ["--format"]),
        ("promptkit check --format ", ["text", "json", "github"]),
        ("promptkit render --no", ["--no-input"]),
        ("promptkit render ", ["report", "review", "docs://guide", "style://", "recipes/"]),
        ("promptkit render d", ["docs://guide"]),
        ("promptkit render docs://g", ["//guide"]),
        ("promptkit render recipes s", ["style://"]),
        ("promptkit render docs://guide ", []),
        ("promptkit render rev", ["review"]),
        ("promptkit render recipes re", ["report", "review"]),
        ("promptkit render --format markdown rev", ["review"]),
        ("promptkit render review ", ["code=", "language=", "tone=", "strict="]),
        ("promptkit render review code=x l", ["language="]),
        ("promptkit render review code=x ", ["language=", "tone=", "strict="]),
        ("promptkit render recipes review la", ["language="]),
        ("promptkit render review language=", ["python", "rust", "two\\ words"]),
        ("promptkit render review tone=c", ["cold"]),
        ("promptkit render review strict=", ["yes", "no"]),
        ("promptkit render report level=", ["1", "2"]),
        ("promptkit render report team=", ["core", "two\\ words"]),
        ("promptkit render report team=c", ["core"]),
        ("promptkit render report branch=", []),
        ("promptkit render report key=", []),
        ("promptkit render review code=", []),
        ("promptkit render review code=@rec", ["@recipes/"]),
        ("promptkit serve --audit rec", ["recipes/"]),
        ("promptkit render nothing ", []),
        ("promptkit complete re", ["report", "review"]),
        ("promptkit complete review t", ["tone"]),
        ("promptkit complete review language r", ["rust"]),
        ("promptkit complete review --target recipes language r", ["rust"]),
        ("promptkit complete report team ", ["core", "two\\ words", "level=", "branch=", "key="]),
        ("promptkit complete report team c b", ["branch="]),
        ("promptkit complete report team level=1 c", ["core"]),
        ("promptkit complete report branch team=", ["core", "two\\ words"]),
        ("promptkit complete sty", ["style://\\{language\\}/\\{page\\}"]),
        ("promptkit complete style://{language}/{page} p", ["page"]),
        ("promptkit complete style://{language}/{page} page ", ["intro", "end", "language="]),
        ("promptkit complete docs", []),
        ("promptkit list re", ["recipes/"]),
        ("promptkit install cu", ["cursor"]),
        ("promptkit uninstall cl", ["claude-code", "claude-desktop"]),
        ("promptkit install cursor re", ["recipes/"]),
        ("promptkit install cursor ze", ["zed"]),
        ("promptkit uninstall cursor zed cu", []),
        ("promptkit install cursor recipes ze", []),
        ("promptkit uninstall --al", ["--all"]),
        ("promptkit install cursor --scope ", ["user", "project"]),
        ("promptkit install --li", ["--list"]),
        ("promptkit check --client cli", ["cline"]),
        ("promptkit new re", ["recipes/"]),
    ],
)
def test_what_is_offered(typed, words, shared):
    """
    Commands, options, prompts, arguments and the values of choices, wherever in the line they are typed.
    """
    assert offered(typed, shared) == words


def test_the_configured_recipes(shelf):
    """
    Where no target is typed, the prompts are those of the configuration.
    """
    (shelf / "pyproject.toml").write_text('[tool.promptkit]\ntarget = "recipes"\n')
    below = shelf / "below"
    below.mkdir()

    assert offered("promptkit render rev", below) == ["review"]


def test_a_broken_configuration_offers_nothing(shelf):
    """
    On a key press nothing is said, of faults neither.
    """
    (shelf / "pyproject.toml").write_text("[tool.promptkit]\ntarge = 1\n")

    assert offered("promptkit render rev", shelf) == []


def test_recipes_are_imported_only_for_their_names(shelf):
    """
    A key press imports the recipes only where a prompt, a resource or an argument may follow.
    """
    imported = shelf / "recipes" / "imported"

    assert offered("promptkit check --fo", shelf) == ["--format"]
    assert not imported.exists()
    assert offered("promptkit render rev", shelf) == ["review"]
    assert imported.exists()


@pytest.mark.parametrize("source", ["print('noise')\n", "1 / 0\n", "raise SystemExit(3)\n"])
def test_recipes_that_print_or_fail(shelf, source):
    """
    Other recipes are offered, and nothing is printed.
    """
    (shelf / "recipes" / "noise.py").write_text(source)

    assert offered("promptkit render rev", shelf) == ["review"]


def test_without_the_library(shelf):
    """
    The library is an extra: without it nothing is offered, and nothing is said.
    """
    (shelf / "lacking").mkdir()
    (shelf / "lacking" / "argcomplete.py").write_text("raise ModuleNotFoundError('argcomplete')\n")

    assert offered("promptkit render rev", shelf, PYTHONPATH=str(shelf / "lacking")) == []


def test_bash_completes(shelf):
    """
    A real bash with argcomplete's own function, as the page says to register it, offers the prompt.
    """
    script = """
        eval "$(register-python-argcomplete promptkit)"
        COMP_LINE="promptkit render rev" COMP_POINT=20 COMP_TYPE=9
        COMP_WORDS=(promptkit render rev) COMP_CWORD=2
        _python_argcomplete promptkit rev render
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    path = os.pathsep.join([str(PROGRAM.parent), os.environ["PATH"]])
    ran = subprocess.run(
        ["bash", "-c", script],  # noqa: S607 (wherever bash is)
        cwd=shelf,
        env=environment(PATH=path),
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.stdout.split() == ["review"], ran.stderr
