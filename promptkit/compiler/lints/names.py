"""What the names in a function stand for, as far as its source shows."""

import ast
import builtins
from collections.abc import Container, Mapping
from functools import cached_property
from types import ModuleType
from typing import Any, Final

from promptkit.errors.sources import Function, own_nodes, parameters_of

__all__ = ["TEXT_METHODS", "Names", "value_of"]


#: Functions and classes of promptkit that make messages or text of their arguments, unchanged.
_TEXT_FUNCTIONS: Final = (
    *("user", "assistant", "Text", "Message"),
    *("section", "bullets", "numbered", "quote", "table", "tag", "dedent", "truncate"),
)

#: Methods of strings whose result holds the same text.
TEXT_METHODS: Final = ("strip", "lstrip", "rstrip", "join", "upper", "lower", "title", "capitalize")

_FOLLOWED: Final = (*TEXT_METHODS, "append")


def value_of(node: ast.expr, module: Mapping[str, Any], local: Container[str] = ()) -> Any:
    """Return what a dotted name stands for in a module, or None. Names in *local* are not of the module."""
    match node:
        case ast.Name(id=name) if name not in local:
            return module.get(name, getattr(builtins, name, None))
        case ast.Attribute(value=value, attr=attribute):
            owner = value_of(value, module, local)
            return vars(owner).get(attribute) if isinstance(owner, ModuleType) else None
    return None


class Names:
    """
    What the names in a function stand for, as far as its source shows.

    Args:
        function:
            The function.

        module:
            The names of its module.
    """

    def __init__(self, function: Function, module: Mapping[str, Any]) -> None:
        self.function = function
        self.module = module
        self.arguments = {arg.arg: arg.annotation for arg in parameters_of(function)}

    @cached_property
    def assigned(self) -> Mapping[str, list[ast.expr]]:
        """What is assigned to each local name. It is empty where that is no plain assignment."""
        found: dict[str, list[ast.expr]] = {}
        for node in own_nodes(self.function, ast.Name, ast.Assign, ast.AugAssign):
            match node:
                case ast.Name(id=name, ctx=ast.Store()):
                    found.setdefault(name, [])
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    found.setdefault(name, []).append(value)
                case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
                    found.setdefault(name, []).append(value)
        return found

    @cached_property
    def appended(self) -> Mapping[str, list[ast.expr]]:
        """What is appended to each name."""
        found: dict[str, list[ast.expr]] = {}
        for node in own_nodes(self.function, ast.Call):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value]):
                    found.setdefault(name, []).append(value)
        return found

    @cached_property
    def untracked(self) -> set[str]:
        """The names whose values can no longer be followed."""
        found: set[str] = set()
        for node in own_nodes(self.function, ast.Call, ast.Attribute, ast.BinOp):
            found.update(self._lost_in(node))
        return found

    @cached_property
    def local(self) -> set[str]:
        """The function's own names."""
        return {*self.arguments, *self.assigned}

    def assigned_once(self, name: str) -> ast.expr | None:
        """Return the one expression that is assigned to a local name; None if there are others, or none."""
        values = self.assigned.get(name, ())
        return values[0] if len(values) == 1 else None

    def value(self, node: ast.expr) -> Any:
        """Return what a dotted name of the module stands for, or None."""
        return value_of(node, self.module, self.local)

    def makes_text(self, function: ast.expr) -> bool:
        """Return whether a function of promptkit, or a similar one, keeps its arguments' text unchanged."""
        value = self.value(function)
        module = getattr(value, "__module__", None) or ""
        name = getattr(value, "__name__", None)
        return (module.startswith("promptkit.") and name in _TEXT_FUNCTIONS) or (module, name) in (
            ("textwrap", "dedent"),
            ("inspect", "cleandoc"),
        )

    def _lost_in(self, node: ast.AST) -> list[str]:
        """The names whose values a node may change, or use in a way that is not followed."""
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(), attr="append"), args=[_]):
                return []
            case ast.Call(func=ast.Attribute(attr=attribute)) if attribute in TEXT_METHODS:
                return []
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if attribute not in _FOLLOWED:
                return [name]
            case ast.Call(func=function, args=args, keywords=keywords) if not self.makes_text(function):
                given = [*args, *(keyword.value for keyword in keywords)]
                return [value.id for value in given if isinstance(value, ast.Name)]
            case ast.BinOp(left=ast.Name(id=name), op=ast.Mod()):
                return [name]
        return []
