"""What is alike in texts of every format: why one cannot be changed, and how its lines are put together."""

import json
from collections.abc import Sequence
from typing import Any

__all__ = ["DocumentError", "as_json", "cannot_be_changed", "joined", "nested", "newline_of"]


class DocumentError(Exception):
    """
    A text cannot be read, or not be changed without touching what is somebody else's.

    Args:
        reason:
            What is wrong.

        line:
            Where, from 1; 0 if that is not known.

        column:
            Where in the line, from 1; 0 if that is not known.
    """

    def __init__(self, reason: str, line: int = 0, column: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.column = column


def cannot_be_changed() -> DocumentError:
    """Return the error for a text that says all that is needed, but in an unusual way."""
    return DocumentError("it is written in a way that cannot be changed without touching something else")


def nested(path: Sequence[str], value: Any) -> Any:
    """Return *value* in tables, one for each key of *path*."""
    for key in reversed(path):
        value = {key: value}
    return value


def newline_of(text: str) -> str:
    """Return what the lines of *text* end with."""
    return "\r\n" if "\r\n" in text else "\n"


def joined(before: str, lines: str, behind: str) -> str:
    """Return a text with lines between others; the line before them is ended if it is not."""
    gap = newline_of(before) if before and not before.endswith("\n") else ""
    return f"{before}{gap}{lines}{behind}"


def as_json(value: Any) -> str:
    """
    Return a value as JSON. Of texts, numbers and lists, TOML and YAML say the same in the same way.

    Raises:
        DocumentError: If JSON has no such values, as dates.
    """
    try:
        return json.dumps(value, ensure_ascii=False)
    except TypeError:
        raise cannot_be_changed() from None
