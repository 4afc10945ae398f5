"""What browsers fetch of a page: media of conversations, and texts to copy, kept in memory until they ask."""

from collections import OrderedDict
from hashlib import sha256
from threading import Lock
from typing import Final, Generic, Literal, TypeAlias, TypeVar

from starlette.responses import Response

from promptkit.language.media_checks import AUDIO_TYPES, IMAGE_TYPES

T = TypeVar("T")

#: How browsers show bytes. A file can only be saved.
MediaKind: TypeAlias = Literal["image", "audio", "file"]

#: How much is kept; the oldest is dropped first.
_MOST_BYTES: Final = 256 * 1024 * 1024

#: Whatever a document holds, nothing in it may run or be fetched.
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

#: What browsers show as images. They run nothing in an image, SVG among them.
_IMAGES: Final = IMAGE_TYPES | {"image/svg+xml", "image/bmp", "image/avif"}


def kind_of(mime_type: str) -> MediaKind:
    """Return how browsers show bytes of a type."""
    return "image" if mime_type in _IMAGES else "audio" if mime_type in AUDIO_TYPES else "file"


class BoundedStore(Generic[T]):
    """
    Values by a key, up to a size: those that were used longest ago are dropped. Any thread may use it.

    Args:
        most:
            How large they may be together. One that is larger is kept alone.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._values: OrderedDict[str, tuple[T, int]] = OrderedDict()
        self._lock = Lock()

    def put(self, key: str, value: T, size: int) -> None:
        """Keep a value of a size. What has the key already stays."""
        with self._lock:
            if key not in self._values:
                self._values[key] = value, size
                self._size += size
            self._values.move_to_end(key)
            while self._size > self._most and len(self._values) > 1:
                _, (_, dropped) = self._values.popitem(last=False)
                self._size -= dropped

    def get(self, key: str) -> T | None:
        """Return a value; None if it was dropped, or never was there."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]


class MediaStore:
    """Bytes by their digest, so that what is shown again has the same address. Any thread may use it."""

    def __init__(self) -> None:
        self._store: BoundedStore[tuple[bytes, str]] = BoundedStore(_MOST_BYTES)

    def keep(self, data: bytes, mime_type: str) -> str:
        """Keep bytes, and return their address."""
        digest = sha256(mime_type.encode(errors="replace") + b"\0" + data).hexdigest()[:32]
        self._store.put(digest, (data, mime_type), len(data))
        return f"/media/{digest}"

    def keep_text(self, text: str) -> str:
        """Keep a text to copy, and return its address."""
        return self.keep(text.encode(errors="replace"), "text/plain")

    def response(self, digest: str) -> Response:
        """Return what a browser is sent for an address: to show if it is media, else to save."""
        found = self._store.get(digest)
        if found is None:
            return Response("This is not kept any more. Render the prompt again.", 404)
        data, mime_type = found
        headers = {"content-security-policy": _POLICY, "cache-control": "private, max-age=3600"}
        if kind_of(mime_type) == "file":
            headers["content-disposition"] = "attachment"
            mime_type = "application/octet-stream"
        return Response(data, media_type=mime_type, headers=headers)
