"""Digests: whether bytes are what they were."""

from collections.abc import Iterable

try:  # alone it is there at once; hashlib brings all of OpenSSL
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

__all__ = ["digest", "digest_of_lines"]


def digest(data: bytes, *, key: bytes = b"") -> bytes:
    """
    Return the BLAKE2b digest of *data*, 16 bytes.

    Args:
        data:
            Any number of bytes.

        key:
            Up to 64 bytes without which nobody can tell what digest something has.
    """
    return blake2b(data, digest_size=16, key=key).digest()


def digest_of_lines(lines: Iterable[bytes]) -> bytes:
    """
    Return the digest of *lines*, each with a line feed. They are never together in memory.
    """
    hashed = blake2b(digest_size=16)
    for line in lines:
        hashed.update(line)
        hashed.update(b"\n")
    return hashed.digest()
