"""Lints for calls: commands, paths from callers, `str.format`, and `typing.Text`."""

import ast
import glob
import os
import re
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import PurePath
from string import Formatter
from typing import Any, Final

from promptkit.declarations.prompts import Prompt
from promptkit.declarations.resources import Resource
from promptkit.errors.diagnostics import Report
from promptkit.errors.rules import Rule
from promptkit.errors.sources import Function, nodes_of, own_nodes
from promptkit.errors.suggestions import nearest
from promptkit.language.documents import EmbeddedResource
from promptkit.language.media import Audio, Image
from promptkit.lints.static_analysis import Scope, list_choices, walk_parts


def lint_typing_text(tree: ast.Module, report: Report) -> None:
    """
    Report an import of `typing.Text`, an alias of `str`, if the name is called or its attributes are used.
    """
    for statement in nodes_of(tree, ast.ImportFrom):
        names = [alias.asname or alias.name for alias in statement.names if alias.name == "Text"]
        if statement.module in ("typing", "typing_extensions") and any(
            _is_used(name, tree) for name in names
        ):
            message = f"{statement.module}.Text is another name for str, not promptkit's Text"
            report.add(Rule.TYPING_TEXT, message, "write 'from promptkit import Text'", statement)


def _is_used(name: str, tree: ast.Module) -> bool:
    """Return whether a name is called or its attributes are used. Annotations do not count."""
    calls = (node.func for node in nodes_of(tree, ast.Call))
    owners = (node.value for node in nodes_of(tree, ast.Attribute))
    return any(isinstance(node, ast.Name) and node.id == name for node in (*calls, *owners))


def lint_format(node: ast.AST, scope: Scope, report: Report) -> None:
    """Report values without a field, and fields without a value, in a `str.format` call on a known string."""
    match node:
        case ast.Call(ast.Attribute(owner, "format"), arguments, keywords) if (
            text := _known_text(owner, scope)
        ) is not None:
            pass
        case _:
            return
    try:
        fields = set(_field_names(text))
    except ValueError:  # single braces, for which Python itself raises a clear error
        return
    names = {keyword.arg for keyword in keywords if keyword.arg is not None}
    unused, unfilled = names - fields, {field for field in fields - names if field.isidentifier()}
    for name in sorted(unused):
        message = f"the text has no field {{{name}}}, so .format ignores the value"
        report.add(Rule.FORMAT_FIELDS, message, _hint_for_value(name, text, unfilled), node)
    if len(names) < len(keywords) or any(isinstance(argument, ast.Starred) for argument in arguments):
        return  # the values are not known
    for field in sorted(unfilled):
        near = nearest(field, unused)
        hint = f"did you mean {near!r}?" if near else f"pass {field}=..., or double the braces of text"
        report.add(Rule.FORMAT_FIELDS, f"{{{field}}} gets no value, so .format fails", hint, node)


def _known_text(node: ast.expr, scope: Scope) -> str | None:
    """Return the text of a literal, or of a name that refers to a literal; None if the text is unknown."""
    node = scope.resolve(node)
    value = node.value if isinstance(node, ast.Constant) else scope.global_value(node)
    return value if isinstance(value, str) else None


def _field_names(text: str) -> Iterator[str]:
    """Yield the names of the fields in a format string, including nested ones. Raises ValueError."""
    for _, field, specification, _ in Formatter().parse(text):
        if field is not None:
            yield re.split(r"[.\[]", field, maxsplit=1)[0]
            yield from _field_names(specification or "")


def _hint_for_value(name: str, text: str, unfilled: set[str]) -> str:
    if near := nearest(name, unfilled):
        return f"did you mean {near!r}?"
    if re.search(rf"\{{\{{\s*{name}\s*\}}\}}", text):
        return f"write {{{name}}}, or insert the value with promptkit.fragments.fill(...)"
    return f"write {{{name}}} where the value belongs"


#: Words that end the options of a command. git supports both of them.
_END_MARKERS: Final = ("--", "--end-of-options")


def lint_command(node: ast.AST, scope: Scope, report: Report) -> None:
    """Report parameters whose values a command can parse as options, because they come before ``--``."""
    if not isinstance(node, ast.Call) or not _runs_command(node.func, scope):
        return
    words = [word.value if isinstance(word, ast.Constant) else None for word in node.args]
    end = next((word for word in words if word in _END_MARKERS), None)
    for word in node.args[: words.index(end)] if end is not None else ():
        for name in _leading_parameters(word, scope):
            message = f"{name!r} comes before {end!r} in a command, so its value can be parsed as an option"
            hint = (
                "write '--end-of-options' before it, if the command supports it, as git does; "
                "or reject such values: Annotated[str, msgspec.Meta(pattern='^[^-]')]"
            )
            report.add(Rule.READ_AS_OPTION, message, hint, word)


def _runs_command(callee: ast.expr, scope: Scope) -> bool:
    """Return whether a called function is promptkit's `run` or `run_async`, without importing them."""
    value = scope.global_value(callee)
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    return module == "promptkit.workspace.commands" and name in ("run", "run_async")


def _leading_parameters(word: ast.expr, scope: Scope) -> Iterator[str]:
    """Yield the parameters whose values can start this word of a command."""
    match word:
        case ast.Name(name) if name in scope.arguments and not scope.assignments[name]:
            if _accepts_any_text(scope.arguments[name], scope):
                yield name
        case ast.JoinedStr([ast.FormattedValue(inner), *_]) | ast.Starred(inner):
            yield from _leading_parameters(inner, scope)
    for choice in list_choices(word):
        yield from _leading_parameters(choice, scope)


#: Functions and methods that open, list or change the file or folder at a path.
_FILE_FUNCTIONS: Final = (
    *(open, os.open, os.listdir, os.scandir, os.walk, os.remove, os.unlink, glob.glob, glob.iglob),
    *(shutil.copy, shutil.copyfile, shutil.copytree, shutil.move, shutil.rmtree),
)
_FILE_METHODS: Final = (
    *("open", "read_text", "read_bytes", "write_text", "write_bytes", "iterdir", "glob", "rglob", "unlink"),
)

#: Functions that combine their arguments into one path or string, and methods that derive another path.
_PATH_FUNCTIONS: Final = (
    *(str, os.fspath, os.path.join, os.path.abspath, os.path.expanduser, os.path.normpath),
    os.path.realpath,
)
_PATH_METHODS: Final = ("joinpath", "resolve", "absolute", "expanduser", "with_suffix", "strip")

#: Attributes that a function uses to check whether a path stays within a folder.
_PATH_CHECKS: Final = ("is_relative_to", "relative_to", "commonpath")


def lint_caller_path(node: ast.AST, scope: Scope, report: Report) -> None:
    """Report a file or folder whose path depends on what callers pass to a prompt or resource."""
    path, function = _find_opened_path(node, scope), scope.node
    if path is None or not isinstance(function, Function):
        return
    if not isinstance(scope.module.get(function.name), Prompt | Resource):
        return  # callers do not choose the arguments of a helper
    for name in _parameters_in_path(path, scope):
        message = f"{name!r} is part of a file's path, so callers can name any file that the server can open"
        hint = f"write Text.below(workspace(), {name}), or read_below({name}, FOLDER) for bytes"
        if all(each.attr not in _PATH_CHECKS for each in own_nodes(function, ast.Attribute)):
            report.add(Rule.CALLERS_PATH, message, hint, path)


def _find_opened_path(node: ast.AST, scope: Scope) -> ast.expr | None:
    """Return the path that an expression opens, directly or by passing one of its methods to a thread."""
    match node:
        case ast.Attribute(path, attribute) if attribute in _FILE_METHODS:
            return path
        case ast.Call(ast.Attribute(owner, "from_path"), [path, *_], keywords):
            is_ours = scope.global_value(owner) in (Audio, Image, EmbeddedResource)
            return path if is_ours and all(keyword.arg != "root" for keyword in keywords) else None
        case ast.Call(function, [path, *_]) if scope.global_value(function) in _FILE_FUNCTIONS:
            return path
    return None


def _parameters_in_path(path: ast.expr, scope: Scope) -> list[str]:
    """Return the names of the parameters that are part of a path and accept any text."""
    parts = walk_parts(path, partial(_path_parts, scope=scope))
    names = [
        part.id for part in parts if isinstance(part, ast.Name) and not _assigned_expressions(part, scope)
    ]
    return [name for name in dict.fromkeys(names) if _accepts_any_text(scope.arguments.get(name), scope)]


def _assigned_expressions(name: ast.Name, scope: Scope) -> list[ast.expr]:
    """Return the expressions that are assigned to a name, and the iterables of loops that assign to it."""
    loops: list[ast.For | ast.comprehension] = own_nodes(scope.node, ast.For, ast.comprehension)
    items = [loop.iter for loop in loops if isinstance(loop.target, ast.Name) and loop.target.id == name.id]
    return [*scope.values_before(name), *items]


def _path_parts(node: ast.expr, scope: Scope) -> list[ast.expr]:
    """Return the expressions that a path is made of."""
    match node:
        case ast.Name():
            return _assigned_expressions(node, scope)
        case ast.JoinedStr(parts):
            return [part.value for part in parts if isinstance(part, ast.FormattedValue)]
        case ast.BinOp(left, ast.Div() | ast.Add(), right):
            return [left, right]
        case ast.Call(function, args) if _returns_path(scope.global_value(function)):
            return args
        case ast.Call(ast.Attribute(path, attribute), args) if attribute in _PATH_METHODS:
            return [path, *args]
    return list_choices(node)


def _returns_path(function: Any) -> bool:
    is_path = isinstance(function, type) and issubclass(function, PurePath)
    return is_path or function in _PATH_FUNCTIONS


def _accepts_any_text(annotation: ast.expr | None, scope: Scope) -> bool:
    """Return whether a parameter accepts any text or path, because no pattern restricts it."""
    if annotation is None or any(note.arg == "pattern" for note in nodes_of(annotation, ast.keyword)):
        return False
    kinds = [scope.global_value(name) for name in nodes_of(annotation, ast.Name)]
    return any(kind is str or (isinstance(kind, type) and issubclass(kind, PurePath)) for kind in kinds)
