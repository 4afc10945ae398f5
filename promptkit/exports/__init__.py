"""
Exports: what a prompt says, in the form that a vendor's SDK takes; and catalogs in servers of others.

No vendor's SDK is imported. `promptkit.exports.fastmcp` and `promptkit.exports.mcp` add prompts to a server
that exists already, and import that server's package.
"""

from collections.abc import Callable
from typing import Any, Final

from promptkit.exports.turns import ExportError, UnfitPart
from promptkit.exports.vendors import anthropic_messages, gemini_contents, openai_chat, openai_responses

__all__ = [
    "ExportError",
    "UnfitPart",
    "anthropic_messages",
    "gemini_contents",
    "openai_chat",
    "openai_responses",
]

#: The vendors' forms, by the name that `promptkit render --format` and the preview have for them.
FORMS: Final[dict[str, Callable[..., list[Any]]]] = {
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "anthropic": anthropic_messages,
    "gemini": gemini_contents,
}
