"""Lints that report which prompts, content and arguments a client does not show, send or fill in."""

import re
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
from promptkit.lints.prompts import accepts
from promptkit.lints.static_analysis import Scope
from promptkit.types.kinds import is_enum, is_literal, members_of, unwrap_type
from promptkit.types.parsing import reader_for

#: Hints for content that a client does not deliver, keyed by kind of content.
_CONTENT_HINTS: Final[dict[Kind, str]] = {
    "image": "describe its content in text, or keep the prompt for other clients",
    "recording": "write a transcript of it, or keep the prompt for other clients",
    "document": "write its text into the message, for example tag('document', text)",
    "link": "write the text of its target into the message",
}

#: Types whose values contain no spaces.
_ONE_WORD_TYPES: Final = (int, float, bool, bytes, Decimal, date, time, UUID)


#: Names and descriptions of arguments whose value is a single word.
_ONE_WORD_NAME: Final = (
    r"(?:.*[_-])?(?:url|uri|id|email|limit|count|n)|.*[a-z](?:Url|URL|Uri|URI|Id|ID|Email)"
)
_ONE_WORD_DESCRIPTION: Final = r"\bYYYY-MM|\bISO[ -]8601\b|\b(?:number of|nombre de)\b"


def lint_client(name: str, catalog: Catalog) -> tuple[Diagnostic, ...]:
    """
    Return the diagnostics for the prompts of a catalog in a client, based on signatures and source code.

    Args:
        name:
            The name of the client in `CLIENTS`.

        catalog:
            The catalog.

    Raises:
        UnknownClientError: If there is no such client.
    """
    client = get_client(name)
    prompts = sorted(catalog.prompts, key=lambda prompt: prompt.location)
    prompts = prompts if client.has_prompts else prompts[:1]  # one report is enough
    diagnostics = [diagnostic for prompt in prompts for diagnostic in _lint_prompt(client, prompt)]
    return tuple(sorted(diagnostics, key=lambda diagnostic: (diagnostic.location, diagnostic.rule.value)))


def lint_workflow(name: str, prompt: CompiledPrompt, workflow: Workflow) -> tuple[Diagnostic, ...]:
    """
    Return the diagnostics for a rendering in a client.

    Args:
        name:
            The name of the client in `CLIENTS`.

        prompt:
            The rendered prompt.

        workflow:
            The rendering.

    Raises:
        UnknownClientError: If there is no such client.
    """
    report = Report(f"prompt {prompt.name!r}", prompt.location)
    _lint_messages(get_client(name), SentMessages.from_rendering(workflow), report)
    return tuple(report.without_duplicates())


def _lint_prompt(client: ClientProfile, prompt: CompiledPrompt) -> list[Diagnostic]:
    report = Report(f"prompt {prompt.name!r}", prompt.location)
    if not client.has_prompts:
        message = f"{client.title} does not show prompts"
        hint = "serve them as tools, with --tools, or use them in another client"
        report.add(Rule.HIDDEN_PROMPT, message, hint, "def")
        return report.diagnostics
    _lint_arguments(client, prompt, report)
    if (scope := Scope.of(prompt.renderer.function, prompt.location)) is not None:
        _lint_messages(client, SentMessages.from_source(scope), report)
    return report.without_duplicates()


def _lint_arguments(client: ClientProfile, prompt: CompiledPrompt, report: Report) -> None:
    arguments = prompt.arguments.ordered
    if client.max_arguments is not None and len(arguments) > client.max_arguments:
        message = f"{client.title} hides it, because it has {len(arguments)} arguments"
        limit = f"{client.max_arguments} argument{'' if client.max_arguments == 1 else 's'}"
        hint = f"write a wrapper prompt that takes at most {limit} and fills in the others"
        report.add(Rule.HIDDEN_PROMPT, message, hint, "def")
    if client.splits_at_spaces and not shows_form(client, prompt):
        _lint_words(client, typed_arguments(client, arguments), report)
    for name, sent in find_invalid_positions(client, arguments).items():
        message = f"{client.title} sends {sent!r} for {name!r}, which is invalid"
        hint = "give it a default, or declare it as a str that the function does not parse"
        report.add(Rule.UNFILLED_ARGUMENT, message, hint, name)
    for argument in arguments:
        _lint_argument(client, argument, report)


def _lint_words(client: ClientProfile, arguments: tuple[Argument, ...], report: Report) -> None:
    """Report the first argument that can contain several words although the client splits it at spaces."""
    if not client.keeps_rest:
        split_argument = next(filter(_may_contain_spaces, arguments), None)
        if split_argument is not None:
            message = f"{client.title} gives {split_argument.name!r} only one word of what users type"
            hint = "let users fill in a form, by omitting elicit=False, or accept only single words"
            report.add(Rule.SPLIT_TEXT, message, hint, split_argument.name)
        return
    for argument, following in pairwise(arguments):
        if _may_contain_spaces(argument):
            name = argument.name
            message = (
                f"{client.title} splits arguments at spaces, so the second word of {name!r} becomes "
                f"{following.name!r}"
            )
            report.add(Rule.SPLIT_TEXT, message, f"put {name!r} last", name)
            return


def _lint_argument(client: ClientProfile, argument: Argument, report: Report) -> None:
    """Report an argument that a client fills in differently than its author intended."""
    name = argument.name
    if client.asks_for_all and not argument.required:
        message = f"{client.title} asks for {name!r}, though it has a default"
        report.add(Rule.UNFILLED_ARGUMENT, message, "remove its default, or remove the argument", name)
    if name in client.reserved_names:
        message = f"{client.title} reserves the name {name!r} for itself"
        report.add(Rule.UNFILLED_ARGUMENT, message, f"choose another name, for example '{name}_name'", name)


def shows_form(client: ClientProfile, prompt: CompiledPrompt) -> bool:
    """Return whether users of a client fill in the server's form for a prompt's missing arguments."""
    return client.rejects_missing and prompt.elicit is not False


def typed_arguments(client: ClientProfile, arguments: Iterable[Argument]) -> tuple[Argument, ...]:
    """Return the arguments that receive the words that users of a client type after the prompt's name."""
    return tuple(argument for argument in arguments if argument.required or not client.fills_in_text)


def find_invalid_positions(client: ClientProfile, arguments: Iterable[Argument]) -> dict[str, str]:
    """
    Return the positions, such as ``$2``, that are not valid values for their arguments.

    The result is keyed by argument name.
    """
    return {
        argument.name: f"${position}"
        for position, argument in enumerate(arguments, 1)
        if client.fills_in_text and argument.required and not accepts(argument, f"${position}")
    }


def _may_contain_spaces(argument: Argument) -> bool:
    """Return whether the value of an argument can contain several words."""
    complete = argument.arg.complete
    if isinstance(complete, list | tuple):
        return not _all_single_words(complete)
    is_completed = complete is not None  # by a function, which usually returns file names
    is_word = re.fullmatch(_ONE_WORD_NAME, argument.name) or re.search(
        _ONE_WORD_DESCRIPTION, argument.description or "", re.IGNORECASE
    )
    return not (is_completed or is_word or _is_single_word_type(argument.annotation))


def _is_single_word_type(annotation: Any) -> bool:
    """Return whether all values of a type are single words."""
    annotation = unwrap_type(annotation, core=True)
    if members := members_of(annotation):
        return all(map(_is_single_word_type, members))
    if is_literal(annotation) or is_enum(annotation):
        reader = reader_for(annotation)
        return reader is not None and _all_single_words(reader.values)
    return annotation in _ONE_WORD_TYPES


def _all_single_words(texts: Iterable[object]) -> bool:
    return all(len(str(text).split()) < 2 for text in texts)


def _lint_messages(client: ClientProfile, sent: SentMessages, report: Report) -> None:
    """Report messages and content that a client does not deliver."""
    for content in sent.content:
        if content.kind in client.unsupported:
            is_sent = client.effect == "does not show users"
            hint = "describe its content in the text next to it" if is_sent else _CONTENT_HINTS[content.kind]
            message = f"{client.title} {client.effect} {content.name}"
            report.add(Rule.UNSUPPORTED_CONTENT, message, hint, content.node)
    for conversation in sent.conversations:
        known = [content for content in conversation[1:] if content.role != "unknown"]
        later = [content for content in known if content.kind not in client.unsupported]
        if client.sends_first_only and later:
            message = f"{client.title} sends only the first message, not this one"
            report.add(Rule.UNSUPPORTED_CONTENT, message, "put everything into one user(...)", later[0].node)
        replies = [each for each in conversation if each.role == "assistant"]
        if client.drops_roles and replies:
            message = f"{client.title} sends an assistant turn as a user turn"
            report.add(
                Rule.UNSUPPORTED_CONTENT, message, "state in the text whose turn it is", replies[0].node
            )
