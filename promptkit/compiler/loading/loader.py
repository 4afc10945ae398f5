"""
The loader: a folder, a file, a module or one object becomes the prompts it declares.

It imports authors' code and nothing else does. It never raises for what is wrong with one
recipe: that is a diagnostic, and the other recipes are loaded.
"""

import importlib
import os
import signal
import stat
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from fnmatch import fnmatchcase
from functools import partial, reduce
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final, Generic, TypeVar

from msgspec import structs

from promptkit.compiler.loading.finders import namespace_of
from promptkit.compiler.loading.import_errors import import_failed
from promptkit.compiler.loading.interpreter import end_child, intact
from promptkit.compiler.loading.packages import import_package, note_missing, read_files
from promptkit.compiler.loading.targets import project_root, split_target, suggest
from promptkit.compiler.prompts import Prompt, declared
from promptkit.compiler.recipes import Declarations, Recipes
from promptkit.compiler.resources import Resource
from promptkit.errors.diagnostics import Diagnostic, Location, Rule, printable
from promptkit.errors.exceptions import LoadError
from promptkit.language.files import files_read

__all__ = ["TESTS", "Recipes", "fault_of", "load"]

T = TypeVar("T")

#: Files beside recipes that are none: pytest's own, by its own patterns.
TESTS: Final = ("test_*.py", "*_test.py", "conftest.py")


def _ignore(_: Path) -> None:
    """Do nothing."""


def load(target: str | Path, importing: Callable[[Path], None] = _ignore) -> Recipes:
    """
    Import the recipes at *target*, anew, and return what they declare.

    Args:
        target:
            A folder, whose ``*.py`` are the recipes but for tests and for files that begin
            with ``_``; a file; a dotted module; or ``module:object`` or ``file.py:object``,
            where the object is a prompt, a resource, or several.

        importing:
            Called with each file of a folder before it is imported. What it raises counts as
            raised by the file, which is not imported then.

    Raises:
        LoadError: If there is no such folder, file, module or object.
    """
    if not str(target):
        reason = "name a folder, a file or a module"
        raise LoadError(str(target), reason)
    name, attribute = split_target(str(target))
    try:
        path = os.path.realpath(name)
    except (OSError, ValueError) as error:  # the current folder is gone, or it is no path at all
        raise LoadError(str(target), f"it cannot be found: {error}") from None
    if os.path.isdir(path):
        return _load_folder(Path(path), str(target), importing)
    if os.path.isfile(path):
        if not path.endswith(".py"):
            raise LoadError(str(target), "it is no Python file")
        return _load_files(Path(path).parent, [Path(path)], importing, attribute)
    if name.endswith(".py") or os.sep in name or "/" in name:
        raise LoadError(str(target), f"there is no such file or folder{suggest(name)}")
    return _load_module(str(target), name, attribute, importing)


def _load_folder(folder: Path, target: str, importing: Callable[[Path], None]) -> Recipes:
    """
    Import the recipes in *folder*. Raises LoadError if it cannot be looked into.
    """
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
    """
    Return whether a file of that name is a recipe. Editors and archives leave some that begin with a dot.
    """
    if not name.endswith(".py") or name.startswith(("_", ".")):
        return False
    return not any(fnmatchcase(name, pattern) for pattern in TESTS)


def _unreadable(file: Path, reason: str | None) -> Declarations:
    """
    Return what stands for a recipe that cannot even be opened.
    """
    return Declarations(file, diagnostics=(_fault(file, f"cannot be read: {reason}"),))


def _fault(file: Path, what: str) -> Diagnostic:
    return Diagnostic(
        Rule.IMPORT_FAILED,
        printable(f"recipe {file.stem!r} {what}"),
        "mend or remove it; the other recipes are served all the same",
        Location(str(file)),
    )


def _load_files(  # noqa: PLR0913 (they are the ways to name recipes)
    folder: Path,
    files: Sequence[Path],
    importing: Callable[[Path], None],
    attribute: str = "",
    *,
    unreadable: Iterable[Declarations] = (),
    root: Path | None = None,
) -> Recipes:
    """
    Import *files* of *folder* as modules of one package.
    """
    init = folder / "__init__.py"
    with _Noting(declared) as made, _Noting(files_read) as media:
        package = _attempt(init, folder, importing, lambda: import_package(folder))
        found: list[Declarations | ModuleType] = [
            Declarations(file, diagnostics=package.diagnostics)
            if isinstance(package, Declarations)
            else _attempt(file, folder, importing, partial(package.import_file, file.stem))
            for file in files
        ]
    read = {*files, *read_files(), *media}
    failed = [failed for failed in found if isinstance(failed, Declarations)]
    if isinstance(package, Declarations):
        return Recipes(by_file=[package, *failed, *unreadable], root=root, read={init, *read})
    if attribute and isinstance(found[0], ModuleType):
        return _named(f"{files[0]}:{attribute}", files[0], found[0], attribute, read)
    modules = [
        (file, f"{package.name}.{file.stem}", module)
        for file, module in zip(files, found, strict=True)
        if not isinstance(module, Declarations)
    ]
    by_file = [*_collect(package.name, modules, made), *failed, *unreadable]
    return Recipes(by_file=sorted(by_file, key=lambda one: str(one.file)), root=root, read=read)


def _attempt(
    file: Path, folder: Path | None, importing: Callable[[Path], None], call: Callable[[], T]
) -> T | Declarations:
    """
    Import *file* by *call*; return what that returns, or why it cannot be done.
    """
    process = os.getpid()
    try:
        importing(file)
        return call()
    except BaseException as error:  # noqa: BLE001 (a recipe may raise anything)
        end_child(process)
        _check_keyboard(error)
        note_missing(error)
        return Declarations(file, diagnostics=(fault_of(file, folder, error),))
    finally:
        end_child(process)


def fault_of(file: Path, folder: Path | None, error: BaseException) -> Diagnostic:
    """
    Return what is said of a recipe in which *error* was raised.

    Args:
        file:
            The recipe.

        folder:
            Where its neighbours lie, if it has any.

        error:
            What was raised.
    """
    try:
        fault = import_failed(file, folder, error)
    except BaseException as other:  # noqa: BLE001 (to say what an author's exception is runs its code)
        _check_keyboard(other)
        fault = _fault(file, f"cannot be imported: {type(error).__name__}, which cannot be described")
    return structs.replace(fault, message=printable(fault.message))


def _load_module(target: str, name: str, attribute: str, importing: Callable[[Path], None]) -> Recipes:
    """
    Import a dotted module, as Python would in the current folder.
    """
    with suppress(OSError):  # the current folder may be gone
        here = os.getcwd()
        # Last, so that they shadow nothing.
        sys.path += [
            place for place in (here, project_root(os.path.join(here, name))) if place not in sys.path
        ]
    process = os.getpid()
    with _Noting(declared) as made:
        try:
            with intact():
                module = importlib.import_module(name)
        except BaseException as error:  # noqa: BLE001 (a recipe may raise anything)
            end_child(process)
            _check_keyboard(error)
            missing = error.name if type(error) is ModuleNotFoundError else None
            if missing and f"{name}.".startswith(f"{missing}."):
                reason = f"it is no folder, no file and no module{suggest(name)}"
                raise LoadError(target, reason) from None
            fault = fault_of(Path(name), None, error)
            return Recipes(by_file=[Declarations(Path(name), diagnostics=(fault,))])
    end_child(process)
    names = namespace_of(module)
    file = Path(names["__file__"]) if isinstance(names.get("__file__"), str) else None
    if attribute:
        return _named(target, file or Path(name), module, attribute, ())
    if "__path__" in names and file is not None:
        return _load_folder(file.parent, target, importing)
    return Recipes(by_file=_collect(name, [(file or Path(name), name, module)], made))


def _named(target: str, file: Path, module: ModuleType, attribute: str, read: Iterable[Path]) -> Recipes:
    """
    Return the prompts and resources that *module* calls *attribute*.
    """
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
    return Recipes(by_file=[Declarations(file, prompts, resources)], read=read)


def _collect(
    package: str, modules: Sequence[tuple[Path, str, object]], made: Sequence[Prompt[..., Any]]
) -> list[Declarations]:
    """
    Return what *modules* declare, or hold of what their package declares.

    Looking at names alone would miss a prompt whose name was defined again below it.
    """
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
        found.append(Declarations(file, tuple(dict.fromkeys(prompts)), tuple(dict.fromkeys(resources))))
    return found


def _is_left_over(prompt: Prompt[..., Any], module: object) -> bool:
    """
    Return whether *module* was executed twice, and *prompt* made when that failed, in a circle of imports.
    """
    if not isinstance(function := prompt.function, FunctionType):
        return False
    made_in = function.__globals__
    return made_in.get("__name__") == prompt.__module__ and made_in is not namespace_of(module)


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
    pressed = issubclass(type(error), KeyboardInterrupt)  # an author's `__class__` may raise anything
    if pressed and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        raise error
