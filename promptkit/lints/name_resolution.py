"""What the source of a function shows: what its names and expressions stand for, and the ways through it."""

import ast
import builtins
import inspect
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import EnumMeta
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from uuid import UUID

from msgspec import Struct

from promptkit.errors.diagnostics import Location
from promptkit.errors.sources import Function, function_at, own_nodes, parameters_of
from promptkit.lints.control_flow import items_of

#: Functions and classes of promptkit that make messages or text of their arguments, unchanged.
_TEXT_FUNCTIONS: Final = (
    *("user", "assistant", "system", "Text", "Message"),
    *("section", "bullets", "numbered", "quote", "table", "tag", "dedent", "truncate"),
)

#: Methods of strings whose result holds the same text.
TEXT_METHODS: Final = ("strip", "lstrip", "rstrip", "join", "upper", "lower", "title", "capitalize")

_FOLLOWED: Final = (*TEXT_METHODS, "append")

#: The value of an expression that is not known before it runs.
_UNKNOWN: Final = object()

#: Types whose values are all alike here, each with the value that stands for any.
_PLAIN: Final[Sequence[tuple[type, Any]]] = (
    *((type(value), value) for value in ("", 0, 0.0, b"", Decimal(), UUID(int=0), timedelta())),
    *((kind, kind.min) for kind in (date, datetime, time)),
    *((dict, {}), (set, set()), (list, []), (Path, Path())),
)

#: By the syntax of an expression, what makes a value like its own.
_LITERALS: Final[Mapping[type[ast.AST], Callable[[], Any]]] = {
    ast.JoinedStr: str,
    ast.DictComp: dict,
    ast.Set: set,
    ast.SetComp: set,
    ast.List: list,
    ast.ListComp: list,
    ast.GeneratorExp: lambda: iter(()),
    ast.Lambda: lambda: lambda: None,
}


class CallResult(Struct, frozen=True):
    """Stands for what a function or class makes when it is called."""

    called: Any


class Unawaited:
    """Stands for the result of an ``async def`` function that is not awaited."""

    def __await__(self) -> Iterator[None]:
        yield None


class Scope:
    """
    The names in a function, and what expressions in it stand for, as far as its source shows.

    Args:
        syntax:
            The function; or a module, or a class or lambda in one.

        module:
            The names of its module.

        outer:
            The scope around it, if that is known.
    """

    def __init__(self, syntax: ast.AST, module: Mapping[str, Any], outer: "Scope | None" = None) -> None:
        self.syntax = syntax
        self.module = module
        self.outer = outer
        parameters = parameters_of(syntax) if isinstance(syntax, Function | ast.Lambda) else ()
        self.arguments = {parameter.arg: parameter.annotation for parameter in parameters}
        self._stand_ins: dict[ast.expr, Any] = {}

    @classmethod
    def of(cls, function: Any, location: Location) -> "Scope | None":
        """
        Return the scope of an author's function, or None if its source does not show what it does.

        Args:
            function:
                The function.

            location:
                Where it is defined.
        """
        if inspect.unwrap(function) is not function or not inspect.isfunction(function):
            return None  # a decorator could do all of it
        syntax = function_at(location.file, location.line)
        is_it = syntax is not None and syntax.name == function.__name__
        return cls(syntax, function.__globals__) if syntax and is_it else None

    @cached_property
    def stored(self) -> Counter[str]:
        """How often each name is bound."""
        names = own_nodes(self.syntax, ast.Name)
        return Counter(node.id for node in names if isinstance(node.ctx, ast.Store))

    @cached_property
    def variables(self) -> set[str]:
        """The names that are given or assigned in it, or in a function around it."""
        if isinstance(self.syntax, ast.Module):
            return set()
        return {*self.arguments, *self.stored, *(self.outer.variables if self.outer else ())}

    @cached_property
    def local(self) -> set[str]:
        """The names that need not be the module's: they are bound in it, or in a function around it."""
        if isinstance(self.syntax, ast.Module):
            return set()
        outer = self.outer
        if outer is not None and isinstance(outer.syntax, ast.ClassDef):  # its names are its own
            outer = outer.outer
        bound = filter(None, map(_name_bound, own_nodes(self.syntax, ast.AST)))
        return {*self.arguments, *self.stored, *bound, *(outer.local if outer else ())}

    @cached_property
    def imported(self) -> Mapping[str, Any]:
        """What is imported in it, or in a function around it; None for what is not loaded yet."""
        if isinstance(self.syntax, ast.Module):
            return {}
        found = dict[str, Any](self.outer.imported if self.outer else {})
        nodes: list[ast.Import | ast.ImportFrom] = own_nodes(self.syntax, ast.Import, ast.ImportFrom)
        for node, alias in ((one, alias) for one in nodes for alias in one.names):
            name = alias.asname or alias.name.partition(".")[0]
            if isinstance(node, ast.Import):
                found[name] = sys.modules.get(alias.name if alias.asname else name)
            else:
                home = None if node.level else sys.modules.get(node.module or "")
                found[name] = vars(home).get(alias.name) if isinstance(home, ModuleType) else None
        return found

    @cached_property
    def assigned(self) -> Mapping[str, list[ast.expr]]:
        """What is assigned, or added, to each name."""
        found = defaultdict[str, list[ast.expr]](list)
        for node in own_nodes(self.syntax, ast.Assign, ast.AugAssign):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)]) | ast.AugAssign(ast.Name(id=name), ast.Add()):
                    found[name].append(node.value)
        return found

    @cached_property
    def appended(self) -> Mapping[str, list[ast.expr]]:
        """What is appended to each name."""
        found = defaultdict[str, list[ast.expr]](list)
        for node in own_nodes(self.syntax, ast.Call):
            match node:
                case ast.Call(ast.Attribute(ast.Name(id=name), "append"), [value]):
                    found[name].append(value)
        return found

    @cached_property
    def untracked(self) -> set[str]:
        """The names whose values may be changed, or are used in a way that is not followed."""
        found = set[str]()
        for node in own_nodes(self.syntax, ast.Call, ast.Attribute, ast.BinOp):
            match node:
                case ast.Call(ast.Attribute(attr=attribute)) if attribute in _FOLLOWED:
                    pass
                case ast.Call(function, args, keywords) if not self.makes_text(function):
                    given = (*args, *(keyword.value for keyword in keywords))
                    found.update(value.id for value in given if isinstance(value, ast.Name))
                case ast.Attribute(ast.Name(id=name), attribute) if attribute not in _FOLLOWED:
                    found.add(name)
                case ast.BinOp(ast.Name(id=name), ast.Mod()):
                    found.add(name)
        return found

    def behind(self, node: ast.expr) -> ast.expr:
        """Return the expression that a local name stands for if there is one alone; else the node itself."""
        if isinstance(node, ast.Name) and node.id not in self.arguments and self.stored[node.id] == 1:
            return next((value for value in self.assigned[node.id] if _is_above(value, node)), node)
        return node

    def values(self, name: ast.Name) -> list[ast.expr]:
        """Return what is assigned to a local name above, or appended to it."""
        values = (*self.assigned[name.id], *self.appended[name.id])
        return [value for value in values if _is_above(value, name)]

    def value(self, node: ast.expr | None) -> Any:
        """Return what a dotted name of the module, or of an import, stands for, or None."""
        match node:
            case ast.Name(id=name) if name in self.imported:
                return self.imported[name]
            case ast.Name(id=name) if name not in self.variables:
                return self.module.get(name, getattr(builtins, name, None))
            case ast.Attribute(value=owner, attr=attribute):
                module = self.value(owner)
                return vars(module).get(attribute) if isinstance(module, ModuleType) else None
        return None

    def makes_text(self, function: ast.expr) -> bool:
        """Return whether a function of promptkit, or a similar one, keeps its arguments' text unchanged."""
        value = self.value(function)
        module, name = getattr(value, "__module__", None) or "", getattr(value, "__name__", None)
        is_similar = (module, name) in (("textwrap", "dedent"), ("inspect", "cleandoc"))
        return is_similar or (module.startswith("promptkit.") and name in _TEXT_FUNCTIONS)

    def stand_in(self, node: ast.expr) -> Any:
        """
        Return a value like that of an expression, such as ``""`` for any text.

        It is like no other if the source does not show what the value is.
        """
        if node not in self._stand_ins:  # a name may lead to others in several ways, and these in turn
            self._stand_ins[node] = self._find_stand_in(node)
        return self._stand_ins[node]

    def _find_stand_in(self, node: ast.expr) -> Any:  # noqa: C901, PLR0911 (a list of cases)
        if (literal := _LITERALS.get(type(node))) is not None:
            return literal()
        match self.behind(node):
            case assigned if assigned is not node:
                return self.stand_in(assigned)
            case ast.Constant(value=value):
                return value
            case ast.Dict(keys=keys, values=values):
                return dict(zip(map(_constant, keys), map(_constant, values), strict=True))
            case ast.Tuple(elts=items):
                return tuple(map(self.stand_in, items))
            case ast.BinOp(op=ast.Add()):
                return "" if all(map(self.is_text, items_of(node))) else _UNKNOWN
            case ast.Name(id=name) if name in self.arguments and not self.stored[name]:
                return self._of_type(self.arguments[name])
            case ast.Name() | ast.Attribute():
                value = self.value(node)
                return _UNKNOWN if value is None else value
            case ast.Call(func=ast.Attribute(value=text, attr=attribute)) if attribute in TEXT_METHODS:
                return "" if self.is_text(text) else _UNKNOWN
            case ast.Call(func=called):
                return _made(self.value(called))
        return _UNKNOWN

    def is_text(self, node: ast.expr) -> bool:
        """Return whether an expression is known to be a string, or text of a fragment."""
        return isinstance(self.stand_in(node), str)

    def _of_type(self, annotation: ast.expr | None) -> Any:
        """A value of a parameter's type."""
        match annotation:
            case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[annotation, *_])):
                return self._of_type(annotation)
            case ast.Subscript(value=annotation):
                pass
        kind = self.value(annotation)
        return next(iter(kind), _UNKNOWN) if isinstance(kind, EnumMeta) else _plain(kind)


def _plain(kind: Any) -> Any:
    return next((value for plain, value in _PLAIN if kind is plain), _UNKNOWN)


def _made(called: Any) -> Any:
    """What a call of *called* stands for."""
    if (value := _plain(called)) is not _UNKNOWN:
        return value
    if (getattr(called, "__module__", None) or "").startswith("promptkit.fragments"):
        return ""
    if callable(called) and inspect.iscoroutinefunction(inspect.unwrap(called)):
        return Unawaited()
    return _UNKNOWN if called is None else CallResult(called)


def _name_bound(node: ast.AST) -> str | None:
    """The name that a function, a class, an import, an ``except`` or a pattern binds."""
    match node:
        case ast.alias(name, other):
            return other or name.partition(".")[0]
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.ExceptHandler():
            return node.name
        case ast.MatchAs(name=found) | ast.MatchStar(found) | ast.MatchMapping(rest=found):
            return found
    return None


def _constant(node: ast.expr | None) -> Any:
    return node.value if isinstance(node, ast.Constant) else _UNKNOWN


def _is_above(value: ast.expr, name: ast.Name) -> bool:
    return (value.end_lineno or 0, value.end_col_offset or 0) <= (name.lineno, name.col_offset)
