"""The image for a prompt: a PNG file that contains noise."""

import random
import struct
import zlib
from pathlib import Path

#: The width and height in pixels. With one byte per pixel, the file is slightly larger than 1 MiB.
SIDE = 1024


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def draw(side: int) -> bytes:
    """
    Return a gray, square PNG with uncompressed pixels. Every call returns the same image.
    """
    noise = random.Random(side)  # noqa: S311 (the noise must be the same in every run)
    rows = b"".join(b"\0" + noise.randbytes(side) for _ in range(side))
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    chunks = _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows, 0)) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def write(folder: Path) -> None:
    """
    Write the image into *folder*.
    """
    (folder / "picture.png").write_bytes(draw(SIDE))
