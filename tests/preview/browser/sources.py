"""Source text shared by the recipes of several test modules."""

#: Helper functions for recipes: they build a PNG image and a one-second WAV recording.
MEDIA = r"""
import io, struct, wave, zlib

def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

def png():
    header = struct.pack(">IIBBBBB", 3, 2, 8, 2, 0, 0, 0)
    pixels = zlib.compress(2 * (b"\0" + 3 * b"\xff\0\0"))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")

def wav():
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(8000 * b"\0\0")
    return buffer.getvalue()
"""
