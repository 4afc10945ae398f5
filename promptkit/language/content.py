"""
Content blocks: what one message may hold, as frozen values.

They know nothing of any protocol revision; `promptkit.protocol.lowering` spells them.
"""

from datetime import datetime
from functools import cached_property
from typing import TypedDict, final

import attrs

from promptkit.language.base64 import base64_text
from promptkit.language.mime import (
    human_size,
    sniff,
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
    "Annotations",
    "Content",
    "EmbeddedResource",
    "ResourceLink",
    "Role",
    "Text",
    "plain_text",
    "summary",
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


def summary(mime_type: str, data: bytes) -> str:
    """
    Return *data* as a transcript shows it: ``<image/png 20 kB sha256:0a1b2c3d>``.
    """
    from hashlib import sha256

    return f"<{mime_type} {human_size(len(data))} sha256:{sha256(data).hexdigest()[:8]}>"


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
            return f"[{self.uri}] {summary(str(self.mime_type), self.blob)}"
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
