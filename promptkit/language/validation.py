"""
Validation of the fields of content, icons and arguments, and hints for values that messages cannot contain.

Each ``checked_...`` function takes an author's value and returns the value to store. If the value is invalid,
the function raises a `TypeError` or a `ValueError` that names the field and suggests a fix.
"""

import inspect
import re
from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine, Iterable, Mapping
from datetime import datetime
from enum import Enum
from io import IOBase
from pathlib import Path
from reprlib import repr as short_repr
from typing import Any, Final, Literal, TypeAlias, get_args

import attrs

#: The role of a message, or an audience of content.
Role: TypeAlias = Literal["user", "assistant"]

ROLES: Final[tuple[str, ...]] = get_args(Role)

#: The syntax of an absolute URI by RFC 3986, without the rules for the components of a URI.
_URI: Final = r"[A-Za-z][A-Za-z0-9+.-]*+:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]++|%[0-9A-Fa-f]{2})++"

#: The width and height of an icon in pixels, or "any" for all sizes.
_SIZE: Final = r"[1-9][0-9]*x[1-9][0-9]*|any"

#: A scheme followed by at least one character, except if it is the drive of a Windows path.
_SCHEME: Final = r"(?s)(?![A-Za-z]:[\\/])[A-Za-z][A-Za-z0-9+.-]*:."


def describe(value: object) -> str:
    """Describe *value* for an error message: ``an int (3)``."""
    if value is None:
        return "None"
    kind = type(value).__name__
    if (inspect.isroutine(value) or isinstance(value, type)) and hasattr(value, "__name__"):
        return f"the {'class' if isinstance(value, type) else 'function'} {value.__name__!r}"
    article = "an" if kind[:1].lower() in "aeiou" else "a"
    return f"{article} {kind} ({short_repr(value)})"


def checked_role(role: Role) -> Role:
    """Return *role* if MCP defines that role. For the system role, the error suggests an alternative."""
    if role in ROLES:
        return role
    if str(role) == "system":
        msg = "a message cannot have the role 'system': write system(...) next to the turns"
    else:
        msg = f"role {role!r} is not one of {', '.join(ROLES)}"
    raise ValueError(msg)


def checked_uri(uri: str) -> str:
    """Return *uri* if it is an absolute URI: it must have a scheme, and only characters that URIs allow."""
    if not isinstance(uri, str):
        msg = f"a URI must be a str, not {type(uri).__name__}: pass str(...)"
        raise TypeError(msg)
    if not re.fullmatch(_URI, uri):
        if not re.match(_SCHEME, uri):
            msg = (
                f"{uri!r} is not a URI: it needs a scheme, for example 'file:///notes.txt' or 'logs://recent'"
            )
        else:
            msg = f"{uri!r} has characters that are not allowed in a URI: write {_percent_encode(uri)!r}"
        raise ValueError(msg)
    return str.__str__(uri)  # converts an instance of a subclass


def _percent_encode(uri: str) -> str:
    """Percent-encode the characters that URIs do not allow, preserving existing escapes."""
    from urllib.parse import quote

    return quote(re.sub("%(?![0-9A-Fa-f]{2})", "%25", uri), safe="%:/?#[]@!$&()*+,;=~", errors="replace")


def checked_audience(roles: Role | tuple[Role, ...] | list[Role]) -> tuple[Role, ...]:
    """Convert *roles*, which can be a single role, to a tuple."""
    if not roles:
        return ()
    if not isinstance(roles, str | tuple | list):
        msg = f"audience must be 'user', 'assistant' or a list of both, not {type(roles).__name__}"
        raise TypeError(msg)
    return tuple(checked_role(role) for role in ((roles,) if isinstance(roles, str) else roles))


def checked_priority(value: float | None) -> float | None:
    """Return *value* if it is None or a number from 0 to 1."""
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool):
        msg = f"priority must be a number from 0 to 1, not {type(value).__name__}"
        raise TypeError(msg)
    if not 0 <= value <= 1:
        msg = f"priority is {value!r}: it must be between 0 (optional) and 1 (required)"
        raise ValueError(msg)
    return value if type(value) is int else float(value)


def checked_last_modified(value: datetime | str | None) -> datetime | None:
    """Return an aware datetime. Text is parsed as ISO 8601, and None is returned unchanged."""
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        expected = "expected something like '2026-01-31T12:00:00Z'"
        msg = f"last_modified {value!r} is not a date and time: {expected}"
        raise ValueError(msg) from None
    if not isinstance(moment, datetime):
        msg = f"last_modified must be a datetime or ISO 8601 text, not {type(value).__name__}"
        raise TypeError(msg)
    if moment.tzinfo is None:
        msg = f"last_modified {str(value)!r} has no time zone: add one, for example '2026-01-31T12:00:00Z'"
        raise ValueError(msg)
    return moment


def checked_name(text: str) -> str:
    """Return *text* if it is a string that is not blank."""
    if not isinstance(text, str):
        msg = f"name must be a str, not {type(text).__name__}"
        raise TypeError(msg)
    if not text.strip():
        msg = "name is blank: pass the document's name"
        raise ValueError(msg)
    return text


def checked_size(value: int | None) -> int | None:
    """Return *value* if it is None or a valid number of bytes."""
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        msg = f"size must be a whole number of bytes, not {type(value).__name__}"
        raise TypeError(msg)
    if value is not None and value < 0:
        msg = f"size is {value}: it must not be negative"
        raise ValueError(msg)
    return value


def checked_sizes(sizes: str | Iterable[str]) -> tuple[str, ...]:
    """Convert *sizes*, which can be a single icon size, to a tuple."""
    several = (sizes,) if isinstance(sizes, str) or not isinstance(sizes, Iterable) else tuple(sizes)
    for size in several:
        if not (isinstance(size, str) and re.fullmatch(_SIZE, size)):
            msg = f"{size!r} is not a valid size: use a form such as '48x48', or 'any' for a scalable icon"
            raise ValueError(msg)
    return several


def checked_theme(theme: Literal["light", "dark"] | None) -> Literal["light", "dark"] | None:
    """Return *theme* if it is None or MCP defines that theme."""
    if theme not in (None, "light", "dark"):
        msg = f"theme must be 'light' or 'dark', not {theme!r}"
        raise ValueError(msg)
    return theme


def checked_text(value: str) -> str:
    """Return *value* if it is a string."""
    if not isinstance(value, str):
        msg = f"Text takes a str, not {type(value).__name__}: pass str(...)"
        raise TypeError(msg)
    return str.__str__(value)  # converts an instance of a subclass


def check_flag(name: str, value: object) -> None:
    """Raise TypeError unless *value* is True or False. The message calls the value *name*."""
    if not isinstance(value, bool):
        msg = f"{name} must be True or False, not {describe(value)}"
        raise TypeError(msg)


def optional_text(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
    """Raise TypeError unless *value* is a string or None. This is a validator for attrs."""
    check_optional_text(attribute.name, value)


def check_optional_text(name: str, value: object) -> None:
    """Raise TypeError unless *value* is a string or None. The message calls the value *name*."""
    if value is not None and not isinstance(value, str):
        msg = f"{name} must be a str, not {type(value).__name__}"
        raise TypeError(msg)


#: The roles in vendors' APIs. A tuple that starts with one of these roles is probably meant to be a turn.
_ROLES: Final = frozenset(
    ("user", "human", "assistant", "ai", "model", "system", "developer", "tool", "function", "placeholder")
)

_TURN_HINT: Final = "write user(...) or assistant(...) for a turn, or a list for several parts"

_SYSTEM_HINT: Final = "write system(...) for a system part"

_MESSAGES_HINT: Final = "convert a list of messages with Workflow.from_messages(...)"


class UnsendableError(TypeError):
    """
    Raised for a value that no message can contain.

    Args:
        value:
            The value.

        path:
            The position of the value in the prompt's result: indexes, outermost first.
    """

    def __init__(self, value: object, path: tuple[int, ...] = ()) -> None:
        super().__init__(value, path)
        self.value = value
        self.path = path
        if isinstance(value, Coroutine):
            value.close()  # so that Python does not warn that it was never awaited

    def __str__(self) -> str:
        return f"{describe(self.value)}: {hint_for(self.value)}"


def is_role_tuple(value: object) -> bool:
    """
    Return whether *value* looks like a tuple of a role and content, which some other libraries accept.

    This is true for every pair of strings, because the first string could be a role that is not in `_ROLES`.
    """
    if not isinstance(value, tuple) or len(value) < 2 or not isinstance(value[0], str):
        return False
    return (len(value) == 2 and isinstance(value[1], str)) or str.__str__(value[0]).lower() in _ROLES


def _is_convertible_message(value: object) -> bool:
    """
    Return whether *value* looks like a message for `Workflow.from_messages`, or a request with such messages.
    """
    if isinstance(value, Mapping):
        return "messages" in value or {"role", "content"} <= value.keys()
    return hasattr(value, "content") and hasattr(value, "model_dump")


def _is_message_like(value: object) -> bool:
    """Return whether *value* looks like a message in an unsupported format, or like a part of a message."""
    if isinstance(value, Mapping):
        return not {"role", "contents"}.isdisjoint(value) or {"type", "text"} <= value.keys()
    if not hasattr(value, "content") and not hasattr(value, "parts"):
        return False
    return hasattr(value, "role") or (hasattr(value, "type") and not callable(value))


def _is_turn(value: object) -> bool:
    return type(value).__module__ in ("promptkit.language.messages", "promptkit.language.turns")


def is_optional_part(value: object) -> bool:
    """Return whether *value* is a result of `promptkit.fragments.optional`."""
    return type(value).__module__ == "promptkit.fragments.budget"


def _is_resource(value: object) -> bool:
    return hasattr(value, "embed") and hasattr(value, "link")


def _is_template(value: object) -> bool:
    return type(value).__module__ == "string.templatelib"


def _is_iterable(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, type)


def _turn_hint(value: Any) -> str:
    """Return the hint for a tuple that starts with a role."""
    return _SYSTEM_HINT if value[0] in ("system", "developer") else _TURN_HINT


def _call_hint(value: Any) -> str:
    """Return the hint for a callable that was returned instead of called."""
    name = getattr(value, "__name__", "it")
    if hasattr(value, "render_wire"):
        return f"call the prompt: `return {name}(...)` or `yield {name}(...)`"
    return "call it"


#: Types of values, or predicates for values, with hints. The first match is used.
_HINTS: Final[tuple[tuple[Any, str | Callable[[Any], str]], ...]] = (
    (
        (bytes, bytearray, memoryview),
        "pass the bytes to Image(...), Audio(...) or EmbeddedResource(..., blob=...)",
    ),
    (Path, "read it with .read_text() or Image.from_path(...)"),
    (is_role_tuple, _turn_hint),
    (_is_turn, "join turns with +, for example user(...) + message"),
    (is_optional_part, "pass optional(...) to fit(...)"),
    (_is_convertible_message, _MESSAGES_HINT),
    (_is_message_like, _TURN_HINT),
    (Mapping, "convert it to text with promptkit.fragments.json_block(...)"),
    (_is_resource, "embed it with .embed(...), or link to it with .link(...)"),
    (Awaitable, "await it in an `async def` prompt"),
    (AsyncIterable, "iterate over it with `async for` in an `async def` prompt"),
    (IOBase, "read it with .read()"),
    ((set, frozenset), "sort it with sorted(...)"),
    (BaseException, "raise it, or convert it to text with str(...)"),
    (Enum, "convert it to text with .value or .name"),
    (_is_template, "convert it to text with promptkit.fragments.dedent(...), or use an f-string"),
    (_is_iterable, "unpack it with *"),
    (callable, _call_hint),
)


def hint_for(value: object) -> str:
    """Return a hint that suggests an alternative to *value*."""
    for kind, hint in _HINTS:
        if isinstance(value, kind) if isinstance(kind, type | tuple) else kind(value):
            return hint(value) if callable(hint) else hint
    return "convert it to text with str(...) or an f-string"
