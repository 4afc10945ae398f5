"""Source code that saves the values of a form as a case, to copy or to write into the prompt's file."""

import json
import re
from pathlib import Path
from typing import Final

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.declarations.prompts import Prompt
from promptkit.errors.exceptions import PromptkitError
from promptkit.files.edits import FileEditError, check, read_file, replace_file
from promptkit.fragments.invisible import escape_invisible
from promptkit.preview.rendering import Rendering

#: Maximum line length, the default of formatters.
_WIDTH: Final = 88

#: The blank lines between the definitions of a file and the first case after them.
_BLANK_LINES: Final = "\n\n"

_FRONT_MATTER: Final = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)


def build_case_source(rendering: Rendering) -> str:
    """Return source code that saves the values of a form as a case, to paste into the prompt's file."""
    prompt, modules = rendering.prompt, set[str]()
    if prompt.location.file.endswith(".md"):
        return f"cases:\n{_build_case_lines(rendering, 'a name')}"
    variable = _variable_of(prompt) or re.sub(r"\W+", "_", prompt.own_name)
    call = _build_case_call(rendering, variable, "a name", modules)
    return "".join([*(f"import {module}\n" for module in sorted(modules)), call])


def _build_case_call(rendering: Rendering, variable: str, name: str, modules: set[str] | None = None) -> str:
    """
    Return the call that saves the values of a form as a case.

    Args:
        rendering:
            The rendering, with the values to save.

        variable:
            The variable that holds the prompt.

        name:
            The name of the case.

        modules:
            A set to which the modules are added that the call needs to read secrets and files.
    """
    modules = set() if modules is None else modules
    arguments = [argument for argument in rendering.values if argument in rendering.prompt.arguments.by_name]
    pairs = [
        f"{_literal(argument)}: {_format_argument(rendering, argument, modules)}" for argument in arguments
    ]
    return "\n".join(_format_call(f"{variable}.case_wire({_literal(name)}, {{", pairs))


def _build_case_lines(rendering: Rendering, name: str) -> str:
    """Return the lines for one case in front matter, below ``cases:``. *name* is inserted unchanged."""
    arguments = rendering.prompt.arguments
    values = {
        name: value
        for name, value in rendering.values.items()
        if name in arguments.by_name and name not in arguments.secret
    }
    lines = [f"    {name}: {_literal(value)}" for name, value in values.items()]
    return "\n".join([f"  {name}:" if lines else f"  {name}: {{}}", *lines])


def build_case_table(rendering: Rendering) -> str:
    """Return the table for ``cases.toml`` that saves the values of a form as a case of a server's prompt."""
    # JSON strings are valid in TOML, except for DEL.
    texts = {name: _toml_text(value) for name, value in rendering.values.items()}
    lines = [f"{_toml_text(name)} = {text}" for name, text in texts.items()]
    return "\n".join([f'[{_toml_text(rendering.prompt.name)}."a name"]', *lines])


def _toml_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def secret_variable_name(name: str) -> str:
    """Return the name of the environment variable for a secret argument."""
    return name.upper()


def _format_argument(rendering: Rendering, name: str, modules: set[str]) -> str:
    """
    Return an expression for an argument as a client sends it, and add the modules it needs to *modules*.
    """
    arguments, upload = rendering.prompt.arguments, rendering.uploads.get(name)
    if name in arguments.secret:
        modules.add("os")
        return f'os.environ["{secret_variable_name(name)}"]'
    if upload is None or not upload.files:
        return _literal(rendering.redact(rendering.values[name]))
    modules.add("pathlib")
    read = [f"pathlib.Path(__file__).with_name({_literal(file)})" for file in upload.files]
    if arguments.by_name[name].takes_bytes:
        modules.add("base64")
        read = [f"base64.b64encode({file}.read_bytes()).decode()" for file in read]
    else:
        read = [f'{file}.read_text(encoding="utf-8-sig")' for file in read]
    return read[0] if len(read) == 1 else f'"\\n".join([{", ".join(read)}])'


def _literal(text: str) -> str:
    """Return *text* as a string literal, with invisible characters escaped."""
    return escape_invisible(json.dumps(text, ensure_ascii=False))


def _format_call(begin: str, pairs: list[str]) -> list[str]:
    """Return the lines of a call, which is on one line if it is short enough."""
    line = f"{begin}{', '.join(pairs)}}})"
    if len(line) <= _WIDTH:
        return [line]
    return [begin, *(f"    {pair}," for pair in pairs), "})"]


class CaseNotSavedError(PromptkitError):
    """The values cannot be saved as a case. The message gives the reason."""


def save_case(rendering: Rendering, name: str) -> None:
    """
    Save the values of a rendering as a case in the prompt's file.

    Args:
        rendering:
            The rendering, which can have failed.

        name:
            The name of the case.

    Raises:
        CaseNotSavedError: If the name is empty or taken, if the values are invalid or contain secrets or
            files, or if the prompt's file cannot be edited.
    """
    prompt, name = rendering.prompt, " ".join(name.split())
    if not name:
        msg = "give the case a name"
        raise CaseNotSavedError(msg)
    if any(case.name == name for case in prompt.saved()):
        msg = f"there is already a case {name!r}: choose another name"
        raise CaseNotSavedError(msg)
    if rendering.argument_errors:
        msg = "the values are invalid, so the case would fail: correct them first"
        raise CaseNotSavedError(msg)
    if rendering.uploads or not prompt.arguments.secret.isdisjoint(rendering.values):
        msg = "secrets and files are not written: copy the source below, and add them yourself"
        raise CaseNotSavedError(msg)
    file = Path(prompt.location.file)
    edit = _add_field if file.suffix == ".md" else _add_call
    try:
        contents = read_file(file)
        check(contents.data is not None, "it does not exist")
        replace_file(contents, edit(contents.text, rendering, name).encode())
    except FileEditError as error:
        msg = f"{file.name} cannot be edited: {error}"
        raise CaseNotSavedError(msg) from None


def _add_call(text: str, rendering: Rendering, name: str) -> str:
    """Return the Python source code with a call at its end that declares the case."""
    variable = _variable_of(rendering.prompt)
    if variable is None:
        msg = "no variable in the prompt's file holds the prompt: copy the source below"
        raise CaseNotSavedError(msg)
    call = _build_case_call(rendering, variable, name)
    follows_case = ".case" in text.rstrip().rpartition("\n\n")[2]
    return f"{text.rstrip()}\n{'' if follows_case else _BLANK_LINES}{call}\n"


def _variable_of(prompt: CompiledPrompt) -> str | None:
    """Return the variable that holds a prompt in its module, or None if there is no such variable."""
    function = prompt.renderer.function
    names = getattr(function, "__globals__", {})
    owned = (key for key, value in names.items() if isinstance(value, Prompt) and value.function is function)
    return next(owned, None)


def _add_field(text: str, rendering: Rendering, name: str) -> str:
    """Return the Markdown file with the case added to its front matter."""
    lines = _build_case_lines(rendering, json.dumps(name, ensure_ascii=False))
    match = _FRONT_MATTER.match(text)
    if match is None:
        return f"---\ncases:\n{lines}\n---\n{text}"
    head = match[1]
    cases = re.search(r"^cases:[ \t]*(\S?).*\n?", head, re.MULTILINE)
    if cases is None:
        edited = f"{head}cases:\n{lines}\n"
    elif cases[1] not in ("", "#"):
        msg = "the cases in the front matter are on one line: copy the source below"
        raise CaseNotSavedError(msg)
    else:
        edited = f"{head[: cases.end()]}{lines}\n{head[cases.end() :]}"
    return f"{text[: match.start(1)]}{edited}{text[match.end(1) :]}"
