"""Lint for f-strings that show an object's repr, such as ``<generator object>``, not its content."""

import ast
import inspect
from collections.abc import Iterator
from enum import Enum
from types import ModuleType
from typing import Any, Final

from promptkit.compiler.lints.names import Names
from promptkit.errors.diagnostics import Location, Report, Rule
from promptkit.errors.sources import Function, names_in, own_nodes, span_of

__all__ = ["lint_objects"]

_JOIN: Final = "join them: ', '.join(...)"


def lint_objects(function: Function, names: Names, report: Report) -> None:
    """Report objects in f-strings whose text is only a repr, such as ``<function f at 0x7f...>``."""
    for node in own_nodes(function, ast.FormattedValue):
        if node.conversion == -1:
            _check_value(node, names, report)


def _check_value(node: ast.FormattedValue, names: Names, report: Report) -> None:
    found = _object(node.value, names)
    if found is not None:
        report.add(
            Rule.OBJECT_IN_TEXT,
            f"'{{{ast.unparse(node.value)}}}' in an f-string shows {found[0]}",
            found[1],
            Location(report.location.file, *span_of(report.location.file, node.value)),
        )


def _object(node: ast.expr, names: Names) -> tuple[str, str] | None:  # noqa: C901, PLR0911 (a list of cases)
    """Return what the f-string would show, and what to write instead; None if its text is of use."""
    match node:
        case ast.GeneratorExp():
            return "a generator, not its items", _JOIN
        case ast.Lambda():
            return "a function, not what it returns", "call it"
        case ast.Call(func=called):
            return _result(names.value(called))
        case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in names.arguments:
            annotation = names.arguments[name]
            kind = names.value(annotation) if isinstance(annotation, ast.Name) else None
            if isinstance(kind, type) and inspect.isroutine(getattr(kind, attribute, None)):
                return "a method, not what it returns", f"call it: {name}.{attribute}()"
        case ast.Name(id=name) if name in names.arguments:
            return _member(name, names)
        case ast.Name(id=name) if name in names.assigned:
            match names.assigned_once(name):
                case ast.GeneratorExp() | ast.Lambda() | ast.Call() as value:
                    return _object(value, names)
        case ast.Name() | ast.Attribute():
            value = names.value(node)
            if callable(value) or isinstance(value, ModuleType):
                kind = "a class" if isinstance(value, type) else "a function"
                return f"{kind}, not what it returns", f"call it: {ast.unparse(node)}(...)"
    return None


def _result(called: Any) -> tuple[str, str] | None:
    if isinstance(called, type):
        return _instance(called)
    function = inspect.unwrap(called) if callable(called) else None
    if getattr(function, "__module__", None) == "promptkit.language.turns":
        return "a turn, whose role would be lost", "join turns with +, or write the text alone"
    if inspect.iscoroutinefunction(function):
        return "a coroutine, not what it returns", "await it, in an `async def` prompt"
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return "a generator, not its items", _JOIN
    return None


def _instance(kind: type) -> tuple[str, str] | None:
    if issubclass(kind, Iterator):
        return f"the {kind.__name__} object, not its items", _JOIN
    own = ("__new__", "__str__", "__repr__", "__format__")
    if type(kind) is type and all(getattr(kind, name) is getattr(object, name) for name in own):
        return f"the {kind.__name__} object, not what it holds", "write its attributes, or give it a __str__"
    return None


def _member(name: str, names: Names) -> tuple[str, str] | None:
    """Find a parameter whose Enum formats its members as ``Class.NAME``."""
    annotation = names.arguments[name]
    for node in names_in(annotation) if annotation is not None else ():
        kind = names.value(node)
        if isinstance(kind, type) and issubclass(kind, Enum) and len(kind):
            member = next(iter(kind))
            if f"{member}" == f"{kind.__name__}.{member.name}":
                return f"{str(member)!r}, not its value", f"write {{{name}.value}}"
    return None
