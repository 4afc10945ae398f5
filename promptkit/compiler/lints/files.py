"""
Lints of a file: undefined names, imports that would fail, paths relative to the current folder.

In the body of a function, these would only be noticed when a client asks for the prompt.
"""

import ast
import builtins
import dis
import glob
import importlib
import inspect
import os
import sys
from collections.abc import Iterable, Iterator
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path, PurePath
from types import CodeType, ModuleType
from typing import Any, Final

from promptkit.compiler.lints.functions import LINTS
from promptkit.compiler.lints.scopes import Scope
from promptkit.compiler.loading.finders import executed_code
from promptkit.compiler.loading.targets import project_root
from promptkit.compiler.prompts import Prompt
from promptkit.compiler.remedies import missing_module, missing_name, undefined_name
from promptkit.errors.diagnostics import Diagnostic, Location, Report, Rule
from promptkit.errors.sources import Function, nodes_below, nodes_of, span_at, tree_of

__all__ = ["lint_file", "undefined_names"]

#: Methods of a path that read a file or a folder.
_READ_METHODS: Final = ("read_text", "read_bytes", "open", "glob", "rglob", "iterdir")

#: Functions that list a folder.
_LIST_FUNCTIONS: Final = (os.listdir, os.scandir, glob.glob, glob.iglob)


def lint_file(file: Path) -> tuple[Diagnostic, ...]:
    """
    Return probable mistakes in a recipe file, and in the helpers beside it that it imports.

    A file that could not be imported is skipped, as it has an error already.
    """
    found: list[Diagnostic] = []
    waiting, seen = [file.absolute()], set[Path]()
    while waiting:
        path = waiting.pop()
        tree, module = tree_of(str(path)), _module_of(str(path))
        if path not in seen and tree is not None and module is not None:
            source = _SourceFile(path, tree, module)
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
        self.report = Report(file.name, Location(str(file)))

    def lint(self) -> Iterator[Diagnostic]:
        """Look at each node once, with the scope that it is in."""
        self._lint_names()
        reports = [self.report]
        ahead: list[tuple[ast.AST, Scope, Report | None]] = [(self.tree, Scope(self.tree, self.names), None)]
        while ahead:
            node, scope, report = ahead.pop()
            if isinstance(node, Function | ast.ClassDef | ast.Lambda):
                scope = Scope(node, self.names, scope)
            if isinstance(node, Function):
                report = Report(self._subject(node), Location(str(self.file), node.lineno))
                reports.append(report)
            if isinstance(node, ast.Call):
                self._lint_path(node, scope)
            if report is not None:
                if isinstance(node, ast.Import | ast.ImportFrom):
                    self._lint_import(node)
                for lint in LINTS.get(type(node).__name__, ()):
                    lint(node, scope, report)
            ahead += ((below, scope, report) for below in nodes_below(node))
        return (one for report in reports for one in report.without_duplicates())

    def _subject(self, function: Function) -> str:
        """How a function is named in a diagnostic; a prompt by its own name."""
        made = self.names.get(function.name)
        return f"prompt {made.options.name!r}" if isinstance(made, Prompt) else f"function {function.name!r}"

    def helpers(self) -> Iterator[Path]:
        """Yield the files beside it that are not recipes, and that it imports."""
        for node in nodes_of(self.tree, ast.ImportFrom):
            modules = [node.module] if node.module else [alias.name for alias in node.names]
            for name in modules:
                stem = name.rpartition(".")[2]
                if stem.startswith("_") and (path := self.file.with_name(f"{stem}.py")).is_file():
                    yield path

    def _lint_names(self) -> None:
        """Report names in functions that nothing defines."""
        for name, line, column, local in undefined_names(self.tree, self.names, executed_code(self.module)):
            remedy = undefined_name(name, {*self.names, *local}) or "define it, or correct the name"
            span = span_at(str(self.file), line, column, column + len(name.encode()))
            place = Location(str(self.file), *span)
            self.report.add(Rule.UNDEFINED_NAME, f"nothing defines {name!r}", remedy, place)

    @cached_property
    def _guarded(self) -> set[ast.AST]:
        """What stands inside of a ``try``."""
        return {below for node in nodes_of(self.tree, ast.Try) for below in ast.walk(node)}

    def _lint_import(self, node: ast.Import | ast.ImportFrom) -> None:
        """Report an import that would fail when its function is called, unless inside of a ``try``."""
        for message, remedy in () if node in self._guarded else self._faults_of(node):
            self.report.add(Rule.FAILING_IMPORT, message, remedy, node)

    def _faults_of(self, node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from self._missing(alias.name)
        elif node.level == 0 and node.module:
            missing = list(self._missing(node.module))
            yield from missing
            for alias in () if missing else node.names:
                if not _has(node.module, alias.name) and (remedy := missing_name(alias.name, node.module)):
                    yield f"{node.module} has no {alias.name!r}", remedy

    def _missing(self, name: str) -> Iterator[tuple[str, str]]:
        top, _, below = name.partition(".")
        places = (self.file.parent, Path(project_root(self.file.parent)))
        beside = any((place / top).is_dir() or (place / f"{top}.py").is_file() for place in places)
        if beside or name in sys.modules:
            return
        if find_spec(top) is None or (top == "promptkit" and below and find_spec(name) is None):
            yield f"there is no module {name!r}", missing_module(name, self.file)

    def _lint_path(self, call: ast.Call, scope: Scope) -> None:
        """Report a file or folder that is read by a path without a folder."""
        match call:
            case ast.Call(func=ast.Name(id="open") as name, args=[path, *mode]):
                is_read = scope.value(name) is open and _is_read(mode, call.keywords)
            case ast.Call(func=function, args=[path]) if scope.value(function) in _LIST_FUNCTIONS:
                is_read = True
            case ast.Call(func=ast.Attribute(value=path, attr=attribute)):
                is_read = attribute in _READ_METHODS
            case _:
                return
        if is_read and (shown := _relative(path, scope)) is not None:
            where = "it is looked for in whatever folder a client starts the server in"
            remedy = f"name it from the recipe's folder: Path(__file__).parent / {shown!r}"
            self.report.add(Rule.RELATIVE_PATH, f"{shown!r} has no folder: {where}", remedy, call)


def _relative(node: ast.expr, scope: Scope) -> str | None:
    """The path that an expression stands for, if it is known to be relative."""
    node = scope.behind(node)
    match node:
        case ast.JoinedStr(values=[ast.Constant() as begin, *_]):
            return _relative(begin, scope) and ast.unparse(node)[2:-1]
        case ast.BinOp(left=left, op=ast.Div()):
            return _relative(left, scope)
        case ast.Call(func=function, args=[begin, *_]):
            kind = scope.value(function)
            is_path = isinstance(kind, type) and issubclass(kind, PurePath)
            return _relative(begin, scope) if is_path else None
    path: Any = node.value if isinstance(node, ast.Constant) else scope.value(node)
    text = str(path) if isinstance(path, str | PurePath) else ""
    return text if text and not PurePath(text).is_absolute() and text[0] not in "~/\\" else None


def _is_read(mode: list[ast.expr], keywords: Iterable[ast.keyword]) -> bool:
    """Whether a mode of `open` is one for reading."""
    given = [*mode[:1], *(keyword.value for keyword in keywords if keyword.arg == "mode")]
    return all(isinstance(node, ast.Constant) and str(node.value).startswith("r") for node in given)


def _has(module: str, name: str) -> bool:
    """Whether a module has a name, or may have it, as it is not loaded yet."""
    is_own = module.partition(".")[0] == "promptkit"
    loaded = importlib.import_module(module) if is_own else sys.modules.get(module)
    return loaded is None or name == "*" or hasattr(loaded, name) or f"{module}.{name}" in sys.modules


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


def undefined_names(
    tree: ast.Module, defined: Iterable[str], code: CodeType | None = None
) -> Iterator[tuple[str, int, int, frozenset[str]]]:
    """
    Yield each name in a function that would be an error once it is looked up, as the bytecode shows it.

    Args:
        tree:
            A module.

        defined:
            The names that it has after its import.

        code:
            What its import has executed, if that is known: to compile it again takes long.

    Yields:
        Each name with its line, counted from 1, its column, counted in bytes from 0, and the local names that
        are in scope there.
    """
    known = {*vars(builtins), *defined}
    if code is None or sys.flags.optimize:  # with ``python -O``, assertions are left out
        code = compile(tree, "", "exec", dont_inherit=True, optimize=0)
    # To look at instructions takes long, so it is done only where there is another name.
    steps = [
        (local, [*dis.get_instructions(each)])
        for each, local in _codes(code, None)
        if not known.issuperset(each.co_names)
    ]
    known.update(step.argval for _, each in steps for step in each if step.opname == "STORE_GLOBAL")
    found = dict.fromkeys(place for local, each in steps for place in _looked_up(each, local, known))
    expected = _expected(tree) if found else ()
    yield from (place for place in found if place[1:3] not in expected)  # of a `finally`, there is code twice


def _codes(code: CodeType, local: frozenset[str] | None) -> Iterator[tuple[CodeType, frozenset[str]]]:
    """The code that is run after the import, each with the local names in scope; None is of the import."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType) and inner.co_name != "__annotate__":  # which is run on demand
            # A class, or a comprehension, outside of functions is run by the import.
            is_function = inner.co_flags & inspect.CO_OPTIMIZED and inner.co_name[0] != "<"
            names = None
            if is_function or local is not None:
                names = frozenset(local or ()).union(inner.co_varnames, inner.co_cellvars)
                yield inner, names
            yield from _codes(inner, names)


def _looked_up(
    steps: list[dis.Instruction], local: frozenset[str], known: set[str]
) -> Iterator[tuple[str, int, int, frozenset[str]]]:
    """Where a name is looked up that is neither known nor a class's own."""
    own = known.union(step.argval for step in steps if step.opname == "STORE_NAME")
    for step in steps:
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and step.argval not in own and step.positions:
            yield step.argval, step.positions.lineno or 0, step.positions.col_offset or 0, local


def _expected(tree: ast.Module) -> set[tuple[int, int]]:
    """Where a name may be missing, as the error is caught."""
    guards = (guard for guard in nodes_of(tree, ast.Try) if any(map(_catches, guard.handlers)))
    statements = (statement for guard in guards for statement in guard.body)
    return {(node.lineno, node.col_offset) for each in statements for node in nodes_of(each, ast.Name)}


def _catches(handler: ast.ExceptHandler) -> bool:
    caught = handler.type
    return caught is None or any(node.id == "NameError" for node in nodes_of(caught, ast.Name))
