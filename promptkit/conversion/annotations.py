"""What annotations stand for, on every version of Python."""

import inspect
import sys
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Final

__all__ = ["FORWARD", "annotations_of", "notes_of", "read_return", "resolved"]

if sys.version_info >= (3, 14):  # annotations are evaluated late there, and may not all be
    import annotationlib

    #: What `inspect.signature` needs to be told, too.
    FORWARD: Final[dict[str, Any]] = {"annotation_format": annotationlib.Format.FORWARDREF}

    def annotations_of(function: Callable[..., Any]) -> dict[str, Any]:
        """
        Return a function's annotations, those that cannot be evaluated yet as references.
        """
        return annotationlib.get_annotations(function, format=annotationlib.Format.FORWARDREF)
else:
    FORWARD: Final[dict[str, Any]] = {}

    def annotations_of(function: Callable[..., Any]) -> dict[str, Any]:
        """
        Return a function's annotations.
        """
        return inspect.get_annotations(function)


def resolved(annotation: Any, function: Callable[..., Any], names: Mapping[str, Any]) -> Any:
    """
    Return the type that one annotation of *function* stands for.

    Args:
        annotation:
            The type, or how the author wrote it.

        function:
            The author's function, whose module has the names.

        names:
            The local names around its definition.

    Raises:
        Exception: Whatever evaluating it raises.
    """
    alone = types.SimpleNamespace(__annotations__={"it": annotation})
    outer = getattr(function, "__globals__", {})
    return typing.get_type_hints(alone, outer, dict(names), include_extras=True)["it"]


def read_return(function: Callable[..., Any], names: Mapping[str, Any]) -> Any:
    """
    Return what *function* is annotated to return; `Any` if it does not say, or cannot be understood.

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
    """
    Return all that ``Annotated`` says of a parameter, around its type or around the members of a union.
    """
    if typing.get_origin(annotation) is typing.Annotated:
        return [*annotation.__metadata__, *notes_of(annotation.__origin__)]
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return [note for member in typing.get_args(annotation) for note in notes_of(member)]
    return []
