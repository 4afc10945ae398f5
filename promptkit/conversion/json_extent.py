"""Extent: how many values JSON holds, and how deep they are nested, told without reading it."""

from collections.abc import Iterator
from itertools import accumulate
from typing import Final

__all__ = ["extent", "holds_more"]

#: How much is looked at at once, in bytes: cut at its quotation marks it may take many times its size.
_PIECE: Final = 1 << 15

#: How each bracket changes the depth, as a byte with a sign; and what is no bracket.
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[{]}"))


def extent(json: bytes) -> Iterator[tuple[int, int]]:
    """
    Yield how deep *json* is nested and how many values it holds at most, up to one place after another.

    An empty list counts for one, as if it held one. Of what is no JSON, anything may be told.
    """
    depth = deepest = values = 0
    inside = b""
    for piece in _pieces(json):
        parts = (inside + piece).split(b'"')  # every other is a text, the last of which may go on
        inside = b"" if len(parts) % 2 else b'"'
        signs = b"".join(parts[::2])
        brackets = signs.translate(_STEPS, _NO_BRACKETS)
        depths = list(accumulate(memoryview(brackets).cast("b"), initial=depth))
        depth, deepest = depths[-1], max(deepest, *depths)
        values += brackets.count(1) + signs.count(b",")
        yield deepest, values


def _pieces(json: bytes) -> Iterator[bytes]:
    """
    Yield *json* in pieces, without backslashes and quotation marks that are escaped.
    """
    end = 0
    while piece := json[end : end + _PIECE]:
        end += len(piece)
        if b"\\" in piece:
            if (len(piece) - len(piece.rstrip(b"\\"))) % 2:  # what it escapes is cut off
                piece += json[end : end + 1]
                end += 1
            piece = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
        yield piece


def holds_more(json: str, most: int) -> bool:
    """
    Return whether *json* holds more than *most* values.
    """
    if json.count(",") + json.count("[") + json.count("{") <= most:
        return False
    return any(values > most for _, values in extent(json.encode(errors="replace")))
