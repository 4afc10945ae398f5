"""What a prompt becomes in a file: its text with holes, or the command that renders it."""

import shlex
from typing import Final, NoReturn

from msgspec import Struct

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.errors.exceptions import PromptkitError
from promptkit.exports.templates import Placeholder, TemplateError, template_of

#: What else can be done.
_LIVE: Final = "--live writes a file that renders it each time"


class ExportRefusedError(PromptkitError):
    """A prompt cannot be written for a client; its text says why, and what to do."""


class LiveCommand(Struct, frozen=True):
    """
    The command that renders a prompt for what somebody has typed.

    Args:
        prompt:
            The prompt.

        target:
            Where its recipe is; ``""`` for where the configuration says.

        end:
            The line that ends what was typed, which nobody can guess.
    """

    prompt: CompiledPrompt
    target: str
    end: str

    def __post_init__(self) -> None:
        if self.prompt.arguments.secret:
            refuse(self.prompt, "it has a secret argument, which 'promptkit render' hides in what it prints")

    @property
    def unread(self) -> str:
        """The command without arguments. No shell, and no client, finds anything to replace in it."""
        return f"promptkit render {self.target and f'{self.target} '}{self.prompt.name}"

    @property
    def words(self) -> str:
        """The command that reads what was typed from standard input."""
        return f"{self.unread} --typed {self.end}"


def refuse(prompt: CompiledPrompt, reason: str) -> NoReturn:
    """Raise ExportRefusedError for a prompt, with the reason."""
    msg = f"prompt {prompt.name!r} cannot be written: {reason}"
    raise ExportRefusedError(msg) from None


def refuse_at(prompt: CompiledPrompt, text: str, place: int, what: str) -> NoReturn:
    """Raise ExportRefusedError if a client would read a part of a prompt's text as something else."""
    line = text.count("\n", 0, place) + 1
    refuse(prompt, f"line {line} of its text has {what}, for which there is no escape: {_LIVE}")


def frozen_parts(prompt: CompiledPrompt) -> tuple[str | Placeholder, ...]:
    """
    Return the text of a prompt, and the places of its arguments in it.

    Raises:
        ExportRefusedError: If one of them is no text, or may be left out, or if the prompt says more than the
            text of a user, or something else than its text with the holes filled.
    """
    for one in prompt.arguments.ordered:
        if not one.required:
            refuse(prompt, f"{one.name!r} may be left out, and a hole is filled always: {_LIVE}")
        if not one.blank_is_value:
            refuse(prompt, f"{one.name!r} takes {one.reader.expected}, and a hole any text: {_LIVE}")
        if one.arg.secret:
            refuse(
                prompt, f"{one.name!r} is a secret, which clients would keep as they keep all that is typed"
            )
    try:
        turns = template_of(prompt).turns
    except TemplateError as error:
        reason, _, _ = error.reason.rpartition(": give ")
        refuse(prompt, f"{reason or error.reason}: {_LIVE}")
    for number, turn in enumerate(turns, 1):
        if turn.role != "user":
            refuse(prompt, f"turn {number} is of the {turn.role}, and a file is what the user says")
    return tuple(part for number, turn in enumerate(turns) for part in (*["\n\n"][:number], *turn.parts))


def hint_of(prompt: CompiledPrompt) -> str:
    """What a client shows while somebody types: what may be left out, by its name, and then the others."""
    ordered = sorted(prompt.arguments.ordered, key=lambda one: one.required)
    return " ".join(f"[{one.name}{'' if one.required else '='}]" for one in ordered)


def target_word(target: str) -> str:
    """
    Return a target as a word of a command.

    Raises:
        ExportRefusedError: If a shell, or a client, reads it as anything else.
    """
    if shlex.quote(target) != target or target.startswith("-"):
        msg = f"the target {target!r} cannot stand in a command as it is: rename it, without blanks and signs"
        raise ExportRefusedError(msg)
    return target
