"""Lints of defaults, which Python makes once: those that a function changes, and those that stand still."""

import ast
import random
import time
import uuid
from datetime import date
from typing import Final

from promptkit.compiler.lints.scopes import Scope
from promptkit.errors.diagnostics import Report, Rule
from promptkit.errors.sources import Function, own_nodes

__all__ = ["lint_changed_default", "lint_fixed_default"]

#: Methods of lists, dictionaries and sets that change them.
_CHANGING: Final = (
    *("add", "append", "clear", "discard", "extend", "insert", "pop"),
    *("popitem", "remove", "reverse", "setdefault", "sort", "update"),
)

#: What makes a new list, dictionary or set.
_MAKERS: Final = ("list", "dict", "set", "bytearray", "defaultdict", "deque", "OrderedDict", "Counter")

#: What says something else whenever it is called: of a date or a datetime, and of modules.
_MOMENTS: Final = ("today", "now", "utcnow")
_DIFFERING: Final = (time.time, time.time_ns, uuid.uuid1, uuid.uuid4, random.random)


def lint_changed_default(node: ast.AST, scope: Scope, report: Report) -> None:
    """Report a change of a parameter's default, which is one object for all calls."""
    match node:
        case ast.AugAssign(ast.Name(name) as changed):
            pass
        case ast.Call(ast.Attribute(ast.Name(name), method)) as changed if method in _CHANGING:
            pass
        case ast.Subscript(ast.Name(name), ctx=ast.Store() | ast.Del()) as changed:
            pass
        case _:
            return
    changes = own_nodes(scope.syntax, ast.AugAssign)  # in its place: the name is not bound anew
    if scope.stored[name] > sum(getattr(change.target, "id", None) == name for change in changes):
        return
    match _defaults_of(scope.syntax).get(name):
        case ast.List() | ast.Dict() | ast.Set() | ast.ListComp() | ast.DictComp() | ast.SetComp() as default:
            pass
        case ast.Call(ast.Name(maker) | ast.Attribute(attr=maker)) as default if maker in _MAKERS:
            pass
        case _:
            return
    shown = ast.unparse(default)
    fault = f"it changes {name!r}, whose default Python makes once, for all calls"
    anew = f"{name} = {shown} if {name} is None else {name}"
    remedy = f"add '| None' to its type, with the default None, and make a new one: {anew}"
    report.add(Rule.CHANGED_DEFAULT, fault, remedy, changed)


def lint_fixed_default(function: ast.AST, scope: Scope, report: Report) -> None:
    """Report a default that is the time, or drawn by lot, when the file is imported."""
    around = scope.outer or scope
    for name, default in _defaults_of(function).items():
        if any(_differs(call.func, around) for call in own_nodes(ast.Expression(default), ast.Call)):
            shown = ast.unparse(default)
            fault = f"{name!r} has the default {shown}, which Python calls once, when the file is imported"
            anew = f"{name} = {shown} if {name} is None else {name}"
            remedy = f"add '| None' to its type, with the default None, and call it in the function: {anew}"
            report.add(Rule.FIXED_DEFAULT, fault, remedy, default)


def _differs(called: ast.expr, scope: Scope) -> bool:
    """Whether an expression is a function of the clock, or of chance."""
    if isinstance(called, ast.Attribute) and isinstance(kind := scope.value(called.value), type):
        return issubclass(kind, date) and called.attr in _MOMENTS
    return any(scope.value(called) is one for one in _DIFFERING)


def _defaults_of(function: ast.AST) -> dict[str, ast.expr]:
    """What each parameter is by default, unless that is a constant."""
    if not isinstance(function, Function):
        return {}
    arguments = function.args
    by_position = zip([*arguments.posonlyargs, *arguments.args][::-1], arguments.defaults[::-1], strict=False)
    by_name = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return {
        argument.arg: default
        for argument, default in (*by_position, *by_name)
        if default is not None and not isinstance(default, ast.Constant)
    }
