"""The template syntax of prompt stores: placeholders are ``{{name}}``, and braces cannot be escaped."""

import re
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any, Final

from promptkit.declarations.prompts import Prompt
from promptkit.exports.templates import Placeholder, TemplateError, TemplateTurn, template_of

__all__ = ["build_braced_template"]

_PLACEHOLDER: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)


def build_braced_template(
    prompt: Prompt[..., Any],
    values: Mapping[str, Any] | None,
    tool: str,
    reserved: tuple[str, ...] = ("{{",),
    *,
    lossy: bool,
) -> str | list[dict[str, str]]:
    """
    Convert a prompt to a template in the syntax of prompt stores.

    Args:
        prompt:
            The prompt.

        values:
            Fixed values, keyed by argument name. See `template_of`.

        tool:
            The tool's name for error messages.

        reserved:
            Strings that *tool* would interpret as syntax.

        lossy:
            Whether to accept a template that matches the rendering for plain words, but not for every string.

    Returns:
        The text if the prompt is a single user message; otherwise a list of messages.

    Raises:
        TemplateError: If the prompt cannot be converted, or *tool* would interpret a part of its text.
    """
    template = template_of(prompt, values, lossy=lossy)
    messages = []
    for turn in template.turns:
        text, conflict = _format_turn(turn, reserved)
        if conflict is not None:
            reason = (
                f"its text contains {conflict!r}, which {tool} would interpret and which cannot be escaped"
            )
            raise TemplateError(template.prompt.name, reason)
        messages.append({"role": turn.role, "content": text})
    is_text = [turn.role for turn in template.turns] == ["user"]
    return messages[0]["content"] if is_text else messages


def _format_turn(turn: TemplateTurn, reserved: tuple[str, ...]) -> tuple[str, str | None]:
    """Return a turn's text with placeholders in braces, and any text that the tool would misinterpret."""
    text = "".join(part if isinstance(part, str) else f"{{{{{part.name}}}}}" for part in turn.parts)
    names = [part.name for part in turn.parts if isinstance(part, Placeholder)]
    segments = _PLACEHOLDER.split(text)
    for name, expected in zip_longest(segments[1::2], names):
        if name != expected:
            return text, f"{{{{{name}}}}}"
    literals = "\n".join(segments[::2])
    return text, next((syntax for syntax in reserved if syntax in literals), None)
