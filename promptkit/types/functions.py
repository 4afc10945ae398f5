"""Inspection of authors' functions (annotations, defaults), and synchronous calls to asynchronous ones."""

import inspect
import sys
import types
import typing
from collections.abc import Callable, Coroutine, Mapping
from copy import deepcopy
from functools import wraps
from typing import Any, Final, TypeVar, cast

from promptkit.types.kinds import is_union

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

#: Immutable types. Most defaults have one of these types.
_IMMUTABLE: Final = frozenset({str, int, float, bool, bytes, type(None)})

#: Options that make `inspect.signature` and `inspect.get_annotations` return forward references for
#: annotations that cannot be evaluated. Before Python 3.14, defining such a function raised an error.
FORWARD_REFERENCES: Final[dict[str, Any]] = {}
_GET_ANNOTATIONS_OPTIONS: Final[dict[str, Any]] = {}
if sys.version_info >= (3, 14):
    from annotationlib import Format

    FORWARD_REFERENCES["annotation_format"] = _GET_ANNOTATIONS_OPTIONS["format"] = Format.FORWARDREF


def annotations_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return a function's annotations, with a forward reference for each one that cannot be evaluated yet."""
    return inspect.get_annotations(function, **_GET_ANNOTATIONS_OPTIONS)


def evaluate_annotation(annotation: Any, function: Callable[..., Any], names: Mapping[str, Any]) -> Any:
    """
    Evaluate one annotation of *function*.

    Args:
        annotation:
            The type, or its source text.

        function:
            The author's function. Names in the annotation are looked up in its module.

        names:
            The local names in scope where the function is defined, with their values.

    Raises:
        Exception: Any exception that evaluating the annotation raises.
    """
    if isinstance(annotation, type):
        return annotation
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    outer = getattr(function, "__globals__", {})
    return typing.get_type_hints(holder, outer, dict(names), include_extras=True)["it"]


def metadata_of(annotation: Any) -> list[Any]:
    """Return the ``Annotated`` metadata of a type and, if it is a union, of its members."""
    if typing.get_origin(annotation) is typing.Annotated:
        return [*annotation.__metadata__, *metadata_of(annotation.__origin__)]
    if is_union(annotation):
        return [note for member in typing.get_args(annotation) for note in metadata_of(member)]
    return []


def copy_mutable_defaults(function: F) -> F:
    """
    Wrap *function* so that each call gets a new copy of every mutable default.

    If no default is mutable, return *function* itself.

    All calls share a default that cannot be copied, as usual in Python.
    """
    unwrapped = inspect.unwrap(function)
    by_position = getattr(unwrapped, "__defaults__", None) or ()
    by_name = getattr(unwrapped, "__kwdefaults__", None) or {}
    if _IMMUTABLE.issuperset(map(type, (*by_position, *by_name.values()))):
        return function
    signature = inspect.signature(function, **FORWARD_REFERENCES)
    mutable = {
        name: parameter.default
        for name, parameter in signature.parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        and _is_mutable(parameter.default)
    }
    if not mutable:
        return function

    @wraps(function)
    def with_copies(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind_partial(*args, **kwargs).arguments if args else kwargs
        missing = mutable.keys() - bound.keys()
        return function(*args, **kwargs, **{name: deepcopy(mutable[name]) for name in missing})

    return cast("F", with_copies)


def _is_mutable(default: Any) -> bool:
    try:
        return deepcopy(default) is not default
    except Exception:  # noqa: BLE001 (copying an author's object can raise anything)
        return False


def is_any_async(*functions: Callable[..., Any]) -> bool:
    """
    Return whether any of *functions* is asynchronous. Pass a function together with the function it wraps.
    """
    return any(
        inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
        for function in functions
    )


def run_async(
    function: Callable[..., Coroutine[Any, Any, T]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    message: str,
) -> T:
    """
    Call a coroutine function on a new event loop, and return its result.

    Args:
        function:
            The function.

        args:
            The function's positional arguments.

        kwargs:
            The function's keyword arguments.

        message:
            The error message to raise if an event loop is already running.

    Raises:
        RuntimeError: If an event loop is already running on this thread.

        Exception: Any exception that the function raises.
    """
    import asyncio  # usually loaded already

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass  # the call is below, so that this exception does not become the context of the function's
    else:
        raise RuntimeError(message)
    return asyncio.run(function(*args, **kwargs))
