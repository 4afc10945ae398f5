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
    Teach promptkit a type, so that parameters, and parts of them, may be of it.

    Args:
        kind:
            The type. Types of Python that promptkit reads already, as `int` and `date`, stay as they are.

        read:
            From text to a value; it raises for text that does not fit.

        expected:
            What *read* takes, in a few words that end a sentence: ``an amount, as in 3 EUR``.

        schema:
            The JSON Schema of the text; any string if left out.

        write:
            From a value to text that *read* takes.
    """
    known = SCALARS.get(kind)
    if known is None or known.tree is None:  # what msgspec knows it reads and writes itself
        SCALARS[kind] = text_scalar(read, expected=expected, schema=schema or {"type": "string"}, write=write)
