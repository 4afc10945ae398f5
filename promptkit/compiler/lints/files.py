"""
Lints of a file: undefined names, imports that would fail, paths relative to the current folder.

In the body of a function, these would only be noticed when a client asks for the prompt.
"""

import ast
import glob
import importlib
import os
import sys
from collections.abc import Iterable, Iterator
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path, PurePath
from types import ModuleType
from typing import Any, Final

from promptkit.compiler.lints.blocks_in_lines import lint_blocks
from promptkit.compiler.lints.changed_defaults import lint_defaults
from promptkit.compiler.lints.names import Names, value_of
from promptkit.compiler.lints.objects_in_text import lint_objects
from promptkit.compiler.lints.placeholders import lint_placeholders
from promptkit.compiler.lints.undefined_names import undefined_names
from promptkit.compiler.loading.finders import executed_code
from promptkit.compiler.loading.targets import project_root
from promptkit.compiler.prompts import Prompt
from promptkit.compiler.remedies.imports import missing_module, missing_name, undefined_name
from promptkit.errors.diagnostics import Diagnostic, Location, Report, Rule
from promptkit.errors.sources import Function, nodes_of, span_at, span_of, tree_of

__all__ = ["lint_file"]

#: Methods of a path that read a file or a folder.
_READ_METHODS: Final = ("read_text", "read_bytes", "open", "glob", "rglob", "iterdir")

#: Functions that list a folder.
_LIST_FUNCTIONS: Final = (os.listdir, os.scandir, glob.glob, glob.iglob)

_WHERE: Final = "it is looked for in whatever folder a client starts the server in"


def lint_file(file: Path) -> tuple[Diagnostic, ...]:
    """
    Return probable mistakes in a recipe file, and in the helpers beside it that it imports.

    A file that could not be imported is skipped, as it has an error already.
    """
    found: list[Diagnostic] = []
    waiting, seen = [file.absolute()], set[Path]()
    while waiting:
        path = waiting.pop()
        if path not in seen and (source := _SourceFile.of(path)) is not None:
            found += source.lint()
            waiting += source.helpers()
        seen.add(path)
    return tuple(found)


class _SourceFile:
    """The syntax tree of a file that was imported, and its module."""

    def __init__(self, file: Path, tree: ast.Module, module: ModuleType) -> None:
        self.file = file
        self.tree = tree
        self.module = module
        self.names: dict[str, Any] = vars(module)

    @classmethod
    def of(cls, file: Path) -> "_SourceFile | None":
        tree = tree_of(str(file))
        module = _module_of(str(file))
        return cls(file, tree, module) if tree is not None and module is not None else None

    def lint(self) -> list[Diagnostic]:
        found: list[Diagnostic] = []
        for place, rule, message, remedy in (
            *self._undefined_names(),
            *self._failing_imports(),
            *self._relative_paths(),
        ):
            found.append(Diagnostic(rule, f"{self.file.name}: {message}", remedy, place))
        for function in self.functions:
            report = Report(self._subject(function), Location(str(self.file), function.lineno))
            names = Names(function, self.names)
            lint_placeholders(function, names, report)
            lint_objects(function, names, report)
            lint_blocks(function, names, report)
            lint_defaults(function, report)
            found += report.without_duplicates()
        return found

    def _subject(self, function: Function) -> str:
        """How a function is named in a diagnostic; a prompt by its own name."""
        made = self.names.get(function.name)
        if isinstance(made, Prompt):
            return f"prompt {made.options.name!r}"
        return f"function {function.name!r}"

    def helpers(self) -> Iterator[Path]:
        """Yield the files beside it that are not recipes, and that it imports."""
        for node in nodes_of(self.tree, ast.ImportFrom):
            modules = [node.module] if node.module else [alias.name for alias in node.names]
            for name in modules:
                stem = name.rpartition(".")[2]
                if stem.startswith("_") and (path := self.file.with_name(f"{stem}.py")).is_file():
                    yield path

    @cached_property
    def functions(self) -> list[Function]:
        return nodes_of(self.tree, ast.FunctionDef, ast.AsyncFunctionDef)

    def _around(self, line: int, column: int) -> list[Function]:
        """The functions whose bodies contain that position."""
        found = []
        for function in self.functions:
            first = function.body[0]
            if (first.lineno, first.col_offset) <= (line, column) and line <= (function.end_lineno or 0):
                found.append(function)
        return found

    def _undefined_names(self) -> Iterator[tuple[Location, Rule, str, str]]:
        for name, line, column in undefined_names(self.tree, self.names, executed_code(self.module)):
            if functions := self._around(line, column):
                known = {*self.names, *(name for found in functions for name in Names(found, {}).local)}
                remedy = undefined_name(name, known) or "define it, or correct the name"
                span = span_at(str(self.file), line, column, column + len(name.encode()))
                yield (
                    Location(str(self.file), *span),
                    Rule.UNDEFINED_NAME,
                    f"nothing defines {name!r}",
                    remedy,
                )

    def _failing_imports(self) -> Iterator[tuple[Location, Rule, str, str]]:
        """Imports in functions that would fail when called, unless inside of a ``try``."""
        guarded = {id(below) for node in nodes_of(self.tree, ast.Try) for below in ast.walk(node)}
        imports: list[ast.Import | ast.ImportFrom] = nodes_of(self.tree, ast.Import, ast.ImportFrom)
        for node in imports:
            if id(node) in guarded or not self._around(node.lineno, node.col_offset):
                continue
            place = Location(str(self.file), *span_of(str(self.file), node))
            for message, remedy in self._faults_of(node):
                yield place, Rule.FAILING_IMPORT, message, remedy

    def _faults_of(self, node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from self._missing(alias.name)
        elif node.level == 0 and node.module:
            missing = list(self._missing(node.module))
            yield from missing
            if not missing and (module := _loaded(node.module)) is not None:
                for alias in node.names:
                    known = hasattr(module, alias.name) or f"{node.module}.{alias.name}" in sys.modules
                    remedy = None if known or alias.name == "*" else missing_name(alias.name, node.module)
                    if remedy is not None:
                        yield f"{node.module} has no {alias.name!r}", remedy

    def _missing(self, name: str) -> Iterator[tuple[str, str]]:
        top, _, below = name.partition(".")
        places = (self.file.parent, Path(project_root(self.file.parent)))
        beside = any((place / top).is_dir() or (place / f"{top}.py").is_file() for place in places)
        if beside or name in sys.modules:
            return
        if find_spec(top) is None or (top == "promptkit" and below and find_spec(name) is None):
            yield f"there is no module {name!r}", missing_module(name, self.file)

    def _relative_paths(self) -> Iterator[tuple[Location, Rule, str, str]]:
        for node in nodes_of(self.tree, ast.Call):
            path = self._opened(node)
            if path is not None:
                place = Location(str(self.file), *span_of(str(self.file), node))
                remedy = f"name it from the recipe's folder: Path(__file__).parent / {path!r}"
                yield place, Rule.RELATIVE_PATH, f"{path!r} has no folder: {_WHERE}", remedy

    def _opened(self, call: ast.Call) -> str | None:
        match call:
            case ast.Call(func=ast.Name(id="open"), args=[path, *mode]) if "open" not in self.names:
                return self._relative(self._assigned(path)) if _reads(mode, call.keywords) else None
            case ast.Call(func=function, args=[path]) if value_of(function, self.names) in _LIST_FUNCTIONS:
                return self._relative(self._assigned(path))
            case ast.Call(func=ast.Attribute(value=value, attr=attribute)) if attribute in _READ_METHODS:
                value = self._assigned(value)
                return self._relative(value) if self._is_path(value) else None
        return None

    def _assigned(self, node: ast.expr) -> ast.expr:
        """The value of a local name that is assigned once."""
        if isinstance(node, ast.Name):
            for function in reversed(self._around(node.lineno, node.col_offset)):
                if (value := Names(function, {}).assigned_once(node.id)) is not None:
                    return value
        return node

    def _is_path(self, node: ast.expr) -> bool:
        match node:
            case ast.Call(func=function):
                kind = value_of(function, self.names)
                return isinstance(kind, type) and issubclass(kind, PurePath)
            case ast.BinOp(left=left, op=ast.Div()):
                return self._is_path(left)
        return isinstance(value_of(node, self.names), PurePath)

    def _relative(self, node: ast.expr) -> str | None:
        """The path that an expression stands for, if it is known to be relative."""
        match node:
            case ast.Constant(value=str(path)):
                return path if path and not PurePath(path).is_absolute() and path[0] not in "~/\\" else None
            case ast.JoinedStr(values=[ast.Constant(value=str(path)), *_]):
                return None if self._relative(ast.Constant(path)) is None else ast.unparse(node)[2:-1]
            case ast.Call(args=[path, *_]) if self._is_path(node):
                return self._relative(path)
            case ast.BinOp(left=left, op=ast.Div()):
                return self._relative(left)
        value = value_of(node, self.names)
        return self._relative(ast.Constant(str(value))) if isinstance(value, str | PurePath) else None


#: By file: the name of the module that was made of it. It is looked up anew where it is wrong.
_module_names: Final[dict[str, str]] = {}


def _module_of(file: str) -> ModuleType | None:
    """The module that was made of a file; the last one if there are several."""
    module = sys.modules.get(_module_names.get(file, ""))
    if module is None or _file_of(module) != file:
        _module_names.clear()
        _module_names.update({_file_of(one) or "": name for name, one in list(sys.modules.items())})
        module = sys.modules.get(_module_names.get(file, ""))
    return module


def _file_of(module: object) -> str | None:
    try:
        return getattr(module, "__file__", None)
    except Exception:  # noqa: BLE001 (what stands in sys.modules may be anything)
        return None


def _loaded(name: str) -> ModuleType | None:
    """The module, if it is loaded or promptkit's own."""
    if name.partition(".")[0] == "promptkit":
        return importlib.import_module(name)
    return sys.modules.get(name)


def _reads(mode: list[ast.expr], keywords: Iterable[ast.keyword]) -> bool:
    """Whether a mode of `open` is one for reading."""
    given = [*mode[:1], *(keyword.value for keyword in keywords if keyword.arg == "mode")]
    return all(isinstance(node, ast.Constant) and str(node.value).startswith("r") for node in given)
