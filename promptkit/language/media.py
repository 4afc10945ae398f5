"""Images, audio and icons; checks of their types, sizes and completeness; and rendering of figures."""

from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, Protocol, Self, TypeAlias, Unpack, final

import attrs

from promptkit.errors.exceptions import MediaError, UnsendableMediaError
from promptkit.language.content import Annotations, Content, human_size
from promptkit.language.files import (
    MAX_FILE_BYTES,
    read_authors_file,
    read_below,
    source_folder,
    too_large_message,
)
from promptkit.language.validation import checked_sizes, checked_theme, checked_uri, optional_text

#: Types that the models of current clients accept. Other types are rejected here, where the author can fix
#: the problem, because they can make every later turn of a client's session fail.
IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
AUDIO_TYPES: Final = frozenset(
    {"audio/wav", "audio/mpeg", "audio/ogg", "audio/flac", "audio/mp4", "audio/aac"}
)

#: 5 MiB in base64: the lowest limit among widely used model APIs.
MAX_IMAGE_BYTES: Final = 5 * 1024 * 1024 // 4 * 3
MAX_AUDIO_BYTES: Final = MAX_FILE_BYTES

#: The longest allowed side in pixels. The same API rejects larger images, and then every later turn as well.
MAX_IMAGE_SIDE: Final = 8000

#: Registered names of MIME types, keyed by the other names that authors or the detection library use.
_CANONICAL: Final = {
    "image/jpg": "image/jpeg",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "audio/x-flac": "audio/flac",
    "audio/mp3": "audio/mpeg",
    "audio/m4a": "audio/mp4",
    "audio/x-m4a": "audio/mp4",
    "audio/opus": "audio/ogg",
}


class _SupportsReprPng(Protocol):
    """An object with the method that notebooks call to display it, such as a PIL image."""

    def _repr_png_(self) -> bytes | None: ...


class _SupportsSavefig(Protocol):
    """A figure of matplotlib, or of a library that is based on it."""

    def savefig(self, *args: Any, **kwargs: Any) -> Any: ...


#: An object that can be rendered as PNG.
Renderable: TypeAlias = _SupportsReprPng | _SupportsSavefig


def render_png(value: Any) -> bytes | None:
    """Render *value* as PNG if it has ``_repr_png_`` or ``savefig``; otherwise return None."""
    if isinstance(value, type):
        return None
    if callable(show := getattr(value, "_repr_png_", None)):
        data = show()
        return data if isinstance(data, bytes) else None
    if callable(savefig := getattr(value, "savefig", None)):
        from io import BytesIO

        buffer = BytesIO()
        savefig(buffer, format="png")
        return buffer.getvalue()
    return None


def _convert_to_bytes(value: bytes | bytearray | memoryview | Renderable) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str | Path):
        msg = f"{str(value)[:40]!r} is not bytes: use from_path(...) to read a file"
        raise TypeError(msg)
    if (png := render_png(value)) is not None:
        return png
    msg = (
        "expected bytes (or, for an Image, an object that can be rendered as PNG), not "
        f"{type(value).__name__}"
    )
    raise TypeError(msg)


@attrs.frozen(repr=False, eq=False)
class Media(Content):
    """The base class of `Image` and `Audio`, which document the fields."""

    _types: ClassVar[frozenset[str]]
    _limit: ClassVar[int]

    data: bytes = attrs.field(converter=_convert_to_bytes)
    mime_type: str | None = attrs.field(default=None, validator=optional_text)

    def __attrs_post_init__(self) -> None:
        detected_type = checked_type(self.data, self.mime_type, self._types, self._limit)
        object.__setattr__(self, "mime_type", detected_type)

    def __str__(self) -> str:
        return summary(str(self.mime_type), self.data)

    @cached_property
    def base64(self) -> str:
        """The data in base64, encoded on first use."""
        from pybase64 import b64encode_as_string

        return b64encode_as_string(self.data)

    @classmethod
    def from_path(
        cls,
        path: str | Path,
        mime_type: str | None = None,
        *,
        root: str | Path | None = None,
        **annotations: Unpack[Annotations],
    ) -> Self:
        """
        Create an image or audio from a file.

        Args:
            path:
                The path of the file, relative to the folder of the calling recipe. If any part of it comes
                from an argument, *root* is required for safety.

            mime_type:
                The expected MIME type. By default, it is detected from the bytes.

            root:
                The folder that *path* must stay in, relative to the recipe's folder. If it is given, *path*
                is relative to it. Always give it if any part of *path* comes from a client.

            **annotations:
                The ``audience``, ``priority`` and ``last_modified`` of `Content`.

        Returns:
            The image or audio.

        Raises:
            OSError: If the file cannot be read, and *root* is not given.

            MediaError: If *path* leaves *root* or is not a readable file there, or if the bytes
                cannot be sent. It is a `PromptError`: the client sees its message.

            TypeError: If an annotation has the wrong type.

            ValueError: If an annotation is invalid.
        """
        folder = source_folder(1)
        if root is None:
            data = read_authors_file(folder / path, cls._limit)
        else:
            data = read_below(path, folder / root, cls._limit)
        try:
            return cls(data, mime_type, **annotations)
        except MediaError as error:
            msg = f"{str(path)!r}: {error}"
            raise type(error)(msg) from None


@final
@attrs.frozen(repr=False, eq=False)
class Image(Media):
    """
    An image: PNG, JPEG, GIF or WebP. It also accepts the keyword arguments of `Content`.

    An image can be at most 3,932,160 bytes long (5 MiB in base64) and have at most 8,000 pixels per side.

    Args:
        data:
            The bytes of the whole file, or an object that can be rendered as PNG (a matplotlib
            figure, a PIL image). A string is never opened as a file: use `from_path` instead.

        mime_type:
            The expected MIME type. By default, it is detected from the bytes.

    Raises:
        TypeError: If *data* is neither bytes nor an object that can be rendered as PNG, or another argument
            has the wrong type.

        MediaError: If the bytes are empty, damaged or too large, have a format that clients
            reject, or are not of type *mime_type*.

        ValueError: If an annotation is invalid.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#image-content
    """

    _types = IMAGE_TYPES
    _limit = MAX_IMAGE_BYTES


@final
@attrs.frozen(repr=False, eq=False)
class Audio(Media):
    """
    Audio of at most 20 MiB: WAV, MP3, Ogg, FLAC, MP4 or AAC.

    It also accepts the keyword arguments of `Content`.

    Args:
        data:
            The bytes of the whole file.

        mime_type:
            The expected MIME type. By default, it is detected from the bytes.

    Raises:
        TypeError: If *data* is not bytes, or another argument has the wrong type.

        MediaError: If the bytes are empty or too large, have a format that clients reject, or are not
            of type *mime_type*.

        ValueError: If an annotation is invalid.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#audio-content
    """

    _types = AUDIO_TYPES
    _limit = MAX_AUDIO_BYTES


@attrs.frozen
class Icon:
    """
    An icon that a client can show next to the name of a prompt or resource.

    Args:
        src:
            The icon's URI, usually with the scheme ``https:`` or ``data:``.

        mime_type:
            The MIME type; None to rely on the response from *src*.

        sizes:
            One or more sizes at which the icon can be used: a width and a height in pixels, as in
            ``"48x48"``, or ``"any"``.

        theme:
            The theme for which the icon is designed: ``"light"`` or ``"dark"``; None for both.

    Raises:
        TypeError: If *src* or *mime_type* is not a string.

        ValueError: If *src* is not an absolute URI, a size has another format, or *theme* is
            unknown.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/basic#icons
    """

    src: str = attrs.field(converter=checked_uri)
    mime_type: str | None = attrs.field(default=None, kw_only=True, validator=optional_text)
    sizes: tuple[str, ...] = attrs.field(default=(), kw_only=True, converter=checked_sizes)
    theme: Literal["light", "dark"] | None = attrs.field(default=None, kw_only=True, converter=checked_theme)


def sniff(data: bytes) -> str | None:
    """Detect the MIME type of *data* from its first bytes. Return None if it is unknown."""
    import filetype  # type: ignore[import-untyped]  # imported on first use

    mime: str | None = filetype.guess_mime(data)
    return _CANONICAL.get(mime, mime) if mime else None


def canonical_type(mime_type: str) -> str:
    """Return the registered name for a MIME type, without parameters."""
    name = mime_type.partition(";")[0].strip().lower()
    return _CANONICAL.get(name, name)


def summary(mime_type: str, data: bytes) -> str:
    """Return the text that represents bytes in a transcript: ``<image/png 20 kB sha256:0a1b2c3d>``."""
    from hashlib import sha256

    return f"<{mime_type} {human_size(len(data))} sha256:{sha256(data).hexdigest()[:8]}>"


def checked_type(data: bytes, declared: str | None, accepted: frozenset[str], limit: int) -> str:
    """
    Return the MIME type of *data*, the content of a file, if clients accept it.

    Raises:
        UnsendableMediaError: If *data* is empty, damaged or longer than *limit* bytes, or if its type is not
            one of the *accepted* types or differs from the *declared* type.
    """
    if not data:
        msg = "the data is empty: pass the bytes of the whole file"
        raise UnsendableMediaError(msg)
    if len(data) > limit:
        raise UnsendableMediaError(too_large_message(len(data), limit))
    detected = sniff(data)
    if detected not in accepted:
        types = ", ".join(sorted(accepted))
        msg = (
            f"the bytes are {detected or 'not in a known format'}, but clients accept only {types}: convert "
            "them first"
        )
        raise UnsendableMediaError(msg)
    if declared is not None and canonical_type(declared) != detected:
        msg = f"the bytes are {detected}, not {declared}: omit the type, or correct it"
        raise UnsendableMediaError(msg)
    if detected in IMAGE_TYPES:
        _check_image(data, detected)
    return detected


def _check_image(data: bytes, mime_type: str) -> None:
    """
    Raise UnsendableMediaError unless an image is complete and its width and height are within the limit.
    """
    from io import BytesIO

    import imagesize  # type: ignore[import-untyped]  # imported on first use

    try:
        sides = imagesize.get(BytesIO(data))
    except Exception as error:  # noqa: BLE001 (parsing untrusted bytes can raise anything)
        msg = f"the image is damaged ({error}): save it again"
        raise UnsendableMediaError(msg) from None
    if min(sides) < 1 or not _has_end(data, mime_type):
        msg = "the image is damaged or truncated: save it again"
        raise UnsendableMediaError(msg)
    if max(sides) > MAX_IMAGE_SIDE:
        width, height = sides
        msg = (
            f"the image has {width:,} by {height:,} pixels, but clients accept at most {MAX_IMAGE_SIDE:,} "
            "per side: scale it down first"
        )
        raise UnsendableMediaError(msg)


#: The markers at the end of an image. Other data can follow them in the file.
_END_MARKERS: Final = {"image/png": b"IEND", "image/jpeg": b"\xff\xd9", "image/gif": b"\0;"}


def _has_end(data: bytes, mime_type: str) -> bool:
    if mime_type == "image/webp":
        return len(data) >= 8 + int.from_bytes(data[4:8], "little")
    return data.rfind(_END_MARKERS[mime_type]) >= 0  # from the right, because it is usually near the end
