"""How many values JSON holds, and how deep it is nested, found without decoding it."""

from collections.abc import Iterator
from itertools import accumulate
from typing import Final

__all__ = ["extent", "holds_more"]

#: Bytes that are scanned at once. Split at its quotation marks, a piece may take many times its size.
_PIECE_SIZE: Final = 1 << 15

#: How each bracket changes the depth, as a signed byte; and all bytes that are not brackets.
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[{]}"))


def extent(json: bytes) -> Iterator[tuple[int, int]]:
    """
    Yield the depth of *json* and an upper bound of its number of values, after each piece of it.

    An empty list counts as if it held one value. For input that is not JSON, the figures mean nothing.
    """
    depth = deepest = values = 0
    inside = b""
    for piece in _pieces(json):
        parts = (inside + piece).split(b'"')  # every other part is a string, and the last may not have ended
        inside = b"" if len(parts) % 2 else b'"'
        signs = b"".join(parts[::2])
        brackets = signs.translate(_STEPS, _NO_BRACKETS)
        depths = list(accumulate(memoryview(brackets).cast("b"), initial=depth))
        depth, deepest = depths[-1], max(deepest, *depths)
        values += brackets.count(1) + signs.count(b",")
        yield deepest, values


def _pieces(json: bytes) -> Iterator[bytes]:
    """Yield *json* in pieces, without backslashes and escaped quotation marks."""
    end = 0
    while piece := json[end : end + _PIECE_SIZE]:
        end += len(piece)
        if b"\\" in piece:
            if (len(piece) - len(piece.rstrip(b"\\"))) % 2:  # the character that it escapes comes next
                piece += json[end : end + 1]
                end += 1
            piece = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
        yield piece


def holds_more(json: str, most: int) -> bool:
    """Tell whether *json* holds more than *most* values."""
    if json.count(",") + json.count("[") + json.count("{") <= most:
        return False
    return any(values > most for _, values in extent(json.encode(errors="replace")))
