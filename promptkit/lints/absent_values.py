"""Static analysis of optional values: which can be None or a bool where a text inserts them."""

import ast
from collections.abc import Iterable, Iterator
from typing import Final

from promptkit.errors.sources import own_nodes
from promptkit.lints.static_analysis import Scope

#: Constants for which the lines of a mark are omitted.
_ABSENT: Final = (None, False, "")


def can_be_absent(node: ast.expr, present: Iterable[ast.expr], scope: Scope) -> bool:
    """
    Return whether the source shows that a value can be None or a bool where it is inserted.

    Args:
        node:
            The value.

        present:
            The values of the marks around the placeholder, which are present where it is inserted.

        scope:
            The function that fills the text.
    """
    if not _is_absent_somewhere(node, scope):
        return False
    needed = _conditions_of_presence(scope.resolve(node), scope)
    known = {condition for value in present for condition in _conditions(value, scope)}
    return not needed or not needed <= known


def _is_absent_somewhere(node: ast.expr, scope: Scope) -> bool:  # noqa: PLR0911 (a list of cases)
    """Return whether the source shows that an expression can be None or a bool."""
    node = scope.resolve(node)
    match node:
        case ast.Constant(value):
            return value is None or isinstance(value, bool)
        case ast.Compare() | ast.UnaryOp(ast.Not()):
            return True
        case ast.IfExp(body=then, orelse=otherwise):
            return _is_absent_somewhere(then, scope) or _is_absent_somewhere(otherwise, scope)
        case ast.BoolOp(ast.Or(), [*_, last]):
            return _is_absent_somewhere(last, scope)
        case ast.BoolOp(ast.And(), [*tests, last]):
            return not all(_is_plain_value(scope.stand_in(test)) for test in (*tests, last))
        case ast.Name(name) if name in scope.arguments and not scope.stored[name]:
            return _is_optional(scope.arguments[name], scope) and not _is_tested(name, scope)
    return False


def _conditions_of_presence(node: ast.expr, scope: Scope) -> set[str]:
    """Return conditions that together exclude None and bools as the value of *node*; none if unknown."""
    match node:
        case ast.BoolOp(ast.And(), [*tests, last]) if not _is_absent_somewhere(last, scope):
            return {condition for test in tests for condition in _conditions(test, scope)}
        case ast.IfExp(test, then) if not _is_absent_somewhere(then, scope):
            return {*_conditions(test, scope)}
        case ast.Name(name) if scope.value(scope.arguments.get(name)) is not bool:
            return {name}
    return set()


def _conditions(node: ast.expr, scope: Scope) -> Iterator[str]:
    """Yield the source of the conditions that hold if the value of *node* is present."""
    node = scope.resolve(node)
    match node:
        case ast.BoolOp(ast.And(), values):
            for value in values:
                yield from _conditions(value, scope)
        case ast.IfExp(test, then, ast.Constant(otherwise)) if otherwise in _ABSENT:
            yield from _conditions(test, scope)
            yield from _conditions(then, scope)
        case ast.Compare(value, [ast.IsNot()], [ast.Constant(None)]) | ast.Call(ast.Name("bool"), [value]):
            yield from _conditions(value, scope)
        case _:
            yield ast.unparse(node)


def _is_plain_value(value: object) -> bool:
    """Return whether a value can be inserted, also if it is empty."""
    return isinstance(value, str | int | float | list | tuple | dict) and not isinstance(value, bool)


def _is_optional(annotation: ast.expr | None, scope: Scope) -> bool:
    """Return whether the type of a parameter contains None or is `bool`."""
    match annotation:
        case ast.Constant(None) | ast.Subscript(ast.Name("Optional") | ast.Attribute(attr="Optional")):
            return True
        case ast.Subscript(ast.Name("Annotated"), ast.Tuple([inner, *_])):
            return _is_optional(inner, scope)
        case ast.BinOp(left, ast.BitOr(), right):
            return _is_optional(left, scope) or _is_optional(right, scope)
    return scope.value(annotation) is bool


def _is_tested(name: str, scope: Scope) -> bool:
    """Return whether a function tests a parameter anywhere, and so may exclude None."""
    tested: list[ast.If | ast.IfExp | ast.While | ast.Assert] = own_nodes(
        scope.syntax, ast.If, ast.IfExp, ast.While, ast.Assert
    )
    tests = [node.test for node in tested]
    tests += [node.subject for node in own_nodes(scope.syntax, ast.Match)]
    tests += [value for node in own_nodes(scope.syntax, ast.BoolOp) for value in node.values[:-1]]
    return any(isinstance(node, ast.Name) and node.id == name for test in tests for node in ast.walk(test))
