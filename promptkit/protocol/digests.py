"""BLAKE2b digests, 16 bytes long."""

from collections.abc import Iterable

try:  # the C module alone loads at once, while hashlib brings in all of OpenSSL
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

__all__ = ["digest", "digest_of_lines"]


def digest(data: bytes, *, key: bytes = b"") -> bytes:
    """
    Return the digest of *data*.

    With a secret *key* of up to 64 bytes, nobody else can compute the digest of what they guess.
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
