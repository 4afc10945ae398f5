"""Values that no message can hold, and what authors write instead."""

from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine, Iterable, Mapping
from enum import Enum
from io import IOBase
from pathlib import Path
from typing import Any, Final

from promptkit.language.validation import describe

__all__ = ["NO_SYSTEM", "Unsendable", "is_role_tuple", "remedy_for"]

#: The roles of vendors' APIs. A tuple that begins with one is meant as a turn.
_ROLES: Final = frozenset(
    ("user", "human", "assistant", "ai", "model", "system", "developer", "tool", "function", "placeholder")
)

_TURN: Final = "write user(...) or assistant(...) for a turn, or a list for several parts"

#: What to do about a system prompt, by whatever name.
NO_SYSTEM: Final = "MCP has no system role: begin the first user(...) with it"


class Unsendable(TypeError):
    """
    A value that no message can hold.

    Args:
        value:
            The value.

        path:
            Its position in the result, outermost index first.
    """

    def __init__(self, value: object, path: tuple[int, ...] = ()) -> None:
        super().__init__(value, path)
        self.value = value
        self.path = path
        if isinstance(value, Coroutine):
            value.close()  # or Python would warn that it was never awaited

    def __str__(self) -> str:
        return f"{describe(self.value)}: {remedy_for(self.value)}"


def is_role_tuple(value: object) -> bool:
    """
    Return whether *value* is a tuple that looks like a role and its content, as in other libraries.

    Two strings always do, since the first may be a role that is not listed here.
    """
    if not isinstance(value, tuple) or len(value) < 2 or not isinstance(value[0], str):
        return False
    return (len(value) == 2 and isinstance(value[1], str)) or str.__str__(value[0]).lower() in _ROLES


def _is_vendors_message(value: object) -> bool:
    """Return whether *value* is a message or request of OpenAI, Anthropic, Gemini or LangChain."""
    if isinstance(value, Mapping):
        return not {"role", "messages", "contents"}.isdisjoint(value) or {"type", "text"} <= value.keys()
    if not hasattr(value, "content") and not hasattr(value, "parts"):
        return False
    return hasattr(value, "role") or (hasattr(value, "type") and not callable(value))


def _turn_remedy(value: Any) -> str:
    """Return what to write instead of a vendor's message, or of a tuple with a role."""
    role = value[0] if isinstance(value, tuple) else None
    if isinstance(value, Mapping):
        role = value.get("role")
    elif role is None:
        role = getattr(value, "role", None) or getattr(value, "type", None)
    role = role.value if isinstance(role, Enum) else role
    return f"{_TURN}; {NO_SYSTEM}" if role in ("system", "developer") else _TURN


def _uncalled(value: Any) -> str:
    """Return how to use an object that was returned instead of being called."""
    name = getattr(value, "__name__", "it")
    if hasattr(value, "render_wire"):
        return f"call the prompt: `return {name}(...)` or `yield {name}(...)`"
    if hasattr(value, "embed") and hasattr(value, "link"):
        return "show it with .embed(...), or link to it with .link(...)"
    return "call it"


#: Tests for kinds of values, and what to write instead. The first match wins.
_REMEDIES: Final[tuple[tuple[Callable[[Any], Any], str | Callable[[Any], str]], ...]] = (
    (
        lambda value: isinstance(value, bytes | bytearray | memoryview),
        "say what the bytes are, with Image(...), Audio(...) or EmbeddedResource(..., blob=...)",
    ),
    (lambda value: isinstance(value, Path), "read it, with .read_text() or Image.from_path(...)"),
    (is_role_tuple, _turn_remedy),
    (
        lambda value: type(value).__module__ == "promptkit.language.messages",
        "join turns with +, as in user(...) + message",
    ),
    (_is_vendors_message, _turn_remedy),
    (lambda value: isinstance(value, Mapping), "show it as text, with promptkit.fragments.json_block(...)"),
    (lambda value: hasattr(value, "embed") and hasattr(value, "link"), _uncalled),
    (lambda value: isinstance(value, Awaitable), "await it, in an `async def` prompt"),
    (
        lambda value: isinstance(value, AsyncIterable),
        "iterate over it with `async for`, in an `async def` prompt",
    ),
    (lambda value: isinstance(value, IOBase), "read it, with .read()"),
    (lambda value: isinstance(value, set | frozenset), "put it in order, with sorted(...)"),
    (lambda value: isinstance(value, BaseException), "raise it, or make it text with str(...)"),
    (lambda value: isinstance(value, Enum), "make it text, with .value or .name"),
    (
        lambda value: type(value).__module__ == "string.templatelib",
        "make it text, with promptkit.fragments.dedent(...), or write f in place of t",
    ),
    (lambda value: isinstance(value, Iterable) and not isinstance(value, type), "unpack it, with *"),
    (callable, _uncalled),
)


def remedy_for(value: object) -> str:
    """
    Return what the author should write instead of *value*.
    """
    for fits, remedy in _REMEDIES:
        if fits(value):
            return remedy(value) if callable(remedy) else remedy
    return "make it text, with str(...) or an f-string"
