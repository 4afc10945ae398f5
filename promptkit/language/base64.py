"""Encoding: bytes in base64, as they go over the wire."""

from threading import Lock
from typing import Final

__all__ = ["base64_json", "base64_text"]

#: How many bytes of what was encoded last are kept.
_KEPT: Final = 16 * 1024 * 1024

#: What is smaller is encoded faster than it is found.
_SMALL: Final = 64 * 1024


class _Recent:
    """
    What was encoded last, by which bytes it was made from: an author's constants, most of all.

    The bytes themselves are the key, not what they hold, as looking at that takes longer than encoding.
    """

    def __init__(self) -> None:
        self._encoded: dict[int, tuple[bytes, bytes]] = {}
        self._size = 0
        self._lock = Lock()

    def get(self, data: bytes) -> bytes | None:
        """
        Return what *data* was encoded to, if it is kept.
        """
        with self._lock:
            found = self._encoded.pop(id(data), None)
            if found is None:
                return None
            self._encoded[id(data)] = found  # the last one now
            return found[1]

    def put(self, data: bytes, encoded: bytes) -> None:
        """
        Keep what *data* was encoded to, and the oldest no longer, if that is too much.
        """
        with self._lock:
            if id(data) in self._encoded:
                return
            self._encoded[id(data)] = data, encoded
            self._size += len(data) + len(encoded)
            while self._size > _KEPT:
                oldest = self._encoded.pop(next(iter(self._encoded)))
                self._size -= len(oldest[0]) + len(oldest[1])


_recent: Final = _Recent()


def base64_text(data: bytes) -> str:
    """
    Return *data* in base64.
    """
    from pybase64 import b64encode_as_string  # loaded by the first image

    return b64encode_as_string(data)


def base64_json(data: bytes) -> bytes:
    """
    Return *data* in base64, as a string of JSON.

    Nothing has to look for characters that need an escape, and the same bytes are encoded once as
    long as few others come between.
    """
    from pybase64 import b64encode

    if len(data) < _SMALL:
        return b'"%b"' % b64encode(data)
    if (encoded := _recent.get(data)) is None:
        encoded = b'"%b"' % b64encode(data)
        _recent.put(data, encoded)
    return encoded
