"""Lints of texts: a missing ``f``, a container shown as Python writes it, a placeholder without a value."""

import ast
import inspect
import re
import textwrap
from collections import abc
from collections.abc import Iterable, Iterator
from pathlib import Path
from string import Template
from typing import Any, Final, get_origin

from promptkit.errors.diagnostics import Location, Report
from promptkit.errors.exceptions import MediaError
from promptkit.errors.filled_text import FilledText, filled_text
from promptkit.errors.rules import Rule
from promptkit.errors.sources import nodes_of, own_nodes, text_of
from promptkit.errors.suggestions import nearest
from promptkit.fragments.filling import fill
from promptkit.fragments.text import dedent
from promptkit.language.placeholders import placeholders_in
from promptkit.language.text import Text
from promptkit.language.text_files import text_below
from promptkit.lints.control_flow import choices_of
from promptkit.lints.name_resolution import Scope
from promptkit.loader.targets import display_path

#: Types of parameters, by what people call their values.
_KINDS: Final[dict[Any, str]] = {
    **dict.fromkeys((list, abc.Sequence, abc.MutableSequence, abc.Collection), "list"),
    tuple: "tuple",
    **dict.fromkeys((set, frozenset, abc.Set, abc.MutableSet), "set"),
    **dict.fromkeys((dict, abc.Mapping, abc.MutableMapping), "dict"),
}


def shown_container(name: str, scope: Scope) -> Iterator[tuple[str, str]]:
    """
    Yield what an f-string shows of a parameter that is a container, and what to write instead.

    Args:
        name:
            A name in the f-string.

        scope:
            The function around it.
    """
    if name not in scope.arguments or scope.stored[name]:
        return
    kind, items = _container(scope.arguments[name], scope)
    if kind == "dict":
        yield "a dict as Python writes it", f"write json_block({name}), or a text of its items"
    elif kind is not None:
        ordered = f"sorted({name})" if kind == "set" else name
        joined = ordered if items is str else f"map(str, {ordered})"
        yield f"a {kind} as Python writes it", f"write ', '.join({joined}), or bullets({ordered})"


def _container(annotation: ast.expr | None, scope: Scope) -> tuple[str | None, Any]:
    """What kind of container an annotation names, if it names nothing else, and the type of its items."""
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
    named = scope.value(annotation)
    kind = get_origin(named) or named  # of an alias, or a name of typing
    return _KINDS.get(kind) if isinstance(kind, type) else None, scope.value(item)


#: Functions, and methods, that leave the holes of a text as they are.
_KEEPING: Final = (textwrap.dedent, inspect.cleandoc, Template)
_STRIPPING: Final = ("strip", "lstrip", "rstrip")


def lint_filled_text(node: ast.AST, scope: Scope, report: Report) -> None:
    """Report a text whose holes do not fit the values that they get, so that filling it in fails."""
    filled = filled_text(node)
    if filled is None or not filled.is_whole or (text := _literal(filled.text, scope)) is None:
        return
    error = filled.error_for(text)
    told = None if error is None else filled.explain(error)
    if error is not None and told is not None and not _is_tried(node, scope):
        report.add(Rule.UNFILLABLE_TEXT, *told, _hole_location(filled, error, scope, report.location.file))


def _literal(node: ast.expr, scope: Scope) -> str | None:
    """The text that an expression stands for, if the source shows it."""
    node = scope.behind(node)
    match node:
        case ast.Constant(str(text)):
            return text
        case ast.Call(ast.Attribute(inner, method), []) if method in _STRIPPING:
            return _literal(inner, scope)
        case ast.Call(made, [inner]) if scope.value(made) in _KEEPING:
            return _literal(inner, scope)
    value: Any = scope.value(node)
    value = value.template if type(value) is Template else value
    return value if isinstance(value, str) else None


def _is_tried(node: ast.AST, scope: Scope) -> bool:
    """Whether what it raises may be caught."""
    tries: list[ast.Try | ast.TryStar] = own_nodes(scope.syntax, ast.Try, ast.TryStar)
    return any(node in nodes_of(each, type(node)) for each in tries)


def _hole_location(filled: FilledText, error: Exception, scope: Scope, file: str) -> ast.expr | Location:
    """Where the text has the hole that it fails for; else where it is filled in."""
    text = scope.behind(filled.text)
    begins, ends = text.lineno, text.end_lineno or text.lineno
    name = str(error.args[0]) if isinstance(error, KeyError) else ""
    hole = filled.holes.place_in(file, range(begins, ends + 1), name) if name else None
    return filled.text if hole is None else Location(file, *hole)


_DEDENTS: Final = (dedent, textwrap.dedent)

#: What other tools fill in: Jinja, Handlebars, and the commands of Claude Code, Gemini CLI and VS Code.
_FOREIGN: Final = re.compile(
    r"\{%-?[ \t]*(?:if|elif|for|set|include|macro|block|extends)\b[^%\n]*%\}|\{\{[#/>][^{}\n]*\}\}"
    r"|\{\{[ \t]*\w+[ \t]*[.|][^{}\n]*\}\}|\$ARGUMENTS\b|!\{[^}\n]*\}|\$\{input:[^}\n]*\}"
)


def lint_holes(call: ast.AST, scope: Scope, report: Report) -> None:
    """Report values without holes, holes without values, and files that cannot be read, of literal calls."""
    match call:
        case ast.Call(function, [text], keywords) if scope.value(function) is fill:
            _check_holes(call, _literal(text, scope), keywords, report, "")
        case ast.Call(ast.Attribute(owner, "from_path"), [ast.Constant(str(path))], keywords) if (
            scope.value(owner) is Text
        ):
            _check_holes(call, _file_text(path, call, report), keywords, report, path)


def _file_text(path: str, call: ast.Call, report: Report) -> str | None:
    folder = Path(report.location.file).parent
    try:
        return text_below(folder, path)
    except MediaError as error:
        fault, _, hint = str(error).partition(": ")
        looked_for = f"it is looked for in {display_path(str(folder))!r}; Text.below(...) takes other folders"
        report.add(Rule.MISSING_TEXT, fault, hint or looked_for, call)
        return None


def _check_holes(
    call: ast.Call, text: str | None, keywords: Iterable[ast.keyword], report: Report, file: str
) -> None:
    if text is None:
        return
    if foreign := _FOREIGN.search(text):
        fault = f"{foreign[0]!r}{_line_in(re.escape(foreign[0]), file, report)} is sent as it stands"
        report.add(Rule.TEMPLATE_SYNTAX, fault, "write {{name}} there, and give it a value: name=...", call)
    holes, given = placeholders_in(text), [keyword.arg for keyword in keywords]
    for name in given:
        if name is not None and name not in holes:
            meant = nearest(name, holes)
            hint = f"did you mean {meant!r}?" if meant else f"write {{{{{name}}}}} where it is to stand"
            report.add(Rule.NO_SUCH_HOLE, f"the text has no hole {{{{{name}}}}}", hint, call)
    for hole in holes:
        if hole not in given and None not in given:
            place = _line_in(rf"\{{\{{[ \t]*{hole}\b", file, report)
            fault = f"{{{{{hole}}}}}{place} gets no value, and is sent as it stands"
            hint = f"give it one: {hole}=..., or {hole}='{{{{{hole}}}}}' if the model is to see it"
            report.add(Rule.UNFILLED_HOLE, fault, hint, call)


def _line_in(pattern: str, file: str, report: Report) -> str:
    """Where a part of a text file stands, whose front matter counts; ``""`` without a file."""
    before = re.split(pattern, text_of(str(Path(report.location.file).parent / file)), maxsplit=1)[0]
    line = before.count("\n") + 1
    return f" in {file}:{line}" if file else ""


def lint_shifted_lines(call: ast.AST, scope: Scope, report: Report) -> None:
    """Report an f-string that is dedented after a value of several lines was put into it."""
    match call:
        case ast.Call(function, [ast.JoinedStr(parts)]) if scope.value(function) in _DEDENTS:
            is_indented = any("\n " in str(getattr(part, "value", "")) for part in parts)
            for part in parts:
                if is_indented and isinstance(part, ast.FormattedValue) and _has_lines(part, scope):
                    shown = ast.unparse(part.value)
                    fault = f"the lines of {shown!r} lose or miss their indentation, if it has several"
                    hint = "write fill('...{{name}}...', name=...), or from Python 3.14 on dedent(t'...')"
                    report.add(Rule.SHIFTED_LINES, fault, hint, call)


def _has_lines(part: ast.FormattedValue, scope: Scope) -> bool:
    """Whether a value in an f-string may have several lines."""
    if part.conversion == ord("r") or part.format_spec is not None:
        return False
    return any(_may_have_lines(one, scope) for one in choices_of(part.value) or [part.value])


def _may_have_lines(node: ast.expr, scope: Scope) -> bool:
    match scope.behind(node):
        case ast.Name(name) if name in scope.arguments and not scope.stored[name]:
            return _takes_text(scope.arguments[name], scope)
        case ast.Call(ast.Attribute(ast.Constant(str(separator)), "join")):
            return "\n" in separator
        case ast.Call(function):
            made: Any = scope.value(function)
            return (getattr(made, "__module__", None) or "").startswith("promptkit.fragments")
    return False


def _takes_text(annotation: ast.expr | None, scope: Scope) -> bool:
    """Whether a parameter takes any text."""
    match annotation:
        case ast.Subscript(ast.Name("Annotated"), ast.Tuple([kind, *_])):
            return _takes_text(kind, scope)
        case ast.BinOp(left, ast.BitOr(), right):
            return _takes_text(left, scope) or _takes_text(right, scope)
    return scope.value(annotation) in (str, Text)
