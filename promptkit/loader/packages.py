"""
Imports a folder of recipes as a Python package, and can import it again, to reload it.
"""

import importlib
import linecache
import os
import sys
from collections.abc import Collection, Sequence
from importlib.util import find_spec
from pathlib import Path

from promptkit.declarations.prompts import imported_prompts
from promptkit.files.reading import file_stamp
from promptkit.loader import module_records
from promptkit.loader.finder import RecipeFinder, active_finders, forget_folders, place_module
from promptkit.loader.module_records import Execution, Executions
from promptkit.loader.targets import package_of, project_root

#: The finder of the last load of each folder, with the root of its project.
_finders: dict[tuple[Path, str], RecipeFinder] = {}


def known_finders() -> list[RecipeFinder]:
    """Return the finders of the last load, then that of each folder that was loaded before."""
    return [*active_finders(), *_finders.values()]


def install_finders(folders: Sequence[Path], beside: Collection[RecipeFinder] = ()) -> list[RecipeFinder]:
    """
    Install what finds the modules of some folders while they are loaded together, and return it.

    Each folder becomes a package that has its name, so that tests and recipes can import from it. If another
    module has that name, the package gets a different one.

    Args:
        folders:
            Absolute paths.

        beside:
            The finders of the same load that are installed already. All others leave.
    """
    installed = [finder for finder in active_finders() if finder not in beside]
    for finder in installed:  # otherwise the names of the last load would seem taken
        finder.uninstall()
    taken = {finder.name for finder in beside}
    names = [_package_name(folder, taken) for folder in folders]
    places = [(folder, project_root(folder)) for folder in folders]
    last = dict(_finders)
    for finder in installed:
        last[finder.folder, finder.root] = finder
        if (finder.folder, finder.root) not in places:
            _leave(finder)
    found = [
        _installed_finder(name, *place, last.get(place)) for name, place in zip(names, places, strict=True)
    ]
    if any(finder.has_lost for finder in found):  # what one has lost, modules of the others may hold
        for finder in found:
            finder.has_lost = True
    return found


def import_package(finder: RecipeFinder, *, keep: bool = False) -> None:
    """
    Import the package of a finder that is installed. Its modules are imported again.

    Args:
        finder:
            The finder.

        keep:
            Whether modules of the folder that are imported already are used. If one that was imported here
            has changed since, all are imported again.

    Raises:
        BaseException: Any exception that an ``__init__.py`` raises.
    """
    name, last, has_lost = finder.name, finder.last, finder.has_lost
    finder.last = None  # else each load would keep all before it alive
    finder.has_lost = False
    forget_folders()
    kept = _modules_in_place(name, finder.folder, last) if keep and not has_lost else None
    if kept is not None:
        finder.executions = kept
    _remove_package(name, finder, is_whole=kept is None)
    importlib.import_module(name)


def imported_files() -> set[str]:
    """
    Return the paths of the files that were read for the last packages, from their folders and projects.

    They include files that were looked for and not found.
    """
    return set[str]().union(*(finder.imported_files() for finder in active_finders()))


def abandon_imports(thread: int) -> None:
    """
    Forget the import locks of an abandoned thread, and its half-imported modules.

    Later imports of these modules do not wait for it. A thread that waits already goes on waiting.

    Args:
        thread:
            The thread's identifier.
    """
    locks = vars(importlib._bootstrap)["_module_locks"]  # noqa: SLF001 (there is no public access)
    for name, reference in list(locks.items()):
        lock = reference()
        if lock is not None and lock.owner == thread:
            locks.pop(name, None)
            sys.modules.pop(name, None)


class ImportSnapshot:
    """
    The state of `sys.modules` at one moment, to be restored if a later load fails.

    Code that is still served may import a module lazily, and should get the version that it was
    loaded with.
    """

    def __init__(self) -> None:
        self._modules = dict(sys.modules)
        self._finders = active_finders()

    def restore(self) -> None:
        """Restore everything that was replaced since."""
        for finder in active_finders():
            finder.uninstall()
        for name, module in self._modules.items():
            if sys.modules.get(name) is not module:
                place_module(name, module)
        for finder in self._finders:
            finder.install()

    def restore_missing(self) -> None:
        """Restore the modules of the recipes and of their project that could not be imported again."""
        missing = {name: module for name, module in self._modules.items() if name not in sys.modules}
        project = {name: file for finder in self._finders for name, (file, _) in finder.project.items()}
        for finder in active_finders():
            for name, module in missing.items():
                if _is_within(name, finder.name):
                    place_module(name, module)
                elif name in project:
                    place_module(name, module)
                    finder.project[name] = project[name], (0, 0, 0, 0)  # the next load imports it anew


def _leave(finder: RecipeFinder) -> None:
    """Let the finder of another load go. A snapshot may install it again, and then it knows what it knew."""
    left = RecipeFinder(finder.name, finder.folder, finder.root, finder)
    left.executions = finder.executions
    left.leave()
    _finders[finder.folder, finder.root] = left


def _installed_finder(name: str, folder: Path, root: str, last: RecipeFinder | None) -> RecipeFinder:
    """A finder for the next load, installed. If a module of the project has changed, all are forgotten."""
    # The same text each time: a test may have put it back into `sys.path` meanwhile.
    finder = RecipeFinder(name, folder, root if last is None else last.root, last)
    if finder.has_changed_project:
        finder.forget_project()
    finder.install()
    finder.last, _finders[folder, finder.root] = last, finder
    return finder


def _modules_in_place(name: str, folder: Path, last: RecipeFinder | None) -> Executions | None:
    """The modules of a package that anybody has imported from its folder; None if one has changed since."""
    if name not in sys.modules or not _is_package(name, folder) or (last is not None and last.has_changed):
        return None
    known = {} if last is None else last.executions.by_name
    found = Executions()
    for key, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) if _is_within(key, name) else None
        if isinstance(file, str) and file.startswith(os.path.join(str(folder), "")):
            one = known.get(key)
            if one is None or one.module is not module:
                # Python does not say which version of the file it was: it is used as every import would.
                made = list(imported_prompts.get(module, ()))
                one = Execution(key, file, module, made=made, stamp=file_stamp(file))
            found.add(one)
    return found


def _is_package(name: str, folder: Path) -> bool:
    """Whether the module of that name is the package in *folder*."""
    module, init = sys.modules[name], folder / "__init__.py"
    file = str(init) if init.is_file() else None
    return getattr(module, "__file__", None) == file and str(folder) in map(
        str, getattr(module, "__path__", ())
    )


def _package_name(folder: Path, taken: set[str]) -> str:
    """A name for the package in *folder*, which is *taken* from then on."""
    above, parts = package_of(folder)
    if len(parts) > 1 and above not in sys.path:
        sys.path.append(above)
    name = ".".join(parts) if len(parts) > 1 else _free_name(folder)
    while name in taken:  # two targets may have one name
        name = f"recipes_{name}"
    taken.add(name)
    return name


def _free_name(folder: Path) -> str:
    """A name for the package in *folder* that no other module has."""
    name = "".join(c if c.isalnum() else "_" for c in folder.name) or "recipes"
    if not name.isidentifier() or name in sys.stdlib_module_names or name == "promptkit":
        return f"recipes_{name}"
    if (loaded := sys.modules.get(name)) is not None:
        places = getattr(loaded, "__path__", None)
    elif (spec := find_spec(name)) is not None:
        places = spec.submodule_search_locations
    else:
        return name
    return name if str(folder) in map(str, places or ()) else f"recipes_{name}"


def _is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def _is_initializing(module: object) -> bool:
    """Whether a module is being imported right now: if so, it is the one that called `load`."""
    return getattr(getattr(module, "__spec__", None), "_initializing", False)


def _remove_package(name: str, finder: RecipeFinder, *, is_whole: bool) -> None:
    """Remove a package from `sys.modules`, all below it but for kept modules, and its cached lines."""
    gone = {
        key
        for key, module in list(sys.modules.items())
        if _is_within(key, name)
        and key not in finder.executions.by_name
        and (
            is_whole or not hasattr(module, "__path__")
        )  # a folder without ``__init__.py`` may hold kept ones
        and not _is_initializing(module)
    }
    for key in gone:
        del sys.modules[key]  # served code may hold the old package, which keeps its modules
    inside = os.path.join(str(finder.folder), "")
    for file in [file for file in list(linecache.cache) if file.startswith(inside)]:
        linecache.cache.pop(file, None)
    if gone:
        module_records.forget_modules(gone)
