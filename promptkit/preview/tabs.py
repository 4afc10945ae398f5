"""The tabs of a prompt's page other than the conversation: views of a rendering as text to copy."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

import attrs
import msgspec

from promptkit.catalog.arguments import Argument, Arguments
from promptkit.catalog.catalog import Catalog
from promptkit.clients.profiles import CLIENTS, ClientProfile, get_client
from promptkit.errors.exceptions import ArgumentsError
from promptkit.exports import REQUESTS, ExportError, UnsupportedAnswerError
from promptkit.fragments.invisible import escape_invisible
from promptkit.fragments.shell_words import quoted, quoted_path
from promptkit.language.messages import Workflow
from promptkit.lints.clients import lint_client, lint_workflow
from promptkit.lints.conversations import SentMessages
from promptkit.preview.controls import Choice
from promptkit.preview.media import Upload
from promptkit.preview.python_source import case_source, pytest_source, variable
from promptkit.preview.rendering import Rendering, failure
from promptkit.protocol.jsonrpc import encode_error
from promptkit.protocol.lowering import Lowering, lowering_for
from promptkit.protocol.revisions import REVISIONS
from promptkit.server.direct_calls import rendering_of, time_limit
from promptkit.server.elicitation import elicitation_params
from promptkit.server.server import PROMPTKIT

#: The label of each request format, and the method of the vendor's SDK that accepts it.
_VENDORS: Final = {
    "openai-chat": ("OpenAI chat", "chat.completions.create"),
    "openai-responses": ("OpenAI responses", "responses.create"),
    "anthropic": ("Anthropic", "messages.create"),
    "gemini": ("Gemini", "models.generate_content"),
}

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
class Arrival:
    """
    A message or an argument in one client.

    Args:
        label:
            The role, or the argument's name.

        text:
            Its text.

        arrives:
            Whether the client shows or sends it unchanged.
    """

    label: str
    text: str
    arrives: bool


@attrs.frozen
class ClientView:
    """
    A rendering as one client shows it.

    Args:
        title:
            The client.

        notes:
            The client's limitations, in sentences.

        is_offered:
            Whether the client offers the prompt to users.

        arguments:
            What the server receives for each argument with a value.

        messages:
            The messages.

        reason:
            Why there are no messages; "" if there are messages, or the prompt is not offered.
    """

    title: str
    notes: tuple[str, ...] = ()
    is_offered: bool = False
    arguments: tuple[Arrival, ...] = ()
    messages: tuple[Arrival, ...] = ()
    reason: str = ""


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
    params = elicitation_params(prompt, rendering.asked, modes=modes)
    question = _json_block("The params of elicitation/create", redacted(params))
    return (question, error_block), "A client that can show forms gets the question, any other one the error."


def _vendors(rendering: Rendering, _target: str, choice: str) -> TabContent:
    """Return the request to one provider, with text in place of unsupported parts."""
    form = choice if choice in REQUESTS else next(iter(REQUESTS))
    choices = _choices({name: label for name, (label, _) in _VENDORS.items()}, form)
    if rendering.workflow is None:
        return TabContent("vendors", choices, notes=("There is nothing to send for these arguments.",))
    try:
        request, notes = _request(form, rendering.workflow)
    except UnsupportedAnswerError as error:
        return TabContent("vendors", choices, notes=(f"{error}.",))
    title = f"arguments of {_VENDORS[form][1]}{', with text in place of it' * bool(notes)}"
    redacted = rendering.redactor.redacted_json(msgspec.to_builtins(request))
    return TabContent("vendors", choices, (_json_block(title, redacted),), notes)


def _request(form: str, workflow: Workflow) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the request, and the unsupported parts. Raises UnsupportedAnswerError."""
    try:
        return REQUESTS[form](workflow), ()
    except ExportError as error:
        notes = tuple(f"{error.vendor} cannot represent the rendering: {part}." for part in error.parts)
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


def client_view(name: str, rendering: Rendering) -> ClientView:
    """
    Return what one client shows and sends, and its limitations.

    Args:
        name:
            The client's name on the command line.

        rendering:
            A prompt with the values that a user typed.
    """
    client, max_arguments = get_client(name), get_client(name).most_arguments
    if not client.has_prompts or (
        max_arguments is not None and len(rendering.prompt.arguments.ordered) > max_arguments
    ):
        return ClientView(client.title, _notes(name, rendering, rendering.workflow))
    workflow, reason = _workflow_in_client(client, rendering)
    return ClientView(
        client.title,
        _notes(name, rendering, workflow),
        is_offered=True,
        arguments=tuple(_arguments(client, rendering)),
        messages=() if workflow is None else tuple(_messages(client, rendering, workflow)),
        reason=rendering.redacted(reason),
    )


def sent_by(client: ClientProfile, arguments: Arguments, values: Mapping[str, str]) -> dict[str, str]:
    """
    Return what a client sends for values that a user typed in the order of the signature.

    Args:
        client:
            The client.

        arguments:
            The arguments of a prompt.

        values:
            The typed values by name.
    """
    names = [argument.name for argument in arguments.ordered]
    typed = {name: values[name] for name in names if name in values}
    words = " ".join(typed.values()).split()
    if not names or not (client.joins_words or client.cuts_at_blanks):
        return typed
    # Each argument gets one word and the last argument the rest, or the first gets all words.
    targets = names[:1] if client.joins_words else names
    last = len(targets) - 1
    texts = [*words[:last], " ".join(words[last:])]
    return {name: text for name, text in zip(targets, texts, strict=False) if text}


def _workflow_in_client(client: ClientProfile, rendering: Rendering) -> tuple[Workflow | None, str]:
    """Return the workflow for the values that a client sends, or None and the reason."""
    prompt, typed = rendering.prompt, rendering.given
    sent = sent_by(client, prompt.arguments, typed)
    if sent != typed and _without_secrets(rendering) != typed:
        return None, f"{client.title} cuts a secret, so that what the prompt says is not shown."
    if sent == typed and rendering.refusal:
        return None, f"not rendered: {rendering.refusal}"
    if sent == typed and (rendering.workflow is not None or rendering.error):
        return rendering.workflow, rendering.error or ""
    try:
        result = rendering_of(prompt, sent)()
        if isinstance(result, Coroutine):
            # This thread cannot be stopped while its event loop is idle.
            result = asyncio.run(asyncio.wait_for(result, time_limit(prompt)))
    except ArgumentsError as errors:
        return None, f"the server refuses what {client.title} sends. {errors}"
    except BaseException as error:  # noqa: BLE001 (authors raise anything)
        return None, failure(f"prompt {prompt.name!r}", error)
    return result, ""


def _arguments(client: ClientProfile, rendering: Rendering) -> Iterator[Arrival]:
    arguments, typed = rendering.prompt.arguments, _without_secrets(rendering)
    sent = sent_by(client, arguments, typed)
    for argument in arguments.ordered:
        text, original = sent.get(argument.name), typed.get(argument.name)
        if text is not None or original is not None:
            upload = rendering.uploads.get(argument.name) if argument.takes_bytes else None
            # Base64 is not readable.
            display = str(upload) if upload and text == original else rendering.redacted(text or "")
            yield Arrival(argument.name, display, text == original)


def _without_secrets(rendering: Rendering) -> dict[str, str]:
    """Return the typed values, with one placeholder for each word of a secret."""
    secret = rendering.prompt.arguments.secret
    return {
        name: " ".join("…" for _ in value.split()) if name in secret else value
        for name, value in rendering.given.items()
    }


def _messages(client: ClientProfile, rendering: Rendering, workflow: Workflow) -> Iterator[Arrival]:
    for number, sent in enumerate(SentMessages.of_rendering(workflow).content):
        arrives = sent.kind not in client.unsupported and not (number and client.sends_first_only)
        role = "user" if client.drops_roles else sent.role
        yield Arrival(role, rendering.redacted(str(workflow.sent[number].content)), arrives)


def _notes(name: str, rendering: Rendering, workflow: Workflow | None) -> tuple[str, ...]:
    """Return the client's limitations for the signature and for the rendering."""
    prompt = rendering.prompt
    diagnostics = lint_client(name, Catalog([prompt]))
    diagnostics += () if workflow is None else lint_workflow(name, prompt, workflow)
    sentences = dict.fromkeys(f"{diagnostic.message}: {diagnostic.hint}" for diagnostic in diagnostics)
    return tuple(map(rendering.redacted, sentences))


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
