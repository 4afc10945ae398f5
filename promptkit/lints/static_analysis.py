"""Static analysis of a function: its names, the values of its expressions, and its execution paths."""

import ast
import builtins
import inspect
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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

#: The maximum number of execution paths, which grows exponentially with the branches of a function.
MAX_PATHS: Final = 32

#: promptkit's functions and classes that create messages or text containing their arguments unchanged.
_TEXT_FUNCTIONS: Final = (
    *("user", "assistant", "system", "Text", "Message"),
    *("section", "bullets", "numbered", "quote", "table", "tag", "dedent", "truncate"),
)

#: String methods whose result contains the text of the string.
TEXT_METHODS: Final = ("strip", "lstrip", "rstrip", "join", "upper", "lower", "title", "capitalize")

_TRACKED_METHODS: Final = (*TEXT_METHODS, "append")

#: Represents a value that is only known at run time.
_UNKNOWN: Final = object()

#: Types whose values the lints need not distinguish, each with a representative value.
_PLAIN: Final[Sequence[tuple[type, Any]]] = (
    *((type(value), value) for value in ("", 0, 0.0, b"", Decimal(), UUID(int=0), timedelta())),
    *((kind, kind.min) for kind in (date, datetime, time)),
    *((dict, {}), (set, set()), (list, []), (Path, Path())),
)

#: Functions that create a representative value, keyed by the type of the expression.
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
    """The unknown result of calling a function or class."""

    callee: Any


class Unawaited:
    """The result of calling an ``async def`` function without awaiting it."""

    def __await__(self) -> Iterator[None]:
        yield None


class Scope:
    """
    The names in a function, and the values of its expressions as far as the source shows them.

    Args:
        node:
            A function, module, class or lambda.

        module:
            The names of the module.

        outer:
            The enclosing scope, if known.
    """

    def __init__(self, node: ast.AST, module: Mapping[str, Any], outer: "Scope | None" = None) -> None:
        self.node = node
        self.module = module
        self.outer = outer
        parameters = parameters_of(node) if isinstance(node, Function | ast.Lambda) else ()
        self.arguments = {parameter.arg: parameter.annotation for parameter in parameters}
        self._stand_ins: dict[ast.expr, Any] = {}

    @classmethod
    def of(cls, function: Any, location: Location) -> "Scope | None":
        """
        Return the scope of an author's function, or None if it is decorated or has no source.

        Args:
            function:
                The function.

            location:
                The location of its definition.
        """
        if inspect.unwrap(function) is not function or not inspect.isfunction(function):
            return None  # a decorator could replace all behaviour
        node = function_at(location.file, location.line)
        is_match = node is not None and node.name == function.__name__
        return cls(node, function.__globals__) if node and is_match else None

    @cached_property
    def assignments(self) -> Counter[str]:
        """The number of assignments to each name."""
        names = own_nodes(self.node, ast.Name)
        return Counter(node.id for node in names if isinstance(node.ctx, ast.Store))

    @cached_property
    def variables(self) -> set[str]:
        """The parameters and assigned names of the function and of enclosing functions."""
        if isinstance(self.node, ast.Module):
            return set()
        return {*self.arguments, *self.assignments, *(self.outer.variables if self.outer else ())}

    @cached_property
    def local_names(self) -> set[str]:
        """All names bound in the function or in enclosing functions."""
        if isinstance(self.node, ast.Module):
            return set()
        outer = self.outer
        if outer is not None and isinstance(
            outer.node, ast.ClassDef
        ):  # whose names are not visible inside functions
            outer = outer.outer
        bound = filter(None, map(_bound_name, own_nodes(self.node, ast.AST)))
        return {*self.arguments, *self.assignments, *bound, *(outer.local_names if outer else ())}

    @cached_property
    def assigned_values(self) -> Mapping[str, list[ast.expr]]:
        """The expressions that are assigned or added to each name, keyed by name."""
        values = defaultdict[str, list[ast.expr]](list)
        for node in own_nodes(self.node, ast.Assign, ast.AugAssign):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)]) | ast.AugAssign(ast.Name(id=name), ast.Add()):
                    values[name].append(node.value)
        return values

    @cached_property
    def appended_values(self) -> Mapping[str, list[ast.expr]]:
        """The expressions that are appended to each name, keyed by name."""
        values = defaultdict[str, list[ast.expr]](list)
        for node in own_nodes(self.node, ast.Call):
            match node:
                case ast.Call(ast.Attribute(ast.Name(id=name), "append"), [value]):
                    values[name].append(value)
        return values

    @cached_property
    def untracked_names(self) -> set[str]:
        """The names whose values may change in ways that are not tracked."""
        names = set[str]()
        for node in own_nodes(self.node, ast.Call, ast.Attribute, ast.BinOp):
            match node:
                case ast.Call(ast.Attribute(attr=attribute)) if attribute in _TRACKED_METHODS:
                    pass
                case ast.Call(function, args, keywords) if not self.preserves_text(function):
                    arguments = (*args, *(keyword.value for keyword in keywords))
                    names.update(value.id for value in arguments if isinstance(value, ast.Name))
                case ast.Attribute(ast.Name(id=name), attribute) if attribute not in _TRACKED_METHODS:
                    names.add(name)
                case ast.BinOp(ast.Name(id=name), ast.Mod()):
                    names.add(name)
        return names

    def resolve(self, node: ast.expr) -> ast.expr:
        """Return the only expression that is assigned to a local name. Return any other node unchanged."""
        if isinstance(node, ast.Name) and node.id not in self.arguments and self.assignments[node.id] == 1:
            return next((value for value in self.assigned_values[node.id] if _precedes(value, node)), node)
        return node

    def values_before(self, name: ast.Name) -> list[ast.expr]:
        """Return the expressions that are assigned or appended to a local name before *name*."""
        values = (*self.assigned_values[name.id], *self.appended_values[name.id])
        return [value for value in values if _precedes(value, name)]

    def global_value(self, node: ast.expr | None) -> Any:
        """Return the value of a global name or a module attribute; None for any other node."""
        match node:
            case ast.Name(id=name) if name not in self.local_names:
                return self.module.get(name, getattr(builtins, name, None))
            case ast.Attribute(value=owner, attr=attribute):
                module = self.global_value(owner)
                return vars(module).get(attribute) if isinstance(module, ModuleType) else None
        return None

    def preserves_text(self, function: ast.expr) -> bool:
        """
        Return whether a function, such as promptkit's `section`, keeps the text of its arguments unchanged.
        """
        value = self.global_value(function)
        module, name = getattr(value, "__module__", None) or "", getattr(value, "__name__", None)
        is_similar = (module, name) in (("textwrap", "dedent"), ("inspect", "cleandoc"))
        return is_similar or (module.startswith("promptkit.") and name in _TEXT_FUNCTIONS)

    def stand_in(self, node: ast.expr) -> Any:
        """
        Return a representative value for an expression, such as ``""`` for any text.

        If the source does not show the value, the result is a unique object.
        """
        if node not in self._stand_ins:  # cached, because names can refer to each other many times
            self._stand_ins[node] = self._find_stand_in(node)
        return self._stand_ins[node]

    def _find_stand_in(self, node: ast.expr) -> Any:  # noqa: C901, PLR0911 (a list of cases)
        if (literal := _LITERALS.get(type(node))) is not None:
            return literal()
        match self.resolve(node):
            case assigned if assigned is not node:
                return self.stand_in(assigned)
            case ast.Constant(value=value):
                return value
            case ast.Dict(keys=keys, values=values):
                return dict(zip(map(_constant_value, keys), map(_constant_value, values), strict=True))
            case ast.Tuple(elts=items):
                return tuple(map(self.stand_in, items))
            case ast.BinOp(op=ast.Add()):
                return "" if all(map(self.is_text, list_items(node))) else _UNKNOWN
            case ast.Name(id=name) if name in self.arguments and not self.assignments[name]:
                return self._value_of_type(self.arguments[name])
            case ast.Name() | ast.Attribute():
                value = self.global_value(node)
                return _UNKNOWN if value is None else value
            case ast.Call(func=ast.Attribute(value=text, attr=attribute)) if attribute in TEXT_METHODS:
                return "" if self.is_text(text) else _UNKNOWN
            case ast.Call(func=callee):
                return _call_result(self.global_value(callee))
        return _UNKNOWN

    def is_text(self, node: ast.expr) -> bool:
        """Return whether an expression is known to be a string, or the text of a fragment."""
        return isinstance(self.stand_in(node), str)

    def _value_of_type(self, annotation: ast.expr | None) -> Any:
        """Return a representative value for a parameter's type."""
        match annotation:
            case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[annotation, *_])):
                return self._value_of_type(annotation)
            case ast.Subscript(value=annotation):
                pass
        kind = self.global_value(annotation)
        return next(iter(kind), _UNKNOWN) if isinstance(kind, EnumMeta) else _representative_value(kind)


def _representative_value(kind: Any) -> Any:
    return next((value for plain, value in _PLAIN if kind is plain), _UNKNOWN)


def _call_result(callee: Any) -> Any:
    """Return a representative value for the result of a call."""
    if (value := _representative_value(callee)) is not _UNKNOWN:
        return value
    if (getattr(callee, "__module__", None) or "").startswith("promptkit.fragments"):
        return ""
    if callable(callee) and inspect.iscoroutinefunction(inspect.unwrap(callee)):
        return Unawaited()
    return _UNKNOWN if callee is None else CallResult(callee)


def _bound_name(node: ast.AST) -> str | None:
    """Return the name that a function, class, import, ``except`` clause or pattern binds; otherwise None."""
    match node:
        case ast.alias(name, alias):
            return alias or name.partition(".")[0]
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.ExceptHandler():
            return node.name
        case ast.MatchAs(name=bound) | ast.MatchStar(bound) | ast.MatchMapping(rest=bound):
            return bound
    return None


def _constant_value(node: ast.expr | None) -> Any:
    return node.value if isinstance(node, ast.Constant) else _UNKNOWN


def _precedes(value: ast.expr, name: ast.Name) -> bool:
    return (value.end_lineno or 0, value.end_col_offset or 0) <= (name.lineno, name.col_offset)


def walk_parts(node: ast.expr, parts_of: Callable[[ast.expr], Sequence[ast.expr]]) -> Iterator[ast.expr]:
    """Yield an expression, its parts, their parts, and so on. *parts_of* returns an expression's parts."""
    pending, visited = [node], set[ast.expr]()
    while pending:
        if (part := pending.pop()) not in visited:  # several names can lead to the same expression
            visited.add(part)
            yield part
            pending += reversed(parts_of(part))


def type_members(annotation: ast.expr | None) -> list[ast.expr]:
    """Return the members of a union, or the type itself if it is not a union. Remove ``Annotated``."""
    match annotation:
        case None:
            return []
        case ast.Subscript(ast.Name("Annotated"), ast.Tuple([inner, *_])):
            return type_members(inner)
        case ast.Subscript(ast.Name("Optional") | ast.Attribute(attr="Optional"), inner):
            return [*type_members(inner), ast.Constant(None)]
        case ast.BinOp(left, ast.BitOr(), right):
            return [*type_members(left), *type_members(right)]
    return [annotation]


def is_none(node: ast.expr) -> bool:
    """Return whether an expression is the literal ``None``."""
    return isinstance(node, ast.Constant) and node.value is None


def list_choices(node: ast.expr) -> list[ast.expr]:
    """Return the alternatives in a conditional or boolean expression; ``[]`` for any other expression."""
    match node:
        case ast.IfExp(body=then, orelse=otherwise):
            return [then, otherwise]
        case ast.BoolOp(op=ast.Or(), values=values):
            return values
        case ast.BoolOp(values=values):
            return values[-1:]
    return []


def list_items(node: ast.expr) -> list[ast.expr]:
    """
    Return the operands of a sum, the items of a list or tuple, or the item of a comprehension.

    Return ``[]`` for any other node.
    """
    added = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):  # may exceed the recursion limit
        added.append(node.right)
        node = node.left
    if added:
        return [node, *reversed(added)]
    match node:
        case ast.List(items) | ast.Tuple(items):
            return items
        case ast.ListComp(item) | ast.GeneratorExp(item):
            return [item]
    return []


def execution_paths(body: Iterable[ast.stmt]) -> list[tuple[ast.stmt, ...]]:
    """Return the execution paths through a body, as simple statements. Each loop is assumed to run once."""
    paths: list[tuple[ast.stmt, ...]] = [()]
    for statement in body:
        ended = filter(_has_ended, paths)
        open_paths = [path for path in paths if not _has_ended(path)]
        extended = (path + more for path in open_paths for more in _statement_paths(statement))
        paths = [*extended, *ended][:MAX_PATHS]
    return paths


def _has_ended(path: tuple[ast.stmt, ...]) -> bool:
    return bool(path) and isinstance(path[-1], ast.Return | ast.Raise)


def _statement_paths(statement: ast.stmt) -> list[tuple[ast.stmt, ...]]:
    match statement:
        case ast.If(body=then, orelse=otherwise):
            return execution_paths(then) + execution_paths(otherwise)
        case ast.For() | ast.AsyncFor() | ast.While():  # a return in it can be conditional
            return [path[:-1] if _has_ended(path) else path for path in execution_paths(statement.body)]
        case ast.With() | ast.AsyncWith():
            return execution_paths(statement.body)
        case ast.Try(body=body, handlers=handlers, orelse=otherwise, finalbody=last):
            bodies = [[*body, *otherwise, *last], *([*handler.body, *last] for handler in handlers)]
            return [path for each in bodies for path in execution_paths(each)]
        case ast.Match(cases=cases):
            return [path for case in cases for path in execution_paths(case.body)]
    return [(statement,)]
