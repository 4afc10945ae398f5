"""The very call that is shown, as Python source: a test of it, a case, and a request to a vendor."""

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
from promptkit.exports import REQUESTS
from promptkit.fragments.invisible import escape_invisible
from promptkit.preview.rendering import Rendering

#: Characters of a line, as formatters have them.
_WIDTH: Final = 88


@attrs.frozen
class _Sdk:
    """How a vendor's SDK is called: the class of its client, the method, and what else that needs."""

    imported: str
    client: str
    method: str
    fields: str


_MODEL: Final = 'model="..."'
_SDKS: Final = {
    "openai-chat": _Sdk("from openai import OpenAI", "OpenAI", "chat.completions.create", _MODEL),
    "openai-responses": _Sdk("from openai import OpenAI", "OpenAI", "responses.create", _MODEL),
    "anthropic": _Sdk(
        "from anthropic import Anthropic", "Anthropic", "messages.create", f"{_MODEL}, max_tokens=1024"
    ),
    "gemini": _Sdk("from google import genai", "genai.Client", "models.generate_content", _MODEL),
}


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


def case_source(rendering: Rendering) -> str:
    """Return the line that saves the values of a form as a case, to stand beside the prompt."""
    prompt, modules = rendering.prompt, set[str]()
    _, name = _importable(prompt) or ("", _identifier(prompt.name))
    known = [one for one in rendering.given if one in prompt.arguments.by_name]
    pairs = [f"{_text(one)}: {_sent(rendering, one, modules)}" for one in known]
    imports = [f"import {module}\n" for module in sorted(modules)]
    return "".join([*imports, "\n".join(_lines(f'{name}.case_wire("a name", {{', pairs))])


def request_source(rendering: Rendering, target: str, form: str, *, lossy: bool = False) -> str:
    """
    Return what sends a rendering to a vendor by its SDK.

    Args:
        rendering:
            What a prompt says.

        target:
            What is shown, as the author wrote it on the command line.

        form:
            One of `promptkit.exports.REQUESTS`.

        lossy:
            Whether the vendor cannot take all of it.
    """
    modules, call, sdk = set[str](), _call(rendering, target), _SDKS[form]
    if call.is_sent:  # a client is not told all of what a request holds
        begin = f"compile({_text(target)})[{_text(rendering.prompt.name)}].render({{"
        call = attrs.evolve(call, imports=["from promptkit.compiler import compile"], begin=begin)
    pairs = [f"{_text(one)}: {_sent(rendering, one, modules)}" for one in rendering.given]
    function = REQUESTS[form].__name__
    groups = [
        [f"import {module}" for module in sorted(modules)],
        [sdk.imported, f"from promptkit.exports import {function}"],
        call.imports,
        [
            *_lines(f"said = {call.begin}", pairs),
            f"request = {function}(said, {sdk.fields}{', lossy=True' * lossy})",
        ],
        [f"answer = {sdk.client}().{sdk.method}(**request)"],
    ]
    return "\n\n".join("\n".join(group) for group in groups if group) + "\n"


def pytest_source(rendering: Rendering, target: str) -> PytestSource:
    """
    Return a test that passes as long as the prompt says the same. It calls the prompt as a client does.

    Args:
        rendering:
            What a prompt says, or what is wrong with its arguments.

        target:
            What is shown, as the author wrote it on the command line.
    """
    prompt, modules = rendering.prompt, set[str]()
    name, secret = _identifier(prompt.name), prompt.arguments.secret
    pairs = [f"{_text(rendering.redacted(one))}: {_sent(rendering, one, modules)}" for one in rendering.given]
    call = _call(rendering, target)
    if rendering.workflow is None:
        body = _refused(rendering, call, pairs)
    else:
        body = [*_lines(f"    said = {call.begin}", pairs), "", *_expected(rendering, call)]
    standard = [f"import {module}" for module in sorted(modules)]
    groups = [standard, ["import pytest"] if rendering.workflow is None else [], call.imports]
    imports = "\n\n".join("\n".join(group) for group in groups if group)
    source = [imports, "", "", f"def test_{name}_says_the_same():", *body, ""]
    notes = [
        f"The value of {one} is a secret, and left out: set the variable {variable(one)} to run the test."
        for one in rendering.given
        if one in secret
    ]
    notes += [
        f"It reads {file}: save that file beside it."
        for argument, upload in rendering.uploads.items()
        if argument not in secret
        for file in upload.files
    ]
    saved = f"Save it as test_{name}.py beside your tests."
    return PytestSource(f"test_{name}.py", "\n".join(source), (saved, *notes))


def variable(name: str) -> str:
    """Return the environment variable that stands for the value of a secret argument."""
    return name.upper()


@attrs.frozen
class _Call:
    """How a test calls the prompt: what comes before the arguments, what is raised, and what it gets."""

    imports: list[str]
    begin: str
    error: str
    message: str
    is_sent: bool


def _call(rendering: Rendering, target: str) -> _Call:
    prompt, is_refused = rendering.prompt, rendering.workflow is None
    found = _importable(prompt)
    if found is not None:
        module, name = found
        imports = [f"from {module} import {name}", *["from promptkit import ArgumentsError"] * is_refused]
        return _Call(
            sorted(imports), f"{name}.render_wire({{", "ArgumentsError", "str(refused.value)", is_sent=False
        )
    # No module has it under a name.
    imports = ["from promptkit.testing import Client" + ", ProtocolError" * is_refused]
    scopes = f", scopes={sorted(prompt.scopes)!r}" if prompt.scopes else ""
    begin = f"Client({_text(target)}{scopes}).get_prompt({_text(prompt.name)}, {{"
    return _Call(imports, begin, "ProtocolError", "refused.value.message", is_sent=True)


def _sent(rendering: Rendering, name: str, modules: set[str]) -> str:
    """The expression for one argument, as a client sends it. What it needs is added to *modules*."""
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


def _text(text: str) -> str:
    """The literal of a text. What nobody would see is escaped in it."""
    return escape_invisible(json.dumps(text, ensure_ascii=False))


def _lines(begin: str, pairs: list[str]) -> list[str]:
    """A call, on one line if it is not too long."""
    line = f"{begin}{', '.join(pairs)}}})"
    if len(line) <= _WIDTH:
        return [line]
    indent = " " * (len(begin) - len(begin.lstrip()))
    return [begin, *(f"{indent}    {pair}," for pair in pairs), f"{indent}}})"]


def _expected(rendering: Rendering, call: _Call) -> list[str]:
    """What the test expects of the text, and of who says it."""
    workflow = rendering.workflow
    assert workflow is not None  # noqa: S101 (there is no test of a prompt that failed)
    roles = [message.role for message in (workflow.sent if call.is_sent else workflow)]
    said = _says(rendering, "said.text", workflow.text)
    if len(roles) <= 1:
        return said
    return [f"    assert [message.role for message in said] == [{', '.join(map(_text, roles))}]", *said]


def _refused(rendering: Rendering, call: _Call, pairs: list[str]) -> list[str]:
    errors = ArgumentsError(rendering.prompt.name, tuple(rendering.faults))
    lines = _lines(f"        {call.begin}", pairs)
    says = _says(rendering, call.message, str(errors))
    return [f"    with pytest.raises({call.error}) as refused:", *lines, "", *says]


def _says(rendering: Rendering, expression: str, text: str) -> list[str]:
    """What the test expects of a text; of one that holds secrets, what stands around them."""
    shown = rendering.redacted(text)
    if shown != text:
        return [f"    assert {_text(piece)} in {expression}" for piece in shown.split(HIDDEN) if piece]
    lines = text.splitlines(keepends=True)
    if len(lines) <= 1:
        return [f"    assert {expression} == {_text(text)}"]
    return [f"    assert {expression} == (", *(f"        {_text(line)}" for line in lines), "    )"]
