"""Static analysis of optional values: which can be None or a bool where a text inserts them."""

import ast
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, TypeAlias

from promptkit.errors.sources import own_nodes
from promptkit.lints.static_analysis import Scope

#: Those of the values None, False and True that an expression can have.
_Rejected: TypeAlias = frozenset[bool | None]

_NOTHING: Final[_Rejected] = frozenset()
_NONE: Final[_Rejected] = frozenset([None])
_TRUE: Final[_Rejected] = frozenset([True])
_BOOLS: Final[_Rejected] = frozenset([False, True])

#: Constants for which the lines of a mark are omitted.
_ABSENT: Final = (None, False, "")


def rejected_values(node: ast.expr, present: Iterable[ast.expr], scope: Scope) -> _Rejected:
    """
    Return which of None, False and True the source shows as values where a text inserts an expression.

    Args:
        node:
            The expression.

        present:
            The expressions whose values are present where it is inserted.

        scope:
            The function that fills the text.
    """
    known = frozenset[str]().union(*(_conditions(value, scope) for value in present))
    return _possible(node, known, scope)


@lru_cache(maxsize=256)  # names can refer to each other many times
def _possible(node: ast.expr, known: frozenset[str], scope: Scope) -> _Rejected:
    """Return which of None, False and True an expression can be while the conditions *known* hold."""
    node = scope.resolve(node)
    possible = _possible_by_form(node, known, scope)
    return possible & _TRUE if _holds(node, known, scope) else possible


def _possible_by_form(node: ast.expr, known: frozenset[str], scope: Scope) -> _Rejected:  # noqa: PLR0911 (a list of cases)
    match node:
        case ast.Constant(None | bool() as value):
            return frozenset([value])
        case ast.Compare() | ast.UnaryOp(ast.Not()):
            return _BOOLS
        case ast.IfExp(test, then, otherwise) if not _holds(test, known, scope):
            return _possible(then, known, scope) | _possible(otherwise, known, scope)
        case ast.IfExp(_, then):
            return _possible(then, known, scope)
        case ast.BoolOp(ast.Or(), [*others, last]):
            possible = _NOTHING.union(*(_possible(other, known, scope) for other in others))
            return (possible & _TRUE) | _possible(last, known, scope)
        case ast.BoolOp(ast.And(), [*tests, last]):
            failing = [test for test in tests if not _holds(test, known, scope)]
            possible = _NOTHING.union(*(_possible(test, known, scope) for test in failing)) - _TRUE
            if not possible and not all(_is_plain_value(scope.stand_in(test)) for test in failing):
                possible = _NONE
            return possible | _possible(last, known, scope)
        case ast.Name(name) if name in scope.arguments and not scope.stored[name]:
            return _NOTHING if _is_tested(name, scope) else _values_of_type(scope.arguments[name], scope)
    return _NOTHING


def _holds(node: ast.expr, known: frozenset[str], scope: Scope) -> bool:
    """Return whether the conditions *known* imply that the value of an expression is present."""
    return _conditions(node, scope) <= known


def _conditions(node: ast.expr, scope: Scope) -> set[str]:
    """Return the source of the conditions that hold exactly if the value of an expression is present."""
    conditions, visited, pending = set[str](), set[ast.expr](), [node]
    while pending:
        if (node := scope.resolve(pending.pop())) in visited:
            continue
        visited.add(node)
        match node:
            case ast.BoolOp(ast.And(), values):
                pending += values
            case ast.IfExp(test, then, ast.Constant(otherwise)) if otherwise in _ABSENT:
                pending += (test, then)
            case ast.Compare(value, [ast.IsNot()], [ast.Constant(None)]) | ast.Call(
                ast.Name("bool"), [value]
            ):
                pending.append(value)
            case _:
                conditions.add(ast.unparse(node))
    return conditions


def _is_plain_value(value: object) -> bool:
    """Return whether a value can be inserted, also if it is empty."""
    return isinstance(value, str | int | float | list | tuple | dict) and not isinstance(value, bool)


def _values_of_type(annotation: ast.expr | None, scope: Scope) -> _Rejected:
    """Return which of None, False and True the type of a parameter contains."""
    match annotation:
        case ast.Constant(None) | ast.Subscript(ast.Name("Optional") | ast.Attribute(attr="Optional")):
            return _NONE
        case ast.Subscript(ast.Name("Annotated"), ast.Tuple([inner, *_])):
            return _values_of_type(inner, scope)
        case ast.BinOp(left, ast.BitOr(), right):
            return _values_of_type(left, scope) | _values_of_type(right, scope)
    return _BOOLS if scope.value(annotation) is bool else _NOTHING


def _is_tested(name: str, scope: Scope) -> bool:
    """Return whether a function tests a parameter anywhere, and so may exclude None."""
    tested: list[ast.If | ast.IfExp | ast.While | ast.Assert] = own_nodes(
        scope.syntax, ast.If, ast.IfExp, ast.While, ast.Assert
    )
    tests = [node.test for node in tested]
    tests += [node.subject for node in own_nodes(scope.syntax, ast.Match)]
    tests += [value for node in own_nodes(scope.syntax, ast.BoolOp) for value in node.values[:-1]]
    return any(isinstance(node, ast.Name) and node.id == name for test in tests for node in ast.walk(test))
