"""Where in the text of an argument a fault is, by the path that it has: ``.points[2].x``."""

import json
import re
from collections.abc import Iterator
from itertools import count
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Final

from promptkit.catalog.arguments import Argument
from promptkit.conversion.leaves import step
from promptkit.errors.exceptions import Fault
from promptkit.preview.controls import is_by_line, is_json

__all__ = ["described"]

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_DECODER: Final = json.JSONDecoder()


def described(argument: Argument, fault: Fault, given: str | None) -> str:
    """
    Return what is wrong with an argument, and where in its text.

    Args:
        argument:
            The argument.

        fault:
            What is wrong.

        given:
            The text; None for nothing.
    """
    where = None if argument.arg.secret or not given else _where(argument, fault, given)
    return f"{fault} ({where})" if where else str(fault)


def _where(argument: Argument, fault: Fault, text: str) -> str | None:
    if is_by_line(argument):
        return _line_of(text, fault.path)
    if not fault.path:
        return _syntax_fault(text) if is_json(argument) else None
    return _place(text, fault.path)


def _line_of(text: str, path: str) -> str | None:
    """The line of an item of a list that has a line for each."""
    number = path[1:-1]
    lines = [at for at, line in enumerate(text.splitlines(), 1) if line.strip()]
    is_item = number.isdecimal() and len(lines) > 1 and int(number) < len(lines)
    return f"line {lines[int(number)]}" if is_item else None


def _syntax_fault(text: str) -> str | None:
    """Why a text is no JSON, and where; None if it is JSON."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"{error.msg[:1].lower()}{error.msg[1:]} (line {error.lineno}, column {error.colno})"
    except (RecursionError, ValueError):
        return "is nested too deeply, or has a number of too many digits"
    return None


def _place(text: str, path: str) -> str | None:
    """Where the part at *path* begins in JSON; of a part that is missing, where its owner does."""
    try:
        at, rest = _skip(text, 0), path
        while rest and (member := _member(text, at, rest)) is not None:
            at, rest = member
        _DECODER.raw_decode(text, at)
    except (ValueError, IndexError, RecursionError):
        return None
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return f"line {line}, column {column}"


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _member(text: str, at: int, path: str) -> tuple[int, str] | None:
    """Where the part begins that the first step of *path* leads to, and the steps behind it."""
    found = None
    for steps, begin in _parts(text, at):
        for first in steps:
            rest = path[len(first) :]
            if path.startswith(first) and rest[:1] in ("", ".", "["):
                found = begin, rest  # of several with one name, the last counts
    return found


def _parts(text: str, at: int) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the steps that may lead to each part of the object or list at *at*, and where it begins."""
    opening, number = text[at], count()
    at = _skip(text, at + 1)
    while opening in "{[" and text[at] not in "}]":
        steps: tuple[str, ...] = (f"[{next(number)}]",)
        if opening == "{":
            key, at = scanstring(text, at + 1)
            steps, at = (f".{key}", step(key)), _skip(text, _skip(text, at) + 1)  # behind the colon
        yield steps, at
        _, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        at = _skip(text, at + 1) if text[at] == "," else at
