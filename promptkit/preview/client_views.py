"""A rendering as a client shows it, derived from the client's profile."""

import asyncio
from collections.abc import Coroutine, Iterator, Mapping

import attrs

from promptkit.catalog.arguments import Arguments
from promptkit.catalog.catalog import Catalog
from promptkit.clients.profiles import ClientProfile, get_client
from promptkit.errors.exceptions import ArgumentsError
from promptkit.language.messages import Workflow
from promptkit.lints.clients import lint_client, lint_workflow
from promptkit.lints.conversations import SentMessages
from promptkit.preview.rendering import Rendering, failure
from promptkit.server.user_code import rendering_of, time_limit


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
        arrives = sent.kind not in client.lost and not (number and client.sends_first_only)
        role = "user" if client.drops_roles else sent.role
        yield Arrival(role, rendering.redacted(str(workflow.sent[number].content)), arrives)


def _notes(name: str, rendering: Rendering, workflow: Workflow | None) -> tuple[str, ...]:
    """Return the client's limitations for the signature and for the rendering."""
    prompt = rendering.prompt
    diagnostics = lint_client(name, Catalog([prompt]))
    diagnostics += () if workflow is None else lint_workflow(name, prompt, workflow)
    sentences = dict.fromkeys(f"{diagnostic.message}: {diagnostic.hint}" for diagnostic in diagnostics)
    return tuple(map(rendering.redacted, sentences))
