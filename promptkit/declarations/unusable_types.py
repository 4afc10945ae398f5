"""
Unusable types: of parameters that no client can fill, and of results that no message can hold.

For each, this module finds the part that is unusable, and a replacement.
"""

import inspect
from collections import abc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from io import IOBase
from types import ModuleType, NoneType
from typing import Annotated, Any, Final, NotRequired, Required, get_args, get_origin

import msgspec

from promptkit.declarations.name_hints import instead_of
from promptkit.errors.diagnostics import Report
from promptkit.errors.rules import Rule
from promptkit.language.content import Content
from promptkit.language.messages import Message
from promptkit.language.validation import describe
from promptkit.types.kinds import (
    is_constrained,
    is_literal,
    is_named_tuple,
    is_own,
    is_record,
    is_union,
    members_of_record,
    plain,
    type_name,
)
from promptkit.types.parsing import reader_of

_GENERAL: Final = (
    "use a type that can be written as text or JSON, or register this one with promptkit.register_type"
)

#: Hint where any value is accepted.
_FOR_TEXT: Final = "write the intended type: str takes any text"

#: The bounds of `msgspec.Meta`.
_BOUNDS: Final = ("ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length", "pattern", "tz")

#: Types that `promptkit.language.messages.messages_of` accepts or the renderer unwraps, and types that
#: neither accepts.
_SENDABLE: Final = (
    *(str, NoneType, Content, Message),
    *(abc.Sequence, abc.Iterator, abc.Awaitable, abc.AsyncIterator),
)
_UNSENDABLE: Final = (bytes, bytearray, memoryview, range, Mapping, abc.Set, IOBase, type)

#: An object with one of these methods can be converted to an image.
_IMAGE_METHODS: Final = ("_repr_png_", "savefig")

#: Modules whose generic types are containers or iterators.
_GENERIC_MODULES: Final = ("builtins", "collections", "collections.abc")

#: Modules that define type-like objects other than classes.
_TYPING: Final = ("annotationlib", "types", "typing", "typing_extensions")


def unreadable_part(annotation: Any, path: str) -> tuple[Any, str]:
    """
    Return the innermost part of a type that makes it unreadable, and its path.

    Args:
        annotation:
            A type that has no reader.

        path:
            The name of its parameter, with which the path starts: ``order.lines[...].picture``.
    """
    return min(
        _culprits(annotation, path, ()), key=lambda culprit: len(culprit[1]), default=(annotation, path)
    )


def hint_for_unreadable(annotation: Any) -> str:
    """Return a hint for a type that has no reader."""
    if plain(annotation, core=True) in (Any, object):
        return _FOR_TEXT
    kind = get_origin(annotation) or annotation
    is_standard = getattr(kind, "__module__", None) in _GENERIC_MODULES
    kinds = kind.__mro__ if is_own(kind) else [kind] if is_standard else []
    return next(filter(None, (instead_of("types", base.__name__) for base in kinds)), _GENERAL)


def describe_non_type(annotation: Any) -> tuple[str, str] | None:
    """Describe an annotation, or a part of one, that is not a type, with a hint; return None for a type."""
    if isinstance(annotation, ModuleType):
        return f"the module {annotation.__name__}", "write one of its classes"
    if isinstance(annotation, type) or get_origin(annotation) or type(annotation).__module__ in _TYPING:
        return None
    return describe(annotation), _FOR_TEXT


def find_unsupported_constraints(annotation: Any) -> tuple[str, str] | None:
    """
    Return the bounds that a type cannot have, and a hint; None if the bounds are valid.

    Args:
        annotation:
            A type without a reader, or a part of one.
    """
    if not is_constrained(annotation) or reader_of(kind := annotation.__origin__) is None:
        return None
    notes = [note for note in annotation.__metadata__ if isinstance(note, msgspec.Meta)]
    bounds = {name: value for note in notes for name in _BOUNDS if (value := getattr(note, name)) is not None}
    names = ", ".join(name for name, value in bounds.items() if not _accepts_bound(kind, name, value))
    if not names:
        return None
    if is_union(kind):
        member = type_name(plain(get_args(kind)[0]))
        return names, f"constrain the intended member, as in Annotated[{member}, ...] | ..."
    return names, f"remove {names} and check the value in the function"


def _accepts_bound(kind: Any, name: str, value: Any) -> bool:
    """Whether a type can have a bound."""
    try:
        msgspec.json.Decoder(Annotated[kind, msgspec.Meta(**{name: value})])
    except TypeError:
        return False
    return True


def _culprits(annotation: Any, path: str, ancestors: tuple[Any, ...]) -> Iterator[tuple[Any, str]]:
    unreadable = [(part, subpath) for part, subpath in _parts(annotation, path) if not _is_readable(part)]
    if not unreadable:
        yield annotation, path
    for part, subpath in unreadable:
        if part not in ancestors:  # a type may contain itself
            yield from _culprits(part, subpath, (*ancestors, part))


def _is_readable(part: Any) -> bool:
    return part in (Any, NoneType) or reader_of(part) is not None


def _parts(annotation: Any, path: str) -> Iterator[tuple[Any, str]]:
    """Yield the parts of a type, each with its path."""
    kind = plain(annotation)
    origin = get_origin(kind) or kind
    if is_own(origin) or origin is abc.Callable:
        return
    if is_constrained(kind):
        yield from _parts(kind.__origin__, path)
    elif arguments := get_args(kind):
        subpath = path if is_union(kind) or origin in (Required, NotRequired) else f"{path}[...]"
        yield from ((plain(part), subpath) for part in arguments if part is not Ellipsis)
    else:
        yield from ((plain(hint), f"{path}.{name}") for name, hint in _members(kind))


def _members(kind: Any) -> Iterable[tuple[str, Any]]:
    """Return the names and types of a class's members."""
    with suppress(Exception):  # evaluating an annotation runs any code
        if is_record(kind) or is_named_tuple(kind):
            return [(member.name, member.type) for member in members_of_record(kind)]
    return ()


def check_return(function: Callable[..., Any], annotation: Any, report: Report) -> None:
    """
    Report a return annotation whose values no message can hold.

    Unknown types, and types that a decorator may have changed, are not reported.

    Args:
        function:
            The author's function.

        annotation:
            Its return annotation.

        report:
            Receives the diagnostic.
    """
    if inspect.unwrap(function) is not function:
        return
    try:
        part = next(_unsendable(annotation), None)
    except Exception:  # noqa: BLE001 (a class's hooks for subclass checks may raise anything)
        return
    if part is not None:
        message = f"its return annotation includes {type_name(part)}, which cannot become a message"
        hint = "return text, user(...) or assistant(...); or show it as text, with fragments.json_block(...)"
        report.add(Rule.BAD_RETURN, message, hint, "return")


def _unsendable(annotation: Any) -> Iterator[Any]:
    """Yield the parts of *annotation* that no message can hold."""
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
        return  # such as a type variable, or a forward reference
    elif not _can_be_sent(kind):
        yield annotation
    elif kind.__module__ in _GENERIC_MODULES:
        for item in get_args(annotation):
            yield from _unsendable(item)


def _can_be_sent(kind: Any) -> bool:
    """Whether an instance of *kind* can be one message, or several."""
    if any(hasattr(kind, name) for name in _IMAGE_METHODS):
        return True
    if kind is abc.Callable or issubclass(kind, _UNSENDABLE):
        return False
    is_open_ended = kind is object or inspect.isabstract(kind) or getattr(kind, "_is_protocol", False)
    return is_open_ended or issubclass(kind, _SENDABLE)
