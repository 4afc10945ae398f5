"""From values to what a client would send for them: JSON, or text that is read back."""

from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import msgspec

from promptkit.conversion.registry import CUSTOMS

__all__ = ["json_of", "text_of"]


def json_of(value: Any) -> Any:
    """
    Return *value* as JSON has it, in plain Python: what the schema of its type describes.

    Raises:
        TypeError: If it, or a part of it, is of a type that cannot be written.
    """
    if isinstance(value, Enum) and not isinstance(value.value, str | int):
        return value.name  # as its reader takes it
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_custom)


def text_of(value: Any) -> str:
    """
    Return the text that stands for *value*, so that a parameter of its type reads it back.

    Text stands for itself, scalars are written as people write them, and all else as JSON.

    Raises:
        TypeError: If it, or a part of it, is of a type that cannot be written.
    """
    if isinstance(value, Enum):
        return str(json_of(value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, str | int | float | Decimal | timedelta | UUID):
        return str(value)
    written = json_of(value)
    return written if isinstance(written, str) else msgspec.json.encode(written).decode()


def _custom(value: Any) -> Any:
    """
    Return a value of a registered type as text.
    """
    for kind in type(value).__mro__:
        if kind in CUSTOMS:
            return CUSTOMS[kind].write(value)
    msg = f"a {type(value).__name__} cannot be written: teach it with promptkit.register_type"
    raise TypeError(msg)
