"""The contents of client files: a prompt's text with placeholders, or the command that renders it."""

import shlex
from typing import Final, NoReturn

from msgspec import Struct

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.errors.exceptions import PromptkitError
from promptkit.exports.templates import Placeholder, TemplateError, template_of

#: The alternative that hints suggest.
_LIVE_HINT: Final = "--live writes a file that renders it each time"


class ExportRefusedError(PromptkitError):
    """A prompt cannot be exported for a client. The message has the reason and a hint."""


class LiveCommand(Struct, frozen=True):
    """
    The command that renders a prompt with the typed text.

    Args:
        prompt:
            The prompt.

        target:
            The target of its recipe; ``""`` for the configured target.

        end:
            The unguessable line that ends the typed text.
    """

    prompt: CompiledPrompt
    target: str
    end: str

    def __post_init__(self) -> None:
        if self.prompt.arguments.secret:
            refuse(self.prompt, "it has a secret argument, which 'promptkit render' redacts in its output")

    @property
    def base_command(self) -> str:
        """The command without arguments, in which no shell or client expands anything."""
        return f"promptkit render {self.target and f'{self.target} '}{self.prompt.name}"

    @property
    def command_line(self) -> str:
        """The command that reads the typed text from standard input."""
        return f"{self.base_command} --typed {self.end}"


def refuse(prompt: CompiledPrompt, reason: str) -> NoReturn:
    """Raise an `ExportRefusedError` with the reason."""
    msg = f"prompt {prompt.name!r} cannot be written: {reason}"
    raise ExportRefusedError(msg) from None


def refuse_at(prompt: CompiledPrompt, text: str, offset: int, syntax: str) -> NoReturn:
    """Raise an `ExportRefusedError` for a part of the text that a client would interpret."""
    line = text.count("\n", 0, offset) + 1
    refuse(prompt, f"line {line} of its text has {syntax}, for which there is no escape: {_LIVE_HINT}")


def frozen_parts(prompt: CompiledPrompt) -> tuple[str | Placeholder, ...]:
    """
    Return the text of a prompt with placeholders for its arguments.

    Raises:
        ExportRefusedError: If an argument is not free text, or is optional or secret; or if the rendering has
            content other than user text, or differs from a template.
    """
    for argument in prompt.arguments.ordered:
        if not argument.required:
            refuse(
                prompt,
                f"{argument.name!r} is optional, but a frozen export cannot omit a placeholder: {_LIVE_HINT}",
            )
        if not argument.blank_is_value:
            refuse(
                prompt,
                f"{argument.name!r} takes {argument.reader.expected}, and a placeholder any text: "
                f"{_LIVE_HINT}",
            )
        if argument.arg.secret:
            refuse(
                prompt,
                f"{argument.name!r} is a secret, but clients store typed arguments",
            )
    try:
        turns = template_of(prompt).turns
    except TemplateError as error:
        reason, _, _ = error.reason.rpartition(": give ")
        refuse(prompt, f"{reason or error.reason}: {_LIVE_HINT}")
    for number, turn in enumerate(turns, 1):
        if turn.role != "user":
            refuse(prompt, f"turn {number} is of the {turn.role}, but files are content of the user")
    return tuple(part for number, turn in enumerate(turns) for part in (*["\n\n"][:number], *turn.parts))


def hint_of(prompt: CompiledPrompt) -> str:
    """Return the argument hint that clients show: optional arguments first, by name, then the required."""
    ordered = sorted(prompt.arguments.ordered, key=lambda argument: argument.required)
    return " ".join(f"[{argument.name}{'' if argument.required else '='}]" for argument in ordered)


def target_word(target: str) -> str:
    """
    Validate a target as a word of a shell command.

    Raises:
        ExportRefusedError: If a shell or a client would interpret it.
    """
    if shlex.quote(target) != target or target.startswith("-"):
        msg = (
            f"the target {target!r} cannot be part of a command: rename it, without blanks and "
            f"special characters"
        )
        raise ExportRefusedError(msg)
    return target
