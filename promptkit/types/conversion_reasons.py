"""The wording of conversion errors, and how they show invalid values."""

from reprlib import Repr
from typing import Any, Final

from promptkit.types.errors import ABSENT, ConversionError

#: The JSON spellings of Python's constants, because clients and models are more familiar with JSON.
_JSON_NAMES: Final = {None: "null", True: "true", False: "false"}


class _ShortRepr(Repr):
    """A `Repr` that also accepts integers of any size."""

    def repr_int(self, x: int, level: int) -> str:
        # Python raises ValueError when asked to convert an integer with too many digits to text.
        if x.bit_length() > 200:
            return f"a whole number of {x.bit_length():,} bits"
        return super().repr_int(x, level)


#: Shortens the reprs of values for error messages.
short: Final = _ShortRepr()
short.maxstring = 60


def shortened(value: Any) -> str:
    """Return *value* as text, truncated to a readable length, for the data of an error."""
    if not isinstance(value, str):
        return short.repr(value)
    return value if len(value) <= short.maxstring else f"{value[: short.maxstring]}..."


def invalid_value(part: ConversionError, value: Any) -> Any:
    """Return the invalid part of *value* to which an error refers."""
    return value if part.got is None and not part.path else part.got


def reason_of(part: ConversionError, value: Any, expected: str, *, secret: bool = False) -> str:
    """
    Return the part of an error message that follows the name of an argument or a member: ``is missing``.

    Args:
        part:
            The error.

        value:
            The whole value, of which only a part may be invalid.

        expected:
            A short description of valid values.

        secret:
            Whether to keep the value out of the message.
    """
    if part.got is ABSENT:
        return "is missing"
    if part.reason is not None and not secret:
        return part.reason
    if part.reason is not None and part.expected is None:
        return "is invalid"
    invalid = invalid_value(part, value)
    display = _JSON_NAMES[invalid] if invalid is None or isinstance(invalid, bool) else short.repr(invalid)
    return f"is not {expected}" if secret else f"is {display}, not {expected}"
