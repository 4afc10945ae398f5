"""Lints for calls that Python accepts although a name or an argument is another than intended."""

import ast
import re
from collections.abc import Iterator
from string import Formatter
from typing import Final

from promptkit.errors.diagnostics import Report
from promptkit.errors.rules import Rule
from promptkit.errors.sources import nodes_of
from promptkit.errors.suggestions import nearest
from promptkit.fragments.markdown import code_block
from promptkit.lints.static_analysis import Scope

#: Names of languages in code fences that are hardly ever the whole code.
_LANGUAGES: Final = (
    *("bash", "c", "cpp", "csharp", "css", "diff", "go", "html", "java", "javascript", "js", "json"),
    *("kotlin", "markdown", "md", "php", "python", "py", "ruby", "rust", "scala", "sh", "shell", "sql"),
    *("swift", "text", "toml", "ts", "typescript", "xml", "yaml", "yml"),
)


def lint_typing_text(tree: ast.Module, report: Report) -> None:
    """Report an import of `typing.Text`, another name of `str`, that is called or has its attributes used."""
    for statement in nodes_of(tree, ast.ImportFrom):
        names = [alias.asname or alias.name for alias in statement.names if alias.name == "Text"]
        if statement.module in ("typing", "typing_extensions") and any(
            _is_used(name, tree) for name in names
        ):
            message = f"Text of {statement.module} is another name of str, not promptkit's Text"
            report.add(Rule.TYPING_TEXT, message, "write 'from promptkit import Text'", statement)


def _is_used(name: str, tree: ast.Module) -> bool:
    """Whether a name is called or has its attributes used, and is not only in annotations."""
    calls = (node.func for node in nodes_of(tree, ast.Call))
    owners = (node.value for node in nodes_of(tree, ast.Attribute))
    return any(isinstance(node, ast.Name) and node.id == name for node in (*calls, *owners))


def lint_swapped_arguments(node: ast.AST, scope: Scope, report: Report) -> None:
    """Report a call of `code_block` whose first argument is the name of a language, and the second is not."""
    match node:
        case ast.Call(called, [ast.Constant(str(first)) as argument, second, *_]) if (
            scope.value(called) is code_block and first.lower() in _LANGUAGES and not _is_language(second)
        ):
            code = ast.unparse(second)
            message = f"code_block takes the code first, which is {first!r} here"
            report.add(Rule.SWAPPED_ARGUMENTS, message, f"write code_block({code}, {first!r})", argument)


def _is_language(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and str(node.value).lower() in _LANGUAGES


def lint_format(node: ast.AST, scope: Scope, report: Report) -> None:
    """Report values and fields without a counterpart in a call of `str.format` with a known text."""
    match node:
        case ast.Call(ast.Attribute(owner, "format"), arguments, keywords) if (
            text := _text_of(owner, scope)
        ) is not None:
            pass
        case _:
            return
    try:
        fields = set(_fields(text))
    except ValueError:  # single braces, for which Python raises an error that names them
        return
    names = {keyword.arg for keyword in keywords if keyword.arg is not None}
    unused, unfilled = names - fields, {field for field in fields - names if field.isidentifier()}
    for name in sorted(unused):
        message = f"the text has no field {{{name}}}, so that .format omits the value"
        report.add(Rule.FORMAT_FIELDS, message, _hint_for_value(name, text, unfilled), node)
    if len(names) < len(keywords) or any(isinstance(argument, ast.Starred) for argument in arguments):
        return  # the values are not known
    for field in sorted(unfilled):
        near = nearest(field, unused)
        hint = f"did you mean {near!r}?" if near else f"pass {field}=..., or double braces that are text"
        report.add(Rule.FORMAT_FIELDS, f"{{{field}}} gets no value, so that .format fails", hint, node)


def _text_of(node: ast.expr, scope: Scope) -> str | None:
    """Return the text of a literal, or of a name for one."""
    node = scope.resolve(node)
    value = node.value if isinstance(node, ast.Constant) else scope.value(node)
    return value if isinstance(value, str) else None


def _fields(text: str) -> Iterator[str]:
    """Yield the names of the fields in a text, also within specifications. Raises ValueError."""
    for _, field, specification, _ in Formatter().parse(text):
        if field is not None:
            yield re.split(r"[.\[]", field, maxsplit=1)[0]
            yield from _fields(specification or "")


def _hint_for_value(name: str, text: str, unfilled: set[str]) -> str:
    if near := nearest(name, unfilled):
        return f"did you mean {near!r}?"
    if re.search(rf"\{{\{{\s*{name}\s*\}}\}}", text):
        return f"write {{{name}}}, or insert the value with promptkit.fragments.fill(...)"
    return f"write {{{name}}} where the value belongs"
