"""
Types that cannot be used: of parameters that no client can fill, and of results that no message can hold.

Of each, it is found which part of it is at fault, and what to write in its place.
"""

import inspect
from collections import abc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from io import BytesIO, IOBase
from pathlib import Path
from types import ModuleType, NoneType
from typing import Annotated, Any, Final, NotRequired, Required, get_args, get_origin

import msgspec

from promptkit.declarations.name_hints import instead_of
from promptkit.errors.diagnostics import Report
from promptkit.errors.rules import Rule
from promptkit.errors.suggestions import nearest
from promptkit.language.content import Content
from promptkit.language.messages import Message
from promptkit.language.validation import describe, hint_for
from promptkit.types.kinds import (
    hints_of,
    is_constrained,
    is_literal,
    is_own,
    is_record,
    is_struct,
    is_union,
    members_of_record,
    plain,
    type_name,
)
from promptkit.types.readers import reader_of

_GENERAL: Final = (
    "use a type that can be written as text or JSON, or teach this one with promptkit.register_type"
)

#: What to write where anything may be given.
_FOR_TEXT: Final = "write the type that is meant: str takes any text"

#: By the name of each bound, the types that take it.
_BOUNDED: Final = {
    **dict.fromkeys(("ge", "gt", "le", "lt", "multiple_of"), "int or float"),
    **dict.fromkeys(("min_length", "max_length"), "str, bytes or a collection"),
    "pattern": "str",
    "tz": "datetime or time",
}

#: What `promptkit.language.messages.messages_of` accepts or the renderer unwraps, and what they never accept.
_SENDABLE: Final = (
    *(str, NoneType, Content, Message),
    *(abc.Sequence, abc.Iterator, abc.Awaitable, abc.AsyncIterator),
)
_UNSENDABLE: Final = (bytes, bytearray, memoryview, range, Mapping, abc.Set, IOBase, type)

#: An object with one of these methods can be shown as an image.
_IMAGE_METHODS: Final = ("_repr_png_", "savefig")

#: Modules whose generic types are containers or iterators; and for some types, which of their parameters
#: are yielded or returned. For all others, each parameter is.
_GENERIC_MODULES: Final = ("builtins", "collections", "collections.abc")
_CARRIED: Final[Mapping[Any, slice]] = {
    abc.Generator: slice(0, None, 2),
    abc.AsyncGenerator: slice(0, 1),
    abc.Coroutine: slice(2, 3),
}

#: Where what stands for a type is made, beside types themselves.
_TYPING: Final = ("annotationlib", "types", "typing", "typing_extensions")

#: A value of each kind, for which `hint_for` knows what to write instead.
_EXAMPLES: Final[tuple[tuple[tuple[type, ...], tuple[object, ...]], ...]] = (
    ((bytes, bytearray, memoryview), (b"",)),
    ((Path,), (Path(),)),
    ((tuple,), (("user", ""),)),
    ((Mapping,), ({"role": "user"}, {})),  # a vendor's message, or any other
    ((abc.Set,), (set(),)),
    ((IOBase,), (BytesIO(),)),
    ((Enum,), (Rule.BAD_RETURN,)),
    ((object,), (object(),)),
)


def unreadable_part(annotation: Any, path: str) -> tuple[Any, str]:
    """
    Return the innermost part of a type that makes it unreadable, and its place.

    Args:
        annotation:
            A type that has no reader.

        path:
            The name of its parameter. The place begins with it: ``order.lines[...].picture``.
    """
    return min(_culprits(annotation, path, ()), key=lambda found: len(found[1]), default=(annotation, path))


def hint_for_unreadable(annotation: Any) -> str:
    """Return what to write in place of a type that cannot be read."""
    if plain(annotation, core=True) in (Any, object):
        return _FOR_TEXT
    kind = get_origin(annotation) or annotation
    is_standard = getattr(kind, "__module__", None) in _GENERIC_MODULES
    kinds = kind.__mro__ if is_own(kind) else [kind] if is_standard else []
    return next(filter(None, (instead_of("types", base.__name__) for base in kinds)), _GENERAL)


def no_type(annotation: Any, *, is_part: bool) -> tuple[str, str] | None:
    """
    Return what stands in the place of a type, and what to write instead; None if it is a type.

    Args:
        annotation:
            An annotation, or a part of one, that has no reader.

        is_part:
            Whether it is part of another one.
    """
    if isinstance(annotation, ModuleType):
        name = annotation.__name__
        kinds = [
            kind for kind, value in vars(annotation).items() if isinstance(value, type) and kind[0] != "_"
        ]
        last = name.rpartition(".")[2]
        meant = nearest(last, kinds) or next((kind for kind in kinds if last.startswith(kind.lower())), None)
        return f"the module {name}", f"write a class of it, as in {name}.{meant}" if meant else "write a type"
    if inspect.isroutine(annotation):
        return describe(annotation), "write typing.Any" if annotation is any and is_part else _FOR_TEXT
    is_type = isinstance(annotation, type) or get_origin(annotation) is not None
    if is_type or type(annotation).__module__ in _TYPING:
        return None
    return describe(annotation), _instead_of_value(annotation)


def refused_bounds(annotation: Any) -> tuple[str, str] | None:
    """
    Return the bounds that a type cannot have, and what to write instead; None if it is not for its bounds.

    Args:
        annotation:
            A type, or a part of one, that has no reader.
    """
    if not is_constrained(annotation) or reader_of(kind := annotation.__origin__) is None:
        return None
    notes = [note for note in annotation.__metadata__ if isinstance(note, msgspec.Meta)]
    given = {name: value for note in notes for name in _BOUNDED if (value := getattr(note, name)) is not None}
    refused = [name for name, value in given.items() if not _takes(kind, name, value)]
    if not refused:
        return None
    if is_union(kind):
        one = type_name(plain(get_args(kind)[0]))
        return ", ".join(refused), f"bound the member that is meant, as in Annotated[{one}, ...] | ..."
    names, others = ", ".join(refused), " and ".join(dict.fromkeys(_BOUNDED[name] for name in refused))
    return names, f"leave out {names} and check the value in the function, or take {others}"


def _takes(kind: Any, name: str, value: Any) -> bool:
    """Whether a type can have a bound."""
    try:
        msgspec.json.Decoder(Annotated[kind, msgspec.Meta(**{name: value})])
    except TypeError:
        return False
    return True


def _instead_of_value(value: Any) -> str:
    """The type that a value stands for, in the place of one."""
    kind = type(value).__name__
    match value:
        case [type(), *_] | (type(), *_):
            names = ", ".join(map(type_name, value))
            return f"write {kind}[{names}]" if len(value) == 1 else f"write {names.replace(', ', ' | ')}"
        case list() | tuple() | set() | frozenset():
            return f"write Literal[{', '.join(map(repr, value))}]"
        case dict():
            return "write dict[...] with the types of its keys and values, or a TypedDict"
        case Enum():
            return f"write {kind}, or Literal[{kind}.{value.name}]"
        case bool() | int() | float() | str() | bytes():
            return f"write its type, {kind}; a default stands behind '='"
    return _FOR_TEXT


def _culprits(annotation: Any, path: str, around: tuple[Any, ...]) -> Iterator[tuple[Any, str]]:
    unreadable = [(part, place) for part, place in _parts(annotation, path) if not _is_readable(part)]
    if not unreadable:
        yield annotation, path
    for part, place in unreadable:
        if part not in around:  # a type may hold itself
            yield from _culprits(part, place, (*around, part))


def _is_readable(part: Any) -> bool:
    return part in (Any, NoneType) or reader_of(part) is not None


def _parts(annotation: Any, path: str) -> Iterator[tuple[Any, str]]:
    """The parts of a type, each with its place."""
    kind = plain(annotation)
    origin = get_origin(kind) or kind
    if is_own(origin) or origin is abc.Callable:
        return
    if is_constrained(kind):
        yield from _parts(kind.__origin__, path)
    elif arguments := get_args(kind):
        place = path if is_union(kind) or origin in (Required, NotRequired) else f"{path}[...]"
        yield from ((plain(part), place) for part in arguments if part is not Ellipsis)
    else:
        yield from ((plain(hint), f"{path}.{name}") for name, hint in _members(kind))


def _members(kind: Any) -> Iterable[tuple[str, Any]]:
    """The names and types of the members of a class."""
    with suppress(Exception):  # evaluating an annotation runs any code
        if hasattr(kind, "_fields"):  # a named tuple
            return hints_of(kind).items()
        if is_record(kind) or is_struct(kind):
            return [(member.name, member.type) for member in members_of_record(kind)]
    return ()


def check_return(function: Callable[..., Any], annotation: Any, report: Report) -> None:
    """
    Report a return annotation that promises what no message can hold.

    A type that is not known, or that a decorator may have changed, is not reported.

    Args:
        function:
            The author's function.

        annotation:
            The type that it is annotated to return.

        report:
            Receives the error.
    """
    if inspect.unwrap(function) is not function:
        return
    if _generates(function) and not _is_kind_of(annotation, abc.Iterable, abc.AsyncIterable):
        return  # this annotation does not say what the generator yields
    try:
        found = next(_unsendable(annotation), None)
    except Exception:  # noqa: BLE001 (asking a class about its bases runs any code)
        return
    if found is not None:
        fault = f"its return annotation promises {type_name(found)}, which no message can hold"
        values = next(values for kinds, values in _EXAMPLES if _is_kind_of(found, *kinds))
        report.add(Rule.BAD_RETURN, fault, "; or ".join(map(hint_for, values)), "return")


def _generates(function: Callable[..., Any]) -> bool:
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)


def _is_kind_of(annotation: Any, *kinds: type) -> bool:
    """Whether *annotation*, without its parameters, is a subclass of one of *kinds*."""
    kind = get_origin(annotation) or annotation
    return object in kinds or (isinstance(kind, type) and issubclass(kind, kinds))


def _unsendable(annotation: Any) -> Iterator[Any]:
    """The parts of *annotation* that no message can hold."""
    annotation = plain(annotation)
    kind = get_origin(annotation) or annotation
    if kind is Annotated:
        yield from _unsendable(annotation.__origin__)
    elif is_union(annotation):
        for member in get_args(annotation):
            yield from _unsendable(member)
    elif is_literal(annotation):
        if not all(isinstance(value, str) or value in (None, False) for value in get_args(annotation)):
            yield annotation
    elif kind is Any or not isinstance(kind, type):
        return  # a type variable, for one, or a name that is not known yet
    elif not _can_be_sent(kind) or _is_pair_of_strings(annotation, kind):
        yield annotation
    elif kind.__module__ in _GENERIC_MODULES:
        for carried in get_args(annotation)[_CARRIED.get(kind, slice(None))]:
            yield from _unsendable(carried)


def _is_pair_of_strings(annotation: Any, kind: type) -> bool:
    """A role and a text, as other libraries write a turn; promptkit does not."""
    fields = get_args(annotation)
    if hasattr(kind, "_fields"):  # a named tuple
        fields = tuple(kind.__annotations__.values())
    return issubclass(kind, tuple) and len(fields) == 2 and all(field in (str, "str") for field in fields)


def _can_be_sent(kind: Any) -> bool:
    """Whether some instance of *kind* can be a message, or several."""
    if any(hasattr(kind, name) for name in _IMAGE_METHODS):
        return True
    if kind is abc.Callable or issubclass(kind, _UNSENDABLE):
        return False
    open_ended = kind is object or inspect.isabstract(kind) or getattr(kind, "_is_protocol", False)
    return open_ended or issubclass(kind, _SENDABLE)
