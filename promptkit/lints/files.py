"""
Lints for a file: undefined names, paths relative to the current folder, and the lints of other modules.

Without these lints, mistakes in the body of a function would only show when a client requests the prompt.
"""

import ast
import builtins
import glob
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from types import ModuleType
from typing import Any, Final

from promptkit.declarations.name_hints import undefined_name_hint
from promptkit.declarations.prompts import Prompt
from promptkit.declarations.resources import Resource
from promptkit.errors.diagnostics import Diagnostic, Location, Report
from promptkit.errors.rules import Rule
from promptkit.errors.sources import SCOPES, Function, nodes_of, tree_of
from promptkit.lints.calls import (
    lint_caller_path,
    lint_command,
    lint_format,
    lint_typing_text,
)
from promptkit.lints.placeholders import lint_placeholders
from promptkit.lints.static_analysis import Scope
from promptkit.lints.texts import lint_blocks, lint_docstring, lint_object, lint_shifted_lines, lint_text

#: Methods of a path that read a file or a folder.
_READ_METHODS: Final = ("read_text", "read_bytes", "glob", "rglob", "iterdir")

#: Functions that list a folder.
_LIST_FUNCTIONS: Final = (os.listdir, os.scandir, glob.glob, glob.iglob)

#: The lints for each type of node, keyed by the name of the type.
_LINTS: Final[Mapping[str, tuple[Callable[[ast.AST, Scope, Report], None], ...]]] = {
    "FunctionDef": (lint_docstring,),
    "AsyncFunctionDef": (lint_docstring,),
    "Return": (lint_text,),
    "Yield": (lint_text,),
    "Call": (
        lint_text,
        lint_object,
        lint_placeholders,
        lint_shifted_lines,
        lint_command,
        lint_caller_path,
        lint_format,
    ),
    "Attribute": (lint_caller_path,),
    "JoinedStr": (lint_blocks,),
    "TemplateStr": (lint_blocks,),
    "FormattedValue": (lint_object,),
    "BinOp": (lint_object,),
}


def lint_source(file: Path) -> tuple[Diagnostic, ...]:
    """
    Return probable mistakes in a recipe file, and in the helper modules that it imports from its folder.

    A file that could not be imported is skipped, because it already has an error.
    """
    diagnostics: list[Diagnostic] = []
    pending, seen = [file.absolute()], set[Path]()
    while pending:
        path = pending.pop()
        tree, module = tree_of(str(path)), _find_module(str(path))
        if path not in seen and tree is not None and module is not None:
            diagnostics += _lint_source(path, tree, module)
            pending += _find_helpers(path, tree)
        seen.add(path)
    return tuple(diagnostics)


def _find_helpers(file: Path, tree: ast.Module) -> Iterator[Path]:
    """Yield the helper modules (``_*.py``) that a file imports from its own folder."""
    imports: list[ast.Import | ast.ImportFrom] = nodes_of(tree, ast.Import, ast.ImportFrom)
    for node in imports:
        for name in (getattr(node, "module", None) or "", *(alias.name for alias in node.names)):
            path = file.with_name(f"{name.rpartition('.')[2]}.py")
            if path.name.startswith("_") and path.is_file():
                yield path


def _lint_source(file: Path, tree: ast.Module, module: ModuleType) -> list[Diagnostic]:
    """Run all lints in one pass over a file's executed nodes. Each lint receives a node and its scope."""
    names, file_report = vars(module), Report(file.name, Location(str(file)))
    known, reports = _known_names(tree, names), [file_report]
    lint_typing_text(tree, file_report)
    pending: list[tuple[ast.AST, Scope, Report | None]] = [(tree, Scope(tree, names), None)]
    while pending:
        node, scope, function_report = pending.pop()
        children = _executed_children(node)
        if isinstance(node, SCOPES):
            pending += [(each, scope, function_report) for each in _nodes_outside_body(node)]
            scope = Scope(node, names, scope)
            children = [*node.body] if isinstance(node.body, list) else [node.body]
            if isinstance(node, Function):
                function_report = _create_report(node, file, names)
                reports.append(function_report)
        if isinstance(node, ast.Call):
            _lint_path(node, scope, file_report)
        if function_report is not None:
            if isinstance(node, ast.Name) and node.id not in known:
                _lint_name(node, scope, file_report)
            for lint in _LINTS.get(type(node).__name__, ()):
                lint(node, scope, function_report)
        pending += [(each, scope, function_report) for each in children[::-1]]
    return [diagnostic for report in reports for diagnostic in report.without_duplicates()]


def _known_names(tree: ast.Module, names: Iterable[str]) -> set[str]:
    """Return the names that all functions in a file can use."""
    type_parameter: Any = getattr(ast, "type_param", ast.Global)  # of a function or class, since Python 3.12
    nodes: list[Any] = nodes_of(tree, ast.Global, type_parameter)
    bound = (name for node in nodes for name in getattr(node, "names", None) or [node.name])
    return {"__class__", *vars(builtins), *names, *bound}


def _executed_children(node: ast.AST) -> list[ast.AST]:
    """Return the children of a node, except annotations and bodies whose condition is never true."""
    match node:
        case ast.AnnAssign():
            return [node.target, *filter(None, [node.value])]
        case ast.If(ast.Constant(value)) if not value:
            return [*node.orelse]
    return list(ast.iter_child_nodes(node))


def _nodes_outside_body(node: Function | ast.ClassDef | ast.Lambda) -> list[ast.AST]:
    """Return the nodes that defining a function or class evaluates: decorators, defaults and bases."""
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases, *node.keywords]
    defaults = filter(None, (*node.args.defaults, *node.args.kw_defaults))
    return [*getattr(node, "decorator_list", ()), *defaults]


def _create_report(function: Function, file: Path, names: Mapping[str, Any]) -> Report:
    """Return an empty report for a function in a file, or for the prompt or resource that it defines."""
    match names.get(function.name):
        case Prompt(location=location, options=options) if location.file == str(file):
            return Report(f"prompt {options.name!r}", location)
        case Resource(location=location, name=name) if location.file == str(file):
            return Report(f"resource {name!r}", location)
    return Report(f"function {function.name!r}", Location(str(file), function.lineno))


def _lint_name(node: ast.Name, scope: Scope, report: Report) -> None:
    """Report an undefined name in a function."""
    if node.id not in scope.local_names:
        hint = (
            undefined_name_hint(node.id, {*scope.module, *scope.local_names})
            or "define it, or correct the name"
        )
        report.add(Rule.UNDEFINED_NAME, f"{node.id!r} is not defined", hint, node)


def _lint_path(call: ast.Call, scope: Scope, report: Report) -> None:
    """Report a relative path that is used to read a file or folder."""
    match call:
        case ast.Call(ast.Name("open") as name, [path, *mode]):
            is_read = scope.global_value(name) is open and _is_read_mode(mode, call.keywords)
        case ast.Call(function, [path]) if scope.global_value(function) in _LIST_FUNCTIONS:
            is_read = True
        case ast.Call(ast.Attribute(path, "open"), mode):
            is_read = _is_read_mode(mode, call.keywords)
        case ast.Call(ast.Attribute(path, attribute)):
            is_read = attribute in _READ_METHODS
        case _:
            return
    if is_read and (text := _relative_path(path, scope)) is not None:
        explanation = "so it is looked up in the folder in which the client starts the server"
        hint = f"resolve it from the recipe's folder: Path(__file__).parent / {text!r}"
        report.add(Rule.RELATIVE_PATH, f"{text!r} is a relative path, {explanation}", hint, call)


def _relative_path(node: ast.expr, scope: Scope) -> str | None:
    """Return the path that an expression evaluates to if it is known to be relative; otherwise None."""
    node = scope.resolve(node)
    match node:
        case ast.JoinedStr(values=[ast.Constant() as start, *_]):
            return _relative_path(start, scope) and ast.unparse(node)[2:-1]
        case ast.BinOp(left=left, op=ast.Div()):
            return _relative_path(left, scope)
        case ast.Call(func=function, args=[start, *_]):
            kind = scope.global_value(function)
            is_path = isinstance(kind, type) and issubclass(kind, PurePath)
            return _relative_path(start, scope) if is_path else None
    path: Any = node.value if isinstance(node, ast.Constant) else scope.global_value(node)
    text = str(path) if isinstance(path, str | PurePath) else ""
    return text if text and not PurePath(text).is_absolute() and text[0] not in "~/\\" else None


def _is_read_mode(mode: list[ast.expr], keywords: Iterable[ast.keyword]) -> bool:
    """Return whether `open` opens a file for reading, given its mode and its keyword arguments."""
    modes = [*mode[:1], *(keyword.value for keyword in keywords if keyword.arg == "mode")]
    return all(isinstance(node, ast.Constant) and str(node.value).startswith("r") for node in modes)


def _find_module(file: str) -> ModuleType | None:
    """Return the module that was imported from a file; the last one if there are several."""
    modules = reversed(list(sys.modules.values()))
    return next((module for module in modules if _file_of(module) == file), None)


def _file_of(module: object) -> str | None:
    # `sys.modules` can contain any object, and reading its attributes could trigger imports.
    return vars(module).get("__file__") if isinstance(module, ModuleType) else None
