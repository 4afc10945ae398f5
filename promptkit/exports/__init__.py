"""
Exports: renderings in the formats of vendors' SDKs, and prompts in servers of other frameworks.

This package does not import any vendor's SDK. `promptkit.exports.fastmcp` and `promptkit.exports.mcp` add
prompts to an existing server, and import that server's package.
"""

from collections.abc import Callable
from typing import Any, Final

from promptkit.exports.requests import (
    UnsupportedAnswerError,
    anthropic_request,
    gemini_request,
    openai_chat_request,
    openai_responses_request,
)
from promptkit.exports.vendor_messages import (
    ExportError,
    UnsupportedPart,
    anthropic_messages,
    gemini_contents,
    openai_chat,
    openai_responses,
)

__all__ = [
    "ExportError",
    "UnsupportedAnswerError",
    "UnsupportedPart",
    "anthropic_messages",
    "anthropic_request",
    "gemini_contents",
    "gemini_request",
    "openai_chat",
    "openai_chat_request",
    "openai_responses",
    "openai_responses_request",
]

#: The functions that return a vendor's messages, keyed by the name of the format in ``promptkit render
#: --format``.
MESSAGE_FUNCTIONS: Final[dict[str, Callable[..., list[Any]]]] = {
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "anthropic": anthropic_messages,
    "gemini": gemini_contents,
}

#: The functions that return a whole request, keyed by the same names, for ``promptkit render --request``.
REQUEST_FUNCTIONS: Final[dict[str, Callable[..., dict[str, Any]]]] = {
    "openai-chat": openai_chat_request,
    "openai-responses": openai_responses_request,
    "anthropic": anthropic_request,
    "gemini": gemini_request,
}
