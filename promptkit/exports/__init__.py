"""
Exports: what a prompt says, in the form that a vendor's SDK takes; and catalogs in servers of others.

Each public name is imported when it is first used, and no vendor's SDK is. `promptkit.exports.fastmcp`
and `promptkit.exports.mcp` add prompts to a server that exists already, and import that server's package.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
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

#: Where the public names are defined.
_HOMES: Final = {
    "ExportError": "errors",
    "UnfitPart": "errors",
    "anthropic_messages": "anthropic",
    "gemini_contents": "gemini",
    "openai_chat": "openai",
    "openai_responses": "openai",
}


def __getattr__(name: str) -> Any:
    """
    Return a public name that is used for the first time. Raises AttributeError if there is none.
    """
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    found = getattr(import_module(f"promptkit.exports.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
