"""
Content blocks: what one message may hold, as immutable values.

Those that are documents are in `promptkit.language.documents`. They do not depend on a protocol revision;
`promptkit.protocol.lowering` converts them for each.
"""

from datetime import datetime
from typing import Final, Literal, TypeAlias, TypedDict, final

import attrs

from promptkit.language.validation import (
    Role,
    checked_audience,
    checked_last_modified,
    checked_priority,
    checked_text,
)

__all__ = [
    "Annotations",
    "Content",
    "Mark",
    "Role",
    "Text",
    "mark_of",
    "marked",
    "plain_text",
]


#: What a text is where it is put into another: a block needs lines of its own, and a list is a block.
Mark: TypeAlias = Literal["block", "list"]

_MARK: Final = "_mark"


class Annotations(TypedDict, total=False):
    """
    The keyword arguments of every kind of content, as in `Content`.
    """

    audience: Role | tuple[Role, ...] | list[Role]
    priority: float | None
    last_modified: datetime | str | None


def _short(value: object) -> str:
    if not isinstance(value, bytes):
        return repr(value)
    from promptkit.language.media_types import human_size  # most content is text

    return f"<{human_size(len(value))}>"


class _Marked:
    """What may have a mark. That is no field: it is neither compared, shown nor sent, and no copy has it."""

    __slots__ = (_MARK,)


@attrs.frozen(repr=False, eq=False)
class Content(_Marked):
    """
    The base of every kind of content: whom it is for, how important it is, how old it is.

    Args:
        audience:
            Who should see it: ``"user"``, ``"assistant"``, or a list of both; empty if not given.

        priority:
            How important it is, from 0 (optional) to 1 (required); None if not given.

        last_modified:
            When it was last changed: an aware `datetime.datetime` or ISO 8601 text with an offset;
            None if not given.

    Raises:
        TypeError: If one of them is of another type.

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
        """
        Audience, priority and last modification, so that two blocks can be compared by them.
        """
        return self.audience, self.priority, self.last_modified

    @property
    def annotated(self) -> bool:
        """
        Whether any of these is set.
        """
        return bool(self.audience) or self.priority is not None or self.last_modified is not None

    @property
    def texts(self) -> tuple[str, ...]:
        """
        All text in it that a model reads: also URIs and names. Images and recordings have none.
        """
        return ()

    # One comparison for all kinds: attrs would compile two functions for each, before the first prompt.

    def __eq__(self, other: object) -> bool:
        return self._values == other._values if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), self._values))

    @property
    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, field.name) for field in attrs.fields(type(self)))

    def __format__(self, spec: str) -> str:
        # In an f-string an image or a document would be lost: only its summary would be sent.
        kind = type(self).__name__
        msg = (
            f"{kind} is not text, and cannot be used in an f-string: "
            "give it to user(...) as a part of its own"
        )
        raise TypeError(msg)

    def __repr__(self) -> str:
        # What the author would write, without defaults, and with the size in place of bytes.
        fields = sorted(attrs.fields(type(self)), key=lambda field: field.name in Annotations.__annotations__)
        values = ((field, getattr(self, field.name)) for field in fields)
        shown = (
            (f"{field.name}=" if field.kw_only or field.default is not attrs.NOTHING else "") + _short(value)
            for field, value in values
            if value != field.default
        )
        return f"{type(self).__name__}({', '.join(shown)})"


@final
@attrs.frozen(repr=False, eq=False)
class Text(Content):
    """
    Text. It takes the keyword arguments of `Content`, too.

    ``+`` joins it with a string or a `Text` to one block, with a blank line between; it raises
    ValueError if the annotations differ. In an f-string it is its plain text.

    Args:
        text:
            The text. It is sent unchanged, and never read as a template.

    Raises:
        TypeError: If *text* is not a string, or an annotation is of another type.

        ValueError: If an annotation is refused by `Content`.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#text-content
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
        if isinstance(other, Text):
            if self.annotations != other.annotations:
                msg = "texts with different annotations cannot be one block: pass both to user(...)"
                raise ValueError(msg)
            other = other.text
        return attrs.evolve(self, text=_join(self.text, other)) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: str) -> "Text":
        return attrs.evolve(self, text=_join(other, self.text)) if isinstance(other, str) else NotImplemented


def marked(text: Text, mark: Mark) -> Text:
    """
    Put a mark on a `Text` that was just made, and return it. What is composed of it does not have the mark.
    """
    object.__setattr__(text, _MARK, mark)
    return text


def mark_of(value: object) -> Mark | None:
    """
    Return the mark of a value, None if it has none.
    """
    return getattr(value, _MARK, None)


def plain_text(text: str) -> Text:
    """
    Return a `Text` without annotations, quickly: nothing is checked. *text* must be a plain `str`.
    """
    made = object.__new__(Text)
    _set_text(made, text)
    _set_audience(made, ())
    _set_priority(made, None)
    _set_last_modified(made, None)
    return made


#: These set the fields of a frozen `Text` that is being made.
_set_text, _set_audience, _set_priority, _set_last_modified = (
    getattr(Text, name).__set__ for name in ("text", "audience", "priority", "last_modified")
)


def _join(before: str, after: str) -> str:
    if not before.strip():
        return after
    # Not in an f-string: there, a member of an enum would be its name.
    return before + "\n\n" + after if after.strip() else before
