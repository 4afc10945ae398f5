"""Parameter types that no client can fill: finding the unusable part, and a hint for a replacement."""

import re
from collections import abc
from collections.abc import Iterable, Iterator
from contextlib import suppress
from types import ModuleType, NoneType
from typing import Any, Final, NotRequired, Required, get_args, get_origin

import msgspec

from promptkit.declarations.name_hints import foreign_name_hint
from promptkit.language.validation import describe
from promptkit.types.kinds import (
    is_constrained,
    is_named_tuple,
    is_promptkit_class,
    is_record,
    is_union,
    members_of_record,
    type_name,
    unwrap_type,
)
from promptkit.types.parsing import reader_for

#: Matches msgspec's error for a constraint that a type does not support. Other errors name no constraint.
_UNSUPPORTED: Final = re.compile(r"Can only set `(\w+)` on ")

_GENERAL: Final = (
    "use a type that can be written as text or JSON, or register this one with promptkit.register_type"
)

#: Hint for a type that accepts any value, and for an annotation that is not a type.
_FOR_TEXT: Final = "write the intended type, such as str for any text"

#: Modules of standard containers and iterators.
_GENERIC_MODULES: Final = ("builtins", "collections", "collections.abc")

#: Modules that define type-like objects other than classes.
_TYPING: Final = ("annotationlib", "types", "typing", "typing_extensions")


def unreadable_part(annotation: Any, path: str) -> tuple[Any, str]:
    """
    Return the innermost part that makes a type unreadable, and the path to that part.

    Args:
        annotation:
            A type that has no reader.

        path:
            The parameter's name, which starts the returned path, as in ``order.lines[...].picture``.
    """
    return min(
        _unreadable_parts(annotation, path, ()), key=lambda pair: len(pair[1]), default=(annotation, path)
    )


def hint_for_unreadable_type(annotation: Any) -> str:
    """Return a hint for a type that has no reader."""
    if unwrap_type(annotation, core=True) in (Any, object):
        return _FOR_TEXT
    kind = get_origin(annotation) or annotation
    is_standard = getattr(kind, "__module__", None) in _GENERIC_MODULES
    kinds = kind.__mro__ if is_promptkit_class(kind) else [kind] if is_standard else []
    return next(filter(None, (foreign_name_hint("types", base.__name__) for base in kinds)), _GENERAL)


def describe_non_type(annotation: Any) -> tuple[str, str] | None:
    """Return a description and a hint if an annotation, or a part of it, is not a type; otherwise None."""
    if isinstance(annotation, ModuleType):
        return f"the module {annotation.__name__}", "write one of its classes"
    if isinstance(annotation, type) or get_origin(annotation) or type(annotation).__module__ in _TYPING:
        return None
    return describe(annotation), _FOR_TEXT


def find_unsupported_constraint(annotation: Any) -> tuple[str, str] | None:
    """
    Return the name of a constraint that a type does not support, and a hint; None if it supports them all.

    Args:
        annotation:
            A type that promptkit cannot read from text, or a part of such a type.
    """
    if not is_constrained(annotation) or reader_for(kind := annotation.__origin__) is None:
        return None
    try:
        msgspec.json.Decoder(annotation)
    except TypeError as error:
        notes = [repr(note) for note in annotation.__metadata__ if isinstance(note, msgspec.Meta)]
        unsupported = _UNSUPPORTED.match(str(error))
        name = unsupported[1] if unsupported else ", ".join(notes)
    else:
        return None
    if is_union(kind):
        member = type_name(unwrap_type(get_args(kind)[0]))
        return name, f"constrain the intended member, for example Annotated[{member}, ...] | ..."
    return name, f"remove {name} and check the value in the function"


def _unreadable_parts(annotation: Any, path: str, ancestors: tuple[Any, ...]) -> Iterator[tuple[Any, str]]:
    unreadable = [(part, subpath) for part, subpath in _parts(annotation, path) if not _is_readable(part)]
    if not unreadable:
        yield annotation, path
    for part, subpath in unreadable:
        if part not in ancestors:  # a type may contain itself
            yield from _unreadable_parts(part, subpath, (*ancestors, part))


def _is_readable(part: Any) -> bool:
    return part in (Any, NoneType) or reader_for(part) is not None


def _parts(annotation: Any, path: str) -> Iterator[tuple[Any, str]]:
    """Yield the parts of a type, each with its path."""
    kind = unwrap_type(annotation)
    origin = get_origin(kind) or kind
    if is_promptkit_class(origin) or origin is abc.Callable:
        return
    if is_constrained(kind):
        yield from _parts(kind.__origin__, path)
    elif arguments := get_args(kind):
        subpath = path if is_union(kind) or origin in (Required, NotRequired) else f"{path}[...]"
        yield from ((unwrap_type(part), subpath) for part in arguments if part is not Ellipsis)
    else:
        yield from ((unwrap_type(hint), f"{path}.{name}") for name, hint in _members(kind))


def _members(kind: Any) -> Iterable[tuple[str, Any]]:
    """Return the member names and types of a record or a named tuple; empty for any other type."""
    with suppress(Exception):  # evaluating an annotation can run any code
        if is_record(kind) or is_named_tuple(kind):
            return [(member.name, member.type) for member in members_of_record(kind)]
    return ()
