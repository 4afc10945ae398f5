"""
Choices, which are enumerations and ``Literal``: their texts, their meanings and their readers.

The text of a member of an enumeration is its value if that is text, and its name otherwise. A value that is a
number is accepted, too.
"""

import ast
import inspect
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import partial
from itertools import pairwise
from tokenize import TokenError
from typing import Any, Final, get_args
from weakref import WeakKeyDictionary

from promptkit.errors.sources import text_of
from promptkit.errors.suggestions import nearest
from promptkit.types.errors import ConversionError
from promptkit.types.scalars import Convert, Reader

_meanings: Final[WeakKeyDictionary[type[Enum], Mapping[str, str]]] = WeakKeyDictionary()


def meanings_of(kind: type[Enum]) -> Mapping[str, str]:
    """
    Return the meanings of the members that have one, by name, each on one line without a final period.

    The source is read once for each class.
    """
    if (meanings := _meanings.get(kind)) is None:
        meanings = _meanings[kind] = _read_meanings(kind)
    return meanings


def _read_meanings(kind: type[Enum]) -> Mapping[str, str]:
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    source = text_of(file) if file else ""
    starts = re.finditer(rf"^[ \t]*class[ \t]+{re.escape(kind.__name__)}\b", source, re.MULTILINE)
    for start in reversed(list(starts)):  # a later class replaces an earlier one with its name
        literals = _literals_in(source[start.start() :])
        if kind.__members__.keys() <= literals.keys():
            return {name: literals[name] for name in kind.__members__ if literals[name]}
    return {}


def _literals_in(source: str) -> dict[str, str]:
    """Return the literals below the names of the class that starts *source*; ``""`` for names without one."""
    try:  # parsing only the class is faster than parsing its file
        block = "".join(inspect.getblock(source.splitlines(keepends=True)))
        tree = ast.parse(f"if True:\n{block}" if block[0].isspace() else block)
    except (SyntaxError, ValueError, TokenError):  # the file has changed, or this is text in a string
        return {}
    definitions = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    body = next((definition.body for definition in definitions), [])
    literals = dict[str, str]()
    for statement, following in pairwise((*body, ast.Pass())):
        match statement, following:
            case ast.Assign([ast.Name(name)]), ast.Expr(ast.Constant(str(text))):
                literals[name] = " ".join(text.split()).removesuffix(".")
            case ast.Assign([ast.Name(name)]), _:
                literals[name] = ""
    return literals


def member_text(member: Enum) -> str:
    """Return the text of a member, in JSON as well: its value if that is text, otherwise its name."""
    return member.value if isinstance(member.value, str) else member.name


def meaning_of(choice: Any) -> str:
    """Return the meaning of a choice, the string literal below a member of an enumeration, or ``""``."""
    return meanings_of(type(choice)).get(choice.name or "", "") if isinstance(choice, Enum) else ""


def enum_reader(annotation: type[Enum]) -> Reader | None:
    """Return a reader of an enumeration, by value or name; None if it has no members."""
    return _reader((member, _names_of(member)) for member in annotation) if len(annotation) else None


def enum_converter(annotation: type[Enum]) -> Convert:
    """
    Return a function that converts JSON to members: by their text, or by values that are numbers.

    It raises `ConversionError`.
    """
    members: dict[tuple[type, Any], Any] = {
        (type(name), name): member
        for member in annotation
        for name in (member.value, member_text(member))
        if isinstance(name, str | int | float)
    }

    def convert(value: Any, _: Any) -> Any:
        if isinstance(value, float) and value.is_integer() and (float, value) not in members:
            value = int(value)  # in JSON Schema, 1.0 is an integer
        if not isinstance(value, str | int | float) or (member := members.get((type(value), value))) is None:
            raise ConversionError
        return member

    return convert


def literal_reader(annotation: Any) -> Reader:
    """Return a reader of a ``Literal``. None is not a value: it means that the argument is missing."""
    return _reader((value, _names_of(value)) for value in get_args(annotation) if value is not None)


def _names_of(member: Any) -> tuple[Any, ...]:
    """Return the text of a choice, its other names, and its value if that is a number."""
    if isinstance(member, bool):
        return ("yes" if member else "no", member)
    if not isinstance(member, Enum):
        return (member,)
    names = [name for name, member_value in type(member).__members__.items() if member_value is member]
    return member_text(member), *names, *([member.value] if isinstance(member.value, int | float) else [])


def _reader(choices: Iterable[tuple[Any, tuple[Any, ...]]]) -> Reader:
    """Return a reader of values by their names, as text or other JSON. The first name is displayed."""
    choices = list(choices)
    exact, folded = _by_name(choices)
    display_names = {str(name): str(names[0]) for _, names in reversed(choices) for name in names}

    def read(value: Any) -> Any:
        if not isinstance(value, str | int | float | bool):
            raise ConversionError
        if isinstance(value, float) and value.is_integer() and (float, value) not in exact:
            value = int(value)  # in JSON Schema, 1.0 is an integer
        key = (type(value), value)
        if key in exact:
            return exact[key]
        if not isinstance(value, str) or (text := value.strip().casefold()) not in folded:
            raise ConversionError(
                nearest=partial(_nearest, value, display_names) if isinstance(value, str) else None
            )
        return folded[text]

    meanings = {str(names[0]): meaning_of(value) for value, names in choices}
    known = {name: meaning for name, meaning in meanings.items() if meaning}
    names = tuple(str(names[0]) for _, names in choices)
    return Reader(read, one_of(names), one_of(names, known), names, known)


def one_of(names: Sequence[str], meanings: Mapping[str, str] = {}) -> str:
    """Describe the valid names, each with its meaning if it has one."""
    words = [f"{name} ({meanings[name]})" if name in meanings else name for name in names]
    return f"one of {', '.join(words)}" if len(words) > 1 or meanings else repr(words[0])


def _by_name(
    choices: list[tuple[Any, tuple[Any, ...]]],
) -> tuple[dict[tuple[type, Any], Any], dict[str, Any]]:
    """Return the values by type and name, and by case-folded name."""
    # If several values share a name, the first value wins, and a first name wins over all other names.
    pairs = [(names[0], value) for value, names in choices]
    pairs += [(name, value) for value, names in choices for name in names[1:]]
    pairs.reverse()
    exact: dict[tuple[type, Any], Any] = {(str, str(name)): value for name, value in pairs}
    exact |= {(type(name), name): value for name, value in pairs}
    return exact, {str(name).casefold(): value for name, value in pairs}


def _nearest(text: str, display_names: Mapping[str, str]) -> str | None:
    """Return the first name of the value whose name is most similar to *text*."""
    name = nearest(text, display_names)
    return None if name is None else display_names[name]
