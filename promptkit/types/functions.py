"""Authors' functions: their annotations, their defaults, and how one that is asynchronous is called."""

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

#: The types of most defaults. Nobody can change a value of these.
_CONSTANT: Final = frozenset({str, int, float, bool, bytes, type(None)})

#: What has `inspect.signature`, and `inspect.get_annotations`, take references for annotations that cannot be
#: evaluated. Before Python 3.14, a function with one could not be defined.
FORWARD: Final[dict[str, Any]] = {}
_FORWARD: Final[dict[str, Any]] = {}
if sys.version_info >= (3, 14):
    from annotationlib import Format

    FORWARD["annotation_format"] = _FORWARD["format"] = Format.FORWARDREF


def annotations_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return a function's annotations; where one cannot be evaluated yet, a reference."""
    return inspect.get_annotations(function, **_FORWARD)


def resolved(annotation: Any, function: Callable[..., Any], names: Mapping[str, Any]) -> Any:
    """
    Return the type that one annotation of *function* stands for.

    Args:
        annotation:
            The type, or the text that the author wrote for it.

        function:
            The author's function. Names are looked up in its module.

        names:
            The local names around its definition.

    Raises:
        Exception: Anything that evaluating it raises.
    """
    only_this = types.SimpleNamespace(__annotations__={"it": annotation})
    outer = getattr(function, "__globals__", {})
    return typing.get_type_hints(only_this, outer, dict(names), include_extras=True)["it"]


def read_return(function: Callable[..., Any], names: Mapping[str, Any]) -> Any:
    """
    Return the type that *function* is annotated to return; `Any` if it has none that can be evaluated.

    Args:
        function:
            The author's function.

        names:
            The local names around its definition, for annotations that are strings.
    """
    annotation = annotations_of(function).get("return", Any)
    if isinstance(annotation, type):
        return annotation
    try:
        return resolved(annotation, function, names)
    except Exception:  # noqa: BLE001 (evaluating an annotation runs any code)
        return Any


def notes_of(annotation: Any) -> list[Any]:
    """Return all notes of ``Annotated``: around a type, and around the members of a union."""
    if typing.get_origin(annotation) is typing.Annotated:
        return [*annotation.__metadata__, *notes_of(annotation.__origin__)]
    if is_union(annotation):
        return [note for member in typing.get_args(annotation) for note in notes_of(member)]
    return []


def with_own_defaults(function: F) -> F:
    """
    Return *function*; or one that copies its defaults for each call, if any of them can be changed.

    A default that cannot be copied is shared by all calls, as in Python.
    """
    plain = inspect.unwrap(function)
    by_position = getattr(plain, "__defaults__", None) or ()
    by_name = getattr(plain, "__kwdefaults__", None) or {}
    if _CONSTANT.issuperset(map(type, (*by_position, *by_name.values()))):
        return function
    signature = inspect.signature(function, **FORWARD)
    changeable = {
        name: parameter.default
        for name, parameter in signature.parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        and _is_changeable(parameter.default)
    }
    if not changeable:
        return function

    @wraps(function)
    def with_copies(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind_partial(*args, **kwargs).arguments if args else kwargs
        left_out = changeable.keys() - given.keys()
        return function(*args, **kwargs, **{name: deepcopy(changeable[name]) for name in left_out})

    return cast("F", with_copies)


def _is_changeable(default: Any) -> bool:
    try:
        return deepcopy(default) is not default
    except Exception:  # noqa: BLE001 (an author's class may refuse to be copied, in any way)
        return False


def is_asynchronous(*layers: Callable[..., Any]) -> bool:
    """Whether a function has to be awaited, or iterated asynchronously; a decorator may add or hide that."""
    return any(inspect.iscoroutinefunction(layer) or inspect.isasyncgenfunction(layer) for layer in layers)


def run_async(
    function: Callable[..., Coroutine[Any, Any, T]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    refusal: str,
) -> T:
    """
    Call a coroutine function on an event loop of its own.

    Args:
        function:
            The function.

        args:
            Its arguments.

        kwargs:
            Its keyword arguments, which may have any names.

        refusal:
            The message of the error that is raised if an event loop runs already.

    Raises:
        RuntimeError: If an event loop runs on this thread.

        Exception: Whatever the function raises.
    """
    import asyncio  # most programs that get here have it loaded

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass  # it is called below, so that this is not the context of what it raises
    else:
        raise RuntimeError(refusal)
    return asyncio.run(function(*args, **kwargs))
