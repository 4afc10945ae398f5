"""Types of parameters that no client can fill: which part of one it is, and what to write instead."""

from collections import OrderedDict, abc, defaultdict, deque
from collections.abc import Iterable, Iterator
from types import NoneType
from typing import Any, Final, NotRequired, Required, get_args, get_origin

from promptkit.conversion.kinds import (
    hints_of,
    is_constrained,
    is_own,
    is_record,
    is_struct,
    is_union,
    members_of_record,
    plain,
)
from promptkit.conversion.readers import reader_of

__all__ = ["remedy_for_type", "unreadable_part"]

_GENERAL: Final = (
    "use a type that can be written as text or JSON, or teach this one with promptkit.register_type"
)
_BYTES: Final = (
    "take bytes, which clients send as base64 or a data: URI, and make {0}(...) of them in the function"
)
_TURNS: Final = (
    "take a list of texts, or of records of a role and a text, and make turns of them with user(...) "
    "and assistant(...) in the function"
)
_SEQUENCE: Final = "write Sequence[...] or list[...] in its place: all of its items come at once"
_DICT: Final = "write dict[...] in its place, and make the other of it in the function"

#: What to write in place of promptkit's own classes, by their names: importing them takes a while.
_OWN: Final = {
    "Text": "take a str, and make Text(...) of it in the function",
    "Image": _BYTES.format("Image"),
    "Audio": _BYTES.format("Audio"),
    "EmbeddedResource": "take its URI and text, and make EmbeddedResource(...) of them in the function",
    "ResourceLink": "take its URI as a str, and make ResourceLink(...) of it in the function",
    "Content": "take a str, or bytes, and make the content of it in the function",
    "Message": _TURNS,
    "Workflow": _TURNS,
    "Context": "annotate a parameter with Context alone: it is no argument, and every request fills it",
}

_STANDARD: Final[dict[Any, str]] = {
    **dict.fromkeys(
        (abc.Iterable, abc.Iterator, abc.Generator, abc.Reversible, abc.Container, deque), _SEQUENCE
    ),
    **dict.fromkeys((OrderedDict, defaultdict), _DICT),
}


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


def remedy_for_type(annotation: Any) -> str:
    """
    Return what to write in place of a type that cannot be read.
    """
    if is_own(annotation):
        names = (base.__name__ for base in annotation.__mro__)
        return next((_OWN[name] for name in names if name in _OWN), _GENERAL)
    kind = get_origin(annotation) or annotation
    return next((remedy for known, remedy in _STANDARD.items() if kind is known), _GENERAL)


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
    try:
        if hasattr(kind, "_fields"):  # a named tuple
            return hints_of(kind).items()
        if is_record(kind) or is_struct(kind):
            return [(member.name, member.type) for member in members_of_record(kind)]
    except Exception:  # noqa: BLE001 (evaluating an annotation runs any code)
        return ()
    return ()
