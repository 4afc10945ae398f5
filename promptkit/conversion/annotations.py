"""Annotations of functions, evaluated, on every version of Python."""

import inspect
import sys
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Final

__all__ = ["FORWARD", "annotations_of", "notes_of", "read_return", "resolved"]

if sys.version_info >= (3, 14):  # where annotations are evaluated late, and some cannot be
    import annotationlib

    #: What `inspect.signature` is given, so that it does the same.
    FORWARD: Final[dict[str, Any]] = {"annotation_format": annotationlib.Format.FORWARDREF}

    def annotations_of(function: Callable[..., Any]) -> dict[str, Any]:
        """Return a function's annotations, with references for those that cannot be evaluated yet."""
        return annotationlib.get_annotations(function, format=annotationlib.Format.FORWARDREF)
else:
    FORWARD: Final[dict[str, Any]] = {}

    def annotations_of(function: Callable[..., Any]) -> dict[str, Any]:
        """Return a function's annotations."""
        return inspect.get_annotations(function)


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
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return [note for member in typing.get_args(annotation) for note in notes_of(member)]
    return []
