"""Saving the values of a form as a case, in the file of its prompt."""

import json
import re
from pathlib import Path
from typing import Final

from promptkit.declarations.prompts import Prompt
from promptkit.errors.exceptions import PromptkitError
from promptkit.files.edits import FileEditError, check, read_file, replace_file
from promptkit.preview.python_source import build_case_call, build_case_lines
from promptkit.preview.rendering import Rendering

#: Between the definitions of a file, and the first case after them.
_BLANK_LINES: Final = "\n\n"

_FRONT_MATTER: Final = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)


class CaseNotSavedError(PromptkitError):
    """The values cannot be saved as a case; the message says why."""


def save_case(rendering: Rendering, name: str) -> None:
    """
    Write the values of a rendering as a case into the file of its prompt.

    Args:
        rendering:
            The rendering, or the errors of its arguments.

        name:
            The name of the case.

    Raises:
        CaseNotSavedError: If there is such a case, a value cannot be written, or the file cannot be edited.
    """
    prompt, name = rendering.prompt, " ".join(name.split())
    if not name:
        msg = "give the case a name"
        raise CaseNotSavedError(msg)
    if any(case.name == name for case in prompt.saved()):
        msg = f"there is a case {name!r} already: choose another name"
        raise CaseNotSavedError(msg)
    if rendering.argument_errors:
        msg = "the values are invalid, so the case would fail: correct them first"
        raise CaseNotSavedError(msg)
    if rendering.uploads or not prompt.arguments.secret.isdisjoint(rendering.values):
        msg = "secrets and files are not written: copy the source below, and add them yourself"
        raise CaseNotSavedError(msg)
    file = Path(prompt.location.file)
    edit = _with_field if file.suffix == ".md" else _with_call
    try:
        contents = read_file(file)
        check(contents.data is not None, "it does not exist")
        replace_file(contents, edit(contents.text, rendering, name).encode())
    except FileEditError as error:
        msg = f"{file.name} cannot be edited: {error}"
        raise CaseNotSavedError(msg) from None


def _with_call(text: str, rendering: Rendering, name: str) -> str:
    """Return a Python file with a call that saves the case at its end."""
    variable = _variable_of(rendering)
    if variable is None:
        msg = "the prompt has no name in its file: copy the source below"
        raise CaseNotSavedError(msg)
    call = build_case_call(rendering, variable, name)
    follows_case = ".case" in text.rstrip().rpartition("\n\n")[2]
    return f"{text.rstrip()}\n{'' if follows_case else _BLANK_LINES}{call}\n"


def _variable_of(rendering: Rendering) -> str | None:
    """Return the module's name for a prompt; None if it has none."""
    function = rendering.prompt.renderer.function
    names = getattr(function, "__globals__", {})
    owned = (key for key, value in names.items() if isinstance(value, Prompt) and value.function is function)
    return next(owned, None)


def _with_field(text: str, rendering: Rendering, name: str) -> str:
    """Return a Markdown file whose front matter has the case."""
    lines = build_case_lines(rendering, json.dumps(name, ensure_ascii=False))
    match = _FRONT_MATTER.match(text)
    if match is None:
        return f"---\ncases:\n{lines}\n---\n{text}"
    head = match[1]
    cases = re.search(r"^cases:[ \t]*(\S?).*\n?", head, re.MULTILINE)
    if cases is None:
        edited = f"{head}cases:\n{lines}\n"
    elif cases[1] not in ("", "#"):
        msg = "its cases are on one line: copy the source below"
        raise CaseNotSavedError(msg)
    else:
        edited = f"{head[: cases.end()]}{lines}\n{head[cases.end() :]}"
    return f"{text[: match.start(1)]}{edited}{text[match.end(1) :]}"
