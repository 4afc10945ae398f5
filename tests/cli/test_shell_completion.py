"""Completion in the shell, as argcomplete's shell functions ask for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.terminal import environment
from tests.wire import initialize, line, request

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the shells that are asked are not there")

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


def writing(**env):
    """The environment of a program that keeps bytecode, and so the start-up cache, beside the recipes."""
    found = environment(**env)
    found.pop("PYTHONDONTWRITEBYTECODE", None)
    return found


def left_by_a_server(folder):
    """Prompts in a folder, with the start-up cache that a server leaves behind; returns the folder."""
    recipes = folder / "recipes"
    recipes.mkdir()
    silent = SHELF.replace('Path(__file__).with_name("imported").touch()\n', "")
    (recipes / "shelf.py").write_text(silent, encoding="utf-8")
    session = line(initialize("2025-11-25")) + line(request(1, "prompts/list"))
    subprocess.run(
        [PROGRAM, "serve", "recipes", "--grace", "50"],
        input=session,
        cwd=folder,
        env=writing(),
        capture_output=True,
        check=True,
    )
    return folder


@pytest.fixture
def served(tmp_path):
    """Such prompts, in the current folder."""
    return left_by_a_server(tmp_path)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Such prompts, of which no test changes anything."""
    return left_by_a_server(tmp_path_factory.mktemp("kept"))


def offered(typed, folder, **env):
    """What the shell is told when TAB is pressed behind *typed*."""
    answer = folder / "answer.txt"  # no module by its name: the cache holds while the names of these do
    answer.unlink(missing_ok=True)
    asked = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_COMP_WORDBREAKS": BREAKS,
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": typed,
        "COMP_POINT": str(len(typed.encode())),
    }
    ran = subprocess.run([PROGRAM], cwd=folder, env=writing(**asked, **env), capture_output=True, check=False)
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
        ("promptkit check --compiled rec", ["recipes/"]),
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
def test_what_is_offered(typed, words, kept):
    """
    Commands, options, prompts, arguments and the values of choices, wherever in the line they are typed.
    """
    assert offered(typed, kept) == words


def test_the_configured_recipes(served):
    """
    Where no target is typed, the prompts are those of the configuration.
    """
    (served / "pyproject.toml").write_text('[tool.promptkit]\ntarget = "recipes"\n')
    below = served / ".below"  # no module by its name, either
    below.mkdir()

    assert offered("promptkit render rev", below) == ["review"]


def test_a_broken_configuration_offers_nothing(served):
    """
    On a key press nothing is said, of faults neither.
    """
    (served / "pyproject.toml").write_text("[tool.promptkit]\ntarge = 1\n")

    assert offered("promptkit render rev", served) == []


class TestRecipesAreNotImported:
    def test_where_there_is_no_cache(self, recipes, tmp_path):
        """
        Then no prompt is offered, and no recipe is run to find out.
        """
        folder = recipes(shelf=SHELF)

        assert offered("promptkit render rev", tmp_path) == []
        assert not (folder / "imported").exists()

    def test_where_a_recipe_has_changed(self, served, recipes):
        """
        What the cache has may be wrong by now, so it is not offered.
        """
        folder = recipes(shelf=SHELF)

        assert offered("promptkit render rev", served) == []
        assert not (folder / "imported").exists()

    def test_the_cache_stays(self, served):
        """
        Looking at it takes nothing from the next server.
        """
        (file,) = (served / "recipes" / "__pycache__").glob("*.compiled")
        before = file.read_bytes()

        assert offered("promptkit render rev", served) == ["review"]
        assert file.read_bytes() == before


def test_without_the_library(served):
    """
    The library is an extra: without it nothing is offered, and nothing is said.
    """
    (served / "lacking").mkdir()
    (served / "lacking" / "argcomplete.py").write_text("raise ModuleNotFoundError('argcomplete')\n")

    assert offered("promptkit render rev", served, PYTHONPATH=str(served / "lacking")) == []


def test_bash_completes(served):
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
        cwd=served,
        env=writing(PATH=path),
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.stdout.split() == ["review"], ran.stderr
