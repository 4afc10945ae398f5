"""
Constraints of `msgspec.Meta` and of time zones, in descriptions, examples and JSON Schemas.

Each function takes a type as `msgspec.inspect` returns it; some take a noun or an example first.
"""

from datetime import datetime, time, tzinfo
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec import inspect as mi

_CLOCK: Final = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_OFFSET: Final = rf"(?:[Zz]|[+-]{_CLOCK})"
_TIME: Final = rf"{_CLOCK}:[0-5][0-9](?:\.[0-9]+)?"
#: From year 1. Patterns do not use lookahead, because some clients do not support it.
_YEAR: Final = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_DATE: Final = rf"{_YEAR}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"

#: By the value of `msgspec.Meta(tz=...)`: an offset is required, rejected, or optional.
_OFFSETS: Final = {True: _OFFSET, False: "", None: f"(?:{_OFFSET})?"}
_OFFSET_WORDS: Final = {True: " with an offset", False: " without an offset", None: ""}
_OFFSET_EXAMPLES: Final = {True: "+01:00", False: ""}

_BOUNDS: Final = (
    ("of at least", "ge"),
    ("above", "gt"),
    ("of at most", "le"),
    ("below", "lt"),
    ("that is a multiple of", "multiple_of"),
)


def describe_number(noun: str, tree: mi.IntType | mi.FloatType) -> str:
    """Describe a number, with its bounds: ``a whole number from 1 to 9``."""
    if tree.ge is not None and tree.le is not None:
        return f"{noun} from {tree.ge} to {tree.le}"
    bounds = [(phrase, getattr(tree, name)) for phrase, name in _BOUNDS]
    words = [f"{phrase} {bound}" for phrase, bound in bounds if bound is not None]
    return " ".join([noun, " and ".join(words)]).strip()


def number_example(example: float, tree: mi.IntType | mi.FloatType) -> float:
    """Return an example that meets the constraints of a number."""
    if tree.multiple_of is not None or isinstance(tree, mi.IntType):
        return _multiple_within(tree.multiple_of or 1, tree)
    if tree.gt is not None and tree.lt is not None:
        return (tree.gt + tree.lt) / 2
    above, below = (None if tree.gt is None else tree.gt + 1), (None if tree.lt is None else tree.lt - 1)
    return next((bound for bound in (tree.ge, tree.le, above, below) if bound is not None), example)


def _multiple_within(step: float, tree: mi.IntType | mi.FloatType) -> float:
    """Return the smallest multiple within the bounds, or the largest if there is only an upper bound."""
    if tree.ge is not None:
        return -(-tree.ge // step) * step
    if tree.gt is not None:
        return (tree.gt // step + 1) * step
    if tree.le is not None:
        return tree.le // step * step
    return step if tree.lt is None else -(-tree.lt // step + 1) * step


def describe_text(tree: mi.StrType) -> str:
    """Describe text, with its length and its pattern."""
    pattern = f" that matches {tree.pattern}" if tree.pattern else ""
    return f"text{describe_length(tree, 'characters')}{pattern}"


def describe_base64(tree: mi.BytesType) -> str:
    """Describe bytes in JSON, with their length."""
    return f"base64{describe_length(tree, 'bytes')}"


def describe_length(tree: Any, noun: str) -> str:
    """Describe the bounds of a length, with a leading space; ``""`` if it has none."""
    if tree.min_length == tree.max_length:
        return "" if tree.min_length is None else f" of {tree.min_length} {noun}"
    limits = {"at least": tree.min_length, "at most": tree.max_length}
    bounds = [f"{word} {limit}" for word, limit in limits.items() if limit is not None]
    return f" of {' and '.join(bounds)} {noun}"


def describe_moment(noun: str, tree: mi.DateTimeType | mi.TimeType) -> str:
    """Describe a date and time, or a time: whether it has an offset, and an example."""
    return f"{noun}{_OFFSET_WORDS[tree.tz]}, as in {moment_example(tree)}"


def moment_example(tree: mi.DateTimeType | mi.TimeType) -> str:
    """Return an example of a date and time, or of a time, with an offset if one is required."""
    moment, offset = ("12:00:00", "") if isinstance(tree, mi.TimeType) else ("2026-01-31T12:00:00", "Z")
    return moment + (offset if tree.tz is None else _OFFSET_EXAMPLES[tree.tz])


def moment_facets(tree: mi.DateTimeType | mi.TimeType) -> dict[str, str]:
    """Return the keywords of the JSON Schema of a date and time, or of a time, except its type."""
    format_ = "date-time" if isinstance(tree, mi.DateTimeType) else "time"
    return {**({"format": format_} if tree.tz else {}), **moment_pattern(tree)}


def base64_length(tree: mi.BytesType) -> dict[str, int]:
    """Convert the bounds of a length in bytes to those of its base64."""
    bounds = {"minLength": tree.min_length, "maxLength": tree.max_length}
    return {word: 4 * ((bound + 2) // 3) for word, bound in bounds.items() if bound is not None}


def moment_pattern(tree: mi.DateTimeType | mi.TimeType) -> dict[str, str]:
    """Return the JSON Schema pattern of a date and time, or of a time, as msgspec parses it."""
    date = f"{_DATE}[Tt ]" if isinstance(tree, mi.DateTimeType) else ""
    return {"pattern": f"^{date}{_TIME}{_OFFSETS[tree.tz]}$"}


NO_OFFSET: Final = "has no offset"
HAS_OFFSET: Final = "has an offset"


class InZone(Struct, frozen=True):
    """Metadata for ``Annotated``: a `datetime` without an offset is local time in *zone*."""

    zone: tzinfo


def zone_of(annotation: Any) -> tzinfo | None:
    """Return the zone of the `InZone` in an annotation, if any."""
    notes = (note for note in getattr(annotation, "__metadata__", ()) if isinstance(note, InZone))
    return next((note.zone for note in notes), None)


def located(value: datetime, zone: tzinfo) -> datetime:
    """Return *value* with *zone* as its time zone if it has no offset."""
    return value.replace(tzinfo=zone) if value.tzinfo is None else value


def offset_error(value: Any, annotation: Any, *, seconds: str = "") -> str | None:
    """
    Return the problem with the offset of a time; None if the value is invalid for another reason.

    Args:
        value:
            The time, or its text from a client.

        annotation:
            Its type, which can require or reject an offset.

        seconds:
            The seconds in the example, if they are required.
    """
    kind = getattr(annotation, "__origin__", None)
    timezone_flags = [
        note.tz for note in getattr(annotation, "__metadata__", ()) if isinstance(note, msgspec.Meta)
    ]
    if kind not in (datetime, time) or not {True, False}.intersection(timezone_flags):
        return None
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return None
    example = f"{'2026-01-31T' if kind is datetime else ''}12:00{seconds}"
    if True in timezone_flags:
        return f"{NO_OFFSET}: add an offset, as in {example}+01:00"
    return f"{HAS_OFFSET}: leave it out, as in {example}"
