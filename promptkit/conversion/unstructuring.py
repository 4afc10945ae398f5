"""Values to what a client would send for them: JSON, or text that is read back."""

from enum import Enum
from typing import Any

import msgspec

from promptkit.conversion.kinds import surrogate_of
from promptkit.conversion.scalar_types import scalar_of_value

__all__ = ["can_be_sent", "json_of", "text_of"]


def json_of(value: Any) -> Any:
    """
    Return *value* as plain Python for JSON, as the schema of its type describes it.

    Raises:
        TypeError: If it, or a part of it, is of a type that cannot be written.
    """
    if isinstance(value, Enum) and not isinstance(value.value, str | int):
        return value.name  # the reader takes it by name, too
    return msgspec.to_builtins(_dumped(value), str_keys=True, enc_hook=_text_in_json)


def text_of(value: Any) -> str:
    """
    Return text that a parameter of its type reads back as *value*: scalars as people write them, else JSON.

    Raises:
        TypeError: If it, or a part of it, is of a type that cannot be written.
    """
    if isinstance(value, Enum):
        return str(json_of(value))
    if (scalar := scalar_of_value(value)) is not None and scalar.tree is not None:
        return scalar.write(value)
    written = json_of(value)
    return written if isinstance(written, str) else msgspec.json.encode(written).decode()


def can_be_sent(value: Any) -> bool:
    """Return whether a client could send *value*: that it, and all its parts, have JSON and text."""
    try:
        msgspec.json.encode(json_of(value))
    except Exception:  # noqa: BLE001 (an author's type may be unable to be written, in any way)
        return False
    return True


def _dumped(value: Any) -> Any:
    """Return *value* with JSON in place of what has a surrogate: msgspec would write the fields of some."""
    if (surrogate := surrogate_of(type(value))) is not None:
        return surrogate.dump(value)
    if type(value) in (list, tuple):
        return [_dumped(part) for part in value]
    return {key: _dumped(part) for key, part in value.items()} if type(value) is dict else value


def _text_in_json(value: Any) -> Any:
    if (surrogate := surrogate_of(type(value))) is not None:
        return surrogate.dump(value)
    if (scalar := scalar_of_value(value)) is not None:
        return scalar.write(value)
    msg = f"a {type(value).__name__} cannot be written: teach it with promptkit.register_type"
    raise TypeError(msg)
