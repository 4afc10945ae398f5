"""Which expressions one may stand for, and the ways through a function."""

import ast
from collections.abc import Iterable
from typing import Final

#: A function of very many branches is not followed into each combination of them.
MOST_WAYS: Final = 32


def choices_of(node: ast.expr) -> list[ast.expr]:
    """Return the expressions one of which an expression stands for, if it chooses."""
    match node:
        case ast.IfExp(body=then, orelse=otherwise):
            return [then, otherwise]
        case ast.BoolOp(op=ast.Or(), values=values):
            return values
        case ast.BoolOp(values=values):
            return values[-1:]
    return []


def items_of(node: ast.expr) -> list[ast.expr]:
    """Return the expressions that one holds, yields or adds, in order; a comprehension's counts once."""
    added = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):  # deeper than functions may call
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


def ways_through(body: Iterable[ast.stmt]) -> list[tuple[ast.stmt, ...]]:
    """Return the ways through a body, each with its simple statements. A loop is taken to run once."""
    found: list[tuple[ast.stmt, ...]] = [()]
    for statement in body:
        ended = filter(_has_ended, found)
        going = (way + more for way in found if not _has_ended(way) for more in _ways_of(statement))
        found = [*going, *ended][:MOST_WAYS]
    return found


def _has_ended(way: tuple[ast.stmt, ...]) -> bool:
    return bool(way) and isinstance(way[-1], ast.Return | ast.Raise)


def _ways_of(statement: ast.stmt) -> list[tuple[ast.stmt, ...]]:
    match statement:
        case ast.If(body=then, orelse=otherwise):
            return ways_through(then) + ways_through(otherwise)
        case ast.For() | ast.AsyncFor() | ast.While():  # whose end may be behind a condition
            return [way[:-1] if _has_ended(way) else way for way in ways_through(statement.body)]
        case ast.With() | ast.AsyncWith():
            return ways_through(statement.body)
        case ast.Try(body=body, handlers=handlers, orelse=otherwise, finalbody=last):
            bodies = [[*body, *otherwise, *last], *([*handler.body, *last] for handler in handlers)]
            return [way for each in bodies for way in ways_through(each)]
        case ast.Match(cases=cases):
            return [way for case in cases for way in ways_through(case.body)]
    return [(statement,)]
