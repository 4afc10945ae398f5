"""Lints for one client: what it does not show, send or fill of a prompt that others take."""

from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from typing import Any, Final, get_args, get_origin

from promptkit.catalog.arguments import Argument
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.compiler.lints.client_profiles import Client, client_of
from promptkit.compiler.lints.conversations import NAMED, Conversation, Kind, SentMessage, conversation_of
from promptkit.compiler.lints.messages import Source, place_of
from promptkit.conversion.errors import ConversionError
from promptkit.conversion.kinds import is_literal, plain
from promptkit.errors.diagnostics import Diagnostic, Report, Rule
from promptkit.language.messages import Workflow

__all__ = ["lint_client", "lint_workflow"]

#: What to do about content that does not arrive.
_INSTEAD: Final[dict[Kind, str]] = {
    "image": "say in text what it shows, or keep the prompt for other clients",
    "recording": "say in text what is said, or keep the prompt for other clients",
    "document": "write its text into the message, as in tag('document', text)",
    "link": "write the text that it leads to into the message",
}


def lint_client(name: str, catalog: Catalog) -> tuple[Diagnostic, ...]:
    """
    Return what a client would not show, send or fill, as far as signatures and sources show it.

    Args:
        name:
            The client, as in `CLIENTS`.

        catalog:
            What is served.

    Raises:
        UnknownClient: If there is none of that name.
    """
    client = client_of(name)
    if not client.has_prompts:
        return tuple(_without_prompts(client, catalog.prompts))
    found = (_lint_prompt(client, prompt) for prompt in catalog.prompts)
    return tuple(sorted(chain.from_iterable(found), key=lambda one: (one.location, one.rule.value)))


def lint_workflow(name: str, prompt: CompiledPrompt, workflow: Workflow) -> tuple[Diagnostic, ...]:
    """
    Return what a client would not show or send of a rendering.

    Args:
        name:
            The client, as in `CLIENTS`.

        prompt:
            The prompt that was rendered.

        workflow:
            What it rendered to.

    Raises:
        UnknownClient: If there is none of that name.
    """
    report = _report(prompt)
    conversation = conversation_of(workflow)
    _check_conversations(client_of(name), [conversation], conversation, report)
    return tuple(report.without_duplicates())


def _report(prompt: CompiledPrompt) -> Report:
    return Report(f"prompt {prompt.name!r}", prompt.location)


def _without_prompts(client: Client, prompts: Iterable[CompiledPrompt]) -> Iterator[Diagnostic]:
    # One line is enough: it holds for all of them.
    for prompt in sorted(prompts, key=lambda prompt: prompt.location)[:1]:
        report = _report(prompt)
        fault = f"{client.title} offers people no prompts, this one nor any other"
        remedy = "serve them as tools, with --tools, or use them in another client"
        report.add(Rule.HIDDEN_PROMPT, fault, remedy, "def")
        yield from report.found


def _lint_prompt(client: Client, prompt: CompiledPrompt) -> list[Diagnostic]:
    report = _report(prompt)
    _check_arguments(client, prompt, report)
    if client.types_titles and prompt.title and len(prompt.title.split()) > 1:
        fault = (
            f"{client.title} may make a command of its title {prompt.title!r}, and a command has no blanks"
        )
        report.add(Rule.TITLE_AS_COMMAND, fault, "leave title= out, or write it as one word", "def")
    if (source := Source.of(prompt.renderer.function, prompt.location)) is not None:
        _check_conversations(client, source.conversations, source.content, report)
    return report.without_duplicates()


def _check_arguments(client: Client, prompt: CompiledPrompt, report: Report) -> None:
    arguments = prompt.arguments.ordered
    if client.most_arguments is not None and len(arguments) > client.most_arguments:
        fault = f"{client.title} hides it, as it has {len(arguments)} arguments"
        remedy = f"write a prompt of at most {client.most_arguments} that calls it with values for the others"
        report.add(Rule.HIDDEN_PROMPT, fault, remedy, "def")
    if client.cuts_at_blanks:
        _check_order(client, arguments, report)
    if client.joins_words and len(arguments) > 1:
        fault = f"{client.title} gives every word to {arguments[0].name!r}, and none to the other arguments"
        report.add(Rule.SPLIT_TEXT, fault, "keep one argument", arguments[1].name)
    for argument in arguments:
        _check_argument(client, argument, report)


def _check_order(client: Client, arguments: tuple[Argument, ...], report: Report) -> None:
    """Report the first argument that may hold blanks, and is not the last."""
    for argument, following in pairwise(arguments):
        if _may_hold_blanks(argument):
            fault = (
                f"{client.title} cuts arguments at blanks, so that the second word of {argument.name!r} "
                f"would be {following.name!r}"
            )
            remedy = f"put {argument.name!r} last; behind a * it may follow arguments that have defaults"
            report.add(Rule.SPLIT_TEXT, fault, remedy, argument.name)
            return


def _check_argument(client: Client, argument: Argument, report: Report) -> None:
    name = argument.name
    if client.placeholder is not None and not _takes(argument, client.placeholder):
        fault = f"{client.title} sends {client.placeholder!r} for {name!r} when it starts, which is refused"
        remedy = "take text, and read it in the function"
        report.add(Rule.UNFILLED_ARGUMENT, fault, remedy, name)
    if client.asks_for_all and not argument.required:
        fault = f"{client.title} asks for {name!r}, though it has a default"
        report.add(Rule.UNFILLED_ARGUMENT, fault, "take its default out, or the argument", name)
    if name in client.own_names:
        fault = f"{client.title} keeps the name {name!r} for itself"
        report.add(Rule.UNFILLED_ARGUMENT, fault, f"call it otherwise, as in '{name}_name'", name)


def _takes(argument: Argument, text: str) -> bool:
    try:
        argument.reader.read(text)
    except ConversionError:
        return False
    return True


def _may_hold_blanks(argument: Argument) -> bool:
    """Whether what people type for an argument may be several words."""
    complete = argument.arg.complete
    choices = complete if isinstance(complete, list | tuple) else argument.reader.values
    if choices:
        return any(len(str(choice).split()) > 1 for choice in choices)
    return complete is None and _is_free(argument.annotation)  # a function completes names, mostly of files


def _is_free(annotation: Any) -> bool:
    """Whether a type takes any text, as it is or in a part of it."""
    annotation = plain(annotation)
    if annotation in (str, dict) or get_origin(annotation) is dict:
        return True
    parts = () if is_literal(annotation) else get_args(annotation)
    return any(_is_free(part) for part in parts)


def _check_conversations(
    client: Client, conversations: Iterable[Conversation], content: Iterable[SentMessage], report: Report
) -> None:
    """Report what is lost of messages, and of content wherever it is made."""
    for message in content:
        if message.kind in client.lost:
            fault = f"{client.title} {client.loses} {NAMED[message.kind]}"
            place = place_of(message, report.location)
            report.add(Rule.LOST_CONTENT, fault, _remedy(client, message.kind), place)
    for conversation in conversations:
        known = [each for each in conversation[1:] if each.role != "unknown" and each.kind not in client.lost]
        for message in known[:1] if client.sends_first_only else ():
            fault = f"{client.title} sends the first message alone, and not this one"
            place = place_of(message, report.location)
            report.add(Rule.LOST_CONTENT, fault, "say all of it in one user(...)", place)
        spoken = [each for each in conversation if each.role == "assistant"]
        for message in spoken[:1] if client.drops_roles else ():
            fault = f"{client.title} sends a turn of the assistant as one of the user"
            place = place_of(message, report.location)
            report.add(Rule.LOST_CONTENT, fault, "say in the text whose words these are", place)


def _remedy(client: Client, kind: Kind) -> str:
    is_seen = client.loses != "does not show people"
    return _INSTEAD[kind] if is_seen else "say in the text beside it what it holds"
