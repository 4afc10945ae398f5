"""
Where in a URI something stands: sets of positions, each a whole number with one bit a position.

Python adds and shifts such numbers many positions at a time, so that no URI, however it is made, takes
long. The end of the URI is bit 0, and its first character the highest.
"""

import re
from functools import cached_property, lru_cache
from typing import Final

__all__ = ["MAX_URI_LENGTH", "ScannedURI"]

#: Characters of a URI that is looked up; browsers and servers stop at a fraction of that.
MAX_URI_LENGTH: Final = 65_536

_BAD_ESCAPE: Final = re.compile("%(?![0-9A-Fa-f]{2})")

#: What stands in no URI that is typed or copied.
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")

_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")


@lru_cache(maxsize=1024)
def _bits_of(characters: str) -> bytes:
    """Return the table that makes a 1 of each of *characters*, and a 0 of all others."""
    return bytes(49 if chr(code) in characters else 48 for code in range(256))


class ScannedURI:
    """
    A URI that is held against many templates.

    Args:
        text:
            The URI, as a client spells it.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        # No template has other characters than ASCII, so it does not matter which they are.
        self._bytes = _NOT_ASCII.sub("\x80", text).encode("latin-1")
        self._found: dict[str, int] = {}

    @cached_property
    def has_bad_escape(self) -> bool:
        """
        Whether there is a percent sign that begins no escape.
        """
        return _BAD_ESCAPE.search(self.text) is not None

    @cached_property
    def has_control(self) -> bool:
        """
        Whether there are control characters.
        """
        return _CONTROL.search(self.text) is not None

    @property
    def characters(self) -> int:
        """
        Every position but the end.
        """
        return ((1 << len(self.text)) - 1) << 1

    def any_of(self, characters: str) -> int:
        """
        Return where one of *characters* stands.
        """
        if characters not in self._found:
            bits = self._bytes.translate(_bits_of(characters))
            self._found[characters] = int(bits, 2) << 1 if bits else 0
        return self._found[characters]

    def literal(self, text: str) -> int:
        """
        Return where *text* begins.
        """
        if text not in self.text:
            return 0
        found = self.any_of(text[0])
        for behind, character in enumerate(text[1:], start=1):
            found &= self.any_of(character) << behind
        return found

    def without(self, stops: str, ends: int) -> int:
        """
        Return where a stretch may begin that ends where *ends* says and holds none of *stops*.
        """
        allowed = self.characters & ~self.any_of(stops)
        # The position before each end; adding them carries a bit through all that is allowed before.
        last = (ends << 1) & allowed
        return ends | ((((allowed + last) ^ allowed) | last) & allowed)

    def holds(self, positions: int, at: int) -> bool:
        """
        Return whether *at*, counted from the beginning, is one of *positions*.
        """
        return bool(positions >> (len(self.text) - at) & 1)

    def first(self, positions: int, at: int) -> int:
        """
        Return the first of *positions* that is not before *at*, both counted from the beginning.
        """
        left = len(self.text) - at
        return len(self.text) + 1 - (positions & ((2 << left) - 1)).bit_length()
