"""
Static control flow.

The values that an expression can take, the items of a list expression, and the execution paths of a function.
"""

import ast
from collections.abc import Iterable
from typing import Final

#: Limit of execution paths, whose number grows exponentially with the branches of a function.
MAX_PATHS: Final = 32


def list_choices(node: ast.expr) -> list[ast.expr]:
    """Return the alternatives of a conditional or boolean expression; none for other expressions."""
    match node:
        case ast.IfExp(body=then, orelse=otherwise):
            return [then, otherwise]
        case ast.BoolOp(op=ast.Or(), values=values):
            return values
        case ast.BoolOp(values=values):
            return values[-1:]
    return []


def list_items(node: ast.expr) -> list[ast.expr]:
    """Return the items of a sum, list, tuple or comprehension, in order; a comprehension has one item."""
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
    """Return the execution paths of a body as simple statements, assuming that each loop runs once."""
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
