"""``promptkit new``: one prompt, or one skill, with its test and the configuration of a project."""

import shutil
import sys
import sysconfig
from argparse import Namespace
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from promptkit.cli import Exit
from promptkit.cli.diagnostics import fail
from promptkit.cli.output import Output
from promptkit.clients.configuration_files import ConfigurationFile
from promptkit.clients.profiles import CLIENTS, INSTALLABLE
from promptkit.errors.distribution import pip
from promptkit.files.folder import Folder
from promptkit.fragments.shell_words import quoted, quoted_path

_CONFIGURATION: Final = """\
[tool.promptkit]
target = "prompts"

[tool.ruff.lint]
extend-select = ["ASYNC", "B006", "B008"]
"""

_PROMPT: Final = '''\
from typing import Annotated, Literal

from promptkit import Arg, prompt, user
from promptkit.fragments import code_block


@prompt
def review(
    code: Annotated[str, Arg("The code to review", examples=["x = 1"])],
    language: Literal["python", "rust", "go"] = "python",
):
    """Ask for a review of a piece of code."""
    return user(f"Review this {language} code.", code_block(code, language))
'''

_TEST: Final = """\
from prompts.review import review

from promptkit import user
from promptkit.fragments import code_block


def test_language_is_in_the_text():
    assert review("fn main() {}", language="rust") == user(
        "Review this rust code.", code_block("fn main() {}", "rust")
    )


def test_language_is_case_insensitive():
    assert "Review this go code." in review.render_wire({"code": "x", "language": "GO"})
"""

_SKILL: Final = '''\
from promptkit import skill
from promptkit.fragments import blocks, bullets, section


@skill(allowed_tools=["Read", "Bash(git diff:*)"])
def review_changes():
    """Review a change as our team does it. Use it when the user asks for a review, or before a commit."""
    rules = ["Report a problem only with an input that fails.", "If you find nothing, say so."]
    return blocks("Read `git diff HEAD`, and the callers of changed code.", section("Rules", bullets(rules)))
'''

_SKILL_TEST: Final = """\
from prompts.review_changes import review_changes

from promptkit.testing import Client


def test_skill_reads_the_diff():
    assert "git diff" in review_changes().text


def test_host_can_read_the_skill():
    skill = Client(review_changes).read_skill("review-changes")

    assert skill.listed.frontmatter["description"].startswith("Review a change")
"""

#: The folders at the root are where `batch` and `package` write.
_IGNORED: Final = """\
__pycache__/
.hypothesis/
.venv/
/batch/
/dist/
"""

_PYPROJECT: Final = "pyproject.toml"

#: The content of each file, by its path in the folder.
_FILES: Final[Mapping[str, str]] = {"prompts/review.py": _PROMPT, "prompts/test_review.py": _TEST}
_SKILL_FILES: Final[Mapping[str, str]] = {
    "prompts/review_changes.py": _SKILL,
    "prompts/test_review_changes.py": _SKILL_TEST,
}

#: Files of the whole project. Existing ones are kept.
_PROJECT_FILES: Final[Mapping[str, str]] = {_PYPROJECT: _CONFIGURATION, ".gitignore": _IGNORED}

_RENDERED: Final = 'review code="x = 1"'

#: The client in the printed commands if none is found.
_DEFAULT_CLIENT: Final = "claude-code"


def run(options: Namespace, output: Output) -> int:
    """Write the files, unless one of them exists, and print the next commands."""
    folder = Folder.named(options.folder)
    files = {**(_SKILL_FILES if options.skill else _FILES)}
    try:
        kept = [path for path in _PROJECT_FILES if folder.status(path) is not None]
        files |= {path: text for path, text in _PROJECT_FILES.items() if path not in kept}
        folder.write_new({path: text.encode() for path, text in files.items()})
    except (FileExistsError, NotADirectoryError) as error:  # a file exists at the path of a file or a folder
        hint = "move it, or choose another folder"
        return fail(f"nothing was written: {error.filename} is in the way: {hint}", Exit.FAILED)
    except OSError as error:
        return fail(f"nothing was written: {error.filename or folder}: {error.strerror}", Exit.FAILED)
    written = [folder.display_path(path) for path in files]
    target = "prompts" if _PYPROJECT in kept else ""
    commands = _next_commands(Path(options.folder), target, is_skill=options.skill)
    if options.json:
        output.print_json({"files": written, "next": commands})
        return Exit.OK
    lines = [
        *(f"wrote {path}" for path in written),
        *(f"kept {folder.display_path(path)}" for path in kept),
        *("", "next:", *(f"    {command}" for command in commands)),
    ]
    output.print_lines(lines, one_line=True)
    return Exit.OK


def _next_commands(folder: Path, target: str, *, is_skill: bool) -> list[str]:
    """
    Return commands that render, test and install the new prompt or skill, to run one after the other.

    *target* names the folder of the recipes, if the project may configure another; otherwise it is empty.
    """
    enter = "" if folder.resolve() == Path.cwd() else f"cd {quoted_path(str(folder))} && "
    promptkit = _program("promptkit", shutil.which("promptkit", path=sysconfig.get_path("scripts")))
    python = _program("python", sys.executable)
    install = "" if find_spec("pytest") else f"{pip(python=python)} pytest && "
    named = f" {target}" if target else ""
    return [
        f"{enter}{promptkit} render{named} {'review-changes' if is_skill else _RENDERED}",
        f"{install}{python} -m pytest{named}",
        f"{promptkit} install {_client(is_skill=is_skill)}{named}{' --skills' if is_skill else ''}",
    ]


def _program(name: str, program: str | None) -> str:
    """Return the words that start a program of this environment in a shell; without a path, as a module."""
    if program is None:
        return f"{_program('python', sys.executable)} -m {name}"
    in_shell = shutil.which(name)
    is_same = in_shell is not None and Path(in_shell).parent == Path(sysconfig.get_path("scripts"))
    return name if is_same else quoted(program)


def _client(*, is_skill: bool) -> str:
    """Return the first client on this machine that supports prompts, or skills."""
    candidates = (name for name in INSTALLABLE if is_skill or CLIENTS[name].has_prompts)
    installed = (name for name in candidates if ConfigurationFile(name).is_client_found)
    return next((name for name in installed if not is_skill or INSTALLABLE[name].skills), _DEFAULT_CLIENT)
