"""Prompts as fixed text with placeholders for some arguments, for files that work without promptkit."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NoReturn

from msgspec import Struct

from promptkit.catalog.arguments import Argument
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.errors.exceptions import ArgumentsError, PromptkitError
from promptkit.exports.templates import Placeholder, PromptTemplate, TemplateError, template_of
from promptkit.types.errors import short
from promptkit.types.unstructuring import can_be_sent, text_of
from promptkit.workspace.paths import UNAVAILABLE

#: The alternatives that hints suggest.
LIVE_HINT: Final = "use --live to write a file that renders the prompt on each use"
_LOSSY_HINT: Final = "use --lossy to accept the difference"

#: Placeholders of Claude Code, which stay in its text if nothing is typed for them. `promptkit import` makes
#: them defaults.
_UNFILLED: Final = re.compile(r"\$(?:\w+|ARGUMENTS\[\d+\])")


class ClientFileError(PromptkitError):
    """
    A prompt cannot be exported for a client.

    Args:
        reason:
            The reason, with a hint.

        prompt:
            The prompt's name; None if the reason is not about one prompt.
    """

    def __init__(self, reason: str, prompt: str | None = None) -> None:
        super().__init__(reason, prompt)
        self.reason = reason
        self.prompt = prompt

    def __str__(self) -> str:
        subject = "" if self.prompt is None else f"prompt {self.prompt!r} cannot be exported: "
        return f"{subject}{self.reason}"


def reject(prompt: CompiledPrompt, reason: str) -> NoReturn:
    """Raise a `ClientFileError` with the reason."""
    raise ClientFileError(reason, prompt.name) from None


class FrozenPrompt(Struct, frozen=True):
    """
    A prompt as text with placeholders.

    Args:
        prompt:
            The prompt.

        parts:
            The text, with placeholders.

        placeholders:
            The arguments that are placeholders, in the order of the signature.

        values:
            The values of all other arguments, for messages.

        difference:
            A text for which the prompt's rendering differs, as a sentence; empty if there is none.
    """

    prompt: CompiledPrompt
    parts: tuple[str | Placeholder, ...]
    placeholders: tuple[Argument, ...]
    values: Mapping[str, str]
    difference: str = ""


def freeze(
    prompt: CompiledPrompt, values: Mapping[str, str] = MappingProxyType({}), *, lossy: bool = False
) -> FrozenPrompt:
    """
    Freeze the arguments that have a value or a default, and return the text with placeholders for the others.

    An optional argument also becomes a placeholder if its default is blank, or a placeholder of a client. If
    the text omits more than the blank value, the argument is frozen at its default.

    Args:
        prompt:
            The prompt.

        values:
            Values by argument name, as a client sends them.

        lossy:
            Whether to accept a text that is correct only for plain words, if there is no better one.

    Raises:
        ClientFileError: If a required argument without a value is not free text, or an argument is
            secret; or if the rendering has content other than user text, or differs from a template.
    """
    fixed: dict[str, Any] = dict(values)
    for argument in prompt.arguments.ordered:
        name = argument.name
        if argument.arg.secret:
            reject(prompt, f"{name!r} is a secret, but clients store typed arguments")
        if argument.required and name not in fixed and not argument.blank_is_value:
            hint = f"use --set {name}=VALUE to freeze it, or {LIVE_HINT}"
            expected = argument.reader.expected
            reject(prompt, f"{name!r} requires {expected}, but a placeholder accepts any text: {hint}")
        if not argument.required and not _is_placeholder(argument):
            fixed.setdefault(name, None)
    template, difference = _template(prompt, fixed, lossy=lossy)
    for number, turn in enumerate(template.turns, 1):
        if turn.role != "user":
            reject(prompt, f"turn {number} has the role {turn.role!r}, but a file can contain only user text")
    parts = tuple(
        part for number, turn in enumerate(template.turns) for part in (*["\n\n"][:number], *turn.parts)
    )
    placeholders = tuple(
        argument for argument in prompt.arguments.ordered if Placeholder(argument.name) in parts
    )
    shown = {
        argument.name: short.repr(values[argument.name] if argument.name in values else _default(argument))
        for argument in prompt.arguments.ordered
        if argument not in placeholders
    }
    return FrozenPrompt(prompt, parts, placeholders, shown, difference)


def _is_placeholder(argument: Argument) -> bool:
    """Return whether the default of an optional argument is the text of a placeholder with no value."""
    default = argument.default
    if not argument.blank_is_value or argument.arg.env or not isinstance(default, str):
        return False
    return not default or _UNFILLED.fullmatch(default) is not None


def _default(argument: Argument) -> Any:
    """Return the current default of an optional argument, as a client would send it if it can."""
    default = argument.default if argument.default_text is None else argument.default_text
    return text_of(default) if default is not None and can_be_sent(default) else default


def _template(prompt: CompiledPrompt, fixed: Mapping[str, Any], *, lossy: bool) -> tuple[PromptTemplate, str]:
    """Return the template with placeholders for the arguments that are not fixed, and how it differs."""
    optional = [
        argument
        for argument in prompt.arguments.ordered
        if not argument.required and argument.name not in fixed
    ]
    blank = [argument.name for argument in optional if not argument.default]
    # Clients insert lines as they are, and `fill` indents them.
    one_line = [argument.name for argument in optional]
    attempts = [(fixed, False)]
    without_blank = {**fixed, **dict.fromkeys(blank)}
    if blank:
        attempts.append((without_blank, False))
    if lossy:
        attempts.append((without_blank, True))
    reason, hint = "", LIVE_HINT
    token = UNAVAILABLE.set("it uses the workspace, whose content a file would keep")
    try:
        for values, is_lossy in attempts:
            try:
                template = template_of(prompt, values, one_line=one_line, lossy=is_lossy)
            except TemplateError as error:
                reason = error.reason.rpartition(": give ")[0] or error.reason
                hint = f"{_LOSSY_HINT}, or {LIVE_HINT}" if error.is_close else LIVE_HINT
            else:
                return template, reason if is_lossy else ""
        reject(prompt, f"{reason}: {hint}")
    except ArgumentsError as error:
        reject(prompt, "; ".join(map(str, error.errors)))
    finally:
        UNAVAILABLE.reset(token)
