"""Lints for texts: containers in f-strings, placeholders without values, and wrong indentation."""

import ast
import inspect
import re
import textwrap
from collections import abc
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, get_origin

from promptkit.errors.diagnostics import Report
from promptkit.errors.exceptions import MediaError
from promptkit.errors.rules import Rule
from promptkit.errors.sources import text_of
from promptkit.errors.suggestions import nearest
from promptkit.fragments.text import dedent, fill
from promptkit.language.files import text_below
from promptkit.language.placeholders import placeholders_in
from promptkit.language.text import Text
from promptkit.lints.static_analysis import Scope, list_choices
from promptkit.loader.targets import display_path

#: Names of container types.
_KINDS: Final[dict[Any, str]] = {
    **dict.fromkeys((list, abc.Sequence, abc.MutableSequence, abc.Collection), "list"),
    tuple: "tuple",
    **dict.fromkeys((set, frozenset, abc.Set, abc.MutableSet), "set"),
    **dict.fromkeys((dict, abc.Mapping, abc.MutableMapping), "dict"),
}


def describe_container(name: str, scope: Scope) -> Iterator[tuple[str, str]]:
    """
    Yield a description of a container parameter in an f-string, and a hint.

    Args:
        name:
            A name in the f-string.

        scope:
            The function with the f-string.
    """
    if name not in scope.arguments or scope.stored[name]:
        return
    kind, items = _container(scope.arguments[name], scope)
    if kind == "dict":
        yield "a dict in Python's notation", f"write json_block({name}), or format its items"
    elif kind is not None:
        ordered = f"sorted({name})" if kind == "set" else name
        joined = ordered if items is str else f"map(str, {ordered})"
        yield f"a {kind} in Python's notation", f"write ', '.join({joined}), or bullets({ordered})"


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


#: Functions and methods that preserve the placeholders of a text.
_PRESERVING: Final = (textwrap.dedent, inspect.cleandoc)
_STRIPPING: Final = ("strip", "lstrip", "rstrip")


def _literal(node: ast.expr, scope: Scope) -> str | None:
    """Return the text of an expression if the source shows it, or None."""
    node = scope.resolve(node)
    match node:
        case ast.Constant(str(text)):
            return text
        case ast.Call(ast.Attribute(inner, method), []) if method in _STRIPPING:
            return _literal(inner, scope)
        case ast.Call(function, [inner]) if scope.value(function) in _PRESERVING:
            return _literal(inner, scope)
    value: Any = scope.value(node)
    return value if isinstance(value, str) else None


_DEDENTS: Final = (dedent, textwrap.dedent)

#: Placeholders of other tools: Jinja, Handlebars, and the commands of Claude Code, Gemini CLI and VS Code.
_FOREIGN: Final = re.compile(
    r"\{%-?[ \t]*(?:if|elif|for|set|include|macro|block|extends)\b[^%\n]*%\}|\{\{[#/>][^{}\n]*\}\}"
    r"|\{\{[ \t]*\w+[ \t]*[.|][^{}\n]*\}\}|\$ARGUMENTS\b|!\{[^}\n]*\}|\$\{input:[^}\n]*\}"
)


def lint_placeholders(call: ast.AST, scope: Scope, report: Report) -> None:
    """Report values and placeholders without a counterpart, and unreadable files, in calls with literals."""
    match call:
        case ast.Call(function, [text], keywords) if scope.value(function) is fill:
            _check_placeholders(call, _literal(text, scope), keywords, report, "")
        case ast.Call(ast.Attribute(owner, "from_path"), [ast.Constant(str(path))], keywords) if (
            scope.value(owner) is Text
        ):
            _check_placeholders(call, _file_text(path, call, report), keywords, report, path)


def _file_text(path: str, call: ast.Call, report: Report) -> str | None:
    folder = Path(report.location.file).parent
    try:
        return text_below(folder, path)
    except MediaError as error:
        message, _, hint = str(error).partition(": ")
        default_hint = (
            f"it is looked up in {display_path(str(folder))!r}; use Text.below(...) for other folders"
        )
        report.add(Rule.MISSING_TEXT, message, hint or default_hint, call)
        return None


def _check_placeholders(
    call: ast.Call, text: str | None, keywords: Iterable[ast.keyword], report: Report, file: str
) -> None:
    if text is None:
        return
    if foreign := _FOREIGN.search(text):
        message = f"{foreign[0]!r}{_line_in(re.escape(foreign[0]), file, report)} is sent literally"
        report.add(
            Rule.TEMPLATE_SYNTAX, message, "write {{name}} instead, and give it a value: name=...", call
        )
    placeholders, names = placeholders_in(text), [keyword.arg for keyword in keywords]
    for name in names:
        if name is not None and name not in placeholders:
            suggestion = nearest(name, placeholders)
            hint = (
                f"did you mean {suggestion!r}?"
                if suggestion
                else f"write {{{{{name}}}}} where the value belongs"
            )
            report.add(Rule.UNKNOWN_PLACEHOLDER, f"the text has no placeholder {{{{{name}}}}}", hint, call)
    for unset in placeholders:
        if unset not in names and None not in names:
            location = _line_in(rf"\{{\{{[ \t]*{unset}\b", file, report)
            message = f"{{{{{unset}}}}}{location} gets no value and is sent literally"
            hint = (
                f"give it a value: {unset}=..., or {unset}='{{{{{unset}}}}}' to send the placeholder itself"
            )
            report.add(Rule.UNFILLED_PLACEHOLDER, message, hint, call)


def _line_in(pattern: str, file: str, report: Report) -> str:
    """Return the location of a pattern in a text file, as part of a message; ``""`` without a file."""
    before = re.split(pattern, text_of(str(Path(report.location.file).parent / file)), maxsplit=1)[0]
    line = before.count("\n") + 1
    return f" in {file}:{line}" if file else ""


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
