"""Types that are no types of JSON, and how they are read: `pathlib.Path`, and authors' own."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from promptkit.conversion.errors import ConversionError

__all__ = ["CUSTOMS", "Custom", "expectations", "register_type"]


class Custom(Struct, frozen=True):
    """
    How the values of one type are read and written.

    Args:
        read:
            From a JSON value to a value of the type; raises `ConversionError`.

        expected:
            What *read* takes, in a few words that end a sentence.

        schema:
            The JSON Schema of what it takes.

        write:
            From a value to the text that *read* takes.
    """

    read: Callable[[Any], Any]
    expected: str
    schema: Mapping[str, Any]
    write: Callable[[Any], str]


#: By type. `register_type` adds to it.
CUSTOMS: Final[dict[type, Custom]] = {}


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
            The type.

        read:
            From text to a value; it raises for text that does not fit.

        expected:
            What *read* takes, in a few words that end a sentence: ``an amount, as in 3 EUR``.

        schema:
            The JSON Schema of the text; any string if left out.

        write:
            From a value to text that *read* takes.
    """

    def checked(value: Any) -> Any:
        if not isinstance(value, str):
            raise ConversionError(expected, got=value)
        try:
            return read(value)
        except Exception:  # noqa: BLE001 (an author's function may refuse in any way)
            raise ConversionError(expected, got=value) from None

    CUSTOMS[kind] = Custom(checked, expected, schema or {"type": "string"}, write)


def expectations() -> dict[type, str]:
    """
    Return what each of the registered types takes, in words.
    """
    return {kind: custom.expected for kind, custom in CUSTOMS.items()}


def _path(text: str) -> Path:
    """
    Return *text* as a path. Raises ValueError for what no system can name.
    """
    if not text or "\0" in text:
        raise ValueError
    return Path(text)


register_type(
    Path,
    _path,
    expected="a path",
    schema={"type": "string", "minLength": 1, "pattern": r"^[^\u0000]*$"},
)
