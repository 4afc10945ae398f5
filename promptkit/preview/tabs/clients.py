"""The tab *clients*: a rendering as each client shows it, from what is known of the client."""

from collections.abc import Iterator, Mapping, Sequence

from promptkit.catalog.arguments import Arguments
from promptkit.catalog.catalog import Catalog
from promptkit.compiler.lints.client_profiles import CLIENTS, Client, client_of
from promptkit.compiler.lints.clients import lint_client, lint_workflow
from promptkit.compiler.lints.conversations import conversation_of
from promptkit.errors.exceptions import ArgumentErrors
from promptkit.language.messages import Workflow
from promptkit.preview.rendering import Rendering
from promptkit.preview.tabs.content import Arrival, ClientView, TabContent, choices_of

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
    messages = () if rendering.workflow is None else tuple(_messages(client, rendering, rendering.workflow))
    view = ClientView(
        client.title,
        is_offered,
        tuple(_arguments(client, rendering)) if is_offered else (),
        messages if is_offered else (),
    )
    return TabContent("clients", choices, notes=tuple(_notes(name, client, rendering)), view=view)


def sent_by(client: Client, arguments: Arguments, given: Mapping[str, str]) -> dict[str, str]:
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


def _arguments(client: Client, rendering: Rendering) -> Iterator[Arrival]:
    arguments, given = rendering.prompt.arguments, _shown(rendering)
    sent = sent_by(client, arguments, given)
    for argument in arguments.ordered:
        text, meant = sent.get(argument.name), given.get(argument.name)
        if text is not None or meant is not None:
            yield Arrival(argument.name, rendering.redacted(text or ""), text == meant)


def _shown(rendering: Rendering) -> dict[str, str]:
    """What is typed, with as many words for a secret as it has."""
    secret = rendering.prompt.arguments.secret
    return {
        name: " ".join("…" for _ in value.split()) if name in secret else value
        for name, value in rendering.given.items()
    }


def _messages(client: Client, rendering: Rendering, workflow: Workflow) -> Iterator[Arrival]:
    for number, (message, sent) in enumerate(zip(workflow, conversation_of(workflow), strict=True)):
        arrives = sent.kind not in client.lost and not (number and client.sends_first_only)
        yield Arrival(message.role, rendering.redacted(str(message.content)), arrives)


def _notes(name: str, client: Client, rendering: Rendering) -> Iterator[str]:
    """What gets in the way: in the signature, in this rendering, and in what was typed."""
    prompt = rendering.prompt
    found = [*lint_client(name, Catalog([prompt]))]
    found += () if rendering.workflow is None else lint_workflow(name, prompt, rendering.workflow)
    for sentence in dict.fromkeys(f"{one.message}: {one.remedy}" for one in found):
        yield rendering.redacted(sentence)
    sent = sent_by(client, prompt.arguments, rendering.given)
    if _shown(rendering) == rendering.given != sent and (refusal := _refusal(prompt.arguments, sent)):
        yield f"What {client.title} sends would be refused: {refusal}"


def _refusal(arguments: Arguments, sent: Mapping[str, str]) -> str | None:
    try:
        arguments.read(sent)
    except ArgumentErrors as errors:
        return str(errors)
    return None
