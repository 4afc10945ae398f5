"""Lints for one client: what it does not show, send or fill of a prompt that others take."""

from collections.abc import Iterable
from datetime import date, time
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final
from uuid import UUID

from promptkit.catalog.arguments import Argument
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.clients.profiles import ClientProfile, Kind, get_client
from promptkit.errors.diagnostics import Diagnostic, Report
from promptkit.errors.rules import Rule
from promptkit.language.messages import Workflow
from promptkit.lints.conversations import SentMessages
from promptkit.lints.name_resolution import Scope
from promptkit.lints.prompts import accepts
from promptkit.types.kinds import is_enum, is_literal, members_of, plain
from promptkit.types.readers import reader_of

#: What to do about content that does not arrive.
_INSTEAD: Final[dict[Kind, str]] = {
    "image": "say in text what it shows, or keep the prompt for other clients",
    "recording": "say in text what is said, or keep the prompt for other clients",
    "document": "write its text into the message, as in tag('document', text)",
    "link": "write the text that it leads to into the message",
}

#: Types of whose values nobody types a blank.
_OF_ONE_WORD: Final = (int, float, bool, bytes, Decimal, date, time, UUID)


def lint_client(name: str, catalog: Catalog) -> tuple[Diagnostic, ...]:
    """
    Return what a client would not show, send or fill, as far as signatures and sources show it.

    Args:
        name:
            The client, as in `CLIENTS`.

        catalog:
            What is served.

    Raises:
        UnknownClientError: If there is none of that name.
    """
    client = get_client(name)
    prompts = sorted(catalog.prompts, key=lambda prompt: prompt.location)
    prompts = prompts if client.has_prompts else prompts[:1]  # that none is offered is said once
    found = [one for prompt in prompts for one in _lint_prompt(client, prompt)]
    return tuple(sorted(found, key=lambda one: (one.location, one.rule.value)))


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
        UnknownClientError: If there is none of that name.
    """
    report = Report(f"prompt {prompt.name!r}", prompt.location)
    _lint_messages(get_client(name), SentMessages.of_rendering(workflow), report)
    return tuple(report.without_duplicates())


def _lint_prompt(client: ClientProfile, prompt: CompiledPrompt) -> list[Diagnostic]:
    report = Report(f"prompt {prompt.name!r}", prompt.location)
    if not client.has_prompts:
        fault = f"{client.title} offers people no prompts, this one nor any other"
        hint = "serve them as tools, with --tools, or use them in another client"
        report.add(Rule.HIDDEN_PROMPT, fault, hint, "def")
        return report.found
    _lint_arguments(client, prompt.arguments.ordered, report)
    if client.types_titles and len((prompt.title or "").split()) > 1:
        fault = (
            f"{client.title} may make a command of its title {prompt.title!r}, and a command has no blanks"
        )
        report.add(Rule.TITLE_AS_COMMAND, fault, "leave title= out, or write it as one word", "def")
    if (scope := Scope.of(prompt.renderer.function, prompt.location)) is not None:
        _lint_messages(client, SentMessages.of_source(scope), report)
    return report.without_duplicates()


def _lint_arguments(client: ClientProfile, arguments: tuple[Argument, ...], report: Report) -> None:
    if client.most_arguments is not None and len(arguments) > client.most_arguments:
        fault = f"{client.title} hides it, as it has {len(arguments)} arguments"
        hint = f"write a prompt of at most {client.most_arguments} that calls it with values for the others"
        report.add(Rule.HIDDEN_PROMPT, fault, hint, "def")
    cut = ((one.name, after.name) for one, after in pairwise(arguments) if _may_hold_blanks(one))
    if client.cuts_at_blanks and (first := next(cut, None)) is not None:
        name, following = first
        fault = (
            f"{client.title} cuts arguments at blanks, so that the second word of {name!r} "
            f"would be {following!r}"
        )
        hint = f"put {name!r} last; behind a * it may follow arguments that have defaults"
        report.add(Rule.SPLIT_TEXT, fault, hint, name)
    if client.joins_words and len(arguments) > 1:
        fault = f"{client.title} gives every word to {arguments[0].name!r}, and none to the other arguments"
        report.add(Rule.SPLIT_TEXT, fault, "keep one argument", arguments[1].name)
    for argument in arguments:
        _lint_argument(client, argument, report)


def _lint_argument(client: ClientProfile, argument: Argument, report: Report) -> None:
    """Report an argument for which a client sends something else than people mean."""
    name, sent = argument.name, client.placeholder
    if sent is not None and not accepts(argument, sent):
        fault = f"{client.title} sends {sent!r} for {name!r} when it starts, which is refused"
        report.add(Rule.UNFILLED_ARGUMENT, fault, "take text, and read it in the function", name)
    if client.asks_for_all and not argument.required:
        fault = f"{client.title} asks for {name!r}, though it has a default"
        report.add(Rule.UNFILLED_ARGUMENT, fault, "take its default out, or the argument", name)
    if name in client.own_names:
        fault = f"{client.title} keeps the name {name!r} for itself"
        report.add(Rule.UNFILLED_ARGUMENT, fault, f"call it otherwise, as in '{name}_name'", name)


def _may_hold_blanks(argument: Argument) -> bool:
    """Whether what people type for an argument may be several words."""
    complete = argument.arg.complete
    if isinstance(complete, list | tuple):
        return not _are_words(complete)
    is_completed = complete is not None  # by a function, mostly with names of files
    return not (is_completed or _is_of_one_word(argument.annotation))


def _is_of_one_word(annotation: Any) -> bool:
    """Whether no value of a type is typed with a blank."""
    annotation = plain(annotation, core=True)
    if members := members_of(annotation):
        return all(map(_is_of_one_word, members))
    if is_literal(annotation) or is_enum(annotation):
        reader = reader_of(annotation)
        return reader is not None and _are_words(reader.values)
    return annotation in _OF_ONE_WORD


def _are_words(texts: Iterable[object]) -> bool:
    return all(len(str(text).split()) < 2 for text in texts)


def _lint_messages(client: ClientProfile, sent: SentMessages, report: Report) -> None:
    """Report what is lost of messages, and of content wherever it is made."""
    for message in sent.content:
        if message.kind in client.lost:
            arrives = client.loses == "does not show people"
            hint = "say in the text beside it what it holds" if arrives else _INSTEAD[message.kind]
            fault = f"{client.title} {client.loses} {message.name}"
            report.add(Rule.LOST_CONTENT, fault, hint, message.node)
    for conversation in sent.conversations:
        later = [each for each in conversation[1:] if each.role != "unknown" and each.kind not in client.lost]
        if client.sends_first_only and later:
            fault = f"{client.title} sends the first message alone, and not this one"
            report.add(Rule.LOST_CONTENT, fault, "say all of it in one user(...)", later[0].node)
        spoken = [each for each in conversation if each.role == "assistant"]
        if client.drops_roles and spoken:
            fault = f"{client.title} sends a turn of the assistant as one of the user"
            report.add(Rule.LOST_CONTENT, fault, "say in the text whose words these are", spoken[0].node)
