"""Lints of long text: its holes and their values, its file, and the lines that `dedent` would shift."""

import ast
import re
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from promptkit.errors.diagnostics import Report, Rule
from promptkit.errors.exceptions import MediaError
from promptkit.errors.sources import text_of
from promptkit.errors.suggestions import nearest
from promptkit.fragments.filling import fill
from promptkit.fragments.text import dedent
from promptkit.language.placeholders import placeholders_in
from promptkit.language.text import Text
from promptkit.language.text_files import text_below
from promptkit.lints.control_flow import choices_of
from promptkit.lints.name_resolution import Scope
from promptkit.loader.targets import display_path

__all__ = ["lint_holes", "lint_shifted_lines"]

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
            _check_holes(call, _text_of(path, call, report), keywords, report, path)


def _literal(node: ast.expr, scope: Scope) -> str | None:
    """The text that an expression stands for, if the source shows it."""
    node = scope.behind(node)
    value = node.value if isinstance(node, ast.Constant) else scope.value(node)
    return value if isinstance(value, str) else None


def _text_of(path: str, call: ast.Call, report: Report) -> str | None:
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
        fault = f"{foreign[0]!r}{_place(re.escape(foreign[0]), file, report)} is sent as it stands"
        report.add(Rule.TEMPLATE_SYNTAX, fault, "write {{name}} there, and give it a value: name=...", call)
    holes, given = placeholders_in(text), [keyword.arg for keyword in keywords]
    for name in given:
        if name is not None and name not in holes:
            meant = nearest(name, holes)
            hint = f"did you mean {meant!r}?" if meant else f"write {{{{{name}}}}} where it is to stand"
            report.add(Rule.NO_SUCH_HOLE, f"the text has no hole {{{{{name}}}}}", hint, call)
    for hole in holes:
        if hole not in given and None not in given:
            place = _place(rf"\{{\{{[ \t]*{hole}\b", file, report)
            fault = f"{{{{{hole}}}}}{place} gets no value, and is sent as it stands"
            hint = f"give it one: {hole}=..., or {hole}='{{{{{hole}}}}}' if the model is to see it"
            report.add(Rule.UNFILLED_HOLE, fault, hint, call)


def _place(pattern: str, file: str, report: Report) -> str:
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
