"""
Sets of positions in a URI, each a whole number with one bit per position.

Python adds and shifts such numbers many bits at a time, so even a hostile URI is matched quickly. Bit 0
is the end of the URI, and the highest bit its first character.
"""

import re
from functools import cached_property, lru_cache
from typing import Final

__all__ = ["MAX_URI_LENGTH", "ScannedURI"]

#: Characters. Browsers and servers accept far shorter URIs only.
MAX_URI_LENGTH: Final = 65_536

_BAD_ESCAPE: Final = re.compile("%(?![0-9A-Fa-f]{2})")

#: Characters that no URI has that is typed or copied.
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")

_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")


@lru_cache(maxsize=1024)
def _bits_of(characters: str) -> bytes:
    """A translation table that turns *characters* into 1, and all others into 0."""
    return bytes(49 if chr(code) in characters else 48 for code in range(256))


class ScannedURI:
    """
    A URI that is matched against many templates.

    Args:
        text:
            The URI, as a client spells it.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        # Templates are ASCII, so all other characters are alike.
        self._bytes = _NOT_ASCII.sub("\x80", text).encode("latin-1")
        self._found: dict[str, int] = {}

    @cached_property
    def has_bad_escape(self) -> bool:
        """Whether a percent sign does not begin an escape."""
        return _BAD_ESCAPE.search(self.text) is not None

    @cached_property
    def has_control(self) -> bool:
        """Whether there are control characters."""
        return _CONTROL.search(self.text) is not None

    @property
    def characters(self) -> int:
        """All positions but the end."""
        return ((1 << len(self.text)) - 1) << 1

    def any_of(self, characters: str) -> int:
        """Positions of any of *characters*."""
        if characters not in self._found:
            bits = self._bytes.translate(_bits_of(characters))
            self._found[characters] = int(bits, 2) << 1 if bits else 0
        return self._found[characters]

    def literal(self, text: str) -> int:
        """Positions where *text* begins."""
        if text not in self.text:
            return 0
        found = self.any_of(text[0])
        for behind, character in enumerate(text[1:], start=1):
            found &= self.any_of(character) << behind
        return found

    def without(self, stops: str, ends: int) -> int:
        """Positions where text without any of *stops* can begin that ends at one of *ends*."""
        allowed = self.characters & ~self.any_of(stops)
        # The position before each end. The addition carries through all allowed positions before that.
        last = (ends << 1) & allowed
        return ends | ((((allowed + last) ^ allowed) | last) & allowed)

    def holds(self, positions: int, at: int) -> bool:
        """Whether index *at* is one of *positions*."""
        return bool(positions >> (len(self.text) - at) & 1)

    def first(self, positions: int, at: int) -> int:
        """The index of the first of *positions* that is not before index *at*."""
        left = len(self.text) - at
        return len(self.text) + 1 - (positions & ((2 << left) - 1)).bit_length()
