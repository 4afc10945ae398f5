"""The tabs of a prompt's page other than the conversation: views of a rendering as text to copy."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

import attrs
import msgspec

from promptkit.catalog.arguments import Argument
from promptkit.clients.profiles import CLIENTS
from promptkit.errors.exceptions import ArgumentsError
from promptkit.exports import REQUESTS, ExportError, UnsupportedAnswerError
from promptkit.fragments.invisible import escape_invisible
from promptkit.fragments.shell_words import quoted, quoted_path
from promptkit.language.messages import Workflow
from promptkit.preview.client_views import ClientView, client_view
from promptkit.preview.controls import Choice
from promptkit.preview.media import Upload
from promptkit.preview.python_source import VENDORS, case_source, pytest_source, request_source, variable
from promptkit.preview.rendering import Rendering
from promptkit.protocol.jsonrpc import encode_error
from promptkit.protocol.lowering import Lowering, lowering_for
from promptkit.protocol.revisions import REVISIONS
from promptkit.server.elicitation_forms import elicitation
from promptkit.server.server import PROMPTKIT

#: Maximum length of a value in the command itself, in characters. Systems accept 128 KiB.
_MAX_VALUE: Final = 32_000


@attrs.frozen
class Block:
    """
    A text to copy.

    Args:
        title:
            Its title.

        text:
            The text.

        language:
            Its language, for highlighting.
    """

    title: str
    text: str
    language: Literal["json", "python", "shell"]


@attrs.frozen
class TabContent:
    """
    The content of a tab.

    Args:
        tab:
            The tab.

        choices:
            The views to choose from.

        blocks:
            Texts to copy.

        notes:
            Remarks for the user, in sentences.

        view:
            The rendering as a client shows it.
    """

    tab: str
    choices: tuple[Choice, ...] = ()
    blocks: tuple[Block, ...] = ()
    notes: tuple[str, ...] = ()
    view: ClientView | None = None


def content_of(tab: str, rendering: Rendering, target: str, choice: str = "") -> TabContent:
    """
    Return the content of a tab.

    Args:
        tab:
            One of `TABS`.

        rendering:
            A prompt with the values of a form.

        target:
            The target, as the author typed it on the command line.

        choice:
            One of the tab's choices; any other value selects the first.

    Raises:
        KeyError: If there is no such tab.
    """
    _, make = _CONTENTS[tab]
    refused = [name for name, upload in rendering.uploads.items() if upload.refusal]
    if refused:  # clients would not send these, or receive these errors
        return TabContent(tab, notes=(f"There is nothing to show yet: {', '.join(refused)} cannot be sent.",))
    return make(rendering, target, choice)


def _choices(labels: Mapping[str, str], chosen: str) -> tuple[Choice, ...]:
    return tuple(Choice(value, label, value == chosen) for value, label in labels.items())


def _json_block(title: str, value: Any) -> Block:
    """Return a block of JSON to copy, with invisible characters escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return Block(title, text if escape_invisible(text) == text else json.dumps(value, indent=2), "json")


def _wire(rendering: Rendering, _target: str, choice: str) -> TabContent:
    """Return the ``prompts/get`` result and the prompt's ``prompts/list`` entry for one protocol revision."""
    chosen = choice if choice in REVISIONS else next(reversed(REVISIONS))
    lowering = lowering_for(REVISIONS[chosen], PROMPTKIT)
    replies, note = _replies(rendering, lowering)
    listed = _json_block("The prompt in the list", msgspec.to_builtins(lowering.prompt(rendering.prompt)))
    choices = _choices({revision: revision for revision in reversed(REVISIONS)}, chosen)
    return TabContent("wire", choices, (*replies, listed), (note,) if note else ())


def _replies(rendering: Rendering, lowering: Lowering) -> tuple[tuple[Block, ...], str]:
    """Return the possible responses to ``prompts/get``, and a note."""
    prompt, workflow = rendering.prompt, rendering.workflow
    redacted = rendering.redactor.redacted_json
    if workflow is not None:
        try:
            result = msgspec.json.decode(lowering.result(prompt, workflow))
        except ValueError as error:  # half of a surrogate pair, which UTF-8 cannot encode
            return (), f"The prompt has text that cannot be sent: {error}."
        return (_json_block("The result of prompts/get", redacted(result)),), ""
    if rendering.refusal:
        return (), f"Not rendered: {rendering.refusal}."
    if not rendering.faults:
        return (), "The prompt failed: a client gets an error, and no messages."
    errors = ArgumentsError(prompt.name, tuple(rendering.faults))
    error_data = msgspec.json.decode(encode_error(1, errors).line)["error"]
    error_block = _json_block("The error of prompts/get", redacted(error_data))
    if not (rendering.asked and lowering.revision.elicitation):
        return (error_block,), "The arguments are invalid: a client gets this error."
    modes = lowering.revision.elicitation_modes
    params = elicitation(prompt, rendering.asked, modes=modes)
    question = _json_block("The params of elicitation/create", redacted(params))
    return (question, error_block), "A client that can show forms gets the question, any other one the error."


def _vendors(rendering: Rendering, target: str, choice: str) -> TabContent:
    """Return the request to one provider, with text in place of unsupported parts."""
    form = choice if choice in REQUESTS else next(iter(REQUESTS))
    choices = _choices({name: vendor.label for name, vendor in VENDORS.items()}, form)
    if rendering.workflow is None:
        return TabContent("vendors", choices, notes=("There is nothing to send for these arguments.",))
    try:
        request, notes = _request(form, rendering.workflow)
    except UnsupportedAnswerError as error:
        return TabContent("vendors", choices, notes=(f"{error}.",))
    title = f"arguments of {VENDORS[form].method}{', with text in place of it' * bool(notes)}"
    redacted = rendering.redactor.redacted_json(msgspec.to_builtins(request))
    source = Block(
        "Send it by the vendor's SDK", request_source(rendering, target, form, lossy=bool(notes)), "python"
    )
    return TabContent("vendors", choices, (_json_block(title, redacted), source), notes)


def _request(form: str, workflow: Workflow) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the request, and the unsupported parts. Raises UnsupportedAnswerError."""
    try:
        return REQUESTS[form](workflow), ()
    except ExportError as error:
        notes = tuple(f"{error.vendor} cannot take it: {part}." for part in error.parts)
        return REQUESTS[form](workflow, lossy=True), notes


def _test(rendering: Rendering, target: str, _choice: str) -> TabContent:
    """Return a pytest test of the displayed call."""
    if rendering.refusal:
        return TabContent("test", notes=(f"Not rendered: {rendering.refusal}.",))
    if rendering.workflow is None and not rendering.faults:
        return TabContent("test", notes=("The prompt failed, so there is nothing that a test could expect.",))
    test = pytest_source(rendering, target)
    case = Block("A case with these values, next to the prompt", case_source(rendering), "python")
    return TabContent("test", (), (Block(test.file, test.text, "python"), case), test.notes)


def _command_line(rendering: Rendering, target: str, _choice: str) -> TabContent:
    """Return the command that prints the same rendering, quoted for a POSIX shell."""
    prompt = rendering.prompt
    # A link can contain any names; names without an argument are omitted.
    known = [argument for name in rendering.given if (argument := prompt.arguments.by_name.get(name))]
    words_with_notes = [
        _word(argument, rendering.given[argument.name], rendering.uploads.get(argument.name))
        for argument in known
    ]
    words = [
        "promptkit",
        "render",
        quoted_path(target),
        quoted(prompt.name),
        *(word for word, _ in words_with_notes),
    ]
    command = rendering.redactor.redacted(" ".join(words))
    notes = tuple(note for _, note in words_with_notes if note)
    return TabContent("command-line", (), (Block("Run this", command, "shell"),), notes)


def _word(argument: Argument, value: str, upload: Upload | None) -> tuple[str, str]:
    """Return the word for one argument, and a note."""
    name = argument.name
    if argument.arg.secret:
        note = f"The value of {name} is a secret and is omitted: set the variable {variable(name)} to it."
        return f'{name}="${variable(name)}"', note
    if upload is not None and upload.files:
        file = upload.files[0]
        note = f"The value of {name} is read from {file}: run this next to it."
        if len(upload.files) > 1:
            note = f"The value of {name} is made of {len(upload.files)} files, and a command line takes one."
        # "@@" and "@-" have a special meaning.
        return quoted(f"{name}=@{'./' * file.startswith(('@', '-'))}{file}"), note
    if "\0" in value or len(value) > _MAX_VALUE or argument.takes_bytes:
        file = f"{name}.bin" if argument.takes_bytes else f"{name}.txt"
        note = f"The value of {name} is read from {file}: save there what you uploaded or typed."
        return f"{name}=@{file}", note
    return quoted(f"{name}={'@' * value.startswith('@')}{value}", one_line=False), ""


def _clients(rendering: Rendering, _target: str, choice: str) -> TabContent:
    """Return the view of one client, and its limitations."""
    name = choice if choice in CLIENTS else next(iter(CLIENTS))
    choices = _choices({name: client.title for name, client in CLIENTS.items()}, name)
    view = client_view(name, rendering)
    return TabContent("clients", choices, notes=view.notes, view=view)


#: Takes a rendering, the target as the author typed it, and the choice in the tab.
_Content: TypeAlias = Callable[[Rendering, str, str], TabContent]

_CONTENTS: Final[dict[str, tuple[str, _Content]]] = {
    "wire": ("Wire", _wire),
    "vendors": ("Vendors", _vendors),
    "test": ("Test", _test),
    "command-line": ("Command line", _command_line),
    "clients": ("Clients", _clients),
}

#: The labels of the tabs, by their name in URLs.
TABS: Final = {name: label for name, (label, _) in _CONTENTS.items()}
