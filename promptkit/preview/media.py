"""Media in the preview: files that a form uploads, and media that a page shows."""

import re
from base64 import b64encode
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection, Sequence
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
from promptkit.language.media import Media
from promptkit.language.media_checks import AUDIO_TYPES, IMAGE_TYPES, human_size
from promptkit.preview.controls import value_of

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


#: Bytes of the files of one field. forms.js looks at them before it sends any.
MAX_UPLOAD_SIZE: Final = 4 * 1024 * 1024

#: Bytes of a whole form: some files at once, and texts.
_MAX_FORM_SIZE: Final = 8 * MAX_UPLOAD_SIZE

#: How much is kept, in characters.
_MOST_KEPT: Final = 256 * 1024 * 1024

_TOO_LARGE: Final = f"is too large: the preview takes files of at most {MAX_UPLOAD_SIZE // 1024**2} MiB"
_FORGOTTEN: Final = "is not kept any more: choose it again"
_FORM_TOO_LARGE: Final = (
    f"What was sent is too large: the preview takes {_MAX_FORM_SIZE // 1024**2} MiB at once, "
    f"and files of at most {MAX_UPLOAD_SIZE // 1024**2} MiB."
)


@attrs.frozen
class Upload:
    """
    What the files of one field come to, or a value of another kind that no control can show.

    Args:
        value:
            What a client would send; None if it cannot be sent.

        files:
            What the files are called; none for a value that was read from none.

        size:
            The bytes of the files, or of the value.

        refusal:
            Why it cannot be sent, as a predicate of the argument's name; None if it can.

        digest:
            What the form holds in its place; ``""`` until it is kept.
    """

    value: str | None
    files: tuple[str, ...] = ()
    size: int = 0
    refusal: str | None = None
    digest: str = ""

    @property
    def filename(self) -> str:
        """What the files are called, in one line."""
        return ", ".join(self.files)

    def __str__(self) -> str:
        return f"{self.filename}, {human_size(self.size)}" if self.files else human_size(self.size)


class Uploads:
    """Uploads by their digest. Any thread may use it."""

    def __init__(self) -> None:
        self._store: BoundedStore[Upload] = BoundedStore(_MOST_KEPT)

    def keep(self, upload: Upload) -> Upload:
        """Keep an upload, and return it with its digest."""
        parts = (*upload.files, str(upload.size), upload.refusal or "", upload.value or "")
        digest = sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()[:32]
        upload = attrs.evolve(upload, digest=digest)
        self._store.put(digest, upload, len(upload.value or "") + 1024)
        return upload

    def keep_value(self, argument: Argument, value: str) -> Upload:
        """Keep a value that was not read from a file."""
        found = value_of(argument, value) if argument.takes_bytes else None
        if found is None:
            found = value.encode(errors="surrogatepass")
        several = found if isinstance(found, Collection) and not isinstance(found, bytes) else [found]
        data = (each.data if isinstance(each, Media) else each for each in several)
        return self.keep(Upload(value, size=sum(map(len, data))))

    def of(self, arguments: Arguments, form: Any) -> dict[str, Upload]:
        """
        Return what a form says of uploads, by the argument that they fill.

        Args:
            arguments:
                The arguments of a prompt.

            form:
                Starlette's ``FormData`` or ``QueryParams``.
        """
        found = ((argument.name, self._sent(argument, form)) for argument in arguments.ordered)
        return {name: upload for name, upload in found if upload is not None}

    def _sent(self, argument: Argument, form: Any) -> Upload | None:
        """A file counts first, then one that forms.js has not sent, then one that was kept."""
        if files := _files(form, argument.name):
            return self.keep(_read(argument, files))
        if isinstance(oversized := form.get(f"{argument.name}.oversized"), str):
            size, _, filename = oversized.partition(" ")
            return self.keep(_oversized((filename,), number_in(size)))
        if isinstance(digest := form.get(f"{argument.name}.upload"), str):
            return self._store.get(digest) or Upload(None, refusal=_FORGOTTEN, digest=digest)
        return None


@asynccontextmanager
async def form_of(request: Request) -> AsyncIterator[FormData]:
    """
    Yield the form that a request has sent.

    Raises:
        HTTPException: If it is too large, or does not say its size: then nothing of it is read.
    """
    length = request.headers.get("content-length")
    if length is None or number_in(length) > _MAX_FORM_SIZE:
        raise HTTPException(413, _FORM_TOO_LARGE, {"connection": "close"})
    async with request.form(max_part_size=2 * MAX_UPLOAD_SIZE) as form:
        yield form


def number_in(text: object) -> int:
    """Return the number that a browser has sent; 0 if it is none."""
    return int(text) if isinstance(text, str) and re.fullmatch(r"-?[0-9]{1,15}", text) else 0


def _files(form: Any, name: str) -> list[UploadFile]:
    # A field without a file is sent as a file without a name.
    sent = form.getlist(f"{name}.file")
    return [file for file in sent if isinstance(file, UploadFile) and file.filename]


def _read(argument: Argument, files: Sequence[UploadFile]) -> Upload:
    names = tuple(str(file.filename) for file in files)
    size = sum(file.size or 0 for file in files)
    if size > MAX_UPLOAD_SIZE:
        return _oversized(names, size)
    data = [file.file.read() for file in files]
    if argument.takes_bytes:
        return Upload("\n".join(b64encode(each).decode() for each in data), names, size)
    try:
        text = "\n".join(each.decode("utf-8-sig") for each in data)
    except UnicodeDecodeError as error:
        filename = ", ".join(names)
        reason = f"cannot be read from {filename!r}: it is no UTF-8 text (byte {error.start + 1})"
        return Upload(None, names, size, reason)
    return Upload(text.replace("\r\n", "\n").replace("\r", "\n"), names, size)


def _oversized(names: tuple[str, ...], size: int) -> Upload:
    return Upload(None, names, size, _TOO_LARGE)
