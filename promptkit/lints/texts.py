"""Lints for texts: containers in f-strings, and wrong indentation."""

import ast
import re
import textwrap
from collections import abc
from collections.abc import Iterator
from typing import Any, Final, get_origin

from promptkit.errors.diagnostics import Report
from promptkit.errors.rules import Rule
from promptkit.errors.sources import segment_of
from promptkit.fragments.text import dedent
from promptkit.language.text import Text
from promptkit.lints.static_analysis import Scope, list_choices

#: Names of container types.
_KINDS: Final[dict[Any, str]] = {
    **dict.fromkeys((list, abc.Sequence, abc.MutableSequence, abc.Collection), "list"),
    tuple: "tuple",
    **dict.fromkeys((set, frozenset, abc.Set, abc.MutableSet), "set"),
    **dict.fromkeys((dict, abc.Mapping, abc.MutableMapping), "dict"),
}


def describe_container(node: ast.expr, scope: Scope) -> Iterator[tuple[str, str]]:
    """
    Yield a description of a container in text, and a hint.

    Args:
        node:
            An expression whose value is formatted.

        scope:
            The function that formats it.
    """
    kind, items = container_of(node, scope)
    name = ast.unparse(node)
    if kind == "dict":
        yield "a dict in Python's notation", f"write json_block({name}), or format its items"
    elif kind is not None:
        ordered = f"sorted({name})" if kind == "set" else name
        joined = ordered if items is str else f"map(str, {ordered})"
        yield f"a {kind} in Python's notation", f"write ', '.join({joined}), or bullets({ordered})"


def container_of(node: ast.expr, scope: Scope) -> tuple[str | None, Any]:
    """Return the type of container that an expression is, or None, and the type of its items, if known."""
    if isinstance(node, ast.Name) and node.id in scope.arguments:
        return (None, None) if scope.stored[node.id] else _container(scope.arguments[node.id], scope)
    value = scope.stand_in(node)
    items = list(value)[:1] if isinstance(value, list | tuple) else []
    return _KINDS.get(type(value)), type(items[0]) if items else None


def _container(annotation: ast.expr | None, scope: Scope) -> tuple[str | None, Any]:
    """Return the name of an annotation's container type, or None, and the type of its items."""
    item: ast.expr | None = None
    match annotation:
        case (
            ast.Subscript(ast.Name("Annotated"), ast.Tuple([inner, *_]))
            | ast.Subscript(ast.Name("Optional"), inner)
            | ast.BinOp(inner, ast.BitOr(), ast.Constant(None))
        ):
            return _container(inner, scope)
        case ast.Subscript(annotation, ast.Tuple([item, *_]) | item):
            pass
    value = scope.value(annotation)
    kind = get_origin(value) or value  # resolves an alias, or a name of typing
    return _KINDS.get(kind) if isinstance(kind, type) else None, scope.value(item)


_DEDENTS: Final = (dedent, textwrap.dedent)

_TRIPLE_QUOTES: Final = re.compile("\"{3}|'{3}")

#: The smallest indentation of a function's text that is reported: that of its code.
_CODE_INDENTATION: Final = 4


def lint_indentation(node: ast.expr, report: Report) -> None:
    """Report a literal of several lines whose lines are all indented like the code."""
    match node:
        case ast.Constant(str(text)):
            pass
        case ast.JoinedStr(parts):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in parts)
        case _:
            return
    lines = [line for line in text.split("\n")[1:] if line.strip()]
    margin = min((len(line) - len(line.lstrip(" \t")) for line in lines), default=0)
    position = node.lineno, node.end_lineno or node.lineno, node.col_offset, node.end_col_offset or 0
    is_indented = margin >= _CODE_INDENTATION and node.lineno != node.end_lineno
    if is_indented and _TRIPLE_QUOTES.search(segment_of(report.location.file, position)):
        message = "a text is sent with the indentation of the code around it"
        report.add(Rule.INDENTED_TEXT, message, "write dedent(...), or fill(...) with its values", node)


def lint_shifted_lines(call: ast.AST, scope: Scope, report: Report) -> None:
    """Report an f-string that is dedented after a value of several lines was inserted."""
    match call:
        case ast.Call(function, [ast.JoinedStr(parts)]) if scope.value(function) in _DEDENTS:
            is_indented = any("\n " in str(getattr(part, "value", "")) for part in parts)
            for part in parts:
                if is_indented and isinstance(part, ast.FormattedValue) and _has_lines(part, scope):
                    expression = ast.unparse(part.value)
                    message = f"if {expression!r} has several lines, their indentation is wrong"
                    hint = "write fill('...{{name}}...', name=...), or from Python 3.14 on dedent(t'...')"
                    report.add(Rule.SHIFTED_LINES, message, hint, call)


def _has_lines(part: ast.FormattedValue, scope: Scope) -> bool:
    """Return whether a value in an f-string can have several lines."""
    if part.conversion == ord("r") or part.format_spec is not None:
        return False
    return any(_may_have_lines(choice, scope) for choice in list_choices(part.value) or [part.value])


def _may_have_lines(node: ast.expr, scope: Scope) -> bool:
    match scope.resolve(node):
        case ast.Name(name) if name in scope.arguments and not scope.stored[name]:
            return _takes_text(scope.arguments[name], scope)
        case ast.Call(ast.Attribute(ast.Constant(str(separator)), "join")):
            return "\n" in separator
        case ast.Call(function):
            called: Any = scope.value(function)
            return (getattr(called, "__module__", None) or "").startswith("promptkit.fragments")
    return False


def _takes_text(annotation: ast.expr | None, scope: Scope) -> bool:
    """Return whether a parameter accepts any text."""
    match annotation:
        case ast.Subscript(ast.Name("Annotated"), ast.Tuple([kind, *_])):
            return _takes_text(kind, scope)
        case ast.BinOp(left, ast.BitOr(), right):
            return _takes_text(left, scope) or _takes_text(right, scope)
    return scope.value(annotation) in (str, Text)
