"""Shell completion through argcomplete."""

import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from argcomplete.finders import CompletionFinder

from promptkit.cli import main
from tests.terminal import environment

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the shells that are asked are not there")

PROGRAM = Path(sys.executable).with_name("promptkit")

RECIPE = """
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

#: The characters that start a new word in bash.
WORD_BREAKS = " \t\n\"'><=;|&(:"


@pytest.fixture
def project(recipes, tmp_path, monkeypatch):
    """The current folder, which contains a folder of recipes."""
    recipes(shelf=RECIPE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def complete(monkeypatch, capfd):
    """A function that returns the words that the shell gets when TAB is pressed after some text."""
    call = CompletionFinder.__call__
    monkeypatch.setattr(CompletionFinder, "_init_debug_stream", lambda _: None)  # descriptor 9 is not ours

    def press_tab(typed):
        answer = StringIO()
        streams = {"exit_method": sys.exit, "output_stream": answer}
        with monkeypatch.context() as patched:
            patched.setattr(
                CompletionFinder, "__call__", lambda *args, **options: call(*args, **streams, **options)
            )
            for name, value in variables(typed).items():
                patched.setenv(name, value)
            with pytest.raises(SystemExit):
                main()
        assert capfd.readouterr().out == ""
        return split_words(answer.getvalue())

    return press_tab


def variables(typed):
    """Return the variables that the shell sets."""
    return {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_COMP_WORDBREAKS": WORD_BREAKS,
        "COMP_LINE": typed,
        "COMP_POINT": str(len(typed.encode())),
    }


def split_words(answer):
    """Return the words for the shell."""
    return [word.rstrip() for word in answer.split("\n") if word]


def complete_in_process(typed, folder, **env):
    """Press TAB after *typed* in a process with these variables; return the words."""
    answer = folder / "answer.txt"
    env = environment(**variables(typed), _ARGCOMPLETE_STDOUT_FILENAME=str(answer), **env)
    result = subprocess.run([PROGRAM], cwd=folder, env=env, capture_output=True, check=False)
    assert result.stdout == b""
    return split_words(answer.read_text() if answer.exists() else "")


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("promptkit re", ["render"]),
        ("promptkit check --fo", ["--format"]),
        ("promptkit check --format ", ["text", "json", "github"]),
        ("promptkit render --los", ["--lossy"]),
        ("promptkit render ", ["report", "review", "docs://guide", "style://", "recipes/"]),
        ("promptkit render d", ["docs://guide"]),
        ("promptkit render docs://g", ["//guide"]),
        ("promptkit render recipes s", ["style://"]),
        ("promptkit render docs://guide ", []),
        ("promptkit render rev", ["review"]),
        ("promptkit render recipes re", ["report", "review"]),
        ("promptkit render --target recipes ", ["report", "review", "docs://guide", "style://"]),
        ("promptkit render --target a=recipes a", ["a-report", "a-review"]),
        ("promptkit render --target a=recipes a-report level=", ["1", "2"]),
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
        ("promptkit list re", ["recipes/"]),
        ("promptkit install cu", ["cursor"]),
        ("promptkit uninstall cl", ["claude-code", "claude-desktop", "cline"]),
        ("promptkit install cursor re", ["recipes/"]),
        ("promptkit install cursor ze", ["zed"]),
        ("promptkit uninstall cursor zed cu", ["cursor"]),
        ("promptkit uninstall --al", ["--all"]),
        ("promptkit install cursor --scope ", ["user", "project"]),
        ("promptkit install --li", ["--list"]),
        ("promptkit check --client cli", ["cline"]),
        ("promptkit new re", ["recipes/"]),
    ],
)
def test_completion(typed, words, project, complete):
    """Commands, options, prompts, arguments and values are completed anywhere in the line."""
    assert complete(typed) == words


def test_configured_target(project, complete, monkeypatch):
    """Without a typed target, the prompts of the configured target are offered."""
    (project / "pyproject.toml").write_text('[tool.promptkit]\ntarget = "recipes"\n')
    below = project / "below"
    below.mkdir()
    monkeypatch.chdir(below)

    assert complete("promptkit render rev") == ["review"]


def test_broken_configuration(project, complete):
    """With a broken configuration nothing is offered and nothing is printed."""
    (project / "pyproject.toml").write_text("[tool.promptkit]\ntarge = 1\n")

    assert complete("promptkit render rev") == []


def test_recipes_are_imported_lazily(project, complete):
    """Recipes are imported only if the next word can be a prompt, a resource or an argument."""
    marker = project / "recipes" / "imported"

    assert complete("promptkit check --fo") == ["--format"]
    assert not marker.exists()
    assert complete("promptkit render rev") == ["review"]
    assert marker.exists()


def test_recipes_that_print_or_fail(project):
    """If some recipes print or fail, the other recipes are offered, and nothing is printed."""
    for number, source in enumerate(["print('noise')\n", "1 / 0\n", "raise SystemExit(3)\n"]):
        (project / "recipes" / f"noise_{number}.py").write_text(source)

    assert complete_in_process("promptkit render rev", project) == ["review"]


def test_missing_library(project):
    """Without the library, which is an extra, nothing is offered and nothing is printed."""
    (project / "lacking").mkdir()
    (project / "lacking" / "argcomplete.py").write_text("raise ModuleNotFoundError('argcomplete')\n")

    assert complete_in_process("promptkit render rev", project, PYTHONPATH=str(project / "lacking")) == []


def test_bash(project):
    """Bash offers the prompt through argcomplete's function, registered as the documentation describes."""
    script = """
        eval "$(register-python-argcomplete promptkit)"
        COMP_LINE="promptkit render rev" COMP_POINT=20 COMP_TYPE=9
        COMP_WORDS=(promptkit render rev) COMP_CWORD=2
        _python_argcomplete promptkit rev render
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    path = os.pathsep.join([str(PROGRAM.parent), os.environ["PATH"]])
    result = subprocess.run(
        ["bash", "-c", script],  # noqa: S607 (wherever bash is)
        cwd=project,
        env=environment(PATH=path),
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.stdout.split() == ["review"], result.stderr
