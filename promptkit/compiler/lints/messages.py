"""Lints of what a prompt sends: its first message, and the files that it makes content of."""

import ast
import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.compiler.lints.conversations import (
    NAMED,
    Conversation,
    SentMessage,
    content_in,
    conversation_of,
    conversations_in,
    kind_made,
)
from promptkit.compiler.lints.names import Names
from promptkit.compiler.loading.targets import display_path
from promptkit.errors.diagnostics import Diagnostic, Location, Report, Rule
from promptkit.errors.exceptions import MediaError
from promptkit.errors.sources import Function, function_at, own_nodes, span_of
from promptkit.language.media import Audio, Image
from promptkit.language.messages import Workflow

__all__ = ["Source", "lint_first_message", "lint_messages", "place_of"]


class Source:
    """
    The source of a prompt's function, as far as it shows what is sent.

    Args:
        syntax:
            The function's syntax.

        names:
            What its names stand for.
    """

    def __init__(self, syntax: Function, names: Names) -> None:
        self.syntax = syntax
        self.names = names

    @classmethod
    def of(cls, function: Any, location: Location) -> "Source | None":
        """
        Return the source of an author's function, or None if it does not show what is sent.

        Args:
            function:
                The function.

            location:
                Where it is defined.
        """
        if inspect.unwrap(function) is not function or not inspect.isfunction(function):
            return None  # a decorator could do all of it
        syntax = function_at(location.file, location.line)
        if syntax is None or syntax.name != function.__name__:
            return None
        return cls(syntax, Names(syntax, function.__globals__))

    @property
    def conversations(self) -> tuple[Conversation, ...]:
        """What may be sent, one conversation for each way through the function."""
        return conversations_in(self.syntax, self.names)

    @property
    def content(self) -> tuple[SentMessage, ...]:
        """What is made other than text."""
        return tuple(content_in(self.syntax, self.names))

    @property
    def media_files(self) -> Iterator[tuple[ast.Call, type[Image | Audio], str]]:
        """The calls of ``from_path`` that name a file of the author's, each with the file's path."""
        for node in own_nodes(self.syntax, ast.Call):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr="from_path", value=owner) as maker,
                    args=[ast.Constant(value=str(path)), *_],
                    keywords=keywords,
                ) if kind_made(maker, self.names) and all(word.arg != "root" for word in keywords):
                    yield node, self.names.value(owner), path


def lint_messages(source: Source, report: Report) -> None:
    """
    Report a first message that is no text of the user, and files that cannot be sent.

    Args:
        source:
            The source of the prompt's function.

        report:
            Receives the diagnostics.
    """
    _check_first(source.conversations, report)
    for node, kind, path in source.media_files:
        _check_file(kind, path, node, report)


def lint_first_message(prompt: CompiledPrompt, workflow: Workflow) -> tuple[Diagnostic, ...]:
    """Return the diagnostic of a rendering that does not begin with text of the user, if it does not."""
    report = Report(f"prompt {prompt.name!r}", prompt.location)
    _check_first([conversation_of(workflow)], report)
    return tuple(report.found)


def _check_first(conversations: Iterable[Conversation], report: Report) -> None:
    for first, *others in filter(None, conversations):
        if first.role == "assistant":
            fault = "its first message is the assistant's"
            remedy = "begin with what the person says, in user(...)"
        elif first.kind in NAMED and any(other.kind == "text" for other in others):
            fault = f"its first message is {NAMED[first.kind]}, and some clients take the first one alone"
            remedy = "put the text before it"
        else:
            continue
        report.add(Rule.FIRST_MESSAGE, fault, remedy, place_of(first, report.location))


def _check_file(kind: type[Image | Audio], path: str, node: ast.Call, report: Report) -> None:
    folder = Path(report.location.file).parent
    place = Location(report.location.file, *span_of(report.location.file, node))
    try:
        kind.from_path(folder / path)
    except OSError as error:
        fault = f"{path!r} cannot be read: {error.strerror or error}"
        remedy = f"it is looked for in {display_path(str(folder))!r}"
    except MediaError as error:
        fault, remedy = str(error).replace(str(folder / path), path).rsplit(": ", 1)
    else:
        return
    report.add(Rule.UNSENDABLE_FILE, fault, remedy, place)


def place_of(message: SentMessage, otherwise: Location) -> Location:
    """Return where a message is made; *otherwise* is the prompt's own place."""
    if message.node is None:
        return otherwise
    return Location(otherwise.file, *span_of(otherwise.file, message.node))
