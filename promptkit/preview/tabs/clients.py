"""The tab *clients*: a rendering as each client shows it, from what is known of the client."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence

import attrs

from promptkit.catalog.arguments import Argument, Arguments
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.compiler.lints.client_profiles import CLIENTS, ClientProfile, client_of
from promptkit.compiler.lints.clients import lint_client, lint_workflow
from promptkit.compiler.lints.conversations import conversation_of
from promptkit.errors.exceptions import ArgumentErrors
from promptkit.language.messages import Workflow
from promptkit.preview.controls import is_upload
from promptkit.preview.rendering import Rendering, said
from promptkit.preview.tabs.content import Arrival, ClientView, TabContent, choices_of
from promptkit.server.author_calls import time_limit

__all__ = ["content", "sent_by"]


def content(rendering: Rendering, _target: str, choice: str) -> TabContent:
    """
    Return what one client shows and sends, and what gets in the way.
    """
    labels = {name: client.title for name, client in CLIENTS.items()}
    name, choices = choices_of(labels, choice, next(iter(labels)))
    client, prompt = client_of(name), rendering.prompt
    is_offered = client.has_prompts and (
        client.most_arguments is None or len(prompt.arguments.ordered) <= client.most_arguments
    )
    if not is_offered:
        notes = tuple(_notes(name, rendering, rendering.workflow))
        return TabContent("clients", choices, notes=notes, view=ClientView(client.title, is_offered))
    received = _received(client, rendering)
    workflow = received.workflow
    view = ClientView(
        client.title,
        is_offered,
        tuple(_arguments(client, rendering)),
        () if workflow is None else tuple(_messages(client, rendering, workflow)),
        rendering.redacted(received.reason),
    )
    return TabContent("clients", choices, notes=tuple(_notes(name, rendering, workflow)), view=view)


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
    names = [argument.name for argument in arguments.ordered if argument.name in given]
    words = " ".join(given[name] for name in names).split()
    if client.joins_words and arguments.ordered:
        return {arguments.ordered[0].name: " ".join(words)} if words else {}
    if client.cuts_at_blanks:
        return _cut(words, [argument.name for argument in arguments.ordered])
    return {name: given[name] for name in names}


def _cut(words: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Each argument gets a word, and the last one all that are left."""
    *first, last = names or [""]
    sent = dict(zip(first, words, strict=False))
    rest = " ".join(words[len(first) :])
    return {**sent, last: rest} if rest else sent


@attrs.frozen
class _Received:
    """What a client gets: messages, or nothing for a reason."""

    workflow: Workflow | None
    reason: str = ""


def _received(client: ClientProfile, rendering: Rendering) -> _Received:
    """What the prompt says for the values that a client sends, which may be others than were given."""
    prompt, given = rendering.prompt, rendering.given
    sent = sent_by(client, prompt.arguments, given)
    if sent != given and _shown(rendering) != given:
        return _Received(None, f"{client.title} cuts a secret, so that what the prompt says is not shown.")
    if sent == given and (rendering.workflow is not None or rendering.error):
        return _Received(rendering.workflow, rendering.error or "")
    try:
        return _Received(_said(prompt, sent))
    except ArgumentErrors as errors:
        return _Received(None, f"the server refuses what {client.title} sends. {errors}")
    except BaseException as error:  # noqa: BLE001 (authors raise anything)
        return _Received(None, said(f"prompt {prompt.name!r}", error))


def _said(prompt: CompiledPrompt, sent: Mapping[str, str]) -> Workflow:
    if not prompt.renderer.is_async:
        return prompt.render(sent)
    # Whoever calls this can stop its thread once that runs Python code, which an idle event loop does not.
    return asyncio.run(asyncio.wait_for(prompt.render_async(sent), time_limit(prompt)))


def _arguments(client: ClientProfile, rendering: Rendering) -> Iterator[Arrival]:
    arguments, given = rendering.prompt.arguments, _shown(rendering)
    sent = sent_by(client, arguments, given)
    for argument in arguments.ordered:
        text, meant = sent.get(argument.name), given.get(argument.name)
        if text is not None or meant is not None:
            shown = _file(rendering, argument) if text == meant else None
            yield Arrival(argument.name, shown or rendering.redacted(text or ""), text == meant)


def _file(rendering: Rendering, argument: Argument) -> str | None:
    """The name and the size of an upload, in place of its base64."""
    upload = rendering.uploads.get(argument.name)
    return str(upload) if upload is not None and is_upload(argument) else None


def _shown(rendering: Rendering) -> dict[str, str]:
    """What is typed, with as many words for a secret as it has."""
    secret = rendering.prompt.arguments.secret
    return {
        name: " ".join("…" for _ in value.split()) if name in secret else value
        for name, value in rendering.given.items()
    }


def _messages(client: ClientProfile, rendering: Rendering, workflow: Workflow) -> Iterator[Arrival]:
    for number, (message, sent) in enumerate(zip(workflow, conversation_of(workflow), strict=True)):
        arrives = sent.kind not in client.lost and not (number and client.sends_first_only)
        role = "user" if client.drops_roles else message.role
        yield Arrival(role, rendering.redacted(str(message.content)), arrives)


def _notes(name: str, rendering: Rendering, workflow: Workflow | None) -> Iterator[str]:
    """What gets in the way: in the signature, and in what the prompt says."""
    prompt = rendering.prompt
    found = [*lint_client(name, Catalog([prompt]))]
    found += () if workflow is None else lint_workflow(name, prompt, workflow)
    for sentence in dict.fromkeys(f"{one.message}: {one.remedy}" for one in found):
        yield rendering.redacted(sentence)
