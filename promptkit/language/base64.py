"""Encodes bytes in base64 for sending, with a cache for large ones."""

from threading import Lock
from typing import Final

__all__ = ["base64_json", "base64_text"]

#: The size of the cache: raw and encoded bytes together.
_MAX_CACHED_BYTES: Final = 16 * 1024 * 1024

#: Smaller values are faster to encode than to look up.
_MIN_CACHED_BYTES: Final = 64 * 1024


class _Cache:
    """The values encoded last, mostly authors' constants, by the id of the object."""

    # By id, because comparing or hashing the bytes would take longer than encoding them.

    def __init__(self) -> None:
        self._encoded: dict[int, tuple[bytes, bytes]] = {}
        self._size = 0
        self._lock = Lock()

    def get(self, data: bytes) -> bytes | None:
        with self._lock:
            found = self._encoded.pop(id(data), None)
            if found is None:
                return None
            self._encoded[id(data)] = found  # moved to the end, as the newest
            return found[1]

    def put(self, data: bytes, encoded: bytes) -> None:
        with self._lock:
            if id(data) in self._encoded:
                return
            self._encoded[id(data)] = data, encoded
            self._size += len(data) + len(encoded)
            while self._size > _MAX_CACHED_BYTES:
                oldest = self._encoded.pop(next(iter(self._encoded)))
                self._size -= len(oldest[0]) + len(oldest[1])


_cache: Final = _Cache()


def base64_text(data: bytes) -> str:
    """
    Return *data* in base64.
    """
    from pybase64 import b64encode_as_string  # not needed before the first image

    return b64encode_as_string(data)


def base64_json(data: bytes) -> bytes:
    """
    Return *data* in base64, as a JSON string. Large *data* is cached.
    """
    from pybase64 import b64encode

    if len(data) < _MIN_CACHED_BYTES:
        return b'"%b"' % b64encode(data)
    if (encoded := _cache.get(data)) is None:
        encoded = b'"%b"' % b64encode(data)
        _cache.put(data, encoded)
    return encoded
