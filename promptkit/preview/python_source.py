"""The displayed call as Python source: a test and a case."""

import json
import keyword
import re
import sys
from pathlib import Path
from typing import Final

import attrs

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.redaction import HIDDEN
from promptkit.declarations.prompts import Prompt
from promptkit.errors.exceptions import ArgumentsError
from promptkit.fragments.invisible import escape_invisible
from promptkit.language.messages import Workflow
from promptkit.preview.rendering import Rendering

#: Maximum line length, the default of formatters.
_WIDTH: Final = 88


@attrs.frozen
class PytestSource:
    """
    A test to copy.

    Args:
        file:
            The suggested file name.

        text:
            Its source.

        notes:
            Remarks for the user.
    """

    file: str
    text: str
    notes: tuple[str, ...]


def case_source(rendering: Rendering) -> str:
    """Return the source that saves the values of a form as a case, to paste below the prompt."""
    prompt, modules = rendering.prompt, set[str]()
    _, name = _importable(prompt) or ("", _identifier(prompt.name))
    arguments = [argument for argument in rendering.given if argument in prompt.arguments.by_name]
    pairs = [
        f"{_text(argument)}: {_argument_expression(rendering, argument, modules)}" for argument in arguments
    ]
    imports = [f"import {module}\n" for module in sorted(modules)]
    return "".join([*imports, "\n".join(_lines(f'{name}.case_wire("a name", {{', pairs))])


def pytest_source(rendering: Rendering, target: str) -> PytestSource:
    """
    Return a test that calls the prompt as a client does, and passes while its rendering is unchanged.

    Args:
        rendering:
            The rendering, or the errors of its arguments.

        target:
            The target, as the author typed it on the command line.
    """
    prompt, modules = rendering.prompt, set[str]()
    name, secrets = _identifier(prompt.name), prompt.arguments.secret
    pairs = [
        f"{_text(rendering.redacted(argument))}: {_argument_expression(rendering, argument, modules)}"
        for argument in rendering.given
    ]
    imports, begin = _call(rendering, target)
    if rendering.workflow is None:
        body = _error_assertions(rendering, _lines(f"        {begin}", pairs))
    else:
        body = [*_lines(f"    said = {begin}", pairs), "", *_assertions(rendering, rendering.workflow)]
    standard = [f"import {module}" for module in sorted(modules)]
    groups = [standard, ["import pytest"] if rendering.workflow is None else [], imports]
    head = "\n\n".join("\n".join(group) for group in groups if group)
    source = [head, "", "", f"def test_{name}_says_the_same():", *body, ""]
    notes = [
        f"The value of {key} is a secret and is omitted: set the variable {variable(key)} to run the test."
        for key in rendering.given
        if key in secrets
    ]
    notes += [
        f"It reads {file}: save that file next to it."
        for argument, upload in rendering.uploads.items()
        if argument not in secrets
        for file in upload.files
    ]
    saved = f"Save it as test_{name}.py next to your tests."
    return PytestSource(f"test_{name}.py", "\n".join(source), (saved, *notes))


def variable(name: str) -> str:
    """Return the environment variable for the value of a secret argument."""
    return name.upper()


def _call(rendering: Rendering, target: str) -> tuple[list[str], str]:
    """Return the imports of a call of the prompt, and the text before its arguments."""
    prompt = rendering.prompt
    imports = [] if rendering.workflow is not None else ["from promptkit import ArgumentsError"]
    if (importable := _importable(prompt)) is not None:
        module, name = importable
        return sorted([*imports, f"from {module} import {name}"]), f"{name}.render_wire({{"
    begin = f"compile({_text(target)})[{_text(prompt.name)}].render({{"
    return [*imports, "from promptkit.compiler import compile"], begin


def _argument_expression(rendering: Rendering, name: str, modules: set[str]) -> str:
    """
    Return the expression for an argument as a client sends it, and add the imports it needs to *modules*.
    """
    arguments, upload = rendering.prompt.arguments, rendering.uploads.get(name)
    if name in arguments.secret:
        modules.add("os")
        return f'os.environ["{variable(name)}"]'
    if upload is None or not upload.files:
        return _text(rendering.redacted(rendering.given[name]))
    modules.add("pathlib")
    read = [f"pathlib.Path(__file__).with_name({_text(file)})" for file in upload.files]
    if arguments.by_name[name].takes_bytes:
        modules.add("base64")
        read = [f"base64.b64encode({file}.read_bytes()).decode()" for file in read]
    else:
        read = [f'{file}.read_text(encoding="utf-8-sig")' for file in read]
    return read[0] if len(read) == 1 else f'"\\n".join([{", ".join(read)}])'


def _importable(prompt: CompiledPrompt) -> tuple[str, str] | None:
    """Return the module from which a test can import the prompt, and the prompt's name in it."""
    module = getattr(prompt.renderer.function, "__module__", None) or ""
    parts = module.split(".")
    # Folders whose names are not valid for a package are imported under another name.
    is_own_name = Path(prompt.location.file).with_suffix("").parts[-len(parts) :] == tuple(parts)
    if not is_own_name or not all(map(_is_name, parts)):
        return None
    for name, value in vars(sys.modules.get(module, object)).items():
        if isinstance(value, Prompt) and value.options.name == prompt.name and _is_name(name):
            return module, name
    return None


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def _identifier(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_").lower() or "prompt"


def _text(text: str) -> str:
    """Return the literal of a text, with invisible characters escaped."""
    return escape_invisible(json.dumps(text, ensure_ascii=False))


def _lines(begin: str, pairs: list[str]) -> list[str]:
    """Return the lines of a call, a single one if it is short enough."""
    line = f"{begin}{', '.join(pairs)}}})"
    if len(line) <= _WIDTH:
        return [line]
    indent = " " * (len(begin) - len(begin.lstrip()))
    return [begin, *(f"{indent}    {pair}," for pair in pairs), f"{indent}}})"]


def _assertions(rendering: Rendering, workflow: Workflow) -> list[str]:
    """Return the assertions for the text and the roles of a rendering."""
    roles = [message.role for message in workflow]
    assertions = _text_assertions(rendering, "said.text", workflow.text)
    if len(roles) <= 1:
        return assertions
    return [f"    assert [message.role for message in said] == [{', '.join(map(_text, roles))}]", *assertions]


def _error_assertions(rendering: Rendering, call: list[str]) -> list[str]:
    errors = ArgumentsError(rendering.prompt.name, tuple(rendering.faults))
    assertions = _text_assertions(rendering, "str(refused.value)", str(errors))
    return ["    with pytest.raises(ArgumentsError) as refused:", *call, "", *assertions]


def _text_assertions(rendering: Rendering, expression: str, text: str) -> list[str]:
    """Return the assertions for a text; if it contains secrets, for the parts around them."""
    redacted = rendering.redacted(text)
    if redacted != text:
        return [f"    assert {_text(piece)} in {expression}" for piece in redacted.split(HIDDEN) if piece]
    lines = text.splitlines(keepends=True)
    if len(lines) <= 1:
        return [f"    assert {expression} == {_text(text)}"]
    return [f"    assert {expression} == (", *(f"        {_text(line)}" for line in lines), "    )"]
