"""Lints for texts in functions: unfilled placeholders, indentation, objects in text, and Markdown blocks."""

import ast
import builtins
import inspect
import re
import textwrap
from collections import abc
from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import Enum
from functools import partial
from itertools import islice
from types import ModuleType
from typing import Any, Final, get_origin

import attrs
import msgspec

from promptkit.errors.diagnostics import Report
from promptkit.errors.rules import Rule
from promptkit.errors.sources import Function, nodes_of, plain_pieces, segment_of
from promptkit.fragments.markdown import BLOCKS
from promptkit.fragments.text import dedent
from promptkit.language.content import Content
from promptkit.language.text import Text
from promptkit.lints.conversations import get_role
from promptkit.lints.static_analysis import (
    TEXT_METHODS,
    CallResult,
    Scope,
    Unawaited,
    is_none,
    list_choices,
    list_items,
    type_members,
    walk_parts,
)

#: Names of container types.
_CONTAINER_NAMES: Final[dict[Any, str]] = {
    **dict.fromkeys((list, abc.Sequence, abc.MutableSequence, abc.Collection), "list"),
    tuple: "tuple",
    **dict.fromkeys((set, frozenset, abc.Set, abc.MutableSet), "set"),
    **dict.fromkeys((dict, abc.Mapping, abc.MutableMapping), "dict"),
}


def describe_container(node: ast.expr, scope: Scope) -> Iterator[tuple[str, str]]:
    """
    Yield a description and a hint if the value that is inserted into a text is a container.

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
    """Return the name of an expression's container type and the type of its items, or None for each."""
    if isinstance(node, ast.Name) and node.id in scope.arguments:
        return (
            (None, None) if scope.assignments[node.id] else _container_type(scope.arguments[node.id], scope)
        )
    value = scope.stand_in(node)
    items = list(value)[:1] if isinstance(value, list | tuple) else []
    return _CONTAINER_NAMES.get(type(value)), type(items[0]) if items else None


def _container_type(annotation: ast.expr | None, scope: Scope) -> tuple[str | None, Any]:
    """Return the name of an annotation's container type and the type of its items, or None for each."""
    item: ast.expr | None = None
    match [member for member in type_members(annotation) if not is_none(member)]:
        case [ast.Subscript(container, ast.Tuple([item, *_]) | item)]:
            pass
        case [container]:
            pass
        case _:
            return None, None
    value = scope.global_value(container)
    kind = get_origin(value) or value  # resolves an alias, or a name of typing
    return _CONTAINER_NAMES.get(kind) if isinstance(kind, type) else None, scope.global_value(item)


#: Functions that remove the indentation that text has because of the code around it.
_DEDENT_FUNCTIONS: Final = (dedent, textwrap.dedent, inspect.cleandoc)

_TRIPLE_QUOTES: Final = re.compile("\"{3}|'{3}")

#: The smallest indentation that is reported: the indentation of code in a function.
_CODE_INDENTATION: Final = 4


def lint_indentation(node: ast.expr, report: Report) -> None:
    """Report a multi-line literal whose lines are all indented like the code."""
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
    """Report an f-string that is dedented only after inserting a value that can have several lines."""
    match call:
        case ast.Call(function, [ast.JoinedStr(parts)]) if scope.global_value(function) in _DEDENT_FUNCTIONS:
            is_indented = any("\n " in str(getattr(part, "value", "")) for part in parts)
            for part in parts:
                if is_indented and isinstance(part, ast.FormattedValue) and _inserts_lines(part, scope):
                    expression = ast.unparse(part.value)
                    message = f"if {expression!r} has several lines, their indentation is wrong"
                    hint = "write fill('...{{name}}...', name=...), or dedent(t'...') from Python 3.14 on"
                    report.add(Rule.SHIFTED_LINES, message, hint, call)


def _inserts_lines(part: ast.FormattedValue, scope: Scope) -> bool:
    """Return whether a value in an f-string can have several lines."""
    if part.conversion == ord("r") or part.format_spec is not None:
        return False
    return any(_may_have_lines(choice, scope) for choice in list_choices(part.value) or [part.value])


def _may_have_lines(node: ast.expr, scope: Scope) -> bool:
    match scope.resolve(node):
        case ast.Name(name) if name in scope.arguments and not scope.assignments[name]:
            members = type_members(scope.arguments[name])
            return any(scope.global_value(member) in (str, Text) for member in members)
        case ast.Call(ast.Attribute(ast.Constant(str(separator)), "join")):
            return "\n" in separator
        case ast.Call(function):
            callee: Any = scope.global_value(function)
            return (getattr(callee, "__module__", None) or "").startswith("promptkit.fragments")
    return False


#: Decorators that do not change what a function returns.
_HARMLESS_DECORATORS: Final = (
    *("prompt", "resource", "staticmethod", "classmethod"),
    *("cache", "lru_cache", "contextmanager"),
)

_FIELD: Final = re.compile(r"(?<![{$%])\{([^{}\n]+)\}(?!\})")
#: LaTeX commands and regular-expression escapes, which also use braces.
_BRACE_COMMAND: Final = re.compile(r"\\[A-Za-z]+\*?(?:\{[^{}]*\}|\[[^]]*\])*$")
#: A Python format specification, as opposed to the text after a colon in CSS or JSON.
_FORMAT_SPEC: Final = re.compile(
    r"(?:.?[<>=^])?[-+ ]?z?#?0?\d*[_,]?(?:\.\d+)?[bcdeEfFgGnosxX%]?|.*%[A-Za-z].*"
)
_JINJA: Final = re.compile(
    r"\{\{[-~]?\s*[#^]?\s*(?:(?:if|unless|each)\s+)?([A-Za-z_]\w*)[^{}]*\}\}"
    r"|\{%-?\s*(?:if|for|set|with|include|macro|block|extends|filter|elif)\b([^%]*)%\}"
)
#: Every placeholder contains one of these characters.
_PLACEHOLDER_START: Final = re.compile(r"[{$%]")
_OTHER_TEMPLATES: Final = re.compile(r"\$\{(\w+)\}|%\((\w+)\)[sdr]|<%=?\s*(\w+)\s*%>")

#: Represents a value in the text of an f-string.
_VALUE: Final = "\0"

#: A character of a word, and a character that follows on the same line.
_WORD: Final = re.compile(r"\S")
_WORD_AFTER: Final = re.compile(r"[^\S\n]*\S")

_JOIN: Final = "join them: ', '.join(...)"


def lint_text(node: ast.AST, scope: Scope, report: Report) -> None:
    """Report text that is sent with an unfilled placeholder, or indented like the surrounding code."""
    if not _preserves_text(scope.node):
        return
    sent = getattr(node, "value", None)  # of a return or a yield
    if isinstance(node, ast.Call) and scope.preserves_text(node.func):
        sent = node
    if sent is None:
        return
    for part in walk_parts(sent, partial(_undedented_parts, scope=scope)):
        lint_indentation(part, report)
    for literal, text in _texts(sent, scope, report.location.file):
        if _PLACEHOLDER_START.search(text):
            _lint_literal(literal, text, scope, report)


def _preserves_text(function: ast.AST) -> bool:
    """Return whether a function returns its text unchanged, because no decorator can change it."""
    decorators = (getattr(node, "func", node) for node in getattr(function, "decorator_list", ()))
    return all(getattr(node, "attr", getattr(node, "id", "")) in _HARMLESS_DECORATORS for node in decorators)


def _texts(sent: ast.expr, scope: Scope, file: str) -> Iterator[tuple[ast.expr, str]]:
    """Yield the string literals that are part of an expression's text, each with its node."""
    for node in walk_parts(sent, partial(_text_parts, scope=scope)):
        match node:
            case ast.Constant(str(text)):
                yield node, text
            case ast.JoinedStr(parts):
                # Splitting an f-string is slow.
                if any(
                    isinstance(part, ast.Constant) and _PLACEHOLDER_START.search(str(part.value))
                    for part in parts
                ):
                    yield from ((node, piece) for piece in plain_pieces(file, node))
            case ast.Name() if isinstance(text := scope.global_value(node), str):
                yield node, text


def _undedented_parts(node: ast.expr, scope: Scope) -> list[ast.expr]:
    """Return the subexpressions whose text becomes part of an expression's text without being dedented."""
    is_dedented = isinstance(node, ast.Call) and scope.global_value(node.func) in _DEDENT_FUNCTIONS
    return [] if is_dedented else _text_parts(node, scope)


def _text_parts(node: ast.expr, scope: Scope) -> list[ast.expr]:
    """Return the subexpressions whose text becomes part of an expression's text."""
    match node:
        case ast.Name(name) if name in scope.variables and name not in scope.untracked_names:
            return scope.values_before(node)
        case ast.BinOp(left, ast.Mult(), right):
            return [left, right]
        case ast.Starred(value):
            return [value]
        case ast.Call(ast.Attribute(value, attribute), args) if attribute in TEXT_METHODS:
            return [value, *args]
        case ast.Call(function, args) if scope.preserves_text(function):
            return args
    return [*list_choices(node), *list_items(node)]


def _lint_literal(node: ast.expr, text: str, scope: Scope, report: Report) -> None:
    """Report a placeholder in *text* that names a variable of the function."""
    fields = dict.fromkeys(
        match[0]
        for match in _FIELD.finditer(text)
        if _is_expression_of(match[1], scope.variables) and not _BRACE_COMMAND.search(text, 0, match.start())
    )
    if fields:
        sent = f"{' and '.join(map(repr, fields))} {'is' if len(fields) == 1 else 'are'} sent literally"
        hint = "add the prefix f to the string, and double the braces that are part of the text: {{ }}"
        report.add(Rule.MISSING_F_PREFIX, f"{sent}: its string has no f prefix", hint, node)
        return
    for match in (*_JINJA.finditer(text), *_OTHER_TEMPLATES.finditer(text)):
        words = re.findall(r"\w+", " ".join(filter(None, match.groups())))
        if not scope.variables.isdisjoint(words):
            message = f"{match[0]!r} is sent literally: text is never rendered as a template"
            hint = "write an f-string, or insert the values with promptkit.fragments.fill(...)"
            report.add(Rule.TEMPLATE_SYNTAX, message, hint, node)
            return


def _is_expression_of(field: str, local: set[str]) -> bool:
    """Return whether the text between two braces is an expression that uses names in *local*."""
    expression, _, spec = re.sub(r"!(?!=)[rsa]", "", field).partition(":")
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError):
        return False
    if isinstance(tree.body, ast.Tuple) or not _FORMAT_SPEC.fullmatch(spec):
        return False
    names = {node.id for node in nodes_of(tree, ast.Name)}
    return bool(names & local) and all(name in local or hasattr(builtins, name) for name in names)


def lint_docstring(function: ast.AST, _scope: Scope, report: Report) -> None:
    """Report a docstring that is written as a template."""
    if not isinstance(function, Function) or not function.decorator_list or not _preserves_text(function):
        return
    if match := _JINJA.search(ast.get_docstring(function, clean=False) or ""):
        message = (
            f"the docstring has {match[0]!r}, but it is sent as the description, not rendered as a template"
        )
        hint = "return the text from the function, as an f-string"
        report.add(Rule.TEMPLATE_SYNTAX, message, hint, function.body[0])


def lint_blocks(string: ast.AST, scope: Scope, report: Report) -> None:
    """Report Markdown blocks that share a line of an f-string with other text or blocks."""
    parts: list[Any] = getattr(string, "values", [])
    blocks = [_block_name(part, scope) for part in parts]
    texts = [
        str(part.value) if isinstance(part, ast.Constant) else block or _VALUE
        for part, block in zip(parts, blocks, strict=True)
    ]
    full_text, line, end = "".join(texts), 0, 0
    for part, block, text in zip(parts, blocks, texts, strict=True):
        start, end = end, end + len(text)
        # An adjacent value can start or end with a line ending.
        if block is not None and (
            (_WORD.search(full_text, line, start) and full_text[start - 1] != _VALUE)
            or (_WORD_AFTER.match(full_text, end) and full_text[end] != _VALUE)
        ):
            message = f"{block}(...) shares a line with other text, so Markdown does not recognize it"
            hint = f"write a blank line between them, or user('...', {block}(...)), which adds one"
            report.add(Rule.BLOCK_IN_LINE, message, hint, part.value)
        if "\n" in text:
            line = start + text.rindex("\n") + 1


def _block_name(part: Any, scope: Scope) -> str | None:
    """Return the name of the block that is inserted into an f-string, or None."""
    value = None if isinstance(part, ast.Constant) else scope.resolve(part.value)
    function = scope.global_value(value.func) if isinstance(value, ast.Call) else None
    return next((block.__name__ for block in BLOCKS if block is function), None)


def lint_object(node: ast.AST, scope: Scope, report: Report) -> None:
    """Report joined sets, and objects whose repr becomes text, such as ``<function f at 0x7f...>``."""
    match node:
        case ast.FormattedValue(value, -1, None):
            _report_object(value, "an f-string", scope, report)
        case ast.BinOp(ast.Constant(str(text)), ast.Mod(), right) if "%s" in text:
            for value in right.elts if isinstance(right, ast.Tuple) else [right]:
                if not isinstance(value, ast.Dict):
                    _report_object(value, "'%s'", scope, report)
        case ast.Call(ast.Attribute(ast.Constant(str(text)), "format"), args, keywords):
            fields = {*re.findall(r"\{(\w*)\}", text)}
            values = [arg for position, arg in enumerate(args) if not fields.isdisjoint(("", str(position)))]
            values += [keyword.value for keyword in keywords if keyword.arg in fields]
            for value in values:
                _report_object(value, "a format", scope, report)
        case ast.Call(ast.Attribute(ast.Constant(str()), "join"), [value]):
            if container_of(value, scope)[0] == "set":
                message = f"{ast.unparse(value)!r} is a set, whose order can differ between processes"
                report.add(Rule.OBJECT_IN_TEXT, message, f"write sorted({ast.unparse(value)})", value)


def _report_object(value: ast.expr, where: str, scope: Scope, report: Report) -> None:
    for description, hint in (
        [*_describe_object(value, scope)]
        or [*_describe_parts(value, scope)]
        or describe_container(value, scope)
    ):
        message = f"'{{{ast.unparse(value)}}}' in {where} shows {description}"
        report.add(Rule.OBJECT_IN_TEXT, message, hint, value)


def _describe_parts(node: ast.expr, scope: Scope) -> Iterator[tuple[str, str]]:
    """Yield a description and a hint for a list that contains an image or a similar object."""
    for item in list_items(scope.resolve(node)):
        value = scope.stand_in(item)
        if isinstance(value, CallResult):
            yield from islice(_describe_record(value.callee), 1)
            return


def _describe_object(node: ast.expr, scope: Scope) -> Iterator[tuple[str, str]]:
    """Yield a description and a hint for an object whose string form is not useful in a text."""
    value = scope.stand_in(node)
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in scope.arguments:
            kind = scope.global_value(scope.arguments[name])
            if isinstance(kind, type) and inspect.isroutine(getattr(kind, attribute, None)):
                yield "a method, not its result", f"call it: {name}.{attribute}()"
        case ast.Name(id=name) if name in scope.arguments:
            yield from _describe_member(name, scope)
            yield from _describe_record(scope.global_value(scope.arguments[name]))
        case ast.Lambda():
            yield "a function, not its result", "call it"
        case _ if isinstance(value, CallResult):
            yield from _describe_result(value.callee)
        case _ if isinstance(value, Unawaited):
            yield "a coroutine, not its result", "await it, in an `async def` prompt"
        case _ if isinstance(value, Iterator):
            yield "a generator, not its items", _JOIN
        case _ if callable(value) or isinstance(value, ModuleType):
            kind = "a class" if isinstance(value, type) else "a function"
            yield f"{kind}, not its result", f"call it: {ast.unparse(node)}(...)"


def _describe_result(callee: Any) -> Iterator[tuple[str, str]]:
    function = inspect.unwrap(callee) if callable(callee) else None
    methods = ("__new__", "__str__", "__repr__", "__format__")
    if get_role(function) is not None:
        yield "a turn, whose role would be lost", "join turns with +, or insert only its text"
    elif inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        yield "a generator, not its items", _JOIN
    elif isinstance(callee, type) and issubclass(callee, Iterator):
        yield f"the {callee.__name__} object, not its items", _JOIN
    elif type(callee) is type and all(getattr(callee, name) is getattr(object, name) for name in methods):
        hint = "write its attributes, or give it a __str__"
        yield f"the {callee.__name__} object, not its content", hint
    else:
        yield from _describe_record(callee)


def _describe_record(kind: Any) -> Iterator[tuple[str, str]]:
    """Yield a description and a hint for a type of message part, or for a type with a generated repr."""
    if not isinstance(kind, type):
        return
    if issubclass(kind, Content) and kind is not Text:
        yield f"the {kind.__name__}, which is not text", "pass it to user(...) as a separate part"
    elif kind.__str__ is object.__str__ and kind.__format__ is object.__format__ and _has_fields(kind):
        yield f"the {kind.__name__} in Python's notation", "write its attributes, or json_block(...)"


def _has_fields(kind: type) -> bool:
    return is_dataclass(kind) or attrs.has(kind) or issubclass(kind, msgspec.Struct)


def _describe_member(name: str, scope: Scope) -> Iterator[tuple[str, str]]:
    """Yield a description and a hint for an Enum parameter whose members are formatted as ``Class.NAME``."""
    annotation = scope.arguments[name]
    # Not `nodes_of`, because each annotation would evict the file's nodes from the cache.
    for node in ast.walk(annotation) if annotation is not None else ():
        kind = scope.global_value(node) if isinstance(node, ast.Name) else None
        if isinstance(kind, type) and issubclass(kind, Enum) and len(kind):
            member = next(iter(kind))
            if f"{member}" == f"{kind.__name__}.{member.name}":
                yield f"{str(member)!r}, not its value", f"write {{{name}.value}}"
