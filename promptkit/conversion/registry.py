"""How authors teach promptkit their own types."""

from collections.abc import Callable, Mapping
from typing import Any

from promptkit.conversion.scalars import SCALARS, text_scalar

__all__ = ["register_type"]


def register_type(
    kind: type,
    read: Callable[[str], Any],
    *,
    expected: str,
    schema: Mapping[str, Any] | None = None,
    write: Callable[[Any], str] = str,
) -> None:
    """
    Teach promptkit a type, for parameters and for parts of their values.

    Args:
        kind:
            The type. Types that promptkit already reads, such as `int` and `date`, are not replaced.

        read:
            Converts text to a value; raises an exception for text that does not fit.

        expected:
            What *read* takes, in a few words that end a sentence: ``an amount, as in 3 EUR``.

        schema:
            The JSON Schema of the text; any string if left out.

        write:
            Converts a value to text that *read* takes.
    """
    known = SCALARS.get(kind)
    if known is None or known.tree is None:  # msgspec reads and writes the types that it knows
        SCALARS[kind] = text_scalar(read, expected=expected, schema=schema or {"type": "string"}, write=write)
