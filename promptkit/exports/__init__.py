"""
Exports: what a prompt says, in the form that a vendor's SDK takes; and catalogs in servers of others.

No vendor's SDK is imported. `promptkit.exports.fastmcp` and `promptkit.exports.mcp` add prompts to a server
that exists already, and import that server's package.
"""

from promptkit.exports.anthropic import anthropic_messages
from promptkit.exports.errors import ExportError, UnfitPart
from promptkit.exports.gemini import gemini_contents
from promptkit.exports.openai import openai_chat, openai_responses

__all__ = [
    "ExportError",
    "UnfitPart",
    "anthropic_messages",
    "gemini_contents",
    "openai_chat",
    "openai_responses",
]
