"""Fixed sets of values, enumerations and ``Literal``: their order, and their readers."""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, Flag
from functools import partial, reduce
from operator import or_
from typing import Any, Final, TypeAlias, get_args

from msgspec import inspect as mi
from msgspec import structs

from promptkit.errors.suggestions import nearest
from promptkit.types.errors import ConversionError
from promptkit.types.kinds import is_literal, plain
from promptkit.types.scalars import Reader

#: Longer text is no sum of flags, and takes long to be read as a number.
_MOST_DIGITS: Final = 40

#: The values of each ``Literal`` as its author wrote them.
Orders: TypeAlias = Mapping[frozenset[Any], tuple[Any, ...]]


def orders_of(*annotations: Any) -> Orders:
    """Return the orders of the choices within types, but for those within their classes."""
    found: dict[frozenset[Any], tuple[Any, ...]] = {}
    for annotation in map(plain, annotations):
        arguments = get_args(annotation)
        found |= {_typed(arguments): arguments} if is_literal(annotation) else orders_of(*arguments)
    return found


def values_of(tree: mi.LiteralType | mi.EnumType, orders: Orders) -> Iterable[Any]:
    """Return the values of choices in their author's order."""
    if isinstance(tree, mi.EnumType):
        return tree.cls
    return orders.get(_typed(tree.values), tree.values)


def _typed(values: Iterable[Any]) -> frozenset[Any]:
    return frozenset((type(value), value) for value in values)


def enum_reader(annotation: type[Enum]) -> Reader | None:
    """Make a reader of an enumeration, by value or by name; None if it has no members."""
    if not len(annotation):
        return None
    reader = _reader((member, _names_of(member)) for member in annotation)
    return _flags_reader(annotation, reader) if issubclass(annotation, Flag) else reader


def _flags_reader(annotation: type[Flag], one: Reader) -> Reader:
    """Make a reader of flags, of which none may be set, or several: by their names, or by their sum."""
    every = reduce(or_, annotation).value

    def read(value: Any) -> Any:
        if isinstance(value, str) and "|" in value:
            return reduce(or_, map(one.read, value.split("|")))
        number = _whole(value) if isinstance(value, str) else value
        return annotation(number) if type(number) is int and not number & ~every else one.read(value)

    expected = f"{one.expected}, or several with | between them"
    return structs.replace(one, read=read, expected=expected, hint=expected, is_several=True)


def _whole(text: str) -> int | None:
    return int(text) if len(text) <= _MOST_DIGITS and text.strip().isdecimal() else None


def literal_reader(annotation: Any) -> Reader:
    """Make a reader of a ``Literal``. None among its values means that nothing was given."""
    return _reader((value, _names_of(value)) for value in get_args(annotation) if value is not None)


def _names_of(member: Any) -> tuple[Any, ...]:
    """Return the value of a choice, if that is plain, and its names."""
    if isinstance(member, bool):
        return ("yes" if member else "no", member)
    if not isinstance(member, Enum):
        return (member,)
    names = [name for name, named in type(member).__members__.items() if named is member]
    return (member.value, *names) if isinstance(member.value, str | int) else tuple(names)


def _reader(choices: Iterable[tuple[Any, tuple[Any, ...]]]) -> Reader:
    """Make a reader of values, each with its names, as text or other JSON. The first name is shown."""
    choices = list(choices)
    exact, folded = _by_name(choices)
    texts = {name: value for (kind, name), value in exact.items() if kind is str}
    shown = {str(name): str(names[0]) for _, names in reversed(choices) for name in names}

    def read(value: Any) -> Any:
        if type(value) is str and value in texts:  # nearly always
            return texts[value]
        if not isinstance(value, str | int | float | bool):
            raise ConversionError
        if isinstance(value, float) and value.is_integer() and (float, value) not in exact:
            value = int(value)  # 1.0 is an integer, to JSON Schema
        key = (type(value), value)
        if key in exact:
            return exact[key]
        if not isinstance(value, str) or (text := value.strip().casefold()) not in folded:
            raise ConversionError(nearest=partial(_nearest, value, shown) if isinstance(value, str) else None)
        return folded[text]

    names = tuple(str(names[0]) for _, names in choices)
    return Reader(read, one_of(names), one_of(names), names)


def one_of(names: Sequence[str]) -> str:
    """Return what a value has to be, in words."""
    return repr(names[0]) if len(names) == 1 else f"one of {', '.join(names)}"


def _by_name(
    choices: list[tuple[Any, tuple[Any, ...]]],
) -> tuple[dict[tuple[type, Any], Any], dict[str, Any]]:
    """Return the values by type and name, and by name in any case."""
    # Of several values with one name, the first counts; and the name that is shown before all others.
    named = [(names[0], value) for value, names in choices]
    named += [(name, value) for value, names in choices for name in names[1:]]
    named.reverse()
    exact: dict[tuple[type, Any], Any] = {(str, str(name)): value for name, value in named}
    exact |= {(type(name), name): value for name, value in named}
    return exact, {str(name).casefold(): value for name, value in named}


def _nearest(text: str, shown: Mapping[str, str]) -> str | None:
    """Return the shown name of the value whose name is nearest to *text*."""
    found = nearest(text, shown)
    return None if found is None else shown[found]
