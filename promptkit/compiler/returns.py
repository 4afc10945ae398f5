"""What a prompt is annotated to return: whether a message can hold it is known before it is called."""

import inspect
from collections import abc
from collections.abc import Callable, Iterator, Mapping
from io import IOBase
from pathlib import Path
from typing import Annotated, Any, Final, get_args, get_origin

from promptkit.conversion.annotations import read_return
from promptkit.conversion.kinds import is_literal, is_union, plain, type_name
from promptkit.errors.diagnostics import Report, Rule
from promptkit.language.content import Content
from promptkit.language.messages import Message

__all__ = ["check_return"]

#: What `promptkit.language.messages.messages_of` takes, or the renderer unwraps, and what it never takes.
_SENDABLE: Final = (
    str,
    Content,
    Message,
    abc.Sequence,
    abc.Iterator,
    abc.Awaitable,
    abc.AsyncIterator,
    type(None),
)
_UNSENDABLE: Final = (bytes, bytearray, memoryview, range, Mapping, abc.Set, IOBase, type)

#: What an object has that can show itself as an image.
_SHOWS: Final = ("_repr_png_", "savefig")

#: Whose generics are containers or iterators, and where these have what they yield and return.
_GENERIC: Final = ("builtins", "collections", "collections.abc")
_CARRIED: Final[Mapping[Any, slice]] = {
    abc.Generator: slice(0, None, 2),
    abc.AsyncGenerator: slice(0, 1),
    abc.Coroutine: slice(2, 3),
}

#: What to write instead, by what is returned.
_REMEDIES: Final[tuple[tuple[tuple[type, ...], str], ...]] = (
    (
        (bytes, bytearray, memoryview),
        "say what the bytes are, with Image(...), Audio(...) or EmbeddedResource(..., blob=...)",
    ),
    ((Path,), "read it, with .read_text() or Image.from_path(...)"),
    ((tuple,), "return user(...) or assistant(...) for a turn, or a list for several parts"),
    ((Mapping,), "return user(...) for a turn, or text, with promptkit.fragments.json_block(...)"),
    ((abc.Set,), "put it in order, with sorted(...), and return a list"),
    ((object,), "return text, content, messages or a list of these; an f-string makes text"),
)


def check_return(function: Callable[..., Any], names: Mapping[str, Any], report: Report) -> None:
    """
    Report a return annotation that promises what no message can hold.

    What is not known, and what a decorator may have changed, is left alone.

    Args:
        function:
            The author's function.

        names:
            The local names around its definition, for annotations that are strings.

        report:
            Receives the fault.
    """
    if inspect.unwrap(function) is not function:
        return
    annotation = read_return(function, names)
    if _generates(function) and not _is_kind_of(annotation, abc.Iterable, abc.AsyncIterable):
        return  # what a generator yields is not said there
    try:
        found = next(_unsendable(annotation), None)
    except Exception:  # noqa: BLE001 (asking a class about its bases runs any code)
        return
    if found is not None:
        report.add(
            Rule.BAD_RETURN,
            f"its return annotation promises {type_name(found)}, which no message can hold",
            next(remedy for kinds, remedy in _REMEDIES if _is_kind_of(found, *kinds)),
            "return",
        )


def _generates(function: Callable[..., Any]) -> bool:
    """
    Return whether *function* yields.
    """
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)


def _is_kind_of(annotation: Any, *kinds: type) -> bool:
    """
    Return whether *annotation*, its parameters apart, is a class below one of *kinds*.
    """
    kind = get_origin(annotation) or annotation
    return object in kinds or (isinstance(kind, type) and issubclass(kind, kinds))


def _unsendable(annotation: Any) -> Iterator[Any]:
    """
    Return the parts of *annotation* that no message can hold.
    """
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
    elif kind.__module__ in _GENERIC:
        for carried in get_args(annotation)[_CARRIED.get(kind, slice(None))]:
            yield from _unsendable(carried)


def _is_pair_of_strings(annotation: Any, kind: type) -> bool:
    """
    Return whether *annotation* is that of a role and what it says, which no turn is made of.
    """
    fields = get_args(annotation)
    if hasattr(kind, "_fields"):  # a named tuple
        fields = tuple(kind.__annotations__.values())
    return issubclass(kind, tuple) and len(fields) == 2 and all(field in (str, "str") for field in fields)


def _can_be_sent(kind: Any) -> bool:
    """
    Return whether some value of a class can be a message, or several.
    """
    if any(hasattr(kind, name) for name in _SHOWS):
        return True
    if kind is abc.Callable or issubclass(kind, _UNSENDABLE):
        return False
    open_ended = kind is object or inspect.isabstract(kind) or getattr(kind, "_is_protocol", False)
    return open_ended or issubclass(kind, _SENDABLE)
