"""
Choices (enumerations and ``Literal``): their text, their meanings, and the readers for them.

The text of an enumeration member is its value if that is a string, otherwise its name. Numeric values are
accepted as well.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any, Final, get_args

from promptkit.errors.suggestions import nearest
from promptkit.types.enum_sources import meanings_of
from promptkit.types.errors import ConversionError
from promptkit.types.scalar_parsers import ReadFunction
from promptkit.types.scalar_types import Reader

#: The types that a choice's name can have. (A bool is an int.)
_NAME_TYPES: Final = (str, int, float)


def member_text(member: Enum) -> str:
    """Return a member's text, which is also its JSON: its value if that is a string, otherwise its name."""
    return member.value if isinstance(member.value, str) else member.name


def meaning_of(choice: Any) -> str:
    """
    Return the meaning of a choice: the string literal below it in its enumeration's source; ``""`` if none.
    """
    return meanings_of(type(choice)).get(choice.name or "", "") if isinstance(choice, Enum) else ""


def enum_reader(annotation: type[Enum]) -> Reader | None:
    """Return a reader for the values and names of an enumeration; None if it has no members."""
    return _choice_reader((member, _names_of(member)) for member in annotation) if len(annotation) else None


def enum_converter(annotation: type[Enum]) -> ReadFunction:
    """
    Return a function that converts a JSON value to a member: its text, or its value if that is a number.

    The function raises `ConversionError` for any other JSON value.
    """
    members: dict[tuple[type, Any], Any] = {
        (type(name), name): member
        for member in annotation
        for name in (member.value, member_text(member))
        if isinstance(name, str | int | float)
    }

    def convert(value: Any) -> Any:
        if isinstance(value, float) and value.is_integer() and (float, value) not in members:
            value = int(value)  # in JSON Schema, 1.0 is an integer
        if not isinstance(value, _NAME_TYPES) or (member := members.get((type(value), value))) is None:
            raise ConversionError
        return member

    return convert


def literal_reader(annotation: Any) -> Reader:
    """
    Return a reader for a ``Literal``. It does not accept None: null means that the argument is missing.
    """
    return _choice_reader((value, _names_of(value)) for value in get_args(annotation) if value is not None)


def _names_of(member: Any) -> tuple[Any, ...]:
    """Return the text of a choice, followed by its other names and, if it is a number, its value."""
    if isinstance(member, bool):
        return ("yes" if member else "no", member)
    if not isinstance(member, Enum):
        return (member,)
    names = [name for name, member_value in type(member).__members__.items() if member_value is member]
    return member_text(member), *names, *([member.value] if isinstance(member.value, int | float) else [])


def _choice_reader(choices: Iterable[tuple[Any, tuple[Any, ...]]]) -> Reader:
    """Return a reader that finds values by name. Names can be any JSON scalars; users see the first one."""
    choices = list(choices)
    exact, folded = _index_by_name(choices)
    display_names = {str(name): str(names[0]) for _, names in reversed(choices) for name in names}

    def read(value: Any) -> Any:
        if not isinstance(value, _NAME_TYPES):
            raise ConversionError
        if isinstance(value, float) and value.is_integer() and (float, value) not in exact:
            value = int(value)  # in JSON Schema, 1.0 is an integer
        key = (type(value), value)
        if key in exact:
            return exact[key]
        if not isinstance(value, str) or (text := value.strip().casefold()) not in folded:
            raise ConversionError(
                nearest=partial(_nearest_name, value, display_names) if isinstance(value, str) else None
            )
        return folded[text]

    meanings = {str(names[0]): meaning_of(value) for value, names in choices}
    known = {name: meaning for name, meaning in meanings.items() if meaning}
    names = tuple(str(names[0]) for _, names in choices)
    return Reader(read, describe_names(names), describe_names(names, known), names, known)


def describe_names(names: Sequence[str], meanings: Mapping[str, str] = {}) -> str:
    """List the valid names, each followed by its meaning if it has one."""
    words = [f"{name} ({meanings[name]})" if name in meanings else name for name in names]
    return f"one of {', '.join(words)}" if len(words) > 1 or meanings else repr(words[0])


def _index_by_name(
    choices: list[tuple[Any, tuple[Any, ...]]],
) -> tuple[dict[tuple[type, Any], Any], dict[str, Any]]:
    """Return two mappings: (type, name) to value, and case-folded name to value."""
    # If values share a name, the first value wins. A value's first name takes precedence over other names.
    pairs = [(names[0], value) for value, names in choices]
    pairs += [(name, value) for value, names in choices for name in names[1:]]
    pairs.reverse()
    exact: dict[tuple[type, Any], Any] = {(str, str(name)): value for name, value in pairs}
    exact |= {(type(name), name): value for name, value in pairs}
    return exact, {str(name).casefold(): value for name, value in pairs}


def _nearest_name(text: str, display_names: Mapping[str, str]) -> str | None:
    """
    Find the name most similar to *text*, and return the name that users see for its value.

    If no name is similar, return None.
    """
    name = nearest(text, display_names)
    return None if name is None else display_names[name]
