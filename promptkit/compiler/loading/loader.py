"""
The loader: imports the recipes in a folder, a file or a module, and collects what they declare.

No other module imports authors' code. An error in one recipe becomes a diagnostic, and the other
recipes are loaded all the same.
"""

import importlib
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial, reduce
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from promptkit.compiler.loading.finders import namespace_of
from promptkit.compiler.loading.interpreter import (
    exit_if_forked,
    preserve_interpreter,
    raise_if_interrupted,
)
from promptkit.compiler.loading.packages import Package, import_package, note_missing, read_files
from promptkit.compiler.loading.targets import project_root, split_target, suggest
from promptkit.compiler.loading.watched_files import is_test
from promptkit.compiler.prompts import Prompt, declared_prompts
from promptkit.compiler.recipes import LoadedFile, Recipes
from promptkit.compiler.resources import Resource
from promptkit.errors.diagnostics import Diagnostic
from promptkit.errors.exceptions import LoadError
from promptkit.language.files import files_read

__all__ = ["Recipes", "load"]

T = TypeVar("T")


def _ignore(_: Path) -> None:
    pass


def load(target: str | Path, importing: Callable[[Path], None] = _ignore) -> Recipes:
    """
    Import the recipes at *target* and return what they declare. What was imported before is imported anew.

    Args:
        target:
            A folder, whose ``*.py`` files are the recipes except for tests and for files whose names
            begin with ``_``; a file; a dotted module; or ``module:object`` or ``file.py:object``,
            where the object is a prompt, a resource, or several.

        importing:
            Called with each file of a folder before it is imported. If it raises, the file is not
            imported, and the error is reported as an error of the file.

    Raises:
        LoadError: If there is no such folder, file, module or object.
    """
    if not str(target):
        reason = "name a folder, a file or a module"
        raise LoadError(str(target), reason)
    name, attribute = split_target(str(target))
    try:
        path = os.path.realpath(name)
    except (OSError, ValueError) as error:  # the current folder is gone, or this is not a valid path
        raise LoadError(str(target), f"it cannot be found: {error}") from None
    if os.path.isdir(path):
        return _load_folder(Path(path), str(target), importing)
    if os.path.isfile(path):
        if not path.endswith(".py"):
            raise LoadError(str(target), "it is not a Python file")
        return _load_files(Path(path).parent, [Path(path)], importing, attribute)
    if name.endswith(".py") or os.sep in name or "/" in name:
        raise LoadError(str(target), f"there is no such file or folder{suggest(name)}")
    return _load_module(str(target), name, attribute, importing)


def _load_folder(folder: Path, target: str, importing: Callable[[Path], None]) -> Recipes:
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise LoadError(target, f"it cannot be read: {error.strerror}") from None
    files, unreadable = [], []
    for file in (folder / name for name in sorted(names) if _is_recipe(name)):
        try:
            mode = os.stat(file).st_mode
        except OSError as error:  # a link that leads nowhere, in circles or into a locked folder
            unreadable.append(_unreadable(file, error.strerror))
            continue
        if stat.S_ISREG(mode):
            files.append(file)
        elif not stat.S_ISDIR(mode):
            unreadable.append(_unreadable(file, "it is a pipe, a socket or a device"))
    return _load_files(folder, files, importing, unreadable=unreadable, root=folder)


def _is_recipe(name: str) -> bool:
    # Editors and archives leave files whose names begin with a dot.
    return name.endswith(".py") and not name.startswith(("_", ".")) and not is_test(name)


def _unreadable(file: Path, reason: str | None) -> LoadedFile:
    from promptkit.compiler.loading.import_errors import import_failed

    return LoadedFile(file, diagnostics=(import_failed(file, f"cannot be read: {reason}"),))


def _load_files(  # noqa: PLR0913 (they are the ways to name recipes)
    folder: Path,
    files: Sequence[Path],
    importing: Callable[[Path], None],
    attribute: str = "",
    *,
    unreadable: Iterable[LoadedFile] = (),
    root: Path | None = None,
) -> Recipes:
    """Import *files* of *folder* as modules of one package."""
    with _collecting(declared_prompts) as made, _collecting(files_read) as media:
        package, found = _import_files(folder, files, importing)
    read = {*files, *read_files(), *media}
    failed = [failed for failed in found if isinstance(failed, LoadedFile)]
    if isinstance(package, LoadedFile):
        return Recipes(
            by_file=[package, *failed, *unreadable], root=root, read={folder / "__init__.py", *read}
        )
    if attribute and isinstance(found[0], ModuleType):
        return _named(f"{files[0]}:{attribute}", files[0], found[0], attribute, read)
    modules = [
        (file, f"{package.name}.{file.stem}", module)
        for file, module in zip(files, found, strict=True)
        if not isinstance(module, LoadedFile)
    ]
    by_file = [*_collect(package.name, modules, made), *failed, *unreadable]
    return Recipes(by_file=sorted(by_file, key=lambda one: str(one.file)), root=root, read=read)


def _import_files(
    folder: Path, files: Iterable[Path], importing: Callable[[Path], None]
) -> tuple[Package | LoadedFile, list[ModuleType | LoadedFile]]:
    package = _attempt(folder / "__init__.py", folder, importing, lambda: import_package(folder))
    if isinstance(package, LoadedFile):
        return package, [LoadedFile(file, diagnostics=package.diagnostics) for file in files]
    return package, [
        _attempt(file, folder, importing, partial(package.import_file, file.stem)) for file in files
    ]


def _attempt(
    file: Path, folder: Path | None, importing: Callable[[Path], None], call: Callable[[], T]
) -> T | LoadedFile:
    """Import *file* by calling *call*; an error becomes a diagnostic of the file."""
    process = os.getpid()
    try:
        importing(file)
        return call()
    except BaseException as error:  # noqa: BLE001 (a recipe may raise anything)
        exit_if_forked(process)
        raise_if_interrupted(error)
        note_missing(error)
        return LoadedFile(file, diagnostics=(_fault_of(file, folder, error),))
    finally:
        exit_if_forked(process)


def _fault_of(file: Path, folder: Path | None, error: BaseException) -> Diagnostic:
    from promptkit.compiler.loading.import_errors import fault_of  # only a broken recipe needs it

    return fault_of(file, folder, error)


def _load_module(target: str, name: str, attribute: str, importing: Callable[[Path], None]) -> Recipes:
    """Import a dotted module, as Python would in the current folder."""
    with suppress(OSError):  # the current folder may be gone
        here = os.getcwd()
        # At the end of sys.path, so that they shadow nothing.
        sys.path += [
            place for place in (here, project_root(os.path.join(here, name))) if place not in sys.path
        ]
    process = os.getpid()
    with _collecting(declared_prompts) as made:
        try:
            with preserve_interpreter():
                module = importlib.import_module(name)
        except BaseException as error:  # noqa: BLE001 (a recipe may raise anything)
            exit_if_forked(process)
            raise_if_interrupted(error)
            missing = error.name if type(error) is ModuleNotFoundError else None
            if missing and f"{name}.".startswith(f"{missing}."):
                reason = f"there is no such folder, file or module{suggest(name)}"
                raise LoadError(target, reason) from None
            fault = _fault_of(Path(name), None, error)
            return Recipes(by_file=[LoadedFile(Path(name), diagnostics=(fault,))])
    exit_if_forked(process)
    names = namespace_of(module)
    file = Path(names["__file__"]) if isinstance(names.get("__file__"), str) else None
    if attribute:
        return _named(target, file or Path(name), module, attribute, ())
    if "__path__" in names and file is not None:
        return _load_folder(file.parent, target, importing)
    return Recipes(by_file=_collect(name, [(file or Path(name), name, module)], made))


def _named(target: str, file: Path, module: ModuleType, attribute: str, read: Iterable[Path]) -> Recipes:
    """Only the prompts and resources that *module* calls *attribute*."""
    try:
        found = reduce(getattr, attribute.split("."), module)
        items = [found] if isinstance(found, Prompt | Resource) else list(found)
    except AttributeError:
        raise LoadError(target, f"{module.__name__} has no {attribute!r}") from None
    except Exception:  # noqa: BLE001 (it is an author's object, which may raise anything)
        items = [None]
    if not all(isinstance(item, Prompt | Resource) for item in items):
        raise LoadError(target, f"{attribute!r} is neither a prompt nor a resource, nor several of them")
    prompts = tuple(item for item in items if isinstance(item, Prompt))
    resources = tuple(item for item in items if isinstance(item, Resource))
    return Recipes(by_file=[LoadedFile(file, prompts, resources)], read=read)


def _collect(
    package: str, modules: Sequence[tuple[Path, str, object]], made: Sequence[Prompt[..., Any]]
) -> list[LoadedFile]:
    """What each module declares, and what it holds of the other modules of its package."""
    # The names in a module are not enough: one prompt's name may have been defined again below it.
    own: dict[str, list[Prompt[..., Any]]] = {name: [] for _, name, _ in modules}
    executed = {name: module for _, name, module in modules}
    for prompt in made:
        name = prompt.__module__
        if name in own and not _is_left_over(prompt, executed[name]):
            own[name].append(prompt)
    found = []
    for file, name, module in modules:
        held = list(namespace_of(module).values())
        prompts = own[name] + [
            value
            for value in held
            if issubclass(type(value), Prompt)
            and f"{value.__module__}.".startswith(f"{package}.")
            and value.__module__ not in own.keys() - {name}
        ]
        resources = [value for value in held if issubclass(type(value), Resource)]
        found.append(LoadedFile(file, tuple(dict.fromkeys(prompts)), tuple(dict.fromkeys(resources))))
    return found


def _is_left_over(prompt: Prompt[..., Any], module: object) -> bool:
    """Whether *prompt* is of a first execution of *module*, which failed in a circle of imports."""
    if not isinstance(function := prompt.function, FunctionType):
        return False
    made_in = function.__globals__
    return made_in.get("__name__") == prompt.__module__ and made_in is not namespace_of(module)


@contextmanager
def _collecting(variable: ContextVar[list[T] | None]) -> Iterator[list[T]]:
    """Collect in a list what is appended to *variable* within the ``with`` block."""
    collected: list[T] = []
    token = variable.set(collected)
    try:
        yield collected
    finally:
        variable.reset(token)
