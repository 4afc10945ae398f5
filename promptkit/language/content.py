"""
Content blocks: what one message may hold, as frozen values.

They know nothing of any protocol revision; `promptkit.protocol.lowering` spells them.
"""

from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Self, TypedDict, Unpack, final

import attrs

from promptkit.errors.exceptions import MediaError
from promptkit.language.base64 import base64_text
from promptkit.language.mime import (
    AUDIO_TYPES,
    IMAGE_TYPES,
    MAX_AUDIO_BYTES,
    MAX_IMAGE_BYTES,
    Showable,
    checked_type,
    human_size,
    png_of,
    read_below,
    read_own,
    sniff,
    source_folder,
)
from promptkit.language.validation import (
    Role,
    checked_audience,
    checked_last_modified,
    checked_name,
    checked_priority,
    checked_size,
    checked_text,
    checked_uri,
    optional_text,
)

__all__ = [
    "Audio",
    "Content",
    "EmbeddedResource",
    "Image",
    "ResourceLink",
    "Role",
    "Text",
    "plain_text",
]


class Annotations(TypedDict, total=False):
    """
    The keyword arguments that every kind of content takes; `Content` explains them.
    """

    audience: Role | tuple[Role, ...] | list[Role]
    priority: float | None
    last_modified: datetime | str | None


def _short(value: object) -> str:
    """
    Return the repr of *value*, of bytes only their size.
    """
    return f"<{human_size(len(value))}>" if isinstance(value, bytes) else repr(value)


@attrs.frozen(repr=False)
class Content:
    """
    What every kind of content has: for whom it is, how much it matters, how old it is.

    Args:
        audience:
            Who should see it: ``"user"``, ``"assistant"``, or both.

        priority:
            From 0 (optional) to 1 (required).

        last_modified:
            When it was last changed: an aware `datetime.datetime` or ISO 8601 text.

    Raises:
        ValueError: If one of them is out of its range.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/resources#annotations
    """

    audience: tuple[Role, ...] = attrs.field(default=(), kw_only=True, converter=checked_audience)
    priority: float | None = attrs.field(default=None, kw_only=True, converter=checked_priority)
    last_modified: datetime | None = attrs.field(default=None, kw_only=True, converter=checked_last_modified)

    @property
    def annotations(self) -> tuple[tuple[Role, ...], float | None, datetime | None]:
        """
        The three together, so that two blocks can be compared by them.
        """
        return self.audience, self.priority, self.last_modified

    @property
    def annotated(self) -> bool:
        """
        Whether any of the three is set.
        """
        return bool(self.audience) or self.priority is not None or self.last_modified is not None

    @property
    def texts(self) -> tuple[str, ...]:
        """
        Every text in it that is sent to be read: words, URIs, names. Pictures have none.
        """
        return ()

    def __format__(self, spec: str) -> str:
        """
        Refuse: in an f-string a picture or document would be lost, and its summary sent.
        """
        kind = type(self).__name__
        msg = f"{kind} is no text, and cannot stand in an f-string: give it to user(...) as a part of its own"
        raise TypeError(msg)

    def __repr__(self) -> str:
        """
        Return what the author would write, bytes in short and defaults left out.
        """
        fields = sorted(attrs.fields(type(self)), key=lambda field: field.name in Annotations.__annotations__)
        values = ((field, getattr(self, field.name)) for field in fields)
        shown = (
            (f"{field.name}=" if field.kw_only or field.default is not attrs.NOTHING else "") + _short(value)
            for field, value in values
            if value != field.default
        )
        return f"{type(self).__name__}({', '.join(shown)})"


@final
@attrs.frozen(repr=False)
class Text(Content):
    """
    A piece of text.

    ``+`` joins it with text that follows: one block, a blank line between. In an f-string
    it stands for its bare text.

    Args:
        text:
            Any text. It is sent as it is and never read as a template.

    Raises:
        TypeError: If *text* is no string.
    """

    text: str = attrs.field(converter=checked_text)

    @property
    def texts(self) -> tuple[str, ...]:
        """
        Its text.
        """
        return (self.text,)

    def __str__(self) -> str:
        return self.text

    def __format__(self, spec: str) -> str:
        return format(self.text, spec)

    def __add__(self, other: "str | Text") -> "Text":
        """
        Return both as one block. Raises ValueError if their annotations differ.
        """
        if isinstance(other, str):
            return attrs.evolve(self, text=_join(self.text, other))
        if not isinstance(other, Text):
            return NotImplemented
        if self.annotations != other.annotations:
            msg = "texts with different annotations cannot be one block: pass both to user(...)"
            raise ValueError(msg)
        return attrs.evolve(self, text=_join(self.text, other.text))

    def __radd__(self, other: str) -> "Text":
        """
        Return both as one block, with the annotations of this one.
        """
        if not isinstance(other, str):
            return NotImplemented
        return attrs.evolve(self, text=_join(other, self.text))


def plain_text(text: str) -> Text:
    """
    Return a `Text` without annotations, of what is known to be a string and of no derived class.
    """
    made = object.__new__(Text)
    _set_text(made, text)
    _set_audience(made, ())
    _set_priority(made, None)
    _set_last_modified(made, None)
    return made


#: The fields of a `Text`, which nothing sets once it is made.
_set_text, _set_audience, _set_priority, _set_last_modified = (
    getattr(Text, name).__set__ for name in ("text", "audience", "priority", "last_modified")
)


def _join(before: str, after: str) -> str:
    """
    Return two texts as one, a blank line between unless one of them is blank.
    """
    if not before.strip():
        return after
    return f"{before}\n\n{after}" if after.strip() else before


def _summary(mime_type: str, data: bytes) -> str:
    """
    Return *data* as a transcript shows it: ``<image/png 20 kB sha256:0a1b2c3d>``.
    """
    from hashlib import sha256

    return f"<{mime_type} {human_size(len(data))} sha256:{sha256(data).hexdigest()[:8]}>"


def _media(value: bytes | bytearray | memoryview | Showable) -> bytes:
    """
    Return *value* as bytes, if it is bytes or can show itself as PNG.
    """
    if isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str | Path):
        msg = f"{str(value)[:40]!r} is no bytes, and is not opened as a file: use from_path(...) for that"
        raise TypeError(msg)
    if (png := png_of(value)) is not None:
        return png
    msg = f"takes bytes, or an image that can show itself as PNG, not {type(value).__name__}"
    raise TypeError(msg)


@attrs.frozen(repr=False)
class _Media(Content):
    """
    Bytes with a MIME type that was read from them.
    """

    _types: ClassVar[frozenset[str]]
    _limit: ClassVar[int]

    data: bytes = attrs.field(converter=_media)
    mime_type: str | None = attrs.field(default=None, validator=optional_text)

    def __attrs_post_init__(self) -> None:
        found = checked_type(self.data, self.mime_type, self._types, self._limit)
        object.__setattr__(self, "mime_type", found)

    def __str__(self) -> str:
        return _summary(str(self.mime_type), self.data)

    @cached_property
    def base64(self) -> str:
        """
        The data as it goes over the wire, encoded once.
        """
        return base64_text(self.data)

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
        Read a file, relative to the folder of the recipe that calls this.

        Args:
            path:
                The author's own path; or, with *root*, one that comes from an argument.

            mime_type:
                The type that the file should have; read from its bytes if left out.

            root:
                The folder that *path* may not leave, relative to the recipe's. Always
                name it when any part of *path* comes from outside.

            **annotations:
                As for the class itself.

        Raises:
            OSError: If the author's own file cannot be read.

            MediaError: If *path* leaves *root* or names nothing there that can be read, or
                the bytes cannot be sent. It is a `PromptError`: a client is told.
        """
        folder = source_folder(1)
        if root is None:
            data = read_own(folder / path, cls._limit)
        else:
            data = read_below(path, folder / root, cls._limit)
        try:
            return cls(data, mime_type, **annotations)
        except MediaError as error:
            msg = f"{str(path)!r}: {error}"
            raise MediaError(msg) from None


@final
@attrs.frozen(repr=False)
class Image(_Media):
    """
    A picture: PNG, JPEG, GIF or WebP.

    Args:
        data:
            The whole file's bytes, or an object that can show itself as PNG (a matplotlib
            figure, a PIL image). A string is never opened as a file: see `from_path`.

        mime_type:
            The type that the bytes should have; read from them if left out.

    Raises:
        TypeError: If *data* is neither bytes nor an image.

        MediaError: If the bytes are empty or damaged, too large, of a format that clients
            refuse, or of another type than declared.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#image-content
    """

    _types = IMAGE_TYPES
    _limit = MAX_IMAGE_BYTES


@final
@attrs.frozen(repr=False)
class Audio(_Media):
    """
    A recording: WAV, MP3, Ogg, FLAC, MP4 or AAC.

    Args:
        data:
            The whole file's bytes.

        mime_type:
            The type that the bytes should have; read from them if left out.

    Raises:
        TypeError: If *data* is no bytes.

        MediaError: If the bytes are empty, too large, of a format that clients refuse, or
            of another type than declared.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#audio-content
    """

    _types = AUDIO_TYPES
    _limit = MAX_AUDIO_BYTES


@final
@attrs.frozen(repr=False)
class EmbeddedResource(Content):
    """
    A document that travels inside the message. Nothing is read from its *uri*.

    Args:
        uri:
            What the document is called.

        text:
            Its content, if it is text.

        blob:
            Its content, if it is bytes. Exactly one of *text* and *blob* is given.

        mime_type:
            Its type; that of a *blob* is read from the bytes if left out.

    Raises:
        TypeError: If both *text* and *blob* are given, or none, or either is of another type.

        ValueError: If *uri* is none, or *blob* is empty.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#embedded-resources
    """

    uri: str = attrs.field(converter=checked_uri)
    text: str | None = attrs.field(default=None, kw_only=True)
    blob: bytes | None = attrs.field(default=None, kw_only=True)
    mime_type: str | None = attrs.field(default=None, kw_only=True, validator=optional_text)

    def __attrs_post_init__(self) -> None:
        if (self.text is None) == (self.blob is None):
            msg = f"EmbeddedResource {self.uri!r} takes either text= or blob=, and one of them"
            raise TypeError(msg)
        if self.text is not None and not isinstance(self.text, str):
            msg = f"text= of {self.uri!r} takes a str, not {type(self.text).__name__}: bytes go in blob="
            raise TypeError(msg)
        if self.blob is not None:
            self._check_blob(self.blob)

    def _check_blob(self, blob: bytes) -> None:
        if not isinstance(blob, bytes):
            msg = f"blob= of {self.uri!r} takes bytes, not {type(blob).__name__}: text goes in text="
            raise TypeError(msg)
        if not blob:
            msg = f"blob= of {self.uri!r} is empty: pass the bytes of the whole document"
            raise ValueError(msg)
        if self.mime_type is None:
            # Clients fail on a blob without a type, so it always has one.
            object.__setattr__(self, "mime_type", sniff(blob) or "application/octet-stream")

    @property
    def texts(self) -> tuple[str, ...]:
        """
        Its URI, and the document if that is text.
        """
        return (self.uri,) if self.text is None else (self.uri, self.text)

    def __str__(self) -> str:
        if self.blob is not None:
            return f"[{self.uri}] {_summary(str(self.mime_type), self.blob)}"
        return f"[{self.uri}]\n{self.text}"

    @cached_property
    def base64(self) -> str:
        """
        The *blob* as it goes over the wire, encoded once; ``""`` if there is none.
        """
        return base64_text(self.blob or b"")


@final
@attrs.frozen(repr=False)
class ResourceLink(Content):
    """
    A document that the client may fetch, or not.

    Args:
        uri:
            Where it is.

        name:
            What it is called.

        title:
            What people call it.

        description:
            What it is, for the model.

        mime_type:
            Its type, if known.

        size:
            Its size in bytes, if known.

    Raises:
        TypeError: If one of them is of another type.

        ValueError: If *uri* is none, *name* is blank, or *size* is negative.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/tools#resource-links
    """

    uri: str = attrs.field(converter=checked_uri)
    name: str = attrs.field(kw_only=True, converter=checked_name)
    title: str | None = attrs.field(default=None, kw_only=True, validator=optional_text)
    description: str | None = attrs.field(default=None, kw_only=True, validator=optional_text)
    mime_type: str | None = attrs.field(default=None, kw_only=True, validator=optional_text)
    size: int | None = attrs.field(default=None, kw_only=True, converter=checked_size)

    @property
    def texts(self) -> tuple[str, ...]:
        """
        What it is called and said to be, and its URI.
        """
        return tuple(filter(None, (self.title, self.name, self.description, self.uri)))

    def __str__(self) -> str:
        details = [
            self.name if self.title not in (None, self.name) else None,
            self.mime_type,
            None if self.size is None else f"{self.size} B",
        ]
        known = ", ".join(filter(None, details))
        link = f"[{self.title or self.name}]({self.uri})" + (f" ({known})" if known else "")
        return f"{link}: {self.description}" if self.description else link
