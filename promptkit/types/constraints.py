"""
Descriptions, examples and JSON Schema keywords for the constraints of `msgspec.Meta`.
"""

from datetime import datetime, time
from typing import Any, Final, TypeAlias

import msgspec

from promptkit.types.kinds import Constraints, split_constraints

#: `datetime` or `time`.
TemporalType: TypeAlias = type[datetime | time]

_CLOCK: Final = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_OFFSET: Final = rf"(?:[Zz]|[+-]{_CLOCK})"
_TIME: Final = rf"{_CLOCK}:[0-5][0-9](?:\.[0-9]+)?"
#: Years from 1 to 9999. The pattern does not use lookahead, because some clients do not support it.
_YEAR: Final = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_DATE: Final = rf"{_YEAR}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"

#: Patterns for the offset, keyed by `msgspec.Meta(tz=...)`: it is required, rejected, or optional.
_OFFSET_PATTERNS: Final = {True: _OFFSET, False: "", None: f"(?:{_OFFSET})?"}
_OFFSET_WORDS: Final = {True: " with an offset,", False: " without an offset,", None: ""}
_OFFSET_EXAMPLES: Final = {True: "+01:00", False: ""}

_BOUNDS: Final = (
    ("of at least", "ge"),
    ("above", "gt"),
    ("of at most", "le"),
    ("below", "lt"),
    ("that is a multiple of", "multiple_of"),
)


def describe_number(noun: str, limits: Constraints) -> str:
    """Describe a number and its bounds: ``a whole number from 1 to 9``."""
    if limits.ge is not None and limits.le is not None:
        return f"{noun} from {limits.ge} to {limits.le}"
    bounds = [(phrase, getattr(limits, name)) for phrase, name in _BOUNDS]
    words = [f"{phrase} {bound}" for phrase, bound in bounds if bound is not None]
    return " ".join([noun, " and ".join(words)]).strip()


def number_example(example: float, limits: Constraints) -> float:
    """Return an example number that meets the constraints. It is an integer if *example* is an integer."""
    if limits.multiple_of is not None or isinstance(example, int):
        return _multiple_within(limits.multiple_of or 1, limits)
    if limits.gt is not None and limits.lt is not None:
        return (limits.gt + limits.lt) / 2
    above = None if limits.gt is None else limits.gt + 1
    below = None if limits.lt is None else limits.lt - 1
    return next((bound for bound in (limits.ge, limits.le, above, below) if bound is not None), example)


def _multiple_within(step: float, limits: Constraints) -> float:
    """
    Return the smallest multiple of *step* within the bounds; the largest if there is only an upper bound.

    If there are no bounds, return *step*.
    """
    if limits.ge is not None:
        return -(-limits.ge // step) * step
    if limits.gt is not None:
        return (limits.gt // step + 1) * step
    if limits.le is not None:
        return limits.le // step * step
    return step if limits.lt is None else -(-limits.lt // step + 1) * step


def describe_text(limits: Constraints) -> str:
    """Describe text, including the limits on its length and its pattern."""
    pattern = f" that matches {limits.pattern}" if limits.pattern else ""
    return f"text{describe_length(limits, 'characters')}{pattern}"


def describe_base64(limits: Constraints) -> str:
    """Describe base64 text, including the limits on the number of bytes that it encodes."""
    return f"base64{describe_length(limits, 'bytes')}"


def describe_length(limits: Constraints, noun: str) -> str:
    """Describe the limits on a length, with a leading space; return ``""`` if there are none."""
    if limits.min_length == limits.max_length:
        return "" if limits.min_length is None else f" of {limits.min_length} {noun}"
    bounds = {"at least": limits.min_length, "at most": limits.max_length}
    words = [f"{word} {bound}" for word, bound in bounds.items() if bound is not None]
    return f" of {' and '.join(words)} {noun}"


def describe_temporal(noun: str, kind: TemporalType, limits: Constraints) -> str:
    """Describe a datetime or a time: whether an offset is required or rejected, and an example."""
    return f"{noun}{_OFFSET_WORDS[limits.tz]} such as {temporal_example(kind, limits)}"


def temporal_example(kind: TemporalType, limits: Constraints) -> str:
    """Return an example of a datetime or a time, with an offset unless offsets are rejected."""
    moment, offset = ("12:00:00", "") if kind is time else ("2026-01-31T12:00:00", "Z")
    return moment + (offset if limits.tz is None else _OFFSET_EXAMPLES[limits.tz])


def temporal_keywords(kind: TemporalType, limits: Constraints) -> dict[str, str]:
    """Return the JSON Schema keywords, other than ``type``, for a `datetime` or a `time`."""
    format_ = "time" if kind is time else "date-time"
    return {**({"format": format_} if limits.tz else {}), **temporal_pattern(kind, limits)}


def base64_length(limits: Constraints) -> dict[str, int]:
    """Convert limits on the number of bytes to JSON Schema limits on the length of their base64 text."""
    bounds = {"minLength": limits.min_length, "maxLength": limits.max_length}
    return {word: 4 * ((bound + 2) // 3) for word, bound in bounds.items() if bound is not None}


def temporal_pattern(kind: TemporalType, limits: Constraints) -> dict[str, str]:
    """Return the ``pattern`` keyword for the text that msgspec parses as a datetime or a time."""
    date = "" if kind is time else f"{_DATE}[Tt ]"
    return {"pattern": f"^{date}{_TIME}{_OFFSET_PATTERNS[limits.tz]}$"}


NO_OFFSET: Final = "has no offset"
HAS_OFFSET: Final = "has an offset"


def offset_error(value: Any, annotation: Any, *, seconds: str = "") -> str | None:
    """
    Return an error message if a time lacks a required offset or has a forbidden one; otherwise None.

    Args:
        value:
            The datetime or time, or the text that a client sent for it.

        annotation:
            The type, whose constraints can require or reject an offset.

        seconds:
            The seconds to show in the message's example, such as ``":00"``, if the format requires seconds.
    """
    kind, limits = split_constraints(annotation)
    if kind not in (datetime, time) or limits.tz is None:
        return None
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return None
    example = f"{'2026-01-31T' if kind is datetime else ''}12:00{seconds}"
    if limits.tz:
        return f"{NO_OFFSET}: add an offset, for example {example}+01:00"
    return f"{HAS_OFFSET}: omit it, for example {example}"
