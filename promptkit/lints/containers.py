"""Lint of lists, sets and dicts in f-strings, which show them as Python writes them."""

import ast
from collections import abc
from collections.abc import Iterator
from typing import Any, Final, get_origin

from promptkit.lints.name_resolution import Scope

__all__ = ["shown_container"]

#: Types of parameters, by what people call their values.
_KINDS: Final[dict[Any, str]] = {
    **dict.fromkeys((list, abc.Sequence, abc.MutableSequence, abc.Collection), "list"),
    tuple: "tuple",
    **dict.fromkeys((set, frozenset, abc.Set, abc.MutableSet), "set"),
    **dict.fromkeys((dict, abc.Mapping, abc.MutableMapping), "dict"),
}


def shown_container(name: str, scope: Scope) -> Iterator[tuple[str, str]]:
    """
    Yield what an f-string shows of a parameter that is a container, and what to write instead.

    Args:
        name:
            A name in the f-string.

        scope:
            The function around it.
    """
    if name not in scope.arguments or scope.stored[name]:
        return
    kind, items = _container(scope.arguments[name], scope)
    if kind == "dict":
        yield "a dict as Python writes it", f"write json_block({name}), or a text of its items"
    elif kind is not None:
        ordered = f"sorted({name})" if kind == "set" else name
        joined = ordered if items is str else f"map(str, {ordered})"
        yield f"a {kind} as Python writes it", f"write ', '.join({joined}), or bullets({ordered})"


def _container(annotation: ast.expr | None, scope: Scope) -> tuple[str | None, Any]:
    """What kind of container an annotation names, if it names nothing else, and the type of its items."""
    item: ast.expr | None = None
    match annotation:
        case (
            ast.Subscript(ast.Name("Annotated"), ast.Tuple([inner, *_]))
            | ast.Subscript(ast.Name("Optional"), inner)
            | ast.BinOp(inner, ast.BitOr(), ast.Constant(None))
        ):
            return _container(inner, scope)
        case ast.Subscript(annotation, ast.Tuple([item, *_]) | item):
            pass
    named = scope.value(annotation)
    kind = get_origin(named) or named  # of an alias, or a name of typing
    return _KINDS.get(kind) if isinstance(kind, type) else None, scope.value(item)
