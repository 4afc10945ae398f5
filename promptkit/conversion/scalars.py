"""Text, and other JSON values, as the scalars that people mean by them."""

import re
from collections.abc import Callable
from datetime import datetime, time, timedelta, tzinfo
from decimal import Decimal
from math import isfinite
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from promptkit.conversion.errors import ConversionError

__all__ = [
    "HAS_OFFSET",
    "NO_OFFSET",
    "InZone",
    "Read",
    "checked_decimal",
    "located",
    "offset_fault",
    "parse_duration",
    "parsed",
    "read_bool",
    "read_bytes",
    "read_decimal",
    "read_float",
    "read_int",
    "read_text",
    "zone_of",
]

#: Digits that a number may have before or behind the point; of whole numbers Python takes as many.
MOST_DIGITS: Final = 4300

_SHORTER: Final = f"a whole number of at most {MOST_DIGITS:,} digits"
_TOO_LONG: Final = f"has more than {MOST_DIGITS:,} digits: send a number that people use"

#: What may be a number, or say one.
_NUMBERS: Final = (str, int, float)

#: Takes what a client sent, a string or another JSON value; raises `ConversionError`.
Read: TypeAlias = Callable[[Any], Any]


def read_text(value: Any) -> str:
    """
    Return text as it is. Raises `ConversionError`.
    """
    if not isinstance(value, str):
        raise ConversionError
    return value


def read_int(value: Any) -> int:
    """
    Return a whole number; 5.0 is one, to JSON. Raises `ConversionError`.
    """
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            raise ConversionError(_SHORTER if _has_too_many_digits(value) else None) from None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConversionError
    return value


def _has_too_many_digits(text: str) -> bool:
    """Return whether *text* is a whole number that Python does not read, as that takes quadratic time."""
    return len(text) > MOST_DIGITS and text.strip().lstrip("+-").replace("_", "").isdecimal()


def read_float(value: Any) -> float:
    """
    Return a number that is neither infinite nor none. Raises `ConversionError`.
    """
    if isinstance(value, bool) or not isinstance(value, _NUMBERS):
        raise ConversionError
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise ConversionError from None
    if not isfinite(number):
        raise ConversionError
    return number


_BOOLEANS: Final = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


def read_bool(value: Any) -> bool:
    """
    Return what people mean by yes, on, true, 1 and their opposites. Raises `ConversionError`.
    """
    if isinstance(value, bool):
        return value
    found = _BOOLEANS.get(value.strip().lower()) if isinstance(value, str) else None
    if found is None:
        raise ConversionError
    return found


def read_decimal(value: Any) -> Decimal:
    """
    Return an exact number. Raises `ConversionError`.
    """
    if isinstance(value, bool) or not isinstance(value, _NUMBERS):
        raise ConversionError
    try:
        number = Decimal(str(value).strip())
    except (ArithmeticError, ValueError):
        raise ConversionError from None
    if not number.is_finite():
        raise ConversionError
    return checked_decimal(number)


def checked_decimal(number: Decimal) -> Decimal:
    """
    Return *number*, unless it would fill the memory once it is written out. Raises `ConversionError`.
    """
    exponent = int(number.as_tuple().exponent)
    if not number:
        return number if abs(exponent) <= MOST_DIGITS else Decimal()
    if abs(number.adjusted()) > MOST_DIGITS or exponent < -MOST_DIGITS:
        raise ConversionError(reason=_TOO_LONG)
    return number


def parsed(parse: Callable[[str], Any]) -> Read:
    """
    Return what reads text with *parse*, which raises ValueError for what it is not.
    """

    def read(value: Any) -> Any:
        if not isinstance(value, str):
            raise ConversionError
        try:
            return parse(value.strip())
        except (ValueError, OverflowError):
            raise ConversionError from None

    return read


#: ``1d 2h 30m``, ``90 s``, ``1.5 hours``; ``1:30`` and ``1 day, 2:03:04``, as Python writes them.
_UNITS: Final = re.compile(
    r"(?:([\d.]+)\s*w(?:eeks?)?)?\s*(?:([\d.]+)\s*d(?:ays?)?,?)?\s*(?:([\d.]+)\s*h(?:ours?)?)?\s*"
    r"(?:([\d.]+)\s*m(?:in(?:utes?)?)?)?\s*(?:([\d.]+)\s*s(?:ec(?:onds?)?)?)?",
    re.IGNORECASE,
)
#: Characters of what names a duration: more is none, and would be cut into many words.
_LONGEST_DURATION: Final = 1000

_CLOCK: Final = re.compile(r"(?:(-?\d+) days?,\s*)?(\d+):(\d\d)(?::(\d\d(?:\.\d{1,6})?))?", re.IGNORECASE)


def parse_duration(text: str) -> timedelta:
    """
    Return the duration that *text* names: ISO 8601, units, or a clock. Raises ValueError.
    """
    if len(text) > _LONGEST_DURATION:
        raise ValueError(text[:_LONGEST_DURATION])
    if text.lstrip("+-")[:1] in ("P", "p"):
        return msgspec.convert(text, timedelta)
    if clock := _CLOCK.fullmatch(text):
        days, hours, minutes, seconds = (float(part or 0) for part in clock.groups())
        return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    units = _UNITS.fullmatch(" ".join(text.split()))  # long blanks would be tried in every division
    if not text or units is None:
        raise ValueError(text)
    names = ("weeks", "days", "hours", "minutes", "seconds")
    return timedelta(**{name: float(part or 0) for name, part in zip(names, units.groups(), strict=True)})


NO_OFFSET: Final = "has no offset"
HAS_OFFSET: Final = "has an offset"


class InZone(Struct, frozen=True):
    """
    Says, in ``Annotated``, that a `datetime` without an offset is a time in *zone*.
    """

    zone: tzinfo


def zone_of(annotation: Any) -> tzinfo | None:
    """
    Return the zone that `InZone` says of a type; None if it says nothing.
    """
    notes = (note for note in getattr(annotation, "__metadata__", ()) if isinstance(note, InZone))
    return next((note.zone for note in notes), None)


def located(value: datetime, zone: tzinfo) -> datetime:
    """
    Return a time in *zone*, if it does not say where it holds.
    """
    return value.replace(tzinfo=zone) if value.tzinfo is None else value


def offset_fault(value: Any, annotation: Any, *, seconds: str = "") -> str | None:
    """
    Return what is wrong with the offset of a time that its type refuses; None if something else is.

    Args:
        value:
            The time, or what a client wrote for it.

        annotation:
            Its type, which may ask for an offset, or for none.

        seconds:
            The seconds in the example, where they have to be there.
    """
    kind = getattr(annotation, "__origin__", None)
    asked = [note.tz for note in getattr(annotation, "__metadata__", ()) if isinstance(note, msgspec.Meta)]
    if kind not in (datetime, time) or not {True, False}.intersection(asked):
        return None
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return None
    example = f"{'2026-01-31T' if kind is datetime else ''}12:00{seconds}"
    if True in asked:
        return f"{NO_OFFSET}: add an offset, as in {example}+01:00"
    return f"{HAS_OFFSET}: leave it out, as in {example}"


def read_bytes(value: Any) -> bytes:
    """
    Return the bytes of base64, or of a data: URI. Raises `ConversionError`.
    """
    from pybase64 import b64decode

    if not isinstance(value, str):
        raise ConversionError
    is_base64 = True
    if value[:5].lower() == "data:":
        head, comma, value = value.partition(",")
        if not comma:
            raise ConversionError
        is_base64 = head.lower().endswith(";base64")
    try:
        if is_base64:
            # Base64 is often wrapped at 76 characters, as e-mail does.
            return b64decode("".join(value.split()), validate=True)
        from promptkit.conversion.escapes import unescaped

        return unescaped(value)  # as RFC 2397 has it
    except ValueError:
        raise ConversionError from None
