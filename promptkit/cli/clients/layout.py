"""What is alike in texts of every format: how lines end, and a value under the keys that lead to it."""

from collections.abc import Sequence
from typing import Any

__all__ = ["nested", "newline_of"]


def nested(path: Sequence[str], value: Any) -> Any:
    """Return *value* in tables, one for each key of *path*."""
    for key in reversed(path):
        value = {key: value}
    return value


def newline_of(text: str) -> str:
    """Return what the lines of *text* end with."""
    return "\r\n" if "\r\n" in text else "\n"
