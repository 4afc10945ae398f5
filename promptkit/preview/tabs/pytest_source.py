"""The tab *test*: a pytest test of the very call that is shown."""

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
from promptkit.preview.rendering import Rendering
from promptkit.preview.tabs.command_line import variable
from promptkit.preview.tabs.content import Block, TabContent
from promptkit.preview.tabs.python_source import Source, UnwritableError, text_source
from promptkit.preview.tabs.upload_source import data_sources, upload_source

__all__ = ["content"]

#: Characters of a line, as formatters have them.
_WIDTH: Final = 88

_ENDED: Final = "The prompt failed, so there is nothing that a test could expect."


def content(rendering: Rendering, target: str, _choice: str) -> TabContent:
    """
    Return a test that passes as long as the prompt says the same.

    It calls the prompt with Python values; if one of them cannot be written, as a client does.
    """
    if rendering.workflow is None and not rendering.faults:
        return TabContent("test", notes=(_ENDED,))
    call = _call(rendering, target)
    said = _refused(rendering, call) if rendering.workflow is None else _expected(rendering)
    source = "\n".join(
        [*_imports(call, refused=rendering.workflow is None), "", "", *_test(rendering, call, said)]
    )
    file = f"test_{_identifier(rendering.prompt.name)}.py"
    notes = [f"Save it as {file} beside your tests."]
    notes += [
        f"The value of {name} is a secret, and left out: set the variable {variable(name)} to run the test."
        for name in call.secrets
    ]
    notes += [
        f"It reads {file}: save that file beside it."
        for name, upload in rendering.uploads.items()
        if name not in call.secrets
        for file in upload.files
    ]
    return TabContent("test", (), (Block(file, f"{source}\n", "python"),), tuple(notes))


@attrs.frozen
class _Call:
    """An expression that renders the prompt: what is around its arguments, these, and what it needs."""

    left: str
    arguments: tuple[str, ...]
    right: str
    imports: tuple[str, ...]
    secrets: tuple[str, ...] = ()
    refusal: str = "ArgumentErrors"

    def lines(self, before: str, indent: str) -> list[str]:
        """The statement that *before* begins, on one line if it is not too long."""
        line = f"{indent}{before}{self.left}{', '.join(self.arguments)}{self.right}"
        if len(line) <= _WIDTH:
            return [line]
        arguments = (f"{indent}    {argument}," for argument in self.arguments)
        return [f"{indent}{before}{self.left}", *arguments, f"{indent}{self.right}"]


def _call(rendering: Rendering, target: str) -> _Call:
    found = _importable(rendering.prompt)
    if found is None:
        return _client_call(rendering, target)
    module, name = found
    if rendering.workflow is not None and not _secrets(rendering):
        try:
            return _typed_call(rendering, module, name)
        except UnwritableError:
            pass
    sent, secrets, imports = _sent(rendering)
    imports = (f"from {module} import {name}", *imports)
    return _Call(f"{name}.render_wire({{", sent, "})", imports, secrets)


def _typed_call(rendering: Rendering, module: str, name: str) -> _Call:
    source = Source({name: f"from {module} import {name}"})
    values = rendering.prompt.arguments.read(rendering.given)
    given = {key: value for key, value in values.items() if key in rendering.given}
    uploads = rendering.uploads
    written = tuple(f"{key}={upload_source(source, value, uploads.get(key))}" for key, value in given.items())
    if rendering.redacted(str(written)) != str(written):  # the default of a secret, for example
        raise UnwritableError
    return _Call(f"{name}.render(", written, ")", tuple(source.imports.values()))


def _client_call(rendering: Rendering, target: str) -> _Call:
    """A call of a prompt that no module has under a name."""
    sent, secrets, imports = _sent(rendering)
    imports = ("from promptkit.testing import Client", *imports)
    prompt = rendering.prompt
    scopes = f", scopes={sorted(prompt.scopes)!r}" if prompt.scopes else ""
    left = f"Client({text_source(target)}{scopes}).get_prompt({text_source(prompt.name)}, {{"
    return _Call(left, sent, "})", imports, secrets, "ProtocolError")


def _secrets(rendering: Rendering) -> tuple[str, ...]:
    return tuple(name for name in rendering.given if name in rendering.prompt.arguments.secret)


def _sent(rendering: Rendering) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The arguments as a client sends them, the names of those that the environment has, and imports."""
    secrets, source = _secrets(rendering), Source()
    if secrets:
        source.add("os", "import os")
    values = {
        name: f'os.environ["{variable(name)}"]' if name in secrets else _text(rendering, source, name)
        for name in rendering.given
    }
    pairs = (f"{text_source(rendering.redacted(name))}: {value}" for name, value in values.items())
    return tuple(pairs), secrets, tuple(source.imports.values())


def _text(rendering: Rendering, source: Source, name: str) -> str:
    """The expression for one argument as a client sends it."""
    value, upload = rendering.given[name], rendering.uploads.get(name)
    if upload is None or not upload.files:
        return text_source(rendering.redacted(value))
    if not is_upload(rendering.prompt.arguments.by_name[name]):
        return upload_source(source, value, upload)
    source.add("base64", "import base64")
    encoded = [f"base64.b64encode({data}).decode()" for data in data_sources(source, upload)]
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


def _imports(call: _Call, *, refused: bool) -> list[str]:
    """The imports, those of the standard library first, as formatters have them."""
    lines = set(call.imports)
    ours = {line for line in lines if line.startswith("from ")}
    others = set()
    if refused:
        others = {"import pytest"}
        module = "promptkit" if call.refusal == "ArgumentErrors" else "promptkit.testing"
        ours = {line for line in ours if not line.startswith(f"from {module} ")} | {
            _merged(module, [line for line in ours if line.startswith(f"from {module} ")], call.refusal)
        }
    groups = [sorted(lines - ours), sorted(others), sorted(ours)]
    return "\n\n".join("\n".join(group) for group in groups if group).split("\n")


def _merged(module: str, lines: list[str], name: str) -> str:
    names = {each.strip() for line in lines for each in line.partition(" import ")[2].split(",")} | {name}
    return f"from {module} import {', '.join(sorted(names))}"


def _test(rendering: Rendering, call: _Call, said: list[str]) -> list[str]:
    head = f"def test_{_identifier(rendering.prompt.name)}_says_the_same():"
    if rendering.workflow is None:
        return [head, *said]
    return [head, *call.lines("said = ", "    "), "", *said]


def _expected(rendering: Rendering) -> list[str]:
    """What the test expects of the text, and of who says it."""
    assert rendering.workflow is not None  # noqa: S101 (there is no test of a prompt that failed)
    roles = [message.role for message in rendering.workflow]
    lines = []
    if len(roles) > 1:
        lines = [f"    assert [message.role for message in said] == [{', '.join(map(text_source, roles))}]"]
    return [*lines, *_says(rendering, "said.text", rendering.workflow.text)]


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
    if shown == text:
        return _equal(expression, text)
    return [f"    assert {text_source(piece)} in {expression}" for piece in shown.split(HIDDEN) if piece]


def _equal(expression: str, text: str) -> list[str]:
    lines = text.splitlines(keepends=True)
    if len(lines) <= 1:
        return [f"    assert {expression} == {text_source(text)}"]
    return [f"    assert {expression} == (", *(f"        {text_source(line)}" for line in lines), "    )"]
