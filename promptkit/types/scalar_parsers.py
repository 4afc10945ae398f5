"""Parsers for scalars in text and JSON, and functions that measure the size of JSON."""

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

#: The maximum number of digits before or after the decimal point; Python's default limit for integers.
MAX_DIGITS: Final = 4300

_FEWER_DIGITS: Final = f"a whole number with at most {MAX_DIGITS:,} digits"
_TOO_MANY_DIGITS: Final = f"has more than {MAX_DIGITS:,} digits: send a number with fewer digits"

#: The pattern of a finite decimal number in a JSON string.
DECIMAL: Final = r"^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"

#: The pattern of an integer written with a fraction of zeros, as spreadsheets and data frames do.
_WHOLE: Final = r"[+-]?[0-9]+\.0+"

#: The pattern of an integer that is the key of a JSON object.
INTEGER_KEY: Final = r"^(?:0|-?[1-9][0-9]{0,17})$"

BASE64: Final = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"

UUID_TEXT: Final = "^[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"

#: Text is unescaped piece by piece, because unescaping needs a hundred bytes of memory for each escape. The
#: pattern does not split escapes.
_PIECE: Final = r"(?s)(?:%[0-9A-Fa-f]{2}|.){1,16384}"

_NUMBER_PATTERN: Final = r"[0-9]+(?:\.[0-9]+)?"
_HOURS, _MINUTES, _SECONDS = (f"{_NUMBER_PATTERN}[{unit}]" for unit in ("Hh", "Mm", "Ss"))
_CLOCK_TIME: Final = rf"[Tt](?:{_HOURS}(?:{_MINUTES})?(?:{_SECONDS})?|{_MINUTES}(?:{_SECONDS})?|{_SECONDS})"
#: The pattern of an ISO 8601 duration without weeks, months or years, which msgspec does not support.
DURATION: Final = rf"^[+-]?[Pp](?:{_NUMBER_PATTERN}[Dd](?:{_CLOCK_TIME})?|{_CLOCK_TIME})$"

#: The JSON types that can be parsed as a number.
_NUMBER_TYPES: Final = (str, int, float)

#: A function that converts a client's string, or other JSON value, to a type. It raises `ConversionError` for
#: invalid values.
ReadFunction: TypeAlias = Callable[[Any], Any]


def parse_text(value: Any) -> str:
    """
    Return text unchanged, and convert an integer to text.

    Some models and tables contain 42 instead of "42". Other numbers are invalid, because 1.10 would become
    1.1.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return _integer_text(value)
    raise ConversionError


def _integer_text(number: int) -> str:
    try:
        return str(number)
    except ValueError:  # Python's limit on digits
        raise ConversionError(reason=_TOO_MANY_DIGITS) from None


def parse_int(value: Any) -> int:
    """Convert a value to an integer. A number such as 5.0 counts as an integer, both in JSON and in text."""
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            return _parse_decimal_integer(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConversionError
    return value


def _parse_decimal_integer(text: str) -> int:
    """Parse an integer that is written as a decimal, such as ``5.0``."""
    try:
        return int(text.partition(".")[0] if re.fullmatch(_WHOLE, text.strip()) else text)
    except ValueError:
        raise ConversionError(_FEWER_DIGITS if _has_too_many_digits(text) else None) from None


def _has_too_many_digits(text: str) -> bool:
    """Return whether *text* is an integer that is too long for Python (parsing takes quadratic time)."""
    return len(text) > MAX_DIGITS and text.strip().lstrip("+-").replace("_", "").isdecimal()


def parse_float(value: Any) -> float:
    """Convert a value to a finite float."""
    if isinstance(value, bool) or not isinstance(value, _NUMBER_TYPES):
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
    """Convert a value to a boolean. Accepted text is yes, on, true, 1 and their opposites, in any case."""
    if isinstance(value, bool):
        return value
    boolean = _BOOLEANS.get(value.strip().lower()) if isinstance(value, str) else None
    if boolean is None:
        raise ConversionError
    return boolean


def parse_decimal(value: Any) -> Decimal:
    """Convert a value to a finite decimal number."""
    if isinstance(value, bool) or not isinstance(value, _NUMBER_TYPES):
        raise ConversionError
    try:
        number = Decimal(str(value).strip())
    except (ArithmeticError, ValueError):
        raise ConversionError from None
    if not number.is_finite():
        raise ConversionError
    return _checked_size(number)


def _checked_size(number: Decimal) -> Decimal:
    """Return *number* if its notation without an exponent has at most `MAX_DIGITS` digits on either side."""
    exponent = int(number.as_tuple().exponent)
    if not number:
        return number if abs(exponent) <= MAX_DIGITS else Decimal()
    if abs(number.adjusted()) > MAX_DIGITS or exponent < -MAX_DIGITS:
        raise ConversionError(reason=_TOO_MANY_DIGITS)
    return number


def convert_decimal(value: Any, annotation: Any) -> Decimal:
    """Convert a JSON value to a decimal number if it matches the JSON Schema of *annotation*."""
    if isinstance(value, str) and not re.match(DECIMAL, value):
        raise ConversionError
    return _checked_size(msgspec.convert(value, annotation))


def convert_key(text: str, annotation: Any) -> Any:
    """Convert the key of a JSON object. Raises `msgspec.ValidationError` for invalid keys."""
    return next(iter(msgspec.convert({text: None}, dict[annotation, None], str_keys=True)))


def convert_int_key(text: str, annotation: Any) -> Any:
    """Convert the key of a JSON object to an integer if it matches the JSON Schema."""
    if not re.match(INTEGER_KEY, text):
        raise ConversionError
    return convert_key(text, annotation)


def parse_bytes(value: Any) -> bytes:
    """Decode base64 or a data: URI."""
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
            # Lines of base64 are often wrapped at 76 characters, as in e-mail.
            return b64decode("".join(value.split()), validate=True)
        return _unescape(value)  # see RFC 2397
    except ValueError:
        raise ConversionError from None


def _unescape(text: str) -> bytes:
    """Convert *text* to bytes, decoding percent escapes."""
    from urllib.parse import unquote_to_bytes  # rarely needed

    return b"".join(unquote_to_bytes(piece[0]) for piece in re.finditer(_PIECE, text))


def text_parser(parse: Callable[[str], Any]) -> ReadFunction:
    """
    Return a function that parses text with *parse*.

    *parse* must raise ValueError or OverflowError for invalid text.
    """

    def read(value: Any) -> Any:
        if not isinstance(value, str):
            raise ConversionError
        try:
            return parse(value.strip())
        except (ValueError, OverflowError):
            raise ConversionError from None

    return read


def parse_path(text: str) -> Path:
    """Convert *text* to a path. Raises ValueError for text that no system accepts as a path."""
    if not text or "\0" in text:
        raise ValueError
    return Path(text)


# These patterns are compiled when the first duration is parsed, because that takes as long as an import.

#: ``1d 2h 30m``, ``90 s``, ``1.5 hours``; also ``1:30`` and ``1 day, 2:03:04``, Python's own format.
_UNITS: Final = (
    r"(?:([\d.]+)\s*w(?:(?:ee)?ks?)?)?\s*(?:([\d.]+)\s*d(?:ays?)?,?)?\s*(?:([\d.]+)\s*h(?:(?:ou)?rs?)?)?\s*"
    r"(?:([\d.]+)\s*m(?:in(?:ute)?s?)?)?\s*(?:([\d.]+)\s*s(?:ec(?:ond)?s?)?)?"
)
#: The maximum length of a duration, in characters. Longer text is rejected before it is split into words.
_MAX_DURATION_LENGTH: Final = 1000

_CLOCK: Final = r"(?:(-?\d+) days?,\s*)?(\d+):(\d\d)(?::(\d\d(?:\.\d{1,6})?))?"


def parse_duration(text: str) -> timedelta:
    """
    Parse a duration: ISO 8601, amounts with units (``1h 30m``), or hours and minutes (``1:30``).

    Raises ValueError or OverflowError for any other text.
    """
    if len(text) > _MAX_DURATION_LENGTH:
        raise ValueError(text[:_MAX_DURATION_LENGTH])
    if text.lstrip("+-")[:1] in ("P", "p"):
        return msgspec.convert(text, timedelta)
    if clock := re.fullmatch(_CLOCK, text, re.IGNORECASE):
        days, hours, minutes, seconds = (float(part or 0) for part in clock.groups())
        return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    # White space is collapsed, because long runs of spaces would cause backtracking.
    units = re.fullmatch(_UNITS, " ".join(text.removeprefix("-").split()), re.IGNORECASE)
    if units is None or not units[0]:
        raise ValueError(text)
    names = ("weeks", "days", "hours", "minutes", "seconds")
    duration = timedelta(**{name: float(part or 0) for name, part in zip(names, units.groups(), strict=True)})
    return -duration if text.startswith("-") else duration


def duration_text(duration: timedelta) -> str:
    """Format a duration for people, in syntax that `parse_duration` accepts: ``1h 30m``."""
    absolute = abs(duration)
    minutes, seconds = divmod(absolute.seconds, 60)
    fraction = f".{absolute.microseconds:06}".rstrip("0") if absolute.microseconds else ""
    amounts = {"d": absolute.days, "h": minutes // 60, "m": minutes % 60, "s": f"{seconds}{fraction}"}
    parts = [f"{amount}{unit}" for unit, amount in amounts.items() if amount not in (0, "0")]
    return "-" * (duration < timedelta()) + (" ".join(parts) or "0s")


#: The number of bytes to scan at a time, because splitting at quotation marks can take many times the memory.
_PIECE_SIZE: Final = 1 << 15

#: The line endings of `str.splitlines`.
_LINE_ENDS: Final = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"

#: A translation table from brackets to their change of depth, as a signed byte; and all other bytes.
_DEPTH_CHANGES: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[{]}"))


def measure_json(json: bytes) -> Iterator[tuple[int, int]]:
    """
    Scan *json* in pieces. After each, yield the greatest depth and an upper bound on the values so far.

    An empty list counts as one value. If *json* is not valid JSON, the numbers are meaningless.
    """
    json = json.replace(b"\\\\", b"").replace(b'\\"', b"")  # the remaining quotation marks are not escaped
    depth = deepest = values = 0
    prefix = b""
    for start in range(0, len(json), _PIECE_SIZE):
        # Every other part is inside a string. The last part can continue in the next piece.
        parts = (prefix + json[start : start + _PIECE_SIZE]).split(b'"')
        prefix = b"" if len(parts) % 2 else b'"'
        text_outside_strings = b"".join(parts[::2])
        brackets = text_outside_strings.translate(_DEPTH_CHANGES, _NOT_BRACKETS)
        depths = list(accumulate(memoryview(brackets).cast("b"), initial=depth))
        depth, deepest = depths[-1], max(deepest, *depths)
        values += brackets.count(1) + text_outside_strings.count(b",")
        yield deepest, values


def has_more_values(text: str, limit: int) -> bool:
    """Return whether JSON, or the text of a list, has more than *limit* values, including blank items."""
    text = text.strip()
    if text.startswith(("[", "{")):
        count = text.count(",") + text.count("[") + text.count("{")
        return count > limit and any(
            values > limit for _, values in measure_json(text.encode(errors="replace"))
        )
    lines = sum(map(text.count, _LINE_ENDS)) - text.count("\r\n")
    return lines >= limit if "\n" in text else max(lines, text.count(",")) >= limit
