"""
Readers: from the text of one argument to a value of its type.

On the wire every argument is a string. The table `READERS` says for each type how such a
string is read; `promptkit.arguments` looks a parameter up in it once, when it is compiled.
"""

import types
import typing
from collections.abc import Callable, Iterable
from enum import Enum
from math import isfinite
from typing import Any, Final, Literal, TypeAlias, get_args, get_origin

import attrs
import msgspec

from promptkit.errors import nearest

__all__ = ["Misfit", "Reader", "is_literal", "is_union", "reader_of"]

#: Takes what a client sent, a string or another JSON value; raises `Misfit`.
Read: TypeAlias = Callable[[Any], Any]


class Misfit(ValueError):
    """
    A value that is not what its parameter takes.

    Args:
        nearest:
            The value that was probably meant, if one is similar.
    """

    def __init__(self, nearest: str | None = None) -> None:
        super().__init__()
        self.nearest = nearest


@attrs.frozen
class Reader:
    """
    How values of one type are read.

    Args:
        read:
            From what a client sent to the value.

        expected:
            What *read* takes, in a few words that end a sentence: ``a whole number``.

        hint:
            The same where people choose a value; ``""`` where the description says enough.

        values:
            Every text that is a value, if there are few: what completion offers.
    """

    read: Read
    expected: str
    hint: str = ""
    values: tuple[str, ...] = ()


def _read_text(value: Any) -> str:
    if not isinstance(value, str):
        raise Misfit
    return value


def _read_int(value: Any) -> int:
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            raise Misfit from None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise Misfit
    return value


def _read_float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise Misfit
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise Misfit from None
    if not isfinite(number):
        raise Misfit
    return number


_BOOLEANS: Final = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


def _read_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    found = _BOOLEANS.get(value.strip().lower()) if isinstance(value, str) else None
    if found is None:
        raise Misfit
    return found


def _read_bytes(value: Any) -> bytes:
    from pybase64 import b64decode

    if not isinstance(value, str):
        raise Misfit
    if value[:5].lower() == "data:":
        head, comma, value = value.partition(",")
        if not comma:
            raise Misfit
        if not head.lower().endswith(";base64"):
            from urllib.parse import unquote_to_bytes

            return unquote_to_bytes(value)  # as RFC 2397 has it
    try:
        # Base64 is often wrapped at 76 characters, as e-mail does.
        return b64decode("".join(value.split()), validate=True)
    except ValueError:
        raise Misfit from None


def _choice(choices: Iterable[tuple[Any, tuple[Any, ...]]]) -> Reader:
    """
    Return a reader of a fixed set of values.

    Args:
        choices:
            Each value and what it is called, as text or as another JSON value. The first name
            is the one that people see, and counts before all others. Of several values with
            one name the first counts, and a name in its own type and case before another.
    """
    choices = list(choices)
    # What people see counts before what they may write as well.
    named = [(names[0], value) for value, names in choices]
    named += [(name, value) for value, names in choices for name in names[1:]]
    exact: dict[Any, Any] = {}
    for name, value in named:
        exact.setdefault((type(name), name), value)
    for name, value in named:
        exact.setdefault((str, str(name)), value)
    folded: dict[str, Any] = {}
    for name, value in named:
        folded.setdefault(str(name).casefold(), value)
    shown = {str(name): str(names[0]) for _, names in reversed(choices) for name in names}

    def read(value: Any) -> Any:
        if not isinstance(value, str | int | float | bool):
            raise Misfit
        key = (type(value), value)
        if key in exact:
            return exact[key]
        if not isinstance(value, str) or (text := value.strip().casefold()) not in folded:
            similar = nearest(str(value), shown)
            raise Misfit(similar and shown[similar])
        return folded[text]

    names = tuple(str(names[0]) for _, names in choices)
    one_of = f"one of {', '.join(names)}"
    return Reader(read, one_of, one_of, names)


def _member_names(member: Enum) -> tuple[Any, ...]:
    """
    Return what a member of an enumeration is called: its value, if that is plain, and its names.
    """
    names = [name for name, named in type(member).__members__.items() if named is member]
    return (member.value, *names) if isinstance(member.value, str | int) else tuple(names)


def _enum_reader(annotation: type[Enum]) -> Reader | None:
    """
    Return a reader of an enumeration, by value or by name. One without members has no value.
    """
    return _choice((member, _member_names(member)) for member in annotation) if len(annotation) else None


def _literal_reader(annotation: Any) -> Reader:
    """
    Return a reader of a ``Literal``; None among its values is "not given".
    """
    values = [value for value in get_args(annotation) if value is not None]
    return _choice((v, _member_names(v) if isinstance(v, Enum) else (v,)) for v in values)


def _optional_reader(annotation: Any) -> Reader | None:
    """
    Return a reader of ``T | None``. None itself is not read: it is what was not given.
    """
    inner = [member for member in get_args(annotation) if member is not types.NoneType]
    return reader_of(inner[0]) if len(inner) == 1 else None


def _list_reader(annotation: Any) -> Reader | None:
    """
    Return a reader of a list: a JSON array, or values that commas or line ends separate.
    """
    members = get_args(annotation)
    member = reader_of(members[0]) if members and not is_list(members[0]) else None
    if member is None:
        return None
    read_member = member.read
    # A data: URI has a comma of its own.
    separators = "\n" if member is _BYTES else ",\n"

    def read(value: Any) -> list[Any]:
        items = _split_list(value, separators) if isinstance(value, str) else value
        if not isinstance(items, list):
            raise Misfit
        return [read_member(item) for item in items]

    expected = f"a list, each item {member.expected}" if member.expected != "text" else "a list"
    separated = "several, one a line" if member is _BYTES else "several, separated by commas"
    hint = f"{separated}; each {member.hint}" if member.hint else separated
    return Reader(read, expected, hint)


def _split_list(text: str, separators: str) -> Any:
    """
    Return the items of a list as people write it, without blank ones.
    """
    if text.lstrip().startswith("["):
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError, ValueError):
            raise Misfit from None
    by_line = "\n" in text.strip() or "," not in separators
    items = text.splitlines() if by_line else text.split(",")
    return [item.strip() for item in items if item.strip()]


def _is(kind: type) -> Callable[[Any], bool]:
    """
    Return what recognises *kind* itself.
    """
    return lambda annotation: annotation is kind


def is_enum(annotation: Any) -> bool:
    """
    Return whether *annotation* is an enumeration.
    """
    return isinstance(annotation, type) and issubclass(annotation, Enum)


def is_literal(annotation: Any) -> bool:
    """
    Return whether *annotation* is a ``Literal``.
    """
    return get_origin(annotation) is Literal


def is_list(annotation: Any) -> bool:
    """
    Return whether *annotation* is a list of something.
    """
    return get_origin(annotation) is list


def is_union(annotation: Any) -> bool:
    """
    Return whether *annotation* is a union, in either spelling.
    """
    return get_origin(annotation) in (typing.Union, types.UnionType)


_TEXT: Final = Reader(_read_text, "text")
_INT: Final = Reader(_read_int, "a whole number", "a whole number")
_FLOAT: Final = Reader(_read_float, "a number", "a number")
_BOOL: Final = Reader(_read_bool, "yes or no", "yes or no", ("yes", "no"))
_BYTES: Final = Reader(_read_bytes, "base64 or a data: URI", "base64 or a data: URI")

#: The types that can be parameters: what recognises one, and what makes its reader. The
#: first row that recognises a type counts; a factory may still decline, with None.
READERS: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any], Reader | None]], ...]] = (
    (_is(str), lambda _: _TEXT),
    (_is(bool), lambda _: _BOOL),
    (_is(int), lambda _: _INT),
    (_is(float), lambda _: _FLOAT),
    (_is(bytes), lambda _: _BYTES),
    (is_enum, _enum_reader),
    (is_literal, _literal_reader),
    (is_list, _list_reader),
    (is_union, _optional_reader),
)


def reader_of(annotation: Any) -> Reader | None:
    """
    Return the reader for a type, or None if it is not supported.
    """
    for recognises, factory in READERS:
        if recognises(annotation):
            return factory(annotation)
    return None
