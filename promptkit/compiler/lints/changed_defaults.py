"""Lint for functions that change the default of a parameter, which is one object for all calls."""

import ast
from collections.abc import Iterator
from typing import Final

from promptkit.errors.diagnostics import Location, Report, Rule
from promptkit.errors.sources import Function, own_nodes, span_of

__all__ = ["lint_defaults"]

#: Methods of lists, dictionaries and sets that change them.
_CHANGING: Final = (
    *("add", "append", "clear", "discard", "extend", "insert", "pop"),
    *("popitem", "remove", "reverse", "setdefault", "sort", "update"),
)

#: What makes a new list, dictionary or set.
_MAKERS: Final = ("list", "dict", "set", "bytearray", "defaultdict", "deque", "OrderedDict", "Counter")


def lint_defaults(function: Function, report: Report) -> None:
    """Report parameters whose default can be changed, and is."""
    if not (shared := dict(_changeable(function.args))):
        return
    rebound = _rebound(function)
    for node, name in _changes(function):
        if name in shared and name not in rebound:
            place = Location(report.location.file, *span_of(report.location.file, node))
            report.add(
                Rule.CHANGED_DEFAULT,
                f"it changes {name!r}, whose default Python makes once, for all calls",
                f"add '| None' to its type, with the default None, and make a new one: "
                f"{name} = {shared[name]} if {name} is None else {name}",
                place,
            )


def _changeable(arguments: ast.arguments) -> Iterator[tuple[str, str]]:
    """The parameters whose default is made once and can be changed, each with the source of its default."""
    by_position = [*arguments.posonlyargs, *arguments.args]
    defaults = [
        *zip(by_position[len(by_position) - len(arguments.defaults) :], arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    for argument, default in defaults:
        match default:
            case ast.List() | ast.Dict() | ast.Set() | ast.ListComp() | ast.DictComp() | ast.SetComp():
                yield argument.arg, ast.unparse(default)
            case ast.Call(func=ast.Name(id=maker) | ast.Attribute(attr=maker)) if maker in _MAKERS:
                yield argument.arg, ast.unparse(default)


def _rebound(function: Function) -> set[str]:
    """The names that the function binds itself: what it changes then may be its own."""
    changed = [one.target for one in own_nodes(function, ast.AugAssign)]  # in its place
    stored = (node for node in own_nodes(function, ast.Name) if isinstance(node.ctx, ast.Store))
    return {node.id for node in stored if node not in changed}


def _changes(function: Function) -> Iterator[tuple[ast.expr, str]]:
    """What changes the object behind a name, and that name."""
    for one in own_nodes(function, ast.AugAssign):
        match one.target:
            case ast.Name(id=name):
                yield one.target, name
    for call in own_nodes(function, ast.Call):
        match call.func:
            case ast.Attribute(value=ast.Name(id=name), attr=method) if method in _CHANGING:
                yield call, name
    for item in own_nodes(function, ast.Subscript):
        match item:
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                yield item, name
