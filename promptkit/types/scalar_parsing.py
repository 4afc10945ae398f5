"""Text, and other JSON values, to scalars such as numbers and dates; and how much a text holds."""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from itertools import accumulate
from math import isfinite
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from promptkit.types.errors import ConversionError

#: Digits that a number may have before or after the point. Python's own limit for whole numbers is the same.
MAX_DIGITS: Final = 4300

_FEWER_DIGITS: Final = f"a whole number of at most {MAX_DIGITS:,} digits"
_TOO_MANY_DIGITS: Final = f"has more than {MAX_DIGITS:,} digits: send a number that people use"

#: A finite exact number in JSON, which has it as text.
DECIMAL: Final = r"^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"

#: A whole number as the key of a JSON object.
INTEGER_KEY: Final = r"^(?:0|-?[1-9][0-9]{0,17})$"

BASE64: Final = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"

UUID_TEXT: Final = "^[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"

#: What is unescaped at a time, no escape cut: each needs a hundred bytes of memory for that.
_PIECE: Final = r"(?s)(?:%[0-9A-Fa-f]{2}|.){1,16384}"

_AMOUNT: Final = r"[0-9]+(?:\.[0-9]+)?"
_HOURS, _MINUTES, _SECONDS = (f"{_AMOUNT}[{unit}]" for unit in ("Hh", "Mm", "Ss"))
_CLOCK_TIME: Final = rf"[Tt](?:{_HOURS}(?:{_MINUTES})?(?:{_SECONDS})?|{_MINUTES}(?:{_SECONDS})?|{_SECONDS})"
#: An ISO 8601 duration without weeks, months and years: msgspec does not read them.
DURATION: Final = rf"^[+-]?[Pp](?:{_AMOUNT}[Dd](?:{_CLOCK_TIME})?|{_CLOCK_TIME})$"

#: The JSON types of which a number may be read.
_NUMBERS: Final = (str, int, float)

#: Takes what a client sent, a string or another JSON value; raises `ConversionError`.
Read: TypeAlias = Callable[[Any], Any]


def parse_text(value: Any) -> str:
    """Return text unchanged."""
    if not isinstance(value, str):
        raise ConversionError
    return value


def parse_int(value: Any) -> int:
    """Return a whole number. The JSON number 5.0 is one."""
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            raise ConversionError(_FEWER_DIGITS if _has_too_many_digits(value) else None) from None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConversionError
    return value


def _has_too_many_digits(text: str) -> bool:
    """Tell whether *text* is a whole number that Python refuses to read, as that takes quadratic time."""
    return len(text) > MAX_DIGITS and text.strip().lstrip("+-").replace("_", "").isdecimal()


def parse_float(value: Any) -> float:
    """Return a finite float."""
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


def parse_bool(value: Any) -> bool:
    """Return what people mean by yes, on, true, 1 and their opposites."""
    if isinstance(value, bool):
        return value
    found = _BOOLEANS.get(value.strip().lower()) if isinstance(value, str) else None
    if found is None:
        raise ConversionError
    return found


def parse_decimal(value: Any) -> Decimal:
    """Return a finite exact number."""
    if isinstance(value, bool) or not isinstance(value, _NUMBERS):
        raise ConversionError
    try:
        number = Decimal(str(value).strip())
    except (ArithmeticError, ValueError):
        raise ConversionError from None
    if not number.is_finite():
        raise ConversionError
    return _of_bounded_size(number)


def _of_bounded_size(number: Decimal) -> Decimal:
    """Return *number*, unless writing it out in full would fill the memory."""
    exponent = int(number.as_tuple().exponent)
    if not number:
        return number if abs(exponent) <= MAX_DIGITS else Decimal()
    if abs(number.adjusted()) > MAX_DIGITS or exponent < -MAX_DIGITS:
        raise ConversionError(reason=_TOO_MANY_DIGITS)
    return number


def convert_decimal(value: Any, annotation: Any) -> Decimal:
    """Return the exact number that a JSON value is, if it is as the JSON Schema of *annotation* says."""
    if isinstance(value, str) and not re.match(DECIMAL, value):
        raise ConversionError
    return _of_bounded_size(msgspec.convert(value, annotation))


def convert_key(text: str, annotation: Any) -> Any:
    """Return the value that the key of a JSON object stands for. Raises `msgspec.ValidationError`."""
    return next(iter(msgspec.convert({text: None}, dict[annotation, None], str_keys=True)))


def convert_int_key(text: str, annotation: Any) -> Any:
    """Do the same for a whole number, and take only what the JSON Schema takes."""
    if not re.match(INTEGER_KEY, text):
        raise ConversionError
    return convert_key(text, annotation)


def parse_bytes(value: Any) -> bytes:
    """Return the bytes of base64, or of a data: URI."""
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
        return _unescaped(value)  # as RFC 2397 has it
    except ValueError:
        raise ConversionError from None


def _unescaped(text: str) -> bytes:
    """Return *text* as bytes, with each escape decoded."""
    from urllib.parse import unquote_to_bytes  # few servers read a data: URI

    return b"".join(unquote_to_bytes(piece[0]) for piece in re.finditer(_PIECE, text))


def parsed(parse: Callable[[str], Any]) -> Read:
    """Make a function that reads text with *parse*, which raises ValueError for text that does not fit."""

    def read(value: Any) -> Any:
        if not isinstance(value, str):
            raise ConversionError
        try:
            return parse(value.strip())
        except (ValueError, OverflowError):
            raise ConversionError from None

    return read


def parse_path(text: str) -> Path:
    """Return *text* as a path. Raises ValueError for text that no system takes for one."""
    if not text or "\0" in text:
        raise ValueError
    return Path(text)


# Patterns are compiled when a duration is first read: that takes as long as to import a module.

#: ``1d 2h 30m``, ``90 s``, ``1.5 hours``; ``1:30`` and ``1 day, 2:03:04``, as Python writes them.
_UNITS: Final = (
    r"(?:([\d.]+)\s*w(?:eeks?)?)?\s*(?:([\d.]+)\s*d(?:ays?)?,?)?\s*(?:([\d.]+)\s*h(?:ours?)?)?\s*"
    r"(?:([\d.]+)\s*m(?:in(?:utes?)?)?)?\s*(?:([\d.]+)\s*s(?:ec(?:onds?)?)?)?"
)
#: Characters of a duration. Longer text is refused before it is split into many words.
_MAX_DURATION_LENGTH: Final = 1000

_CLOCK: Final = r"(?:(-?\d+) days?,\s*)?(\d+):(\d\d)(?::(\d\d(?:\.\d{1,6})?))?"


def parse_duration(text: str) -> timedelta:
    """Return the duration that *text* names: ISO 8601, units, or a clock. Raises ValueError."""
    if len(text) > _MAX_DURATION_LENGTH:
        raise ValueError(text[:_MAX_DURATION_LENGTH])
    if text.lstrip("+-")[:1] in ("P", "p"):
        return msgspec.convert(text, timedelta)
    if clock := re.fullmatch(_CLOCK, text, re.IGNORECASE):
        days, hours, minutes, seconds = (float(part or 0) for part in clock.groups())
        return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    # The pattern would try every division of long blanks.
    units = re.fullmatch(_UNITS, " ".join(text.removeprefix("-").split()), re.IGNORECASE)
    if units is None or not units[0]:
        raise ValueError(text)
    names = ("weeks", "days", "hours", "minutes", "seconds")
    found = timedelta(**{name: float(part or 0) for name, part in zip(names, units.groups(), strict=True)})
    return -found if text.startswith("-") else found


def duration_text(duration: timedelta) -> str:
    """Return a duration as people write it, and `parse_duration` reads it: ``1h 30m``."""
    whole = abs(duration)
    minutes, seconds = divmod(whole.seconds, 60)
    fraction = f".{whole.microseconds:06}".rstrip("0") if whole.microseconds else ""
    amounts = {"d": whole.days, "h": minutes // 60, "m": minutes % 60, "s": f"{seconds}{fraction}"}
    shown = [f"{amount}{unit}" for unit, amount in amounts.items() if amount not in (0, "0")]
    return "-" * (duration < timedelta()) + (" ".join(shown) or "0s")


#: Bytes that are scanned at once. Split at its quotation marks, a piece may take many times its size.
_PIECE_SIZE: Final = 1 << 15

#: Where `str.splitlines` splits.
_LINE_ENDS: Final = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"

#: How each bracket changes the depth, as a signed byte; and all bytes that are not brackets.
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[{]}"))


def extent(json: bytes) -> Iterator[tuple[int, int]]:
    """
    Yield the depth of *json* and an upper bound of its number of values, after each piece of it.

    An empty list counts as if it held one value. For input that is not JSON, the figures mean nothing.
    """
    json = json.replace(b"\\\\", b"").replace(b'\\"', b"")  # the quotation marks that are left are no escapes
    depth = deepest = values = 0
    inside = b""
    for start in range(0, len(json), _PIECE_SIZE):
        # Every other part is a string, and the last may not have ended.
        parts = (inside + json[start : start + _PIECE_SIZE]).split(b'"')
        inside = b"" if len(parts) % 2 else b'"'
        signs = b"".join(parts[::2])
        brackets = signs.translate(_STEPS, _NO_BRACKETS)
        depths = list(accumulate(memoryview(brackets).cast("b"), initial=depth))
        depth, deepest = depths[-1], max(deepest, *depths)
        values += brackets.count(1) + signs.count(b",")
        yield deepest, values


def holds_more(text: str, most: int) -> bool:
    """Tell whether JSON, or the text of a list, holds more than *most* values. Blank items count, too."""
    text = text.strip()
    if text.startswith(("[", "{")):
        signs = text.count(",") + text.count("[") + text.count("{")
        return signs > most and any(values > most for _, values in extent(text.encode(errors="replace")))
    lines = sum(map(text.count, _LINE_ENDS)) - text.count("\r\n")
    return lines >= most if "\n" in text else max(lines, text.count(",")) >= most
