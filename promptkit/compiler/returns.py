"""Checks the return annotation of a prompt: whether messages can hold what it promises."""

import inspect
from collections import abc
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from io import BytesIO, IOBase
from pathlib import Path
from typing import Annotated, Any, Final, get_args, get_origin

from promptkit.conversion.kinds import is_literal, is_union, plain, type_name
from promptkit.errors.diagnostics import Report, Rule
from promptkit.language.content import Content
from promptkit.language.messages import Message

__all__ = ["check_return"]

#: What `promptkit.language.messages.messages_of` accepts or the renderer unwraps, and what they never accept.
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

#: A value of each kind, for which `remedy_for` knows what to write instead.
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
        report.add(
            Rule.BAD_RETURN,
            f"its return annotation promises {type_name(found)}, which no message can hold",
            _remedy_for_type(found),
            "return",
        )


def _remedy_for_type(annotation: Any) -> str:
    from promptkit.language.return_remedies import remedy_for  # few annotations promise such a value

    values = next(values for kinds, values in _EXAMPLES if _is_kind_of(annotation, *kinds))
    return "; or ".join(map(remedy_for, values))


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
