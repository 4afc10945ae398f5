"""Escapes: ``%41`` in a URI, as RFC 3986 has it."""

from typing import Final
from urllib.parse import unquote_to_bytes

__all__ = ["unescaped"]

#: How much is read at once, in characters: each escape takes a hundred bytes meanwhile.
_PIECE: Final = 1 << 14


def unescaped(text: str) -> bytes:
    """
    Return *text* with each escape replaced by the byte that it stands for.
    """
    if len(text) <= _PIECE:
        return unquote_to_bytes(text)
    found, end = [], 0
    while piece := text[end : end + _PIECE]:
        cut = piece.rfind("%", -2)  # what this begins ends in the next piece
        if cut > 0 and end + _PIECE < len(text):
            piece = piece[:cut]
        end += len(piece)
        found.append(unquote_to_bytes(piece))
    return b"".join(found)
