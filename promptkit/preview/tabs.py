"""The tabs of a prompt's page other than the conversation: views of a rendering as text to copy."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

import attrs
import msgspec

from promptkit.catalog.arguments import Argument
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.clients.profiles import CLIENTS, ClientProfile, get_client
from promptkit.errors.exceptions import ArgumentsError
from promptkit.exports import REQUEST_FUNCTIONS, ExportError, UnsupportedAnswerError
from promptkit.foreign.listing import SERVER_LOCATION
from promptkit.fragments.invisible import escape_invisible
from promptkit.fragments.shell_words import quoted, quoted_path
from promptkit.language.messages import Workflow
from promptkit.lints.clients import (
    find_invalid_positions,
    lint_client,
    lint_workflow,
    shows_form,
    typed_arguments,
)
from promptkit.lints.conversations import SentMessages
from promptkit.loader.targets import format_render_targets
from promptkit.preview.forms import Choice
from promptkit.preview.media import Upload
from promptkit.preview.python_source import (
    build_case_source,
    build_case_table,
    secret_variable_name,
)
from promptkit.preview.rendering import Rendering, describe_failure
from promptkit.protocol.capabilities import ServerInfo
from promptkit.protocol.jsonrpc import encode_error
from promptkit.protocol.lowering import Lowering, lowering_for
from promptkit.protocol.revisions import REVISIONS
from promptkit.server.direct_calls import make_renderer
from promptkit.server.elicitation import askable_arguments, elicitation_params, form_arguments
from promptkit.server.identity import UNKNOWN
from promptkit.server.timeouts import time_limit

#: The label of each request format, and the method of the vendor's SDK that accepts it.
_VENDORS: Final = {
    "openai-chat": ("OpenAI chat", "chat.completions.create"),
    "openai-responses": ("OpenAI responses", "responses.create"),
    "anthropic": ("Anthropic", "messages.create"),
    "gemini": ("Gemini", "models.generate_content"),
}

#: Maximum length of a value in the command line, in characters. Systems accept 128 KiB.
_MAX_VALUE: Final = 32_000


@attrs.frozen
class Block:
    """
    Text to copy.

    Args:
        title:
            The title of the block.

        text:
            The text.

        language:
            The language of the text, for syntax highlighting.
    """

    title: str
    text: str
    language: Literal["json", "python", "shell", "toml", "yaml"]


@attrs.frozen
class ClientItem:
    """
    A message that a client passes to a model, or an argument that it passes to the server.

    Args:
        label:
            The role of the message, or the name of the argument.

        text:
            The text of the message, or the value of the argument.

        is_unchanged:
            Whether an argument is passed without changes, or whether a message is passed at all.
    """

    label: str
    text: str
    is_unchanged: bool


@attrs.frozen
class ClientView:
    """
    A rendering as one client shows it.

    Args:
        title:
            The display name of the client.

        notes:
            The client's limitations, as sentences.

        is_offered:
            Whether the client offers the prompt to users.

        arguments:
            The arguments that have a value, as the server receives them.

        messages:
            The messages, as the client passes them to a model.

        reason:
            Why there are no messages. It is ``""`` if there are messages, or if the prompt is not offered.
    """

    title: str
    notes: tuple[str, ...] = ()
    is_offered: bool = False
    arguments: tuple[ClientItem, ...] = ()
    messages: tuple[ClientItem, ...] = ()
    reason: str = ""


@attrs.frozen
class TabContent:
    """
    The content of a tab.

    Args:
        tab:
            The name of the tab.

        choices:
            The views that the user can choose from.

        blocks:
            The blocks of text to copy.

        notes:
            Remarks for the user, as sentences.

        view:
            The rendering as a client shows it.
    """

    tab: str
    choices: tuple[Choice, ...] = ()
    blocks: tuple[Block, ...] = ()
    notes: tuple[str, ...] = ()
    view: ClientView | None = None


@attrs.frozen
class _ServedTarget:
    """The target, as the author typed it on the command line, and the identity of its server."""

    target: str
    identity: ServerInfo


def build_tab(
    tab: str, rendering: Rendering, target: str, choice: str = "", *, identity: ServerInfo = UNKNOWN
) -> TabContent:
    """
    Return the content of a tab.

    Args:
        tab:
            One of `TABS`.

        rendering:
            The prompt, rendered with the values of a form.

        target:
            The target, as the author typed it on the command line.

        choice:
            One of the tab's choices. Any other value selects the first choice.

        identity:
            The server's identity, which is part of the results that clients receive.

    Raises:
        KeyError: If there is no such tab.
    """
    _, build = _BUILDERS[tab]
    invalid = [name for name, upload in rendering.uploads.items() if upload.error]
    if invalid:  # a client cannot send these values, so it would never receive errors about them
        note = f"Nothing to show: the files for {', '.join(map(repr, invalid))} cannot be sent."
        return TabContent(tab, notes=(note,))
    return build(rendering, _ServedTarget(target, identity), choice)


def _build_choices(labels: Mapping[str, str], selected: str) -> tuple[Choice, ...]:
    return tuple(Choice(value, label, value == selected) for value, label in labels.items())


def _build_json_block(title: str, value: Any) -> Block:
    """Return a block of JSON to copy, with invisible characters escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return Block(title, text if escape_invisible(text) == text else json.dumps(value, indent=2), "json")


def _build_wire(rendering: Rendering, served: _ServedTarget, choice: str) -> TabContent:
    """Return the ``prompts/get`` result and the prompt's ``prompts/list`` entry for one protocol revision."""
    date = choice if choice in REVISIONS else next(reversed(REVISIONS))
    lowering = lowering_for(REVISIONS[date], served.identity)
    responses, note = _build_responses(rendering, lowering)
    entry = _build_json_block("prompts/list entry", msgspec.to_builtins(lowering.prompt(rendering.prompt)))
    choices = _build_choices({revision: revision for revision in reversed(REVISIONS)}, date)
    return TabContent("wire", choices, (*responses, entry), (note,) if note else ())


def _build_responses(rendering: Rendering, lowering: Lowering) -> tuple[tuple[Block, ...], str]:
    """Return the possible responses to ``prompts/get``, and a note that can be empty."""
    prompt, workflow = rendering.prompt, rendering.workflow
    redact = rendering.redactor.redacted_json
    if workflow is not None:
        try:
            result = msgspec.json.decode(lowering.result(prompt, workflow))
        except ValueError as error:  # half of a surrogate pair, which UTF-8 cannot encode
            return (), f"This prompt contains text that cannot be sent: {error}."
        return (_build_json_block("prompts/get result", redact(result)),), ""
    if rendering.skip_reason:
        return (), f"Not rendered: {rendering.skip_reason}."
    if not rendering.argument_errors:
        return (), "This prompt failed: clients receive an error instead of messages."
    errors = ArgumentsError(prompt.name, rendering.argument_errors)
    error_data = msgspec.json.decode(encode_error(1, errors).line)["error"]
    error_block = _build_json_block("prompts/get error", redact(error_data))
    if not (rendering.elicited and lowering.revision.elicitation):
        return (error_block,), "The arguments are invalid: clients receive this error."
    modes = lowering.revision.elicitation_modes
    fields = form_arguments(prompt, errors, rendering.values, has_defaults=modes)
    params = elicitation_params(prompt, fields, modes=modes, values=rendering.values, errors=errors)
    request = _build_json_block("elicitation/create params", redact(params))
    note = "Clients that support elicitation receive the request, and all others receive the error."
    return (request, error_block), note


def _build_vendors(rendering: Rendering, _served: _ServedTarget, choice: str) -> TabContent:
    """Return the request to one vendor, in which text replaces unsupported content."""
    form = choice if choice in REQUEST_FUNCTIONS else next(iter(REQUEST_FUNCTIONS))
    choices = _build_choices({name: label for name, (label, _) in _VENDORS.items()}, form)
    if rendering.workflow is None:
        note = "There is no request, because the prompt is not rendered with these arguments."
        return TabContent("vendors", choices, notes=(note,))
    try:
        request, notes = _build_request(form, rendering.workflow)
    except UnsupportedAnswerError as error:
        return TabContent("vendors", choices, notes=(f"{error}.",))
    title = f"{_VENDORS[form][1]} arguments{', with text in place of unsupported content' * bool(notes)}"
    content = rendering.redactor.redacted_json(msgspec.to_builtins(request))
    return TabContent("vendors", choices, (_build_json_block(title, content),), notes)


def _build_request(form: str, workflow: Workflow) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the request, and a note for each unsupported part. Raises UnsupportedAnswerError."""
    try:
        return REQUEST_FUNCTIONS[form](workflow), ()
    except ExportError as error:
        notes = tuple(f"Not supported by {error.vendor}: {part}." for part in error.parts)
        return REQUEST_FUNCTIONS[form](workflow, lossy=True), notes


def _build_case(rendering: Rendering, _served: _ServedTarget, _choice: str) -> TabContent:
    """Return the source that saves the displayed values as a case."""
    if rendering.prompt.location == SERVER_LOCATION:
        block = Block("Case for cases.toml", build_case_table(rendering), "toml")
    elif rendering.prompt.location.file.endswith(".md"):
        block = Block("Case for the front matter", build_case_source(rendering), "yaml")
    else:
        block = Block("Case to paste below the prompt", build_case_source(rendering), "python")
    return TabContent("new-case", (), (block,))


def _build_command_line(rendering: Rendering, served: _ServedTarget, _choice: str) -> TabContent:
    """Return the command that prints the same rendering, quoted for a POSIX shell."""
    prompt = rendering.prompt
    # A link can contain any names. Names that are not arguments of the prompt are omitted.
    arguments = [argument for name in rendering.values if (argument := prompt.arguments.by_name.get(name))]
    words_with_notes = [
        _build_word(argument, rendering.values[argument.name], rendering.uploads.get(argument.name))
        for argument in arguments
    ]
    words = [
        "promptkit",
        "render",
        quoted(served.target)
        if prompt.location == SERVER_LOCATION
        else format_render_targets([served.target], quoted_path),
        quoted(prompt.name),
        *(word for word, _ in words_with_notes),
    ]
    command = rendering.redactor.redacted(" ".join(words))
    notes = tuple(note for _, note in words_with_notes if note)
    return TabContent("command-line", (), (Block("Command", command, "shell"),), notes)


def _build_word(argument: Argument, value: str, upload: Upload | None) -> tuple[str, str]:
    """Return the word for one argument, and a note that can be empty."""
    name = argument.name
    if argument.arg.secret:
        variable = secret_variable_name(name)
        note = f"{name!r} is a secret, so its value is omitted: set the variable {variable} first."
        return f'{name}="${variable}"', note
    if upload is not None and upload.files:
        file = upload.files[0]
        note = f"{name!r} is read from {file}: run the command in the folder of that file."
        if len(upload.files) > 1:
            note = f"{name!r} has {len(upload.files)} files, but the command line accepts only one."
        # "@@" and "@-" have a special meaning.
        return quoted(f"{name}=@{'./' * file.startswith(('@', '-'))}{file}"), note
    if escape_invisible(value) != value or len(value) > _MAX_VALUE or argument.takes_bytes:
        file = f"{name}.bin" if argument.takes_bytes else f"{name}.txt"
        note = f"{name!r} is read from {file}: save the value to that file first."
        return f"{name}=@{file}", note
    return quoted(f"{name}={'@' * value.startswith('@')}{value}", one_line=False), ""


def _build_clients(rendering: Rendering, _served: _ServedTarget, choice: str) -> TabContent:
    """Return a rendering as one client shows it, and notes about the client's limitations."""
    name = choice if choice in CLIENTS else next(iter(CLIENTS))
    choices = _build_choices({name: client.title for name, client in CLIENTS.items()}, name)
    view = build_client_view(name, rendering)
    return TabContent("clients", choices, notes=view.notes, view=view)


def build_client_view(name: str, rendering: Rendering) -> ClientView:
    """
    Return a rendering as one client shows it, with the limitations of that client.

    Args:
        name:
            The name of the client, as commands accept it.

        rendering:
            The prompt, rendered with the values that a user typed.
    """
    client, max_arguments = get_client(name), get_client(name).max_arguments
    if not client.has_prompts or (
        max_arguments is not None and len(rendering.prompt.arguments.ordered) > max_arguments
    ):
        return ClientView(client.title, _build_notes(name, rendering, rendering.workflow))
    workflow, reason = _render_in_client(client, rendering)
    return ClientView(
        client.title,
        _build_notes(name, rendering, workflow),
        is_offered=True,
        arguments=tuple(_list_arguments(client, rendering)),
        messages=() if workflow is None else tuple(_list_messages(client, rendering, workflow)),
        reason=rendering.redact(reason),
    )


def compute_sent_arguments(
    client: ClientProfile, prompt: CompiledPrompt, values: Mapping[str, str]
) -> dict[str, str]:
    """
    Return the arguments that a client sends for the values that a user enters.

    The user types the values in the order of the signature, or enters them in a form if the client shows one.

    Args:
        client:
            The client.

        prompt:
            The prompt.

        values:
            The values, keyed by argument name.
    """
    arguments = prompt.arguments.ordered
    required = [argument for argument in arguments if argument.required]
    is_asked = bool(required) and not any(argument.arg.secret for argument in required)
    has_form = is_asked and shows_form(client, prompt)
    reached = required if has_form else typed_arguments(client, arguments)
    names = [argument.name for argument in reached]
    entered = {name: values[name] for name in names if name in values}
    if has_form or not names or not client.splits_at_spaces:
        return entered
    words, sent = " ".join(entered.values()).split(), dict[str, str]()
    for index, argument in enumerate(arguments):
        gets_rest = client.keeps_rest and argument.name == names[-1]
        text = " ".join(words[index : None if gets_rest else index + 1])
        if argument.name in names and (text or client.fills_in_text):
            sent[argument.name] = text
    return sent


def _render_in_client(client: ClientProfile, rendering: Rendering) -> tuple[Workflow | None, str]:
    """Return the workflow for the arguments that a client sends, and ``""``, or None and the reason."""
    prompt, typed = rendering.prompt, rendering.values
    sent = compute_sent_arguments(client, prompt, typed)
    if reason := _explain_absence(client, rendering, sent):
        return None, reason
    if sent == typed and (rendering.workflow is not None or rendering.error):
        return rendering.workflow, rendering.error or ""
    try:
        result = make_renderer(prompt, sent)()
        if isinstance(result, Coroutine):
            # This thread cannot be stopped while its event loop is idle.
            result = asyncio.run(asyncio.wait_for(result, time_limit(prompt)))
    except ArgumentsError as errors:
        return None, _describe_rejection(client, prompt, errors)
    except BaseException as error:  # noqa: BLE001 (authors' code can raise anything)
        return None, describe_failure(f"prompt {prompt.name!r}", error)
    return result, ""


def _explain_absence(client: ClientProfile, rendering: Rendering, sent: Mapping[str, str]) -> str:
    """Return why the arguments that a client sends are not rendered, or ``""`` if they are rendered."""
    typed, arguments = rendering.values, rendering.prompt.arguments.ordered
    if sent != typed and _without_secrets(rendering) != typed:
        return f"Not shown, because {client.title} splits or drops values, and one of them is a secret."
    if sent == typed and rendering.skip_reason:
        return f"Not rendered: {rendering.skip_reason}"
    if invalid := find_invalid_positions(client, arguments):
        sent_instead = ", ".join(f"{text!r} for {name!r}" for name, text in invalid.items())
        return (
            f"{client.title} sends {sent_instead}, which is invalid, so the model gets only the words that "
            "the user typed."
        )
    return ""


def _describe_rejection(client: ClientProfile, prompt: CompiledPrompt, errors: ArgumentsError) -> str:
    """Return what happens if a client sends invalid arguments, or does not send required ones."""
    if shows_form(client, prompt) and (asked := askable_arguments(prompt, errors)):
        return f"{client.title} shows a form for {', '.join(repr(argument.name) for argument in asked)}."
    return f"The server rejects the arguments that {client.title} sends: {errors}"


def _list_arguments(client: ClientProfile, rendering: Rendering) -> Iterator[ClientItem]:
    arguments, typed = rendering.prompt.arguments, _without_secrets(rendering)
    sent = compute_sent_arguments(client, rendering.prompt, typed)
    for argument in arguments.ordered:
        text, original = sent.get(argument.name), typed.get(argument.name)
        if text is not None or original is not None:
            upload = rendering.uploads.get(argument.name) if argument.takes_bytes else None
            # Base64 is not readable.
            display = str(upload) if upload and text == original else rendering.redact(text or "")
            yield ClientItem(argument.name, display, text == original)


def _without_secrets(rendering: Rendering) -> dict[str, str]:
    """Return the typed values, with a placeholder for each word of a secret."""
    secret = rendering.prompt.arguments.secret
    return {
        name: " ".join("…" for _ in value.split()) if name in secret else value
        for name, value in rendering.values.items()
    }


def _list_messages(client: ClientProfile, rendering: Rendering, workflow: Workflow) -> Iterator[ClientItem]:
    for number, sent in enumerate(SentMessages.from_rendering(workflow).content):
        is_unchanged = sent.kind not in client.unsupported and not (number and client.sends_first_only)
        role = "user" if client.drops_roles else sent.role
        text = rendering.redact(str(workflow.sent[number].content))
        text = json.dumps(text, ensure_ascii=False) if client.quotes_text else text
        yield ClientItem(role, text, is_unchanged)


def _build_notes(name: str, rendering: Rendering, workflow: Workflow | None) -> tuple[str, ...]:
    """Return the limitations of the client that affect the signature or the rendering."""
    prompt = rendering.prompt
    diagnostics = lint_client(name, Catalog([prompt]))
    diagnostics += () if workflow is None else lint_workflow(name, prompt, workflow)
    sentences = dict.fromkeys(f"{diagnostic.message}: {diagnostic.hint}" for diagnostic in diagnostics)
    return tuple(map(rendering.redact, sentences))


#: Builds a tab from a rendering, the served target, and the choice in the tab.
_TabBuilder: TypeAlias = Callable[[Rendering, _ServedTarget, str], TabContent]

_BUILDERS: Final[dict[str, tuple[str, _TabBuilder]]] = {
    "wire": ("Wire", _build_wire),
    "vendors": ("Vendors", _build_vendors),
    "new-case": ("New case", _build_case),
    "command-line": ("Command line", _build_command_line),
    "clients": ("Clients", _build_clients),
}

#: The labels of the tabs, keyed by their names in URLs.
TABS: Final = {name: label for name, (label, _) in _BUILDERS.items()}
