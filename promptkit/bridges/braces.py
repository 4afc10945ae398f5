"""What stores of prompts have in common: holes are ``{{name}}``, and braces have no escape."""

import re
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any, Final

from promptkit.declarations.prompts import Prompt
from promptkit.exports.templates import Placeholder, PromptTemplate, TemplateError, TemplateTurn, template_of

__all__ = ["braced"]

_HOLE: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)


def braced(
    prompt: Prompt[..., Any],
    values: Mapping[str, Any] | None,
    tool: str,
    misread: tuple[str, ...] = ("{{",),
    *,
    lossy: bool,
) -> str | list[dict[str, str]]:
    """
    Return a template as stores take it: one text if that is all that a user says, else messages.

    Args:
        prompt:
            The prompt.

        values:
            What is the same always, as for `template_of`.

        tool:
            Who reads it.

        misread:
            What *tool* does not leave as it is.

        lossy:
            As for `template_of`.

    Raises:
        TemplateError: As for `template_of`; or if *tool* misreads the text, or takes no hole of a name.
    """
    template = template_of(prompt, values, lossy=lossy)
    messages = []
    for turn in template.turns:
        text, wrong = _written(turn, misread)
        if wrong is not None:
            reason = f"its text holds {wrong!r}, which {tool} reads as its own, and has no escape for"
            raise TemplateError(template.prompt.name, reason)
        messages.append({"role": turn.role, "content": text})
    _check_names(template, tool)
    is_text = [turn.role for turn in template.turns] == ["user"]
    return messages[0]["content"] if is_text else messages


def _written(turn: TemplateTurn, misread: tuple[str, ...]) -> tuple[str, str | None]:
    """A turn with holes in braces, and what is misread of it."""
    text = "".join(part if isinstance(part, str) else f"{{{{{part.name}}}}}" for part in turn.parts)
    read, holes = _HOLE.split(text), [part.name for part in turn.parts if isinstance(part, Placeholder)]
    for name, hole in zip_longest(read[1::2], holes):
        if name != hole:
            return text, f"{{{{{name}}}}}"
    return text, next((one for one in misread if any(one in literal for literal in read[::2])), None)


def _check_names(template: PromptTemplate, tool: str) -> None:
    for turn in template.turns:
        for part in turn.parts:
            if isinstance(part, Placeholder) and not part.name.isascii():
                reason = f"{tool} takes no hole {part.name!r}: name the parameter in ASCII letters"
                raise TemplateError(template.prompt.name, reason)
