"""Questions on a terminal for the required arguments of a prompt, with completion."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_input
from prompt_toolkit.output import create_output
from prompt_toolkit.validation import ValidationError, Validator

from promptkit.catalog.arguments import Argument, Arguments
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.cli.key_values import ArgumentSyntaxError, read_value
from promptkit.errors.exceptions import ArgumentsError
from promptkit.fragments.invisible import escape_invisible


def ask(catalog: Catalog, prompt: CompiledPrompt, known: Mapping[str, str], folder: Path) -> dict[str, str]:
    """
    Ask on standard error for every required argument without a value.

    Args:
        catalog:
            The catalog that completes values.

        prompt:
            The prompt.

        known:
            The known values, by argument name.

        folder:
            The base of relative paths in answers such as ``@FILE``.

    Returns:
        All values. Some are missing if the input has ended.

    Raises:
        KeyboardInterrupt: On Ctrl-C.
    """
    values = dict(known)
    with (
        os.fdopen(os.dup(0), encoding="utf-8") as keyboard,  # recipes can replace the streams
        os.fdopen(os.dup(2), "w", encoding="utf-8") as screen,
    ):
        session: PromptSession[str] = PromptSession(
            input=create_input(keyboard), output=create_output(screen), complete_in_thread=True
        )
        for argument in prompt.arguments.ordered:
            if argument.required and argument.name not in values:
                reader = _Reader(prompt, argument, folder)
                try:
                    answer = session.prompt(
                        _question(argument),
                        completer=_Suggestions(catalog, prompt.name, argument, values),
                        validator=reader,
                        validate_while_typing=False,
                        is_password=argument.arg.secret,
                    )
                except EOFError:
                    break
                values[argument.name] = reader.read(answer)
    return values


def _question(argument: Argument) -> str:
    hint = argument.description or argument.reader.expected
    return escape_invisible(f"{argument.name} ({hint}): ", one_line=True)


class _Suggestions(Completer):
    """A completer that offers the same values as a client."""

    def __init__(self, catalog: Catalog, name: str, argument: Argument, chosen: Mapping[str, str]) -> None:
        self._catalog = catalog
        self._name = name
        self._argument = argument
        self._chosen = chosen

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:  # noqa: ARG002
        typed = document.text_before_cursor
        try:
            completion = self._catalog.complete(self._name, self._argument.name, typed, self._chosen)
        except Exception:  # noqa: BLE001 (a completer that fails offers nothing)
            return
        for value in completion.values:
            yield Completion(
                value,
                start_position=-len(typed),
                display=escape_invisible(value, one_line=True),
                display_meta=escape_invisible(self._argument.reader.meanings.get(value, ""), one_line=True),
            )


class _Reader(Validator):
    """A validator that parses answers like arguments on the command line, and rejects invalid values."""

    def __init__(self, prompt: CompiledPrompt, argument: Argument, folder: Path) -> None:
        self._prompt = prompt
        self._argument = argument
        self._folder = folder

    def read(self, answer: str) -> str:
        if answer == "@-":
            msg = "standard input is this terminal: type the value, or write @FILE"
            raise ArgumentSyntaxError(msg)
        return read_value(self._prompt.arguments, self._argument.name, answer, self._folder)

    def validate(self, document: Document) -> None:
        try:
            sent = self.read(document.text)
            Arguments(self._prompt.name, (self._argument,)).read({self._argument.name: sent})
        except (ArgumentSyntaxError, ArgumentsError) as error:
            reasons = error.errors if isinstance(error, ArgumentsError) else (error,)
            message = escape_invisible("; ".join(map(str, reasons)), one_line=True)
            raise ValidationError(len(document.text), message) from None
