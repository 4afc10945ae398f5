"""Digests: whether bytes are what they were."""

try:  # alone it is there at once; hashlib brings all of OpenSSL
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

__all__ = ["digest"]


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
