"""A rendering as a client shows it, from what is known of the client."""

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
    A message, or an argument, in one client.

    Args:
        label:
            Who says it, or the argument's name.

        text:
            What it holds.

        arrives:
            Whether the client shows or sends it as it is.
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
            What gets in the way, in sentences.

        is_offered:
            Whether it offers the prompt to people.

        arguments:
            What the server gets for each argument of which a value is typed.

        messages:
            The messages.

        reason:
            Why there are none; "" if it offers the prompt and there are some.
    """

    title: str
    notes: tuple[str, ...] = ()
    is_offered: bool = False
    arguments: tuple[Arrival, ...] = ()
    messages: tuple[Arrival, ...] = ()
    reason: str = ""


def client_view(name: str, rendering: Rendering) -> ClientView:
    """
    Return what one client shows and sends, and what gets in the way.

    Args:
        name:
            The client, by the name that commands take.

        rendering:
            A prompt with the values that a person types.
    """
    client, most = get_client(name), get_client(name).most_arguments
    if not client.has_prompts or (most is not None and len(rendering.prompt.arguments.ordered) > most):
        return ClientView(client.title, _notes(name, rendering, rendering.workflow))
    workflow, reason = _received(client, rendering)
    return ClientView(
        client.title,
        _notes(name, rendering, workflow),
        is_offered=True,
        arguments=tuple(_arguments(client, rendering)),
        messages=() if workflow is None else tuple(_messages(client, rendering, workflow)),
        reason=rendering.redacted(reason),
    )


def sent_by(client: ClientProfile, arguments: Arguments, given: Mapping[str, str]) -> dict[str, str]:
    """
    Return what a client sends for the values that a person types in the order of the signature.

    Args:
        client:
            The client.

        arguments:
            The arguments of a prompt.

        given:
            What is typed for each.
    """
    names = [argument.name for argument in arguments.ordered]
    typed = {name: given[name] for name in names if name in given}
    words = " ".join(typed.values()).split()
    if not names or not (client.joins_words or client.cuts_at_blanks):
        return typed
    # Each argument gets a word, and the last one all that are left; or the first gets all.
    filled = names[:1] if client.joins_words else names
    last = len(filled) - 1
    texts = [*words[:last], " ".join(words[last:])]
    return {name: text for name, text in zip(filled, texts, strict=False) if text}


def _received(client: ClientProfile, rendering: Rendering) -> tuple[Workflow | None, str]:
    """What the prompt says for the values that a client sends, or why it says nothing."""
    prompt, given = rendering.prompt, rendering.given
    sent = sent_by(client, prompt.arguments, given)
    if sent != given and _without_secrets(rendering) != given:
        return None, f"{client.title} cuts a secret, so that what the prompt says is not shown."
    if sent == given and rendering.refusal:
        return None, f"not rendered: {rendering.refusal}"
    if sent == given and (rendering.workflow is not None or rendering.error):
        return rendering.workflow, rendering.error or ""
    try:
        called = rendering_of(prompt, sent)()
        if isinstance(called, Coroutine):
            # The thread that this runs on cannot be stopped while its event loop is idle.
            called = asyncio.run(asyncio.wait_for(called, time_limit(prompt)))
    except ArgumentsError as errors:
        return None, f"the server refuses what {client.title} sends. {errors}"
    except BaseException as error:  # noqa: BLE001 (authors raise anything)
        return None, failure(f"prompt {prompt.name!r}", error)
    return called, ""


def _arguments(client: ClientProfile, rendering: Rendering) -> Iterator[Arrival]:
    arguments, given = rendering.prompt.arguments, _without_secrets(rendering)
    sent = sent_by(client, arguments, given)
    for argument in arguments.ordered:
        text, meant = sent.get(argument.name), given.get(argument.name)
        if text is not None or meant is not None:
            upload = rendering.uploads.get(argument.name) if argument.takes_bytes else None
            # Nobody reads base64.
            shown = str(upload) if upload and text == meant else rendering.redacted(text or "")
            yield Arrival(argument.name, shown, text == meant)


def _without_secrets(rendering: Rendering) -> dict[str, str]:
    """What is typed, with as many words for a secret as it has."""
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
    """What gets in the way: in the signature, and in what the prompt says."""
    prompt = rendering.prompt
    found = lint_client(name, Catalog([prompt]))
    found += () if workflow is None else lint_workflow(name, prompt, workflow)
    sentences = dict.fromkeys(f"{one.message}: {one.hint}" for one in found)
    return tuple(map(rendering.redacted, sentences))
