"""Lint of text that is sent with a placeholder that should have been filled in."""

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from typing import Final

from promptkit.compiler.lints.names import TEXT_METHODS, Names
from promptkit.errors.diagnostics import Location, Report, Rule
from promptkit.errors.sources import Function, own_nodes, plain_pieces, span_of

__all__ = ["lint_placeholders"]


#: Decorators that do not change what a function returns.
_HARMLESS: Final = (
    *("prompt", "resource", "staticmethod", "classmethod"),
    *("cache", "lru_cache", "contextmanager"),
)

_FIELD: Final = re.compile(r"(?<![{$%])\{([^{}\n]+)\}(?!\})")
#: Commands of LaTeX, and escapes of patterns, take braces.
_COMMAND: Final = re.compile(r"\\[A-Za-z]+\*?(?:\{[^{}]*\}|\[[^]]*\])*$")
#: A format specification of Python; what follows a colon in CSS or JSON is not one.
_SPEC: Final = re.compile(r"(?:.?[<>=^])?[-+ ]?z?#?0?\d*[_,]?(?:\.\d+)?[bcdeEfFgGnosxX%]?|.*%[A-Za-z].*")
_JINJA: Final = re.compile(
    r"\{\{-?\s*([A-Za-z_]\w*)[^{}]*\}\}"
    r"|\{%-?\s*(?:if|for|set|with|include|macro|block|extends|filter|elif)\b([^%]*)%\}"
)
#: What every placeholder has in it.
_BEGINS: Final = re.compile(r"[{$%]")
_OTHER: Final = re.compile(r"\$\{(\w+)\}|%\((\w+)\)[sdr]|<%=?\s*(\w+)\s*%>")


def lint_placeholders(function: Function, names: Names, report: Report) -> None:
    """Report text that is sent with a placeholder: an f is missing, or it is written as a template."""
    if not all(_is_known(decorator) for decorator in function.decorator_list):
        return  # a decorator may fill in all of it
    for node, text in _texts(function, names):
        for piece in _plain(node, text, report.location.file):
            _check_text(node, piece, names, report)
    if function.decorator_list and (docstring := ast.get_docstring(function, clean=False)):
        _check_docstring(function, docstring, report)


def _plain(node: ast.expr, text: str, file: str) -> Iterable[str]:
    """The strings of *text* that are no f-string, if they may hold a placeholder."""
    if not isinstance(node, ast.JoinedStr):
        return (text,)
    joined = (part.value for part in node.values if isinstance(part, ast.Constant))
    if not any(map(_BEGINS.search, map(str, joined))):
        return ()  # they need not be told apart, which takes long
    return plain_pieces(file, node)


def _is_known(decorator: ast.expr) -> bool:
    """Whether a decorator does not change what the function returns."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name in _HARMLESS


def _texts(function: Function, names: Names) -> Iterator[tuple[ast.expr, str]]:
    """The texts that a function returns, yields or puts into messages."""
    seen: set[int] = set()
    for node in own_nodes(function, ast.Return, ast.Yield, ast.Call):
        match node:
            case ast.Return(value=ast.expr() as value) | ast.Yield(value=ast.expr() as value):
                found = _texts_in(value, names)
            case ast.Call(func=called) if names.makes_text(called):
                found = _texts_in(node, names)
            case _:
                continue
        for sent, text in found:
            if id(sent) not in seen:
                seen.add(id(sent))
                yield sent, text


def _texts_in(  # noqa: C901 (a list of cases)
    node: ast.expr, names: Names, followed: frozenset[str] = frozenset()
) -> Iterator[tuple[ast.expr, str]]:
    """The texts in an expression. An f-string counts as empty: its pieces are checked one by one."""
    below: list[ast.expr] = []
    match node:
        case ast.Constant(value=str(text)):
            yield node, text
        case ast.JoinedStr():
            yield node, ""
        case ast.Name(id=name) if name in names.local:
            if name not in names.untracked and name not in followed:
                followed = followed | {name}
                below = [*names.assigned.get(name, ()), *names.appended.get(name, ())]
        case ast.Name() if isinstance(text := names.value(node), str):
            yield node, text
        case ast.BinOp(left=left, op=ast.Add() | ast.Mult(), right=right):
            below = [left, right]
        case ast.IfExp(body=then, orelse=otherwise):
            below = [then, otherwise]
        case ast.BoolOp(values=below) | ast.List(elts=below) | ast.Tuple(elts=below):
            pass
        case ast.Starred(value=value) | ast.GeneratorExp(elt=value) | ast.ListComp(elt=value):
            below = [value]
        case ast.Call(func=ast.Attribute(value=value, attr=attribute), args=args) if (
            attribute in TEXT_METHODS
        ):
            below = [value, *args]
        case ast.Call(func=function, args=args) if names.makes_text(function):
            below = args
    for expression in below:
        yield from _texts_in(expression, names, followed)


def _check_text(node: ast.expr, text: str, names: Names, report: Report) -> None:
    """Report a placeholder that is named like a variable of the function."""
    if not _BEGINS.search(text):
        return
    place = Location(report.location.file, *span_of(report.location.file, node))
    for found in _FIELD.finditer(text):
        if _is_of(found[1], names.local) and not _COMMAND.search(text, 0, found.start()):
            report.add(
                Rule.FORGOTTEN_F,
                f"{found[0]!r} is sent literally: its string has no f in front",
                "write f in front of the string, and double the braces that are to be sent: {{ }}",
                place,
            )
            return
    for found in (*_JINJA.finditer(text), *_OTHER.finditer(text)):
        if names.local & set(re.findall(r"\w+", " ".join(filter(None, found.groups())))):
            report.add(
                Rule.TEMPLATE_SYNTAX,
                f"{found[0]!r} is sent literally: text is never read as a template",
                "write an f-string, with Python's own if and for around it",
                place,
            )
            return


def _is_of(field: str, local: set[str]) -> bool:
    """Whether the content of a pair of braces is an expression of *local* names."""
    expression, _, spec = re.sub(r"!(?!=)[rsa]", "", field).partition(":")
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError):
        return False
    if isinstance(tree.body, ast.Tuple) or not _SPEC.fullmatch(spec):
        return False
    named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return bool(named & local) and all(name in local or hasattr(builtins, name) for name in named)


def _check_docstring(function: Function, docstring: str, report: Report) -> None:
    if found := _JINJA.search(docstring):
        report.add(
            Rule.TEMPLATE_SYNTAX,
            f"the docstring has {found[0]!r}, and is sent as the description, never read as a template",
            "return the text from the function, as an f-string",
            Location(report.location.file, *span_of(report.location.file, function.body[0])),
        )
