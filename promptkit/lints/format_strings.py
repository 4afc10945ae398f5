"""Lints of text that Python fills in, by ``.format(...)``, ``%`` or `string.Template`, and fails to."""

import ast
import inspect
import textwrap
from string import Template
from typing import Any, Final

from promptkit.errors.diagnostics import Location, Report, Rule
from promptkit.errors.filled_text import FilledText, filled_text
from promptkit.errors.sources import nodes_of, own_nodes
from promptkit.lints.name_resolution import Scope

__all__ = ["lint_filled_text"]

#: Functions, and methods, that leave the holes of a text as they are.
_KEEPING: Final = (textwrap.dedent, inspect.cleandoc, Template)
_STRIPPING: Final = ("strip", "lstrip", "rstrip")


def lint_filled_text(node: ast.AST, scope: Scope, report: Report) -> None:
    """Report a text whose holes do not fit the values that they get, so that filling it in fails."""
    filled = filled_text(node)
    if filled is None or not filled.is_whole or (text := _text_of(filled.text, scope)) is None:
        return
    error = filled.error_for(text)
    told = None if error is None else filled.explain(error)
    if error is not None and told is not None and not _is_tried(node, scope):
        report.add(Rule.UNFILLABLE_TEXT, *told, _place(filled, error, scope, report.location.file))


def _text_of(node: ast.expr, scope: Scope) -> str | None:
    """The text that an expression stands for, if the source shows it."""
    node = scope.behind(node)
    match node:
        case ast.Constant(str(text)):
            return text
        case ast.Call(ast.Attribute(inner, method), []) if method in _STRIPPING:
            return _text_of(inner, scope)
        case ast.Call(made, [inner]) if scope.value(made) in _KEEPING:
            return _text_of(inner, scope)
    value: Any = scope.value(node)
    value = value.template if type(value) is Template else value
    return value if isinstance(value, str) else None


def _is_tried(node: ast.AST, scope: Scope) -> bool:
    """Whether what it raises may be caught."""
    tries: list[ast.Try | ast.TryStar] = own_nodes(scope.syntax, ast.Try, ast.TryStar)
    return any(node in nodes_of(each, type(node)) for each in tries)


def _place(filled: FilledText, error: Exception, scope: Scope, file: str) -> ast.expr | Location:
    """Where the text has the hole that it fails for; else where it is filled in."""
    text = scope.behind(filled.text)
    begins, ends = text.lineno, text.end_lineno or text.lineno
    name = str(error.args[0]) if isinstance(error, KeyError) else ""
    hole = filled.holes.place_in(file, range(begins, ends + 1), name) if name else None
    return filled.text if hole is None else Location(file, *hole)
