"""Lints for placeholders, in texts that are known from the source and in files that a rendering has read."""

import ast
import inspect
import textwrap
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args, get_origin

from promptkit.errors.diagnostics import Location, Report
from promptkit.errors.exceptions import MediaError
from promptkit.errors.rules import Rule
from promptkit.errors.sources import own_nodes
from promptkit.errors.suggestions import nearest
from promptkit.fragments.text import fill
from promptkit.language.files import FilledTextFile, text_below
from promptkit.language.placeholders import (
    FOREIGN_WORDS,
    MarkError,
    TextWithPlaceholders,
    find_single_braces,
    find_template_syntax,
    find_unfilled,
    placeholders_in,
)
from promptkit.language.text import Text
from promptkit.lints.static_analysis import Scope, is_none, type_members
from promptkit.loader.targets import display_path

#: Functions and methods that preserve placeholders.
_PRESERVING_FUNCTIONS: Final = (textwrap.dedent, inspect.cleandoc)
_STRIPPING_METHODS: Final = ("strip", "lstrip", "rstrip")

#: The maximum number of possible strings for one call. The numbers of alternatives multiply.
_MAX_TEXTS: Final = 64


def lint_placeholders(call: ast.AST, scope: Scope, report: Report) -> None:
    """Report unmatched values and placeholders, and unreadable files, as far as the source shows the text."""
    match call:
        case ast.Call(function, [text]) if scope.global_value(function) is fill:
            literals = _possible_texts(text, scope)
            for literal in literals:
                _lint_call(call, literal, 1, "", scope, report)
            if not literals:
                _lint_f_string(call, text, report)
        case ast.Call(ast.Attribute(owner, "from_path"), [path]) if scope.global_value(owner) is Text:
            for file in _possible_texts(path, scope):
                if (read := _read_text(file, call, report)) is not None:
                    _lint_call(call, *read, file, scope, report)


def lint_text_files(texts: Iterable[FilledTextFile], report: Report) -> None:
    """Report invalid placeholders and marks in the text files that a rendering has read."""
    for read in texts:
        for rule, message, hint in _find_problems(read.text, read.names, read.first_line, read.path):
            report.add(rule, message, hint, Location(*read.recipe))


def _lint_call(  # noqa: PLR0913, PLR0917 (the text has three properties)
    call: ast.Call, text: str, first_line: int, file: str, scope: Scope, report: Report
) -> None:
    values = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    names = values if len(values) == len(call.keywords) else None
    for rule, message, hint in _find_problems(text, values, first_line, file, is_complete=names is not None):
        report.add(rule, message, hint, call)
    try:
        parsed = TextWithPlaceholders.parse(text, {*values}.intersection(placeholders_in(text)), file)
    except MarkError:
        return  # already reported
    reported = set[str]()
    for insertion in parsed.insertions():
        name, value = insertion.name, values[insertion.name]
        rejected = _rejected_values(value, scope)
        if name in insertion.present:  # the line is omitted if there is no value
            rejected &= _TRUE
        elif insertion.present:  # the line depends on other values, which can imply this one
            continue
        if rejected and name not in reported:
            reported.add(name)
            kinds = " or ".join(map(str, sorted(rejected, key=str)))
            message = (
                f"{name!r} can be {kinds}, which {_placeholder(name)}{_location_suffix(file)} does not accept"
            )
            hint = f"write {_placeholder(name + '?')} if its line should be omitted"
            if True in rejected:
                hint = f"write {{{{#{name}}}}} and {{{{/{name}}}}} around the lines that depend on it"
            report.add(Rule.ABSENT_VALUE, message, f"{hint}, or pass a text for each case", value)


def _lint_f_string(call: ast.Call, text: ast.expr, report: Report) -> None:
    """Report a placeholder in an f-string, which turns double braces into single ones."""
    if isinstance(text, ast.JoinedStr):
        literal = "".join(str(part.value) for part in text.values if isinstance(part, ast.Constant))
        for name in (keyword.arg for keyword in call.keywords if keyword.arg):
            if name not in placeholders_in(literal) and find_single_braces(literal, name):
                report.add(*_unknown_placeholder(literal, name, ""), call)


def _unknown_placeholder(text: str, name: str, file: str) -> tuple[Rule, str, str]:
    """Return the rule, message and hint for a value without a placeholder in *text*."""
    hint = f"write {_placeholder(name)} where the value belongs"
    if halved := find_single_braces(text, name):
        hint = f"an f-string turns {{{halved}}} into {halved}: remove the f prefix"
    elif suggestion := nearest(name, placeholders_in(text)):
        hint = f"did you mean {suggestion!r}?"
    message = f"{repr(file) if file else 'the text'} has no placeholder {_placeholder(name)}"
    return Rule.UNKNOWN_PLACEHOLDER, message, hint


def _find_problems(
    text: str, names: Iterable[str], first_line: int, file: str, *, is_complete: bool = True
) -> Iterator[tuple[Rule, str, str]]:
    """
    Yield the rule, message and hint for each problem in a text.

    Args:
        text:
            The text.

        names:
            The names of the text's values.

        first_line:
            The number of the text's first line in the file.

        file:
            The file that contains the text; ``""`` for a literal in the source.

        is_complete:
            Whether *names* contains the names of all values.
    """
    placeholders, names = placeholders_in(text), [*names]
    unfilled = find_unfilled(text, {*names, *FOREIGN_WORDS}, first_line)
    marks = {*names, *(name for name, _ in unfilled.values())}
    for syntax, start, hint in find_template_syntax(text, marks):
        line = first_line + text.count("\n", 0, start)
        yield Rule.TEMPLATE_SYNTAX, f"{syntax!r}{_location_suffix(file, line)} is sent literally", hint
    for name in names:
        if name not in placeholders:
            yield _unknown_placeholder(text, name, file)
    try:
        TextWithPlaceholders.parse(text, {*names}.intersection(placeholders), file, first_line)
    except MarkError as error:
        yield Rule.MISPLACED_MARK, f"{error.problem}{_location_suffix(file, error.line)}", error.hint
    if is_complete:
        for placeholder, (name, line) in unfilled.items():
            hint = f"give it a value: {name}=..., or {name}='{placeholder}' to send the placeholder itself"
            if suggestion := nearest(name, names):
                hint = f"did you mean {placeholder.replace(name, suggestion)}? Otherwise, {hint}"
            message = f"{placeholder}{_location_suffix(file, line)} gets no value and is sent literally"
            yield Rule.UNFILLED_PLACEHOLDER, message, hint


def _placeholder(name: str) -> str:
    return f"{{{{{name}}}}}"


def _location_suffix(file: str, line: int = 0) -> str:
    """Return the location in a text file, as the end of a message; ``""`` if there is no file."""
    if not file:
        return ""
    return f" in {file}:{line}" if line else f" in {file}"


def _read_text(path: str, call: ast.Call, report: Report) -> tuple[str, int] | None:
    """
    Return the text of a file and the number of its first line. Report an unreadable file, and return None.
    """
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


def _possible_texts(node: ast.expr, scope: Scope) -> list[str]:  # noqa: PLR0911 (a list of cases)
    """Return all strings that an expression can evaluate to; ``[]`` if the source does not determine them."""
    node = scope.resolve(node)
    match node:
        case ast.Constant(str(text)):
            return [text]
        case ast.IfExp(body=then, orelse=otherwise):
            choices = [_possible_texts(then, scope), _possible_texts(otherwise, scope)]
            return [text for texts in choices for text in texts] if all(choices) else []
        case ast.JoinedStr(parts):
            return _join_choices([_possible_texts(part, scope) for part in parts])
        case ast.FormattedValue(value, -1, None):
            return _possible_texts(value, scope)
        case ast.Call(ast.Attribute(inner, method), []) if method in _STRIPPING_METHODS:
            return [getattr(text, method)() for text in _possible_texts(inner, scope)]
        case ast.Call(function, [inner]) if scope.global_value(function) in _PRESERVING_FUNCTIONS:
            return _possible_texts(inner, scope)
        case ast.Name(name) if name in scope.arguments and not scope.assignments[name]:
            return _literal_choices(scope.arguments[name], scope)
    constant: Any = scope.global_value(node)
    return [constant] if isinstance(constant, str) else []


def _join_choices(parts: list[list[str]]) -> list[str]:
    count = 1
    for part in parts:
        count *= len(part)
    return ["".join(texts) for texts in product(*parts)] if 0 < count <= _MAX_TEXTS else []


def _literal_choices(annotation: ast.expr | None, scope: Scope) -> list[str]:
    """Return the strings in the `Literal` that annotates a parameter; an empty list for other types."""
    choices: list[Any] = []
    match type_members(annotation):
        case [ast.Subscript(kind, choice)] if scope.global_value(kind) is Literal:
            nodes = choice.elts if isinstance(choice, ast.Tuple) else [choice]
            choices = [getattr(node, "value", None) for node in nodes]
        case [alias] if get_origin(value := scope.global_value(alias)) is Literal:
            choices = list(get_args(value))
    return choices if all(isinstance(choice, str) for choice in choices) else []


#: Which of None, False and True an expression can be. Placeholders reject these values.
_RejectedValues: TypeAlias = frozenset[bool | None]

_NO_VALUES: Final[_RejectedValues] = frozenset()
_NONE: Final[_RejectedValues] = frozenset([None])
_TRUE: Final[_RejectedValues] = frozenset([True])
_BOOLS: Final[_RejectedValues] = frozenset([False, True])


@lru_cache(maxsize=256)  # names can refer to each other many times
def _rejected_values(node: ast.expr, scope: Scope) -> _RejectedValues:
    """Return which of None, False and True an expression can be, as far as the source shows."""
    match scope.resolve(node):
        case ast.Constant(None | bool() as value):
            return frozenset([value])
        case ast.Compare() | ast.UnaryOp(ast.Not()):
            return _BOOLS
        case ast.IfExp(_, then, otherwise):
            return _rejected_values(then, scope) | _rejected_values(otherwise, scope)
        case ast.BoolOp(operator, [*others, last]):
            possible = _NO_VALUES.union(*(_rejected_values(other, scope) for other in others))
            possible = possible & _TRUE if isinstance(operator, ast.Or) else possible - _TRUE
            return possible | _rejected_values(last, scope)
        case ast.Name(name) if name in scope.arguments and not scope.assignments[name]:
            return _NO_VALUES if _is_tested(name, scope) else _values_of_type(scope.arguments[name], scope)
    return _NO_VALUES


def _values_of_type(annotation: ast.expr | None, scope: Scope) -> _RejectedValues:
    """Return which of None, False and True are values of a parameter's type."""
    members = type_members(annotation)
    bools = _BOOLS if any(scope.global_value(member) is bool for member in members) else _NO_VALUES
    return bools | _NONE if any(map(is_none, members)) else bools


def _is_tested(name: str, scope: Scope) -> bool:
    """Return whether a function tests a parameter anywhere, and so may have excluded None."""
    tested: list[ast.If | ast.IfExp | ast.While | ast.Assert] = own_nodes(
        scope.node, ast.If, ast.IfExp, ast.While, ast.Assert
    )
    tests = [node.test for node in tested]
    tests += [node.subject for node in own_nodes(scope.node, ast.Match)]
    tests += [value for node in own_nodes(scope.node, ast.BoolOp) for value in node.values[:-1]]
    return any(isinstance(node, ast.Name) and node.id == name for test in tests for node in ast.walk(test))
