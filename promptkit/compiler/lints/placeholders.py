"""Lints of text that a function says: something was meant to be filled in, and was not."""

import ast
import builtins
import re
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, Final

from promptkit.errors.diagnostics import Location, Report, Rule
from promptkit.errors.sources import Function, own_nodes, plain_pieces, span_of

__all__ = ["Names", "lint_placeholders"]

#: What makes messages and text of its arguments, and leaves them as they are.
_SAYS: Final = (
    *("user", "assistant", "Text", "Message"),
    *("section", "bullets", "numbered", "quote", "table", "tag", "dedent", "truncate"),
)
_KEEPS: Final = ("strip", "lstrip", "rstrip", "join", "upper", "lower", "title", "capitalize")

_FOLLOWED: Final = (*_KEEPS, "append")

#: Decorators that leave what a function says as it is.
_HARMLESS: Final = (
    *("prompt", "resource", "staticmethod", "classmethod"),
    *("cache", "lru_cache", "contextmanager"),
)

_FIELD: Final = re.compile(r"(?<![{$%])\{([^{}\n]+)\}(?!\})")
#: What takes braces in LaTeX and in patterns.
_COMMAND: Final = re.compile(r"\\[A-Za-z]+\*?(?:\{[^{}]*\}|\[[^]]*\])*$")
#: A format specification of Python, unlike what follows a colon in CSS or JSON.
_SPEC: Final = re.compile(r"(?:.?[<>=^])?[-+ ]?z?#?0?\d*[_,]?(?:\.\d+)?[bcdeEfFgGnosxX%]?|.*%[A-Za-z].*")
_JINJA: Final = re.compile(
    r"\{\{-?\s*([A-Za-z_]\w*)[^{}]*\}\}"
    r"|\{%-?\s*(?:if|for|set|with|include|macro|block|extends|filter|elif)\b([^%]*)%\}"
)
_OTHER: Final = re.compile(r"\$\{(\w+)\}|%\((\w+)\)[sdr]|<%=?\s*(\w+)\s*%>")


class Names:
    """
    What the names in a function stand for, as far as can be seen without calling it.

    Args:
        function:
            The function.

        module:
            The names of its module.
    """

    def __init__(self, function: Function, module: Mapping[str, Any]) -> None:
        self.module = module
        self.arguments = {
            arg.arg: arg.annotation for arg in ast.walk(function.args) if isinstance(arg, ast.arg)
        }
        self.assigned: dict[str, list[ast.expr]] = {}
        self.appended: dict[str, list[ast.expr]] = {}
        self.loaded_elsewhere: set[str] = set()
        for node in own_nodes(function.body):
            self._note(node)

    @property
    def local(self) -> set[str]:
        """
        The function's own names.
        """
        return {*self.arguments, *self.assigned}

    def value(self, node: ast.expr) -> Any:
        """
        Return what a dotted name of the module stands for, or None.
        """
        match node:
            case ast.Name(id=name) if name not in self.local:
                return self.module.get(name, getattr(builtins, name, None))
            case ast.Attribute(value=value, attr=attribute):
                owner = self.value(value)
                return vars(owner).get(attribute) if isinstance(owner, ModuleType) else None
        return None

    def says(self, function: ast.expr) -> bool:
        """
        Return whether what is called makes text or messages of its arguments as they are.
        """
        value = self.value(function)
        module = getattr(value, "__module__", None) or ""
        name = getattr(value, "__name__", None)
        return (module.startswith("promptkit.") and name in _SAYS) or (module, name) in (
            ("textwrap", "dedent"),
            ("inspect", "cleandoc"),
        )

    def _note(self, node: ast.AST) -> None:
        """
        Note what is assigned to names, and which names are put to a use that is not followed.
        """
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                self.assigned.setdefault(name, [])
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.assigned.setdefault(name, []).append(value)
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
                self.assigned.setdefault(name, []).append(value)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value]):
                self.appended.setdefault(name, []).append(value)
            case ast.Call(func=ast.Attribute(attr=attribute)) if attribute in _KEEPS:
                pass
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if attribute not in _FOLLOWED:
                self.loaded_elsewhere.add(name)
            case ast.Call(func=function, args=args, keywords=keywords) if not self.says(function):
                given = [*args, *(keyword.value for keyword in keywords)]
                self.loaded_elsewhere.update(node.id for node in given if isinstance(node, ast.Name))
            case ast.BinOp(left=ast.Name(id=name), op=ast.Mod()):
                self.loaded_elsewhere.add(name)


def lint_placeholders(function: Function, module: Mapping[str, Any], report: Report) -> None:
    """
    Report text in which something was meant to be filled in: braces without an f, templates.

    Args:
        function:
            A function.

        module:
            The names of its module.

        report:
            Receives what is found.
    """
    if not all(_is_known(decorator) for decorator in function.decorator_list):
        return  # a decorator may fill in all of it
    names = Names(function, module)
    for said, text in _texts(function, names):
        plain = plain_pieces(report.location.file, said) if isinstance(said, ast.JoinedStr) else (text,)
        for piece in plain:
            _check_text(said, piece, names, report)
    if function.decorator_list and (docstring := ast.get_docstring(function, clean=False)):
        _check_docstring(function, docstring, report)


def _is_known(decorator: ast.expr) -> bool:
    """
    Return whether a decorator leaves the function as it is.
    """
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name in _HARMLESS


def _texts(function: Function, names: Names) -> Iterator[tuple[ast.expr, str]]:
    """
    Yield each text that a function says as it is: returned, yielded, or given to what makes messages.
    """
    seen: set[int] = set()
    for node in own_nodes(function.body):
        match node:
            case ast.Return(value=ast.expr() as value) | ast.Yield(value=ast.expr() as value):
                found = _said(value, names)
            case ast.Call(func=called) if names.says(called):
                found = _said(node, names)
            case _:
                continue
        for said, text in found:
            if id(said) not in seen:
                seen.add(id(said))
                yield said, text


def _said(  # noqa: C901 (a list of cases)
    node: ast.expr, names: Names, followed: frozenset[str] = frozenset()
) -> Iterator[tuple[ast.expr, str]]:
    """
    Yield the texts that an expression says as they are; of an f-string, none of its own.
    """
    below: list[ast.expr] = []
    match node:
        case ast.Constant(value=str(text)):
            yield node, text
        case ast.JoinedStr():
            yield node, ""
        case ast.Name(id=name) if name in names.local:
            if name not in names.loaded_elsewhere and name not in followed:
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
        case ast.Call(func=ast.Attribute(value=value, attr=attribute), args=args) if attribute in _KEEPS:
            below = [value, *args]
        case ast.Call(func=function, args=args) if names.says(function):
            below = args
    for expression in below:
        yield from _said(expression, names, followed)


def _check_text(node: ast.expr, text: str, names: Names, report: Report) -> None:
    """
    Report a text that is sent with a field of a template in it, named as something of the function.
    """
    place = Location(report.location.file, *span_of(report.location.file, node))
    for found in _FIELD.finditer(text):
        if _is_of(found[1], names.local) and not _COMMAND.search(text, 0, found.start()):
            report.add(
                Rule.FORGOTTEN_F,
                f"{found[0]!r} is sent as it is: its string has no f in front",
                "write f in front of the string, and double the braces that are to be sent: {{ }}",
                place,
            )
            return
    for found in (*_JINJA.finditer(text), *_OTHER.finditer(text)):
        if names.local & set(re.findall(r"\w+", " ".join(filter(None, found.groups())))):
            report.add(
                Rule.TEMPLATE_SYNTAX,
                f"{found[0]!r} is sent as it is: text is never read as a template",
                "write an f-string, with Python's own if and for around it",
                place,
            )
            return


def _is_of(field: str, local: set[str]) -> bool:
    """
    Return whether what stands between braces could be filled in from *local* names.
    """
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
    """
    Report a docstring that is written as a template.
    """
    if found := _JINJA.search(docstring):
        report.add(
            Rule.TEMPLATE_SYNTAX,
            f"the docstring has {found[0]!r}, and is sent as the description, never read as a template",
            "return the text from the function, as an f-string",
            Location(report.location.file, *span_of(report.location.file, function.body[0])),
        )
