"""Percent-encoding (RFC 3986), as in ``%41``."""

from typing import Final
from urllib.parse import unquote_to_bytes

__all__ = ["unescaped"]

#: How many characters are decoded at a time: each escape needs a hundred bytes of memory for that.
_PIECE_LENGTH: Final = 1 << 14


def unescaped(text: str) -> bytes:
    """Return *text* as bytes, with each escape decoded."""
    if len(text) <= _PIECE_LENGTH:
        return unquote_to_bytes(text)
    found, end = [], 0
    while piece := text[end : end + _PIECE_LENGTH]:
        cut = piece.rfind("%", -2)  # an escape that begins here ends in the next piece
        if cut > 0 and end + _PIECE_LENGTH < len(text):
            piece = piece[:cut]
        end += len(piece)
        found.append(unquote_to_bytes(piece))
    return b"".join(found)
