"""
The loader: a folder, a file, a module or one object becomes the prompts it declares.

It imports authors' code and nothing else does. It never raises for what is wrong with one
recipe: that is a diagnostic, and the other recipes are loaded.
"""

import importlib
import signal
import sys
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct, structs

from promptkit.diagnostics import Diagnostic
from promptkit.errors import LoadError
from promptkit.import_errors import import_failed
from promptkit.media import reads
from promptkit.packages import import_package, imported_files
from promptkit.prompts import Prompt, declared
from promptkit.resources import Resource
from promptkit.targets import split_target

__all__ = ["TESTS", "Recipes", "load"]

T = TypeVar("T")

#: Files beside recipes that are none: pytest's own, by its own patterns.
TESTS: Final = ("test_*.py", "*_test.py", "conftest.py")


class Recipes(Struct, frozen=True):
    """
    What was found at a target, before anything of it is compiled.

    Args:
        prompts:
            Every prompt, once.

        resources:
            Every resource, once.

        diagnostics:
            The recipes that could not be imported.

        files:
            The recipe files, in the order in which they were imported.

        root:
            The folder or file that was named, if it was one.

        read:
            All files that were read to import them: modules, and media.
    """

    prompts: tuple[Prompt[..., Any], ...] = ()
    resources: tuple[Resource[..., Any], ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    files: tuple[Path, ...] = ()
    root: Path | None = None
    read: tuple[Path, ...] = ()


def load(target: str | Path) -> Recipes:
    """
    Import the recipes at *target*, anew, and return what they declare.

    Args:
        target:
            A folder, whose ``*.py`` are the recipes but for tests and for files that begin
            with ``_``; a file; a dotted module; or ``module:object`` or ``file.py:object``,
            where the object is a prompt, a resource, or several.

    Raises:
        LoadError: If there is no such folder, file, module or object.
    """
    if not str(target):
        reason = "name a folder, a file or a module"
        raise LoadError(str(target), reason)
    name, attribute = split_target(str(target))
    path = Path(name)
    if path.is_dir():
        found = _load_files(path.resolve(), _recipe_files(path.resolve()))
        return structs.replace(found, root=path.resolve())
    if path.is_file():
        if path.suffix != ".py":
            raise LoadError(str(target), "it is no Python file")
        file = path.resolve()
        return _load_files(file.parent, [file], attribute)
    if name.endswith(".py") or len(path.parts) != 1:
        raise LoadError(str(target), "there is no such file or folder")
    return _load_module(str(target), name, attribute)


def _recipe_files(folder: Path) -> list[Path]:
    """
    Return the recipes in *folder*, in a fixed order.
    """
    return [
        file
        for file in sorted(folder.glob("*.py"))
        if file.is_file()
        and not file.name.startswith(("_", "."))  # editors and archives leave files that begin with a dot
        and not any(file.match(pattern) for pattern in TESTS)
    ]


def _load_files(folder: Path, files: Sequence[Path], attribute: str = "") -> Recipes:
    """
    Import *files* of *folder* as modules of one package.
    """
    try:
        package = import_package(folder)
    except BaseException as error:  # noqa: BLE001 (an author's __init__.py may raise anything)
        _check_keyboard(error)
        init = folder / "__init__.py"
        return Recipes(diagnostics=(import_failed(init, folder, error),), read=(init,))
    modules, diagnostics = [], []
    with _Noting(declared) as made, _Noting(reads) as media:
        for file in files:
            try:
                modules.append(importlib.import_module(f"{package}.{file.stem}"))
            except BaseException as error:  # noqa: BLE001 (a recipe may raise anything)
                _check_keyboard(error)
                diagnostics.append(import_failed(file, folder, error))
    if attribute and modules:
        found = _named(f"{files[0]}:{attribute}", modules[0], attribute)
    else:
        found = _collect(package, modules, made, diagnostics, files)
    return structs.replace(found, read=tuple({*files, *imported_files(package), *media}))


def _load_module(target: str, name: str, attribute: str) -> Recipes:
    """
    Import a dotted module, as Python would in the current folder.
    """
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # last, so that it shadows nothing
    try:
        with _Noting(declared) as made:
            module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            reason = "it is no folder, no file and no module"
            raise LoadError(target, reason) from None
        return Recipes(diagnostics=(import_failed(Path(name), None, error),))
    except BaseException as error:  # noqa: BLE001 (a recipe may raise anything)
        _check_keyboard(error)
        return Recipes(diagnostics=(import_failed(Path(name), None, error),))
    if attribute:
        return _named(target, module, attribute)
    file = getattr(module, "__file__", None)
    if hasattr(module, "__path__") and file:
        return _load_files(Path(file).parent, _recipe_files(Path(file).parent))
    return _collect(name, [module], made, [], [Path(file)] if file else [])


def _named(target: str, module: ModuleType, attribute: str) -> Recipes:
    """
    Return the prompts and resources that *module* calls *attribute*.
    """
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise LoadError(target, f"{module.__name__} has no {attribute!r}")
        found = getattr(found, part)
    items = [found] if isinstance(found, Prompt | Resource) else found
    if not isinstance(items, Iterable) or not all(isinstance(item, Prompt | Resource) for item in items):
        raise LoadError(target, f"{attribute!r} is neither a prompt nor a resource, nor several of them")
    return Recipes(
        prompts=tuple(item for item in items if isinstance(item, Prompt)),
        resources=tuple(item for item in items if isinstance(item, Resource)),
        files=(Path(str(module.__file__)),),
    )


def _collect(
    package: str,
    modules: Iterable[ModuleType],
    made: Iterable[Prompt[..., Any]],
    diagnostics: Iterable[Diagnostic],
    files: Iterable[Path],
) -> Recipes:
    """
    Return what *modules* declare, or hold of what their package declares, each once.

    Looking at names alone would miss a prompt whose name was defined again below it.
    """
    names = {module.__name__ for module in modules}
    held = [value for module in modules for value in vars(module).values()]
    prompts = [prompt for prompt in made if prompt.__module__ in names]
    prompts += [v for v in held if isinstance(v, Prompt) and f"{v.__module__}.".startswith(f"{package}.")]
    resources = [v for v in held if isinstance(v, Resource)]
    return Recipes(
        tuple(dict.fromkeys(prompts)),
        tuple(dict.fromkeys(resources)),
        tuple(diagnostics),
        tuple(files),
    )


class _Noting(Generic[T]):
    """
    Collects what others note of their doings within the ``with`` block.
    """

    def __init__(self, listener: ContextVar[list[T] | None]) -> None:
        self._listener = listener

    def __enter__(self) -> list[T]:
        noted: list[T] = []
        self._token = self._listener.set(noted)
        return noted

    def __exit__(self, *_: object) -> None:
        self._listener.reset(self._token)


def _check_keyboard(error: BaseException) -> None:
    """
    Raise *error* if somebody has pressed Ctrl-C, and no recipe has raised it by itself.

    Raises:
        KeyboardInterrupt: If that is so. A server has another handler: it is a recipe's there.
    """
    if isinstance(error, KeyboardInterrupt) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        raise error
