"""
What the fields of content may hold.

Each function takes what an author gave and returns what is kept, or raises a `TypeError` or a
`ValueError` that names the field and says what to write.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias, get_args

import attrs

__all__ = [
    "Role",
    "checked_audience",
    "checked_last_modified",
    "checked_name",
    "checked_priority",
    "checked_role",
    "checked_size",
    "checked_sizes",
    "checked_text",
    "checked_theme",
    "checked_uri",
    "optional_text",
]

#: Who speaks in a message, or is meant to see a block. There is no third.
Role: TypeAlias = Literal["user", "assistant"]

ROLES: Final[tuple[str, ...]] = get_args(Role)

#: RFC 3986, as far as it can be told apart from text that is no URI at all.
_URI: Final = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*+:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]++|%[0-9A-Fa-f]{2})++",
)

#: Pixels across and down, as icons say them.
_SIZE: Final = re.compile(r"[1-9][0-9]*x[1-9][0-9]*|any")

#: A scheme and something behind it; what begins like a path on Windows has none.
_SCHEME: Final = re.compile(r"(?![A-Za-z]:[\\/])[A-Za-z][A-Za-z0-9+.-]*:.", re.DOTALL)


def checked_role(role: Role) -> Role:
    """
    Return *role* if MCP knows it.

    Raises:
        ValueError: If it does not; a *system* role is explained.
    """
    if role in ROLES:
        return role
    if str(role) == "system":
        msg = "MCP prompts have no 'system' role: put instructions at the head of the first user(...) turn"
    else:
        msg = f"role {role!r} is not one of {', '.join(ROLES)}"
    raise ValueError(msg)


def checked_uri(uri: str) -> str:
    """
    Return *uri* if it is an absolute URI.

    Raises:
        TypeError: If it is no string.

        ValueError: If it has no scheme, or a character that a URI cannot hold.
    """
    if not isinstance(uri, str):
        msg = f"a URI is a str, not {type(uri).__name__}: pass str(...)"
        raise TypeError(msg)
    if not _URI.fullmatch(uri):
        if not _SCHEME.match(uri):
            msg = f"{uri!r} is no URI: it needs a scheme, as in 'file:///notes.txt' or 'logs://recent'"
        else:
            msg = f"{uri!r} holds characters that a URI cannot: write {_quoted(uri)!r}"
        raise ValueError(msg)
    return str.__str__(uri)  # of a class derived from str, the plain text


def _quoted(uri: str) -> str:
    """
    Return *uri* with what a URI cannot hold escaped, and what is escaped already kept.
    """
    from urllib.parse import quote

    return quote(re.sub("%(?![0-9A-Fa-f]{2})", "%25", uri), safe="%:/?#[]@!$&()*+,;=~")


def checked_audience(roles: Role | tuple[Role, ...] | list[Role]) -> tuple[Role, ...]:
    """
    Return *roles* as a tuple; one role alone may be given bare.
    """
    if not roles:
        return ()
    if not isinstance(roles, str | tuple | list):
        msg = f"audience takes 'user', 'assistant' or a list of both, not {type(roles).__name__}"
        raise TypeError(msg)
    return tuple(checked_role(role) for role in ((roles,) if isinstance(roles, str) else roles))


def checked_priority(value: float | None) -> float | None:
    """
    Return *value* if it is None or lies between 0 and 1.
    """
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool):
        msg = f"priority takes a number from 0 to 1, not {type(value).__name__}"
        raise TypeError(msg)
    if not 0 <= value <= 1:
        msg = f"priority is {value!r}: it goes from 0 (optional) to 1 (required)"
        raise ValueError(msg)
    return value if type(value) is int else float(value)


def checked_last_modified(value: datetime | str | None) -> datetime | None:
    """
    Return *value* as a moment in time, read from ISO 8601 if it is text.
    """
    if value is None:
        return None
    moment = _moment(value) if isinstance(value, str) else value
    if not isinstance(moment, datetime):
        msg = f"last_modified takes a datetime or ISO 8601 text, not {type(value).__name__}"
        raise TypeError(msg)
    if moment.tzinfo is None:
        msg = f"last_modified {str(value)!r} has no time zone: add one, as in '2026-01-31T12:00:00Z'"
        raise ValueError(msg)
    return moment


def _moment(text: str) -> datetime:
    """
    Return the moment that ISO 8601 *text* names.
    """
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        msg = f"last_modified {text!r} is no moment: write it as in '2026-01-31T12:00:00Z'"
        raise ValueError(msg) from None


def checked_name(text: str) -> str:
    """
    Return *text* if clients can show it as a name.
    """
    if not isinstance(text, str):
        msg = f"name takes a str, not {type(text).__name__}"
        raise TypeError(msg)
    if not text.strip():
        msg = "name is blank: clients show it"
        raise ValueError(msg)
    return text


def checked_size(value: int | None) -> int | None:
    """
    Return *value* if it can be a number of bytes.
    """
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        msg = f"size takes a whole number of bytes, not {type(value).__name__}"
        raise TypeError(msg)
    if value is not None and value < 0:
        msg = f"size is {value}: it is a number of bytes"
        raise ValueError(msg)
    return value


def checked_sizes(sizes: str | Iterable[str]) -> tuple[str, ...]:
    """
    Return *sizes* as a tuple; one alone may be given bare.
    """
    several = (sizes,) if isinstance(sizes, str) else tuple(sizes)
    for size in several:
        if not (isinstance(size, str) and _SIZE.fullmatch(size)):
            msg = f"{size!r} is not a valid size: write it as '48x48', or 'any' for what fits every size"
            raise ValueError(msg)
    return several


def checked_theme(theme: Literal["light", "dark"] | None) -> Literal["light", "dark"] | None:
    """
    Return *theme* if clients know it.
    """
    if theme not in (None, "light", "dark"):
        msg = f"theme {theme!r} is neither 'light' nor 'dark'"
        raise ValueError(msg)
    return theme


def checked_text(value: str) -> str:
    """
    Return *value* if it is a string.
    """
    if not isinstance(value, str):
        msg = f"Text takes a str, not {type(value).__name__}: pass str(...)"
        raise TypeError(msg)
    return str.__str__(value)  # of a class derived from str, the plain text


def optional_text(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
    """
    Raise TypeError, naming the field, unless *value* is text or None.
    """
    if value is not None and not isinstance(value, str):
        msg = f"{attribute.name} takes a str, not {type(value).__name__}"
        raise TypeError(msg)
