"""Media of conversations: kept for the browser that is about to ask for them."""

from hashlib import sha256
from typing import Final

from starlette.responses import Response

from promptkit.language.mime import AUDIO_TYPES, IMAGE_TYPES
from promptkit.preview.kept import Kept

__all__ = ["Media", "is_audio", "is_image"]

#: How much is kept; the oldest is dropped first.
_MOST_BYTES: Final = 256 * 1024 * 1024

#: Whatever a document holds, nothing in it may run or be fetched.
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


def is_image(mime_type: str) -> bool:
    """Whether browsers show it as an image. They run nothing in an image, SVG among them."""
    return mime_type in IMAGE_TYPES or mime_type in ("image/svg+xml", "image/bmp", "image/avif")


def is_audio(mime_type: str) -> bool:
    """Whether browsers play it."""
    return mime_type in AUDIO_TYPES


class Media:
    """Bytes by their digest, so that what is shown again has the same address. Any thread may use it."""

    def __init__(self) -> None:
        self._kept: Kept[tuple[bytes, str]] = Kept(_MOST_BYTES)

    def keep(self, data: bytes, mime_type: str) -> str:
        """Keep something, and return its address."""
        digest = sha256(mime_type.encode(errors="replace") + b"\0" + data).hexdigest()[:32]
        self._kept.keep(digest, (data, mime_type), len(data))
        return f"/media/{digest}"

    def keep_text(self, text: str) -> str:
        """Keep a text to copy, and return its address."""
        return self.keep(text.encode(errors="replace"), "text/plain")

    def response(self, digest: str) -> Response:
        """Return what a browser is sent for an address: to show if it is media, else to save."""
        kept = self._kept.get(digest)
        if kept is None:
            return Response("This is not kept any more. Render the prompt again.", 404)
        data, mime_type = kept
        headers = {"content-security-policy": _POLICY, "cache-control": "private, max-age=3600"}
        if not (is_image(mime_type) or is_audio(mime_type)):
            headers["content-disposition"] = "attachment"
            mime_type = "application/octet-stream"
        return Response(data, media_type=mime_type, headers=headers)
