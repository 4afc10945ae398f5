"""The vendors' forms, by the name that `promptkit render --format` and the preview have for them."""

from collections.abc import Callable
from typing import Any, Final

from promptkit.exports.anthropic import anthropic_messages
from promptkit.exports.gemini import gemini_contents
from promptkit.exports.openai import openai_chat, openai_responses

__all__ = ["FORMS"]

FORMS: Final[dict[str, Callable[..., list[Any]]]] = {
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "anthropic": anthropic_messages,
    "gemini": gemini_contents,
}
