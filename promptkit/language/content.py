"""
The base class of content blocks, which are immutable and independent of the protocol revision.

`promptkit.language.text`, `promptkit.language.media` and `promptkit.language.documents` define the kinds of
content; `promptkit.protocol.lowering` converts content for each revision.
"""

from contextvars import ContextVar
from datetime import datetime
from typing import Final, TypedDict

import attrs

from promptkit.language.validation import (
    Role,
    checked_audience,
    checked_last_modified,
    checked_priority,
    describe,
)


class ReprRecord:
    """
    A record of the content reprs that are created while a prompt renders, as in ``f"{[Image(...)]}"``.

    Formatting content directly is an error. A container, however, formats its items with `repr`, which must
    not fail, because debuggers, logs and assertions need it. Therefore, reprs are recorded, and a prompt
    whose text contains one of them is rejected.

    Args:
        texts:
            The reprs created so far; None if no prompt is being rendered.
    """

    __slots__ = ("texts",)

    def __init__(self, texts: list[str] | None = None) -> None:
        self.texts = texts


#: The record of the current context. It is set once for each thread and changed by each rendering, because
#: setting a context variable for each rendering would take five times as long.
repr_record: Final[ContextVar[ReprRecord | None]] = ContextVar("repr_record", default=None)


def context_repr_record() -> ReprRecord:
    """Return the record of the current context, creating it on the first call."""
    record = repr_record.get()
    if record is None:
        record = ReprRecord()
        repr_record.set(record)
    return record


def record_repr(text: str) -> str:
    """Record *text*, the repr of a value that is not text, for the current rendering, and return it."""
    record = repr_record.get()
    if record is not None and record.texts is not None:
        record.texts.append(text)
    return text


class Annotations(TypedDict, total=False):
    """The keyword arguments that `Content` and all its subclasses accept."""

    audience: Role | tuple[Role, ...] | list[Role]
    priority: float | None
    last_modified: datetime | str | None


def human_size(size: int) -> str:
    """Format a size in bytes for people: ``20 kB``."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size = round(size / 1000)
    return f"{size} GB"


def _short_repr(value: object) -> str:
    if not isinstance(value, bytes):
        return repr(value)

    return f"<{human_size(len(value))}>"


class _Marked:
    """
    A base class with a slot for the mark of a `Text` that is a list.

    The mark is not a field, so it is not compared, shown, copied or sent.
    """

    __slots__ = ("_mark",)


@attrs.frozen(repr=False, eq=False)
class Content(_Marked):
    """
    The base class of all content. It stores the annotations: audience, priority, and time of the last change.

    Args:
        audience:
            The intended audience: ``"user"``, ``"assistant"``, or a list of both. It is empty by default.

        priority:
            The importance, from 0 (optional) to 1 (required); None if unspecified.

        last_modified:
            The time of the last change: an aware `datetime.datetime`, or ISO 8601 text with an offset;
            None if unspecified.

    Raises:
        TypeError: If an argument has the wrong type.

        ValueError: If a role is unknown, *priority* is out of range, or *last_modified* is not a valid
            date and time or has no time zone.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/resources#annotations
    """

    audience: tuple[Role, ...] = attrs.field(default=(), kw_only=True, converter=checked_audience)
    priority: float | None = attrs.field(default=None, kw_only=True, converter=checked_priority)
    last_modified: datetime | None = attrs.field(default=None, kw_only=True, converter=checked_last_modified)

    @property
    def annotations(self) -> tuple[tuple[Role, ...], float | None, datetime | None]:
        """The audience, the priority and the time of the last change, as a tuple."""
        return self.audience, self.priority, self.last_modified

    @property
    def annotated(self) -> bool:
        """Whether any annotation is set."""
        return bool(self.audience) or self.priority is not None or self.last_modified is not None

    @property
    def texts(self) -> tuple[str, ...]:
        """All text that a model reads, including URIs and names; empty for images and audio."""
        return ()

    def __contains__(self, item: object) -> bool:
        if isinstance(item, str):
            return any(item in text for text in self.texts)
        msg = f"{type(self).__name__} can be searched only for text, not for {describe(item)}"
        raise TypeError(msg)

    # All kinds of content share these methods, because attrs would compile two for each class at import.

    def __eq__(self, other: object) -> bool:
        return self._values == other._values if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), self._values))

    @property
    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, field.name) for field in attrs.fields(type(self)))

    def __format__(self, spec: str) -> str:
        # An f-string would contain only the summary of an image or a document.
        kind = type(self).__name__
        msg = f"{kind} is not text and cannot be used in an f-string: pass it to user(...) as a separate part"
        raise TypeError(msg)

    def __repr__(self) -> str:
        # The expression that creates the content, without defaults, and with sizes in place of bytes.
        fields = sorted(attrs.fields(type(self)), key=lambda field: field.name in Annotations.__annotations__)
        values = ((field, getattr(self, field.name)) for field in fields)
        arguments = (
            (f"{field.name}=" if field.kw_only or field.default is not attrs.NOTHING else "")
            + _short_repr(value)
            for field, value in values
            if value != field.default
        )
        return record_repr(f"{type(self).__name__}({', '.join(arguments)})")
