"""Where a part of a JSON text stands, by the path that faults have: ``.points[2].x``."""

import json
import re
from collections.abc import Iterator
from itertools import islice
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Final

from msgspec import Struct

from promptkit.conversion.leaves import step

__all__ = ["Place", "place_of", "syntax_fault"]

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_INDEX: Final = re.compile(r"\[(\d+)\]")
_DECODER: Final = json.JSONDecoder()


class Place(Struct, frozen=True):
    """
    A place in a text, both counted from 1.

    Args:
        line:
            The line.

        column:
            The character in the line.
    """

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


def place_of(text: str, path: str) -> Place | None:
    """
    Return where the part at *path* begins; of a part that is missing, where its owner does.

    Args:
        text:
            A JSON text.

        path:
            The path of a `Fault`.

    Returns:
        None if *text* is no JSON.
    """
    try:
        at, rest = _skip(text, 0), path
        while rest and (member := _member(text, at, rest)) is not None:
            at, rest = member
        _DECODER.raw_decode(text, at)
    except (ValueError, IndexError, RecursionError):
        return None
    return _place(text, at)


def syntax_fault(text: str) -> str | None:
    """
    Return why a text is no JSON, and where; None if it is JSON.
    """
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"{error.msg[:1].lower()}{error.msg[1:]} (line {error.lineno}, column {error.colno})"
    except (RecursionError, ValueError):
        return "is nested too deeply, or has a number of too many digits"
    return None


def _place(text: str, at: int) -> Place:
    return Place(text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _member(text: str, at: int, path: str) -> tuple[int, str] | None:
    """Where the part begins that the first step of *path* leads to, and the steps behind it."""
    if text[at] == "{":
        found = None
        for key, begin in _members(text, at):
            for first in (f".{key}", step(key)):
                rest = path[len(first) :]
                if path.startswith(first) and rest[:1] in ("", ".", "["):
                    found = begin, rest  # of several with one name, the last counts
        return found
    if text[at] == "[" and (index := _INDEX.match(path)):
        begins = islice(_items(text, at), int(index[1]), None)
        return next(((begin, path[index.end() :]) for begin in begins), None)
    return None


def _members(text: str, at: int) -> Iterator[tuple[str, int]]:
    """Yield the keys of the object at *at*, each with where its value begins."""
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, at = scanstring(text, at + 1)
        at = _skip(text, _skip(text, at) + 1)  # behind the colon
        yield key, at
        at = _next(text, at)


def _items(text: str, at: int) -> Iterator[int]:
    """Yield where each item of the array at *at* begins."""
    at = _skip(text, at + 1)
    while text[at] != "]":
        yield at
        at = _next(text, at)


def _next(text: str, at: int) -> int:
    """Where the next member or item begins, or the bracket that ends them."""
    _, at = _DECODER.raw_decode(text, at)
    at = _skip(text, at)
    return _skip(text, at + 1) if text[at] == "," else at
