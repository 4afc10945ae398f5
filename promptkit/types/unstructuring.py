"""Values to what a client would send for them: JSON, or text that is read back."""

from enum import Enum, Flag
from typing import Any

import msgspec

from promptkit.types.kinds import surrogate_of
from promptkit.types.scalars import scalar_of_value


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
    if isinstance(value, Flag):
        return "|".join(str(one.value) for one in value) or "0"
    if isinstance(value, Enum):
        return str(json_of(value))
    if (scalar := scalar_of_value(value)) is not None and scalar.tree is not None:
        return scalar.write(value)
    written = json_of(value)
    return written if isinstance(written, str) else msgspec.json.encode(written).decode()


def typed_text(value: Any) -> str:
    """
    Return the same text as people type it: ``yes``, ``30m``, and ``a, b`` for a list, unless that says else.

    Raises:
        TypeError: If it, or a part of it, is of a type that cannot be written.
    """
    if is_row(value):
        return ", ".join(map(typed_text, value))
    scalar = None if isinstance(value, Enum) else scalar_of_value(value)
    return text_of(value) if scalar is None or scalar.show is None else scalar.show(value)


def is_row(value: Any) -> bool:
    """Return whether *value* is a list that is read back from its items with commas between them."""
    if not isinstance(value, list | set | frozenset) or not value:
        return False
    texts = [typed_text(item) if _is_plain(item) else "" for item in value]
    is_clear = all(text and text == text.strip() and not {",", "\n"} & set(text) for text in texts)
    return is_clear and not texts[0].startswith("[")


def _is_plain(item: Any) -> bool:
    scalar = scalar_of_value(item)
    return isinstance(item, Enum) or (scalar is not None and scalar.shown_in_row)


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
