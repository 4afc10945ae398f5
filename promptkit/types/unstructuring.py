"""Conversion of values to JSON, or to text that can be converted back."""

from enum import Enum
from typing import Any, Final

import msgspec

from promptkit.types.choices import member_text
from promptkit.types.kinds import Member, has_parts, is_record, members_of_record, surrogate_of, tag_of
from promptkit.types.scalar_types import scalar_of_value

#: The types of values that are the same in JSON. Most defaults and choices have one of these types.
_JSON_TYPES: Final = (str, int, float, bool, type(None))


def json_of(value: Any) -> Any:
    """
    Convert *value* to JSON-compatible data that matches the schema of its type.

    Raises:
        TypeError: If *value* or a part of it cannot be converted.
    """
    return msgspec.to_builtins(_dump(value), str_keys=True, enc_hook=_encode_unsupported)


def text_of(value: Any) -> str:
    """
    Convert *value* to text that a parameter of its type converts back to *value*. Use JSON if it has parts.

    Raises:
        TypeError: If *value* or a part of it cannot be converted.
    """
    if isinstance(value, Enum):
        return member_text(value)
    if (scalar := scalar_of_value(value)) is not None:
        return scalar.write(value)
    json_value = json_of(value)
    return json_value if isinstance(json_value, str) else msgspec.json.encode(json_value).decode()


def text_as_entered(value: Any) -> str:
    """
    Convert *value* to text as people would type it: ``yes``, ``30m``, or ``a, b`` for a list.

    If the items of a list cannot be separated by commas, use JSON instead.

    Raises:
        TypeError: If *value* or a part of it cannot be converted.
    """
    if is_inline_list(value):
        return ", ".join(map(text_as_entered, value))
    scalar = None if isinstance(value, Enum) else scalar_of_value(value)
    return text_of(value) if scalar is None or scalar.show is None else scalar.show(value)


def is_inline_list(value: Any) -> bool:
    """Return whether *value* is a list or set that can be written unambiguously with commas between items."""
    if not isinstance(value, list | set | frozenset) or not value:
        return False
    texts = [text_as_entered(item) if _is_plain(item) else "" for item in value]
    is_unambiguous = all(text and text == text.strip() and not {",", "\n"} & set(text) for text in texts)
    return is_unambiguous and not texts[0].startswith("[")


def _is_plain(item: Any) -> bool:
    scalar = scalar_of_value(item)
    return isinstance(item, Enum) or (scalar is not None and scalar.is_inline)


def can_be_sent(value: Any) -> bool:
    """Return whether *value* can be sent: it and all its parts can be converted to JSON text."""
    try:
        msgspec.json.encode(json_of(value))
    except Exception:  # noqa: BLE001 (an author's type can raise anything)
        return False
    return True


def _dump(value: Any) -> Any:  # noqa: PLR0911 (a list of cases)
    """
    Convert a value and its parts where promptkit and msgspec would convert them differently.

    This applies to enumerations, records, registered types, and types with a surrogate.
    """
    if type(value) in _JSON_TYPES:
        return value
    if isinstance(value, Enum):
        return member_text(value)
    if (surrogate := surrogate_of(type(value))) is not None:
        return surrogate.dump(value)
    if not has_parts(type(value)):
        return value
    if (scalar := scalar_of_value(value)) is not None:  # a registered class
        return scalar.write(value)
    if isinstance(value, dict):
        return {
            member_text(key) if isinstance(key, Enum) else key: _dump(part) for key, part in value.items()
        }
    if is_record(type(value)):
        return tag_of(type(value)) | {
            member.name: _dump(_stored_value(value, member)) for member in members_of_record(type(value))
        }
    return [_dump(part) for part in value]


def _stored_value(record: Any, member: Member) -> Any:
    if member.attribute is None:
        msg = (
            f"a {type(record).__name__} cannot be converted to text: it does not store the value of "
            f"{member.name!r}"
        )
        raise TypeError(msg)
    return getattr(record, member.attribute)


def _encode_unsupported(value: Any) -> Any:
    if (surrogate := surrogate_of(type(value))) is not None:
        return surrogate.dump(value)
    if (scalar := scalar_of_value(value)) is not None:
        return scalar.write(value)
    msg = (
        f"a {type(value).__name__} cannot be converted to text: register its type with "
        "promptkit.register_type"
    )
    raise TypeError(msg)
