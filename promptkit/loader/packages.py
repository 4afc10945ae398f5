"""
Imports a folder of recipes as a Python package, and imports the package again for each reload.

Like functions, prompts, resources and skills are pickled by reference. The reference to a declaration in a
folder of recipes contains the folder's path, so that any process can load the folder.
"""

import importlib
import os
import sys
from collections.abc import Collection, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from pickle import PicklingError
from threading import RLock
from types import ModuleType
from typing import Any, Final

from promptkit.declarations.base import Decorated, imported_declarations
from promptkit.declarations.prompts import Prompt
from promptkit.errors.exceptions import LoadError
from promptkit.files.reading import file_stamp
from promptkit.loader.finder import (
    Execution,
    Executions,
    RecipeFinder,
    active_finders,
    add_module,
    clear_folder_caches,
)
from promptkit.loader.recipes import collect_declarations
from promptkit.loader.targets import package_of, project_root

#: Held while loading, because each load replaces the previous one.
_loading: Final = RLock()

#: The finder of the last load of each folder, keyed by the folder and its project's root.
_finders: dict[tuple[Path, str], RecipeFinder] = {}


def known_finders() -> list[RecipeFinder]:
    """Return the finders of the last load, followed by those of folders that were only loaded before it."""
    return [*active_finders(), *_finders.values()]


def install_finders(folders: Sequence[Path], companions: Collection[RecipeFinder] = ()) -> list[RecipeFinder]:
    """
    Install and return the finders for the modules of some folders that are loaded together.

    Each folder becomes a package with the folder's name, so that tests and recipes can import from it. If
    another module has that name, the package gets a different one.

    Args:
        folders:
            The absolute paths of the folders.

        companions:
            The installed finders that belong to the same load. All others are uninstalled.
    """
    installed = [finder for finder in active_finders() if finder not in companions]
    for finder in installed:  # otherwise the names of the last load would be in use
        finder.uninstall()
    used_names = {finder.name for finder in companions}
    names = [_package_name(folder, used_names) for folder in folders]
    locations = [(folder, project_root(folder)) for folder in folders]
    last = dict(_finders)
    for finder in installed:
        last[finder.folder, finder.root] = finder
        if (finder.folder, finder.root) not in locations:
            finder.remove_unreachable_modules()
    finders = [
        _install_finder(name, *location, last.get(location))
        for name, location in zip(names, locations, strict=True)
    ]
    # Modules of one target can refer to missing modules of another.
    if any(finder.has_missing_modules for finder in finders):
        for finder in finders:
            finder.has_missing_modules = True
    return finders


def import_package(finder: RecipeFinder, *, keep: bool = False) -> None:
    """
    Import the package of an installed finder. Its modules are executed again, unless they are reused.

    Args:
        finder:
            The finder.

        keep:
            Whether to reuse modules of the folder that are already imported. If the loader imported a module
            that has changed since, all modules are imported again.

    Raises:
        BaseException: Any exception that an ``__init__.py`` raises.
    """
    name, last, has_missing_modules = finder.name, finder.last, finder.has_missing_modules
    finder.last = None  # otherwise each load would keep all previous ones alive
    finder.has_missing_modules = False
    clear_folder_caches()
    reused = _reusable_modules(name, finder.folder, last) if keep and not has_missing_modules else None
    if reused is not None:
        finder.executions = reused
    _remove_package(name, finder, removes_all=reused is None)
    importlib.import_module(name)


def imported_files() -> set[str]:
    """
    Return the paths of the files that the last load read, from the folders of recipes and their projects.

    They include files that did not exist when the loader looked for them.
    """
    return set[str]().union(*(finder.imported_files() for finder in active_finders()))


def abandon_imports(thread: int) -> None:
    """
    Release the import locks of an abandoned thread, and remove its half-imported modules.

    Later imports of these modules do not wait for the thread, but imports that are already waiting for it
    continue to wait.

    Args:
        thread:
            The thread's identifier.
    """
    locks = vars(importlib._bootstrap)["_module_locks"]  # noqa: SLF001 (no public API)
    for name, reference in list(locks.items()):
        lock = reference()
        if lock is not None and lock.owner == thread:
            locks.pop(name, None)
            sys.modules.pop(name, None)


class ImportSnapshot:
    """
    The state of `sys.modules` at one moment, which is restored if a later load fails.

    Code that is still served may import a module lazily, and must get the version that it was loaded with.
    """

    def __init__(self) -> None:
        self._modules = dict(sys.modules)
        self._finders = active_finders()

    def restore(self) -> None:
        """Restore all modules that have been replaced since this snapshot."""
        for finder in active_finders():
            finder.uninstall()
        for name, module in self._modules.items():
            if sys.modules.get(name) is not module:
                add_module(name, module)
        for finder in self._finders:
            finder.install()


def _install_finder(name: str, folder: Path, root: str, last: RecipeFinder | None) -> RecipeFinder:
    """
    Install and return a finder for the next load.

    If a module of the project has changed, all modules of the project are removed.
    """
    # Reuse the string object of the last root: a test may have restored it in `sys.path`, where it is found
    # by identity.
    finder = RecipeFinder(name, folder, root if last is None else last.root, last)
    if finder.has_changed_project:
        finder.remove_project_modules()
    finder.install()
    finder.last, _finders[folder, finder.root] = last, finder
    return finder


def _reusable_modules(name: str, folder: Path, last: RecipeFinder | None) -> Executions | None:
    """
    Return a package's imported modules, no matter which code imported them.

    Return None if the package is not imported, or if one of its modules has changed since its import.
    """
    if name not in sys.modules or not _is_package(name, folder) or (last is not None and last.has_changed):
        return None
    known = {} if last is None else last.executions.by_name
    executions = Executions()
    for key, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) if _is_within(key, name) else None
        if isinstance(file, str) and file.startswith(os.path.join(str(folder), "")):
            execution = known.get(key)
            if execution is None or execution.module is not module:
                # It is unknown which version of the file was imported. As an import would, use the module as
                # it is.
                declared = list(imported_declarations.get(module, ()))
                execution = Execution(key, file, module, declared=declared, stamp=file_stamp(file))
            executions.add(execution)
    return executions


def _is_package(name: str, folder: Path) -> bool:
    """Return whether the module called *name* is the package in *folder*."""
    module, init = sys.modules[name], folder / "__init__.py"
    file = str(init) if init.is_file() else None
    return getattr(module, "__file__", None) == file and str(folder) in map(
        str, getattr(module, "__path__", ())
    )


def _package_name(folder: Path, used_names: set[str]) -> str:
    """Choose a name for the package in *folder*, and add it to *used_names*."""
    parent, parts = package_of(folder)
    if len(parts) > 1 and parent not in sys.path:
        sys.path.append(parent)
    name = ".".join(parts) if len(parts) > 1 else _find_free_name(folder)
    while name in used_names:  # two targets may have the same name
        name = f"recipes_{name}"
    used_names.add(name)
    return name


def _find_free_name(folder: Path) -> str:
    """Return a name for the package in *folder* that no other module has."""
    name = "".join(c if c.isalnum() else "_" for c in folder.name) or "recipes"
    if not name.isidentifier() or name in sys.stdlib_module_names or name == "promptkit":
        return f"recipes_{name}"
    if (loaded := sys.modules.get(name)) is not None:
        search_path = getattr(loaded, "__path__", None)
    elif (spec := find_spec(name)) is not None:
        search_path = spec.submodule_search_locations
    else:
        return name
    return name if str(folder) in map(str, search_path or ()) else f"recipes_{name}"


def _is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def _is_initializing(module: object) -> bool:
    """Return whether a module is still being imported, which means that its own code called `load`."""
    return getattr(getattr(module, "__spec__", None), "_initializing", False)


def _remove_package(name: str, finder: RecipeFinder, *, removes_all: bool) -> None:
    """Remove a package and its modules from `sys.modules`, except for reused modules."""
    prefix = f"{name}."  # not `_is_within`: there may be thousands of other modules
    inside = [item for item in list(sys.modules.items()) if item[0] == name or item[0].startswith(prefix)]
    for key in [
        key
        for key, module in inside
        if key not in finder.executions.by_name
        # A folder without ``__init__.py`` may contain reused modules.
        and (removes_all or not hasattr(module, "__path__"))
        and not _is_initializing(module)
    ]:
        del sys.modules[key]  # served code may still use the old package and its modules


def reduce_declaration(declared: Any) -> tuple[Any, ...]:
    """
    Return what the ``__reduce__`` method of a prompt, a resource or a skill must return.

    Raises:
        PicklingError: If no other process could find the object.
    """
    location, kind, key = _locate_module(declared.__module__ or ""), type(declared), _key_of(declared)
    if _find_declaration(*location, kind, key) is not declared:
        reason = f"other processes cannot find it by name in module {declared.__module__!r}"
        hint = "define it at the top level of a module, under a name that is unique in the module"
        msg = f"{declared!r} cannot be pickled: {reason}: {hint}"
        raise PicklingError(msg)
    return declared_at, (*location, kind, key)


def declared_at(folder: str, package: str, inner: str, kind: type[Any], key: str) -> Any:
    """
    Return an object that was pickled by reference. Its module is imported if necessary.

    Args:
        folder:
            The folder of recipes whose module declares the object; ``""`` if the module is not in one.

        package:
            The folder's package name in the process that pickled the object; if there is no folder, the name
            of the module.

        inner:
            The rest of the module's name.

        kind:
            The object's class.

        key:
            The object's name or URI template.

    Raises:
        LoadError: If the module does not declare the object.

        Exception: Any exception that the import of the module raises.
    """
    with _loading:
        if (declared := _find_declaration(folder, package, inner, kind, key)) is not None:
            return declared
        if os.path.isdir(folder):
            (finder,) = install_finders([Path(folder)])
            import_package(finder, keep=True)
            package = finder.name
        importlib.import_module(package + inner)
        declared = _find_declaration(folder, package, inner, kind, key)
    if declared is None:
        reason = f"module {package + inner!r} has no {kind.__name__.lower()} {key!r}, which was pickled"
        raise LoadError(folder or package, f"{reason}: give every process the same files at the same path")
    return declared


def _key_of(declared: Any) -> str:
    """Return the name or URI template of a declaration, which is unique among those of the same kind."""
    return str(declared.options.name if isinstance(declared, Prompt) else declared.uri_template)


def _locate_module(name: str) -> tuple[str, str, str]:
    """Return the folder of recipes that a module is in (``""`` for none), its package, and its inner name."""
    for finder in known_finders():
        if finder.executions.module(name) is not None:
            return str(finder.folder), finder.name, name.removeprefix(finder.name)
    return "", name, ""


def _find_declaration(folder: str, package: str, inner: str, kind: type[Any], key: str) -> Any:
    """
    Return the declaration in an imported module whose name or URI template is *key*; None if there is none.
    """
    module, declared = _find_module(folder, package, inner)
    if module is None:
        return None
    definitions = collect_declarations(Path(), module, declared, module.__name__).definitions
    return next((item for item in definitions if type(item) is kind and _key_of(item) == key), None)


def _find_module(folder: str, package: str, inner: str) -> tuple[ModuleType | None, Iterable[Decorated]]:
    """Return a module and its declarations; None and no declarations if the module is not imported."""
    for finder in known_finders():
        name = finder.name + inner
        if str(finder.folder) == folder and (module := finder.executions.module(name)) is not None:
            return module, finder.executions.declared.get(name, ())
    imported = None if os.path.isdir(folder) else sys.modules.get(package + inner)
    return imported, () if imported is None else imported_declarations.get(imported, ())
