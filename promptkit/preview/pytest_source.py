"""A pytest test of the very call that is shown, as Python source."""

import keyword
import re
import sys
from pathlib import Path
from typing import Final

import attrs

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.redaction import HIDDEN
from promptkit.compiler.prompts import Prompt
from promptkit.errors.exceptions import ArgumentErrors
from promptkit.preview.controls import is_upload
from promptkit.preview.python_source import PythonSource, UnwritableError, text_source
from promptkit.preview.rendering import Rendering

__all__ = ["PytestSource", "pytest_source", "variable"]

#: Characters of a line, as formatters have them.
_WIDTH: Final = 88


@attrs.frozen
class PytestSource:
    """
    A test to copy.

    Args:
        file:
            What it may be saved as.

        text:
            Its source.

        notes:
            What there is to know of it.
    """

    file: str
    text: str
    notes: tuple[str, ...]


def pytest_source(rendering: Rendering, target: str) -> PytestSource:
    """
    Return a test that passes as long as the prompt says the same.

    It calls the prompt with Python values; if one of them cannot be written, as a client does.

    Args:
        rendering:
            What a prompt says, or what is wrong with its arguments.

        target:
            What is shown, as the author wrote it on the command line.
    """
    name, call = _identifier(rendering.prompt.name), _call(rendering, target)
    if rendering.workflow is None:
        expected = _refused(rendering, call)
    else:
        expected = [*call.lines("said = ", "    "), "", *_expected(rendering)]
    source = [*_imports(call), "", "", f"def test_{name}_says_the_same():", *expected, ""]
    notes = [f"Save it as test_{name}.py beside your tests."]
    notes += [
        f"The value of {one} is a secret, and left out: set the variable {variable(one)} to run the test."
        for one in call.secrets
    ]
    notes += [
        f"It reads {file}: save that file beside it."
        for argument, upload in rendering.uploads.items()
        if argument not in call.secrets
        for file in upload.files
    ]
    return PytestSource(f"test_{name}.py", "\n".join(source), tuple(notes))


def variable(name: str) -> str:
    """Return the environment variable that stands for the value of a secret argument."""
    return name.upper()


@attrs.frozen
class _Call:
    """An expression that renders the prompt: what is around its arguments, these, and what it needs."""

    left: str
    arguments: tuple[str, ...]
    right: str
    imports: tuple[str, ...]
    secrets: tuple[str, ...] = ()
    refusal: str = ""  # the error that it raises; "" for none

    def lines(self, before: str, indent: str) -> list[str]:
        """The statement that *before* begins, on one line if it is not too long."""
        line = f"{indent}{before}{self.left}{', '.join(self.arguments)}{self.right}"
        if len(line) <= _WIDTH:
            return [line]
        arguments = (f"{indent}    {argument}," for argument in self.arguments)
        return [f"{indent}{before}{self.left}", *arguments, f"{indent}{self.right}"]


def _call(rendering: Rendering, target: str) -> _Call:
    prompt, is_refused = rendering.prompt, rendering.workflow is None
    found, secrets = _importable(prompt), _secrets(rendering)
    if found is not None and not (is_refused or secrets):
        try:
            return _typed_call(rendering, *found)
        except UnwritableError:
            pass
    sent, imports = _sent(rendering)
    if found is not None:
        (module, name), refusal = found, "ArgumentErrors"
        lines = [f"from {module} import {name}", f"from promptkit import {refusal}"][: 1 + is_refused]
        left = f"{name}.render_wire({{"
    else:  # no module has it under a name
        refusal = "ProtocolError"
        lines = ["from promptkit.testing import Client" + f", {refusal}" * is_refused]
        scopes = f", scopes={sorted(prompt.scopes)!r}" if prompt.scopes else ""
        left = f"Client({text_source(target)}{scopes}).get_prompt({text_source(prompt.name)}, {{"
    return _Call(left, sent, "})", (*lines, *imports), secrets, refusal if is_refused else "")


def _typed_call(rendering: Rendering, module: str, name: str) -> _Call:
    source = PythonSource({name: f"from {module} import {name}"})
    values = rendering.prompt.arguments.read(rendering.given)
    given = {key: value for key, value in values.items() if key in rendering.given}
    uploads = rendering.uploads
    written = tuple(f"{key}={source.of_upload(value, uploads.get(key))}" for key, value in given.items())
    if rendering.redacted(str(written)) != str(written):  # the default of a secret, for example
        raise UnwritableError
    return _Call(f"{name}.render(", written, ")", tuple(source.imports.values()))


def _secrets(rendering: Rendering) -> tuple[str, ...]:
    return tuple(name for name in rendering.given if name in rendering.prompt.arguments.secret)


def _sent(rendering: Rendering) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The arguments as a client sends them, or as the environment has them, and imports."""
    source = PythonSource()
    pairs = [
        f"{text_source(rendering.redacted(name))}: {_text(rendering, source, name)}"
        for name in rendering.given
    ]
    return tuple(pairs), tuple(source.imports.values())


def _text(rendering: Rendering, source: PythonSource, name: str) -> str:
    """The expression for one argument as a client sends it."""
    arguments, value, upload = rendering.prompt.arguments, rendering.given[name], rendering.uploads.get(name)
    if name in arguments.secret:
        source.add("os", "import os")
        return f'os.environ["{variable(name)}"]'
    if upload is None or not upload.files:
        return text_source(rendering.redacted(value))
    if not is_upload(arguments.by_name[name]):
        return source.of_upload(value, upload)
    source.add("base64", "import base64")
    encoded = [f"base64.b64encode({data}).decode()" for data in source.data_of(upload.files)]
    return encoded[0] if len(encoded) == 1 else f'"\\n".join([{", ".join(encoded)}])'


def _importable(prompt: CompiledPrompt) -> tuple[str, str] | None:
    """The module that a test imports the prompt from, and its name there."""
    module = getattr(prompt.renderer.function, "__module__", None) or ""
    parts = module.split(".")
    # A folder that could not have its own name as a package has another one.
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


def _imports(call: _Call) -> list[str]:
    """The imports, those of the standard library first, as formatters have them."""
    lines = sorted(call.imports)
    plain = [line for line in lines if line.startswith("import ")]
    ours = [line for line in lines if line not in plain]
    groups = [plain, ["import pytest"] if call.refusal else [], ours]
    return "\n\n".join("\n".join(group) for group in groups if group).split("\n")


def _expected(rendering: Rendering) -> list[str]:
    """What the test expects of the text, and of who says it."""
    assert rendering.workflow is not None  # noqa: S101 (there is no test of a prompt that failed)
    roles = [message.role for message in rendering.workflow]
    said = _says(rendering, "said.text", rendering.workflow.text)
    if len(roles) <= 1:
        return said
    return [f"    assert [message.role for message in said] == [{', '.join(map(text_source, roles))}]", *said]


def _refused(rendering: Rendering, call: _Call) -> list[str]:
    errors = ArgumentErrors(rendering.prompt.name, tuple(rendering.faults))
    said = "str(refused.value)" if call.refusal == "ArgumentErrors" else "refused.value.message"
    return [
        f"    with pytest.raises({call.refusal}) as refused:",
        *call.lines("", "        "),
        "",
        *_says(rendering, said, str(errors)),
    ]


def _says(rendering: Rendering, expression: str, text: str) -> list[str]:
    """What the test expects of a text; of one that holds secrets, what stands around them."""
    shown = rendering.redacted(text)
    if shown != text:
        return [f"    assert {text_source(piece)} in {expression}" for piece in shown.split(HIDDEN) if piece]
    lines = text.splitlines(keepends=True)
    if len(lines) <= 1:
        return [f"    assert {expression} == {text_source(text)}"]
    return [f"    assert {expression} == (", *(f"        {text_source(line)}" for line in lines), "    )"]
