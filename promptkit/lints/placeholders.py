"""Lints for texts with placeholders: where the source shows them, and in files that a rendering has read."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

from promptkit.errors.diagnostics import Location, Report
from promptkit.errors.exceptions import MediaError
from promptkit.errors.rules import Rule
from promptkit.errors.sources import own_nodes
from promptkit.errors.suggestions import nearest
from promptkit.fragments.text import fill
from promptkit.language.files import TextRead, text_below
from promptkit.language.placeholders import (
    MarkError,
    TextWithPlaceholders,
    find_unfilled,
    placeholders_in,
)
from promptkit.language.text import Text
from promptkit.lints.static_analysis import Scope
from promptkit.loader.targets import display_path

#: Functions and methods that preserve the placeholders of a text.
_PRESERVING: Final = (textwrap.dedent, inspect.cleandoc)
_STRIPPING: Final = ("strip", "lstrip", "rstrip")

#: Placeholders of other tools: Jinja, Handlebars, and the commands of Claude Code, Gemini CLI and VS Code.
_FOREIGN: Final = re.compile(
    r"\{%-?[ \t]*(?:if|elif|for|set|include|macro|block|extends)\b[^%\n]*%\}"
    r"|\{\{[#^/>][^{}\n]*\}\}"
    r"|\{\{[ \t]*\w+[ \t]*[.|][^{}\n]*\}\}|\$ARGUMENTS\b|!\{[^}\n]*\}|\$\{input:[^}\n]*\}"
)

#: Limit of the texts that one call can be checked for, because they multiply.
_MAX_TEXTS: Final = 64


def lint_placeholders(call: ast.AST, scope: Scope, report: Report) -> None:
    """
    Report values and placeholders without a counterpart, and unreadable files, if the source shows the text.
    """
    match call:
        case ast.Call(function, [text]) if scope.value(function) is fill:
            for literal in _literals(text, scope):
                _lint_call(call, literal, 1, "", scope, report)
        case ast.Call(ast.Attribute(owner, "from_path"), [path]) if scope.value(owner) is Text:
            for file in _literals(path, scope):
                if (read := _read(file, call, report)) is not None:
                    _lint_call(call, *read, file, scope, report)


def lint_texts_read(texts: Iterable[TextRead], report: Report) -> None:
    """Report the placeholders without a value in the text files that a rendering has read."""
    for read in texts:
        for rule, message, hint in _problems(read.text, read.names, read.first_line, read.path):
            report.add(rule, message, hint, Location(*read.recipe))


def _lint_call(  # noqa: PLR0913, PLR0917 (the text has three properties)
    call: ast.Call, text: str, first_line: int, file: str, scope: Scope, report: Report
) -> None:
    values = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    names = values if len(values) == len(call.keywords) else None
    for rule, message, hint in _problems(text, values, first_line, file, is_complete=names is not None):
        report.add(rule, message, hint, call)
    try:
        parsed = TextWithPlaceholders.parse(text, {*values}.intersection(placeholders_in(text)), file)
    except MarkError:
        return  # it is one of the problems
    for name in parsed.required() & values.keys():
        if _can_be_absent(values[name], scope):
            message = f"{name!r} can be None or a bool, which {_placeholder(name)}{_in(file)} does not accept"
            hint = (
                f"write {_placeholder(name + '?')} if its line should be omitted, "
                f"or give it a text for each case"
            )
            report.add(Rule.ABSENT_VALUE, message, hint, values[name])


def _problems(
    text: str, names: Iterable[str], first_line: int, file: str, *, is_complete: bool = True
) -> Iterator[tuple[Rule, str, str]]:
    """
    Yield the rule, message and hint for each problem of a text.

    Args:
        text:
            The text.

        names:
            The names of its values.

        first_line:
            The number of its first line in the file.

        file:
            Its file; ``""`` for a text in the source.

        is_complete:
            Whether *names* are all of the names.
    """
    placeholders, names = placeholders_in(text), [*names]
    unfilled = find_unfilled(text, names, first_line)
    marks = {*names, *map(_name_in, unfilled)}
    for foreign in _FOREIGN.finditer(text):
        if _name_in(foreign[0]) not in marks:
            line = first_line + text.count("\n", 0, foreign.start())
            message = f"{foreign[0]!r}{_in(file, line)} is sent literally"
            yield Rule.TEMPLATE_SYNTAX, message, "write {{name}} instead, and give it a value: name=..."
            break
    for name in names:
        if name not in placeholders:
            suggestion = nearest(name, placeholders)
            hint = f"write {_placeholder(name)} where the value belongs"
            if suggestion:
                hint = f"did you mean {suggestion!r}?"
            message = f"{repr(file) if file else 'the text'} has no placeholder {_placeholder(name)}"
            yield Rule.UNKNOWN_PLACEHOLDER, message, hint
    try:
        TextWithPlaceholders.parse(text, {*names}.intersection(placeholders), file, first_line)
    except MarkError as error:
        hint = "write each mark on a line of its own, and close blocks in reverse order"
        yield Rule.MISPLACED_MARK, f"{error.problem}{_in(file, error.line)}", hint
    if is_complete:
        for placeholder, line in unfilled.items():
            name = _name_in(placeholder)
            hint = f"give it a value: {name}=..., or {name}='{placeholder}' to send the placeholder itself"
            message = f"{placeholder}{_in(file, line)} gets no value and is sent literally"
            yield Rule.UNFILLED_PLACEHOLDER, message, hint


def _name_in(tag: str) -> str:
    """Return the name in a placeholder or a mark."""
    return tag.strip("{#^/} \t")


def _placeholder(name: str) -> str:
    return f"{{{{{name}}}}}"


def _in(file: str, line: int = 0) -> str:
    """Return the location in a text file, as part of a message; ``""`` without a file."""
    if not file:
        return ""
    return f" in {file}:{line}" if line else f" in {file}"


def _read(path: str, call: ast.Call, report: Report) -> tuple[str, int] | None:
    """Return a text file and the number of its first line; report it and return None if it is unreadable."""
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


def _literals(node: ast.expr, scope: Scope) -> list[str]:  # noqa: PLR0911 (a list of cases)
    """Return the texts that an expression can have, or nothing if the source does not show all of them."""
    node = scope.resolve(node)
    match node:
        case ast.Constant(str(text)):
            return [text]
        case ast.IfExp(body=then, orelse=otherwise):
            choices = [_literals(then, scope), _literals(otherwise, scope)]
            return [text for texts in choices for text in texts] if all(choices) else []
        case ast.JoinedStr(parts):
            return _joined([_literals(part, scope) for part in parts])
        case ast.FormattedValue(value, -1, None):
            return _literals(value, scope)
        case ast.Call(ast.Attribute(inner, method), []) if method in _STRIPPING:
            return [getattr(text, method)() for text in _literals(inner, scope)]
        case ast.Call(function, [inner]) if scope.value(function) in _PRESERVING:
            return _literals(inner, scope)
        case ast.Subscript(container):
            return _texts_in(scope.value(container))
        case ast.Name(name) if name in scope.arguments and not scope.stored[name]:
            return _literal_choices(scope.arguments[name], scope)
    constant: Any = scope.value(node)
    return [constant] if isinstance(constant, str) else []


def _joined(parts: list[list[str]]) -> list[str]:
    count = 1
    for part in parts:
        count *= len(part)
    return ["".join(texts) for texts in product(*parts)] if 0 < count <= _MAX_TEXTS else []


def _texts_in(container: Any) -> list[str]:
    """Return the values of a module's dict of texts."""
    values = list(container.values()) if isinstance(container, Mapping) else []
    return values if len(values) <= _MAX_TEXTS and all(type(value) is str for value in values) else []


def _literal_choices(annotation: ast.expr | None, scope: Scope) -> list[str]:
    """Return the texts of a parameter whose type is `Literal`."""
    choices: list[Any] = []
    match annotation:
        case ast.Subscript(kind, choice) if scope.value(kind) is Literal:
            nodes = choice.elts if isinstance(choice, ast.Tuple) else [choice]
            choices = [getattr(node, "value", None) for node in nodes]
        case ast.Subscript(ast.Name("Annotated"), ast.Tuple([inner, *_])):
            return _literal_choices(inner, scope)
        case _ if get_origin(alias := scope.value(annotation)) is Literal:
            choices = list(get_args(alias))
    return choices if all(isinstance(choice, str) for choice in choices) else []


def _can_be_absent(node: ast.expr, scope: Scope) -> bool:  # noqa: PLR0911 (a list of cases)
    """Return whether the source shows that a value can be None or a bool."""
    node = scope.resolve(node)
    match node:
        case ast.Constant(value):
            return value is None or isinstance(value, bool)
        case ast.Compare() | ast.UnaryOp(ast.Not()):
            return True
        case ast.IfExp(body=then, orelse=otherwise):
            return _can_be_absent(then, scope) or _can_be_absent(otherwise, scope)
        case ast.BoolOp(ast.Or(), [*_, last]):
            return _can_be_absent(last, scope)
        case ast.BoolOp(ast.And(), [*tests, last]):
            return not all(_is_plain_value(scope.stand_in(test)) for test in (*tests, last))
        case ast.Name(name) if name in scope.arguments and not scope.stored[name]:
            return _is_optional(scope.arguments[name], scope) and not _is_tested(name, scope)
    return False


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
