"""Media in the preview: uploaded files, and media that a page shows."""

import re
from base64 import b64encode
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from threading import Lock
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

import attrs
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from promptkit.catalog.arguments import Argument, Arguments
from promptkit.language.content import human_size
from promptkit.language.media import AUDIO_TYPES, IMAGE_TYPES

T = TypeVar("T")

#: How browsers show bytes: as an ``image``, as ``audio``, or as a ``file``, which users can only download.
MediaKind: TypeAlias = Literal["image", "audio", "file"]

#: Maximum size of all stored media; the oldest are evicted first.
_MAX_MEDIA_BYTES: Final = 256 * 1024 * 1024

#: A content security policy that prevents documents from running or fetching anything.
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

#: Types that browsers show as images. Images, even SVG images, cannot run scripts.
_IMAGES: Final = IMAGE_TYPES | {"image/svg+xml", "image/bmp", "image/avif"}


def classify_media(mime_type: str) -> MediaKind:
    """Return how browsers show bytes of a MIME type."""
    return "image" if mime_type in _IMAGES else "audio" if mime_type in AUDIO_TYPES else "file"


class BoundedStore(Generic[T]):
    """
    A thread-safe cache with a size limit, which evicts the least recently used values.

    Args:
        max_size:
            The maximum total size. A single larger value is still stored.
    """

    def __init__(self, max_size: int) -> None:
        self._max_size = max_size
        self._size = 0
        self._values: OrderedDict[str, tuple[T, int]] = OrderedDict()
        self._lock = Lock()

    def put(self, key: str, value: T, size: int) -> None:
        """Store a value of the given size, unless there is already a value for the key."""
        with self._lock:
            if key not in self._values:
                self._values[key] = value, size
                self._size += size
            self._values.move_to_end(key)
            while self._size > self._max_size and len(self._values) > 1:
                _, (_, evicted_size) = self._values.popitem(last=False)
                self._size -= evicted_size

    def get(self, key: str) -> T | None:
        """Return a value, or None if it was evicted or never stored."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]


class MediaStore:
    """A thread-safe store of bytes, keyed by digest so that the same content always has the same URL."""

    def __init__(self) -> None:
        self._store: BoundedStore[tuple[bytes, str]] = BoundedStore(_MAX_MEDIA_BYTES)

    def store(self, data: bytes, mime_type: str) -> str:
        """Store bytes, and return their URL."""
        digest = sha256(mime_type.encode(errors="replace") + b"\0" + data).hexdigest()[:32]
        self._store.put(digest, (data, mime_type), len(data))
        return f"/media/{digest}"

    def store_text(self, text: str) -> str:
        """Store text that users can copy, and return its URL."""
        return self.store(text.encode(errors="replace"), "text/plain")

    def build_response(self, digest: str) -> Response:
        """Return a response with the content for a digest. Browsers show media, and download other files."""
        entry = self._store.get(digest)
        if entry is None:
            return Response("This rendering has expired. Render the prompt again.", 404)
        data, mime_type = entry
        headers = {"content-security-policy": _POLICY, "cache-control": "private, max-age=3600"}
        if classify_media(mime_type) == "file":
            headers["content-disposition"] = "attachment"
            mime_type = "application/octet-stream"
        return Response(data, media_type=mime_type, headers=headers)


#: Maximum total size of the files in one field, in bytes. forms.js checks the size before it sends files.
MAX_UPLOAD_SIZE: Final = 4 * 1024 * 1024

#: Maximum size of a whole form with several files and text, in bytes.
_MAX_FORM_SIZE: Final = 8 * MAX_UPLOAD_SIZE

#: Maximum total size of all stored uploads, in characters.
_MAX_UPLOAD_CHARS: Final = 256 * 1024 * 1024

_TOO_LARGE: Final = f"is too large: the preview accepts files of up to {MAX_UPLOAD_SIZE // 1024**2} MiB"
_EVICTED: Final = "has expired: choose the file again"
_FORM_TOO_LARGE: Final = (
    f"The form is too large: the preview accepts {_MAX_FORM_SIZE // 1024**2} MiB per request, "
    f"and files of up to {MAX_UPLOAD_SIZE // 1024**2} MiB."
)


@attrs.frozen
class Upload:
    """
    The files uploaded to one field, or a value that no control can show.

    Args:
        value:
            The value that a client would send, or None if it cannot be sent.

        files:
            The names of the files. Empty for a value that was not read from a file.

        size:
            The total size of the files, or the size of the value as it is sent, in bytes.

        error:
            Why the value cannot be sent, as a phrase whose subject is the argument. None if it can be sent.

        digest:
            The digest that the form contains instead of the value. ``""`` until the upload is stored.
    """

    value: str | None
    files: tuple[str, ...] = ()
    size: int = 0
    error: str | None = None
    digest: str = ""

    @property
    def filename(self) -> str:
        """The names of the files, on one line."""
        return ", ".join(self.files)

    def __str__(self) -> str:
        return f"{self.filename}, {human_size(self.size)}" if self.files else human_size(self.size)


class UploadStore:
    """A thread-safe store of uploads, keyed by digest."""

    def __init__(self) -> None:
        self._store: BoundedStore[Upload] = BoundedStore(_MAX_UPLOAD_CHARS)

    def store(self, upload: Upload) -> Upload:
        """Store an upload, and return it with its digest."""
        parts = (*upload.files, str(upload.size), upload.error or "", upload.value or "")
        digest = sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()[:32]
        upload = attrs.evolve(upload, digest=digest)
        self._store.put(digest, upload, len(upload.value or "") + 1024)
        return upload

    def store_value(self, value: str) -> Upload:
        """Store a value that was not read from a file."""
        return self.store(Upload(value, size=len(value.encode(errors="surrogatepass"))))

    def collect(self, arguments: Arguments, form: Any) -> dict[str, Upload]:
        """
        Return the uploads in a form, keyed by argument name.

        Args:
            arguments:
                The arguments of a prompt.

            form:
                Starlette's ``FormData`` or ``QueryParams``.
        """
        uploads = ((argument.name, self._find_upload(argument, form)) for argument in arguments.ordered)
        return {name: upload for name, upload in uploads if upload is not None}

    def _find_upload(self, argument: Argument, form: Any) -> Upload | None:
        """
        Return the upload for an argument, or None if there is none.

        The upload contains the content of the files, an error if they are too large, or a stored value.
        """
        files = form.getlist(f"{argument.name}.file")
        # Browsers send an empty file field as a file without a name.
        if named := [file for file in files if isinstance(file, UploadFile) and file.filename]:
            return self.store(_read_files(argument, named))
        if isinstance(oversized := form.get(f"{argument.name}.oversized"), str):
            size, _, filename = oversized.partition(" ")
            return self.store(_build_oversized((filename,), parse_number(size)))
        if isinstance(digest := form.get(f"{argument.name}.upload"), str):
            return self._store.get(digest) or Upload(None, error=_EVICTED, digest=digest)
        return None


@asynccontextmanager
async def open_form(request: Request) -> AsyncIterator[FormData]:
    """
    Yield the form of a request.

    Raises:
        HTTPException: If the form is too large, or if the request has no Content-Length. The form is then
            not read.
    """
    length = request.headers.get("content-length")
    if length is None or parse_number(length) > _MAX_FORM_SIZE:
        raise HTTPException(413, _FORM_TOO_LARGE, {"connection": "close"})
    async with request.form(max_part_size=2 * MAX_UPLOAD_SIZE) as form:
        yield form


def parse_number(text: object) -> int:
    """Return the number that a browser sent, or 0 if it is invalid."""
    return int(text) if isinstance(text, str) and re.fullmatch(r"-?[0-9]{1,15}", text) else 0


def _read_files(argument: Argument, files: Sequence[UploadFile]) -> Upload:
    names = tuple(str(file.filename) for file in files)
    size = sum(file.size or 0 for file in files)
    if size > MAX_UPLOAD_SIZE:
        return _build_oversized(names, size)
    data = [file.file.read() for file in files]
    if argument.takes_bytes:
        return Upload("\n".join(b64encode(content).decode() for content in data), names, size)
    try:
        text = "\n".join(content.decode("utf-8-sig") for content in data)
    except UnicodeDecodeError as error:
        filename = ", ".join(names)
        reason = f"cannot be read from {filename!r}: it is not UTF-8 text (byte {error.start + 1})"
        return Upload(None, names, size, reason)
    return Upload(text.replace("\r\n", "\n").replace("\r", "\n"), names, size)


def _build_oversized(names: tuple[str, ...], size: int) -> Upload:
    return Upload(None, names, size, _TOO_LARGE)
