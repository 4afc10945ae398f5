"""
Lints of a file: undefined names, imports that would fail, paths relative to the current folder.

In the body of a function, these would only be noticed when a client asks for the prompt.
"""

import ast
import builtins
import glob
import importlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path, PurePath
from types import ModuleType
from typing import Any, Final

from promptkit.declarations.name_hints import missing_name, undefined_name
from promptkit.declarations.prompts import Prompt
from promptkit.errors.diagnostics import Diagnostic, Location, Report
from promptkit.errors.rules import Rule
from promptkit.errors.sources import SCOPES, Function, nodes_below, nodes_of, tree_of
from promptkit.lints.functions import LINTS
from promptkit.lints.name_resolution import Scope
from promptkit.loader.import_errors import missing_module
from promptkit.loader.targets import project_root

#: Each node of a file is asked for these: to write them with | would make a union each time.
_IMPORTS: Final = (ast.Import, ast.ImportFrom)

#: Methods of a path that read a file or a folder.
_READ_METHODS: Final = ("read_text", "read_bytes", "glob", "rglob", "iterdir")

#: Functions that list a folder.
_LIST_FUNCTIONS: Final = (os.listdir, os.scandir, glob.glob, glob.iglob)


def lint_source(file: Path) -> tuple[Diagnostic, ...]:
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
            found += _lint_source(path, tree, module)
            waiting += _helpers(path, tree)
        seen.add(path)
    return tuple(found)


def _helpers(file: Path, tree: ast.Module) -> Iterator[Path]:
    """The files beside one that are not recipes, and that it imports."""
    imports: list[ast.Import | ast.ImportFrom] = nodes_of(tree, ast.Import, ast.ImportFrom)
    for node in imports:
        for name in (getattr(node, "module", None) or "", *(alias.name for alias in node.names)):
            path = file.with_name(f"{name.rpartition('.')[2]}.py")
            if path.name.startswith("_") and path.is_file():
                yield path


def _lint_source(file: Path, tree: ast.Module, module: ModuleType) -> list[Diagnostic]:
    """Look once at each node of a file that is ever run, with the scope that it is in."""
    names, of_file = vars(module), Report(file.name, Location(str(file)))
    known, reports = _known_names(tree, names), [of_file]
    tries: list[ast.Try | ast.TryStar] = nodes_of(tree, ast.Try, ast.TryStar)
    guarded = {below for each in tries for below in ast.walk(each)}
    caught = {below for each in tries if _catches(each) for part in each.body for below in ast.walk(part)}
    ahead: list[tuple[ast.AST, Scope, Report | None]] = [(tree, Scope(tree, names), None)]
    while ahead:
        node, scope, of_function = ahead.pop()
        below = _run_below(node)
        if isinstance(node, SCOPES):
            ahead += [(each, scope, of_function) for each in _run_around(node)]
            scope = Scope(node, names, scope)
            below = [*node.body] if isinstance(node.body, list) else [node.body]
            if isinstance(node, Function):
                of_function = Report(_subject(node.name, names), Location(str(file), node.lineno))
                reports.append(of_function)
        if isinstance(node, ast.Call):
            _lint_path(node, scope, of_file)
        if of_function is not None:
            if isinstance(node, _IMPORTS) and node not in guarded:
                _lint_import(node, file, of_file)
            if isinstance(node, ast.Name) and node.id not in known and node not in caught:
                _lint_name(node, scope, of_file)
            for lint in LINTS.get(type(node).__name__, ()):
                lint(node, scope, of_function)
        ahead += [(each, scope, of_function) for each in below[::-1]]
    return [one for report in reports for one in report.without_duplicates()]


def _known_names(tree: ast.Module, names: Iterable[str]) -> set[str]:
    """The names that any function in a file may look up."""
    type_parameter: Any = getattr(ast, "type_param", ast.Global)  # of a function or class, since Python 3.12
    made: list[Any] = nodes_of(tree, ast.Global, type_parameter)
    bound = (name for node in made for name in getattr(node, "names", None) or [node.name])
    return {"__class__", *vars(builtins), *names, *bound}


def _run_below(node: ast.AST) -> list[ast.AST]:
    """What a node holds, but for an annotation, and for what stands behind a condition that is never true."""
    match node:
        case ast.AnnAssign():
            return [node.target, *filter(None, [node.value])]
        case ast.If(ast.Constant(value)) if not value:
            return [*node.orelse]
    return nodes_below(node)


def _run_around(node: Function | ast.ClassDef | ast.Lambda) -> list[ast.AST]:
    """What is run where a function or class is made: its decorators, defaults and bases."""
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases, *node.keywords]
    defaults = filter(None, (*node.args.defaults, *node.args.kw_defaults))
    return [*getattr(node, "decorator_list", ()), *defaults]


def _catches(guard: ast.Try | ast.TryStar) -> bool:
    """Whether a name may be missing, as the error is caught."""
    caught = [handler.type for handler in guard.handlers]
    names = {node.id for each in caught if each is not None for node in nodes_of(each, ast.Name)}
    return None in caught or "NameError" in names


def _subject(function: str, names: Mapping[str, Any]) -> str:
    """How a function is named in a diagnostic; a prompt by its own name."""
    made = names.get(function)
    return f"prompt {made.options.name!r}" if isinstance(made, Prompt) else f"function {function!r}"


def _lint_name(node: ast.Name, scope: Scope, report: Report) -> None:
    """Report a name in a function that nothing defines."""
    if node.id not in scope.local:
        hint = undefined_name(node.id, {*scope.module, *scope.local}) or "define it, or correct the name"
        report.add(Rule.UNDEFINED_NAME, f"nothing defines {node.id!r}", hint, node)


def _lint_import(node: ast.Import | ast.ImportFrom, file: Path, report: Report) -> None:
    """Report an import that would fail when its function is called."""
    names = [alias.name for alias in node.names]
    modules, members = names, list[str]()
    if isinstance(node, ast.ImportFrom):
        modules, members = [node.module] if node.module and node.level == 0 else [], names
    for module in modules:
        if (missing := _missing(module, file)) is not None:
            hint = missing_module(missing, file)
            report.add(Rule.FAILING_IMPORT, f"there is no module {missing!r}", hint, node)
            continue
        for name in members:
            if not _has(module, name) and (told := missing_name(name, module)):
                report.add(Rule.FAILING_IMPORT, f"{module} has no {name!r}", told, node)


def _missing(module: str, file: Path) -> str | None:
    """What cannot be found when a module is imported: itself, or what is imported before it."""
    top = module.partition(".")[0]
    places = (file.parent, Path(project_root(file.parent)))
    if module in sys.modules or any((at / top).is_dir() or (at / f"{top}.py").is_file() for at in places):
        return None
    try:
        spec = find_spec(module if top == "promptkit" else top)
    except ImportError as error:  # of the package around it, or of an extra that this imports
        return error.name or module
    return module if spec is None else None


def _lint_path(call: ast.Call, scope: Scope, report: Report) -> None:
    """Report a file or folder that is read by a path without a folder."""
    match call:
        case ast.Call(ast.Name("open") as name, [path, *mode]):
            is_read = scope.value(name) is open and _is_read(mode, call.keywords)
        case ast.Call(function, [path]) if scope.value(function) in _LIST_FUNCTIONS:
            is_read = True
        case ast.Call(ast.Attribute(path, "open"), mode):
            is_read = _is_read(mode, call.keywords)
        case ast.Call(ast.Attribute(path, attribute)):
            is_read = attribute in _READ_METHODS
        case _:
            return
    if is_read and (shown := _relative(path, scope)) is not None:
        where = "it is looked for in whatever folder a client starts the server in"
        hint = f"name it from the recipe's folder: Path(__file__).parent / {shown!r}"
        report.add(Rule.RELATIVE_PATH, f"{shown!r} has no folder: {where}", hint, call)


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
    if module.partition(".")[0] == "promptkit":
        with suppress(ImportError):  # of an extra that is not installed
            importlib.import_module(module)
    loaded = sys.modules.get(module)
    return loaded is None or name == "*" or hasattr(loaded, name) or f"{module}.{name}" in sys.modules


#: By file: the name of the module that was made of it. It is looked up anew where it is wrong: to search all
#: modules for each of thousands of files takes a tenth of a check.
_module_names: Final[dict[str | None, str]] = {}


def _module_of(file: str) -> ModuleType | None:
    """The module that was made of a file; the last one if there are several."""
    module = sys.modules.get(_module_names.get(file, ""))
    if module is None or _file_of(module) != file:
        _module_names.clear()
        _module_names.update({_file_of(one): name for name, one in list(sys.modules.items())})
        module = sys.modules.get(_module_names.get(file, ""))
    return module


def _file_of(module: object) -> str | None:
    # What stands in sys.modules may be anything, and import something when it is asked.
    return vars(module).get("__file__") if isinstance(module, ModuleType) else None
