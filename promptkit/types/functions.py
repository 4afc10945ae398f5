"""Authors' functions: annotations, defaults, and synchronous calls to asynchronous functions."""

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

#: Immutable types, which most defaults have.
_IMMUTABLE: Final = frozenset({str, int, float, bool, bytes, type(None)})

#: Options that make `inspect.signature` and `inspect.get_annotations` return forward references for
#: annotations that cannot be evaluated. Before Python 3.14, such a function could not be defined.
FORWARD: Final[dict[str, Any]] = {}
_GET_ANNOTATIONS_OPTIONS: Final[dict[str, Any]] = {}
if sys.version_info >= (3, 14):
    from annotationlib import Format

    FORWARD["annotation_format"] = _GET_ANNOTATIONS_OPTIONS["format"] = Format.FORWARDREF


def annotations_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return a function's annotations, with a forward reference for each one that cannot be evaluated yet."""
    return inspect.get_annotations(function, **_GET_ANNOTATIONS_OPTIONS)


def evaluate_annotation(annotation: Any, function: Callable[..., Any], names: Mapping[str, Any]) -> Any:
    """
    Evaluate one annotation of *function*.

    Args:
        annotation:
            The type, or its text in the source.

        function:
            The author's function. Names are looked up in its module.

        names:
            The local names around the function's definition.

    Raises:
        Exception: Any exception raised by the evaluation.
    """
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    outer = getattr(function, "__globals__", {})
    return typing.get_type_hints(holder, outer, dict(names), include_extras=True)["it"]


def notes_of(annotation: Any) -> list[Any]:
    """Return the metadata of ``Annotated`` around a type and around the members of a union."""
    if typing.get_origin(annotation) is typing.Annotated:
        return [*annotation.__metadata__, *notes_of(annotation.__origin__)]
    if is_union(annotation):
        return [note for member in typing.get_args(annotation) for note in notes_of(member)]
    return []


def copy_mutable_defaults(function: F) -> F:
    """
    Wrap *function* to copy its mutable defaults for each call, if it has any.

    A default that cannot be copied is shared by all calls, as in Python.
    """
    unwrapped = inspect.unwrap(function)
    by_position = getattr(unwrapped, "__defaults__", None) or ()
    by_name = getattr(unwrapped, "__kwdefaults__", None) or {}
    if _IMMUTABLE.issuperset(map(type, (*by_position, *by_name.values()))):
        return function
    signature = inspect.signature(function, **FORWARD)
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
    Return whether any of *functions*, such as a function and its decorators, is asynchronous.
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
    Call a coroutine function on a new event loop.

    Args:
        function:
            The function.

        args:
            The function's positional arguments.

        kwargs:
            The function's keyword arguments.

        message:
            The error message if an event loop is running already.

    Raises:
        RuntimeError: If an event loop is running on this thread.

        Exception: Any exception raised by the function.
    """
    import asyncio  # usually loaded already

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass  # the call is below, so that its exceptions do not have this one as context
    else:
        raise RuntimeError(message)
    return asyncio.run(function(*args, **kwargs))
