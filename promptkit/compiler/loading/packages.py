"""
Imports a folder of recipes as a Python package, and can import it again, to reload it.

A repeated import reads the source, not the bytecode. It reuses modules of an earlier one only if it is told
what has changed since.
"""

import importlib
import importlib.util
import linecache
import os
import sys
from collections.abc import Iterable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from promptkit.compiler.loading.executions import Executions
from promptkit.compiler.loading.finders import (
    Finder,
    PackageFinder,
    SiblingFinder,
    active_finders,
    forget_folders,
    import_state,
    namespace_of,
    remove_module,
)
from promptkit.compiler.loading.interpreter import preserve_interpreter
from promptkit.compiler.loading.project_finder import ProjectFinder, project_finders, successor
from promptkit.compiler.loading.targets import package_of, project_root

if TYPE_CHECKING:
    from promptkit.compiler.loading.import_graph import ImportGraph

__all__ = ["Package", "abandon_imports", "import_package", "note_missing", "read_files"]

#: What has imported each folder last.
_imported: dict[str, PackageFinder] = {}


class Package:
    """
    A folder of recipes, freshly imported as a package.

    Args:
        name:
            Its name in Python.

        module:
            The package itself.

        sources:
            Finds its modules.

    Attributes:
        kept:
            The names of its modules that were executed by an earlier import.
    """

    def __init__(self, name: str, module: ModuleType, sources: PackageFinder) -> None:
        self.name = name
        self.module = module
        self.executions = sources.executions
        self.kept = frozenset(sources.kept)
        self._sources = sources
        self._graph: ImportGraph | None = None
        self._import_state = import_state()
        parts = name.split(".")
        above = (".".join(parts[:count]) for count in range(1, len(parts)))
        self._parents = {name: sys.modules[name] for name in above if name in sys.modules} | {name: module}

    def import_file(self, name: str, file: Path) -> ModuleType:
        """
        Import one file, unless another file has imported it already, and return its module.

        Args:
            name:
                The full name of the module.

            file:
                The path of the file.

        Raises:
            ImportError: If another file has that name.

            BaseException: Any exception that the file raises.
        """
        module = self.executions.module(name)
        if module is None:
            sys.modules.update(self._parents)  # an earlier recipe may have removed them
            if not _is_initializing(sys.modules.get(name)):
                sys.modules.pop(name, None)  # an earlier recipe may have put something else there
            with preserve_interpreter():
                module = _import(name, self._sources)
        executed = self.executions.by_name.get(name)
        if executed is not None and executed.file not in {"", str(file)}:
            msg = f"{executed.file} is imported in its place"
            raise ImportError(msg, name=name, path=executed.file)
        return module

    def graph(self) -> "ImportGraph":
        """Return what depends on what, made anew only if a module was executed since the last time."""
        from promptkit.compiler.loading.import_graph import ImportGraph  # only for a reload

        if self._graph is None or self._graph.count != self.executions.count:
            self._graph = ImportGraph(self.executions, self.name, self._sources.folder)
        return self._graph

    def unaffected(self, changed: Iterable[str]) -> Executions | None:
        """
        Return which executions need not be repeated; None if all must be.

        Args:
            changed:
                The paths of the files that are others now, that are new or that are gone.
        """
        from promptkit.compiler.loading.reuse import are_in_place  # not in a first import

        affected = self.graph().affected(changed)
        if affected is None or self.name in affected or import_state() != self._import_state:
            return None
        kept = self.executions.without(affected)
        return kept if are_in_place(kept.by_name.values(), self.name, self.module) else None


def import_package(
    folder: Path, before: Package | None = None, changed: Iterable[str] = (), *, keep: bool = False
) -> Package:
    """
    Make *folder* a package, imported, and return it.

    The package gets the folder's name, so that tests and recipes can import from it. If another module
    has that name, the package gets a different one.

    Args:
        folder:
            An absolute path.

        before:
            The package that the last import has made, whose modules are used again unless *changed*
            concerns them. Without it, everything is imported anew.

        changed:
            The paths of all files that have changed since then, or whose import is to be tried again.

        keep:
            Whether modules that anybody has imported from the folder are used, where there is no *before*.
            If one that was imported here has changed since, everything is imported anew.

    Raises:
        BaseException: Any exception that an ``__init__.py`` raises.
    """
    root, parts = package_of(folder)
    if len(parts) > 1 and root not in sys.path:
        sys.path.append(root)
    installed = active_finders()
    for finder in installed:  # otherwise the name of the last load would seem taken
        finder.uninstall()
    name = ".".join(parts) if len(parts) > 1 else _free_name(folder)
    last = _imported.get(str(folder))
    sources, is_same, is_unchanged = _install_finders(name, folder, installed)
    kept = None
    if before is not None and before.name == name and is_same and is_unchanged:
        kept = before.unaffected(changed)
    elif keep and is_unchanged and name in sys.modules:
        from promptkit.compiler.loading.reuse import modules_in_place  # not in a first import

        kept = modules_in_place(name, folder, last)
    if kept is not None:
        sources.keep(kept, {} if last is None else last.stamps)
        _remove_package(name, folder, sources)
        return Package(name, sys.modules[name], sources)
    _remove_package(name, folder)
    with preserve_interpreter():
        package = _import(name, sources) if len(parts) > 1 else _make_package(name, folder, sources)
    return Package(name, package, sources)


def read_files() -> tuple[set[str], set[str]]:
    """
    Return the paths of the files that were read for the last package, from its folder and its project.

    They include files that were looked for and not found.

    Returns:
        Those that the last import has read, and those that only an earlier one has, whose modules it kept.
    """
    files, earlier = set[str](), set[str]()
    for finder in active_finders():
        if isinstance(finder, PackageFinder):
            files |= finder.read
            for execution in finder.executions:
                read = earlier if execution.name in finder.kept else files
                read.add(execution.file)
                if execution.read:
                    read.update(map(str, execution.read))
        elif isinstance(finder, ProjectFinder):
            files.update(path for path, _ in list(finder.stamps.values()))
            files |= finder.missing
    files.discard("")  # of modules that another loader has executed
    return files, earlier - files


def note_missing(error: BaseException) -> None:
    """If *error* says that a module is missing, note its file, which the author may create next."""
    kind = type(error)  # an author's `__class__` may raise anything
    if kind is not ImportError and kind is not ModuleNotFoundError:
        return
    name, below = getattr(error, "name", None), getattr(error, "name_from", None)  # since Python 3.12
    if isinstance(name, str) and (kind is ModuleNotFoundError or isinstance(below, str)):
        for project in project_finders(active_finders()):
            project.note_missing(f"{name}.{below}" if isinstance(below, str) else name)


def abandon_imports(thread: int) -> None:
    """
    Release the import locks of an abandoned thread, and remove its half-imported modules.

    Otherwise other threads that import the same modules would wait for it forever.

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


def _free_name(folder: Path) -> str:
    """A name for the package in *folder* that no other module has."""
    name = "".join(c if c.isalnum() else "_" for c in folder.name) or "recipes"
    if not name.isidentifier() or name in sys.stdlib_module_names or name == "promptkit":
        return f"recipes_{name}"
    loaded = sys.modules.get(name)
    places = namespace_of(loaded).get("__path__")
    if loaded is None and (spec := importlib.util.find_spec(name)) is not None:
        loaded, places = ModuleType(name), spec.submodule_search_locations
    ours = loaded is None or str(folder) in map(str, places or ())
    return name if ours else f"recipes_{name}"


def _import(name: str, sources: PackageFinder) -> ModuleType:
    """Import and return the module that was executed, even if it replaced itself in `sys.modules`."""
    try:
        module = importlib.import_module(name)
    except Exception:
        if (executed := sources.executions.module(name)) is None:
            raise
        return executed
    return sources.executions.module(name) or module


def _make_package(name: str, folder: Path, sources: PackageFinder) -> ModuleType:
    init = folder / "__init__.py"
    if init.is_file():
        spec = importlib.util.spec_from_file_location(
            name, init, loader=sources.loader(name, str(init)), submodule_search_locations=[str(folder)]
        )
    else:
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
    assert spec is not None  # noqa: S101 (a file that exists has a spec)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if spec.loader is not None:
        spec.loader.exec_module(module)
    return module


def _is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def _is_initializing(module: object) -> bool:
    """Whether a module is being imported right now: if so, it is the one that called `load`."""
    spec = namespace_of(module).get("__spec__")
    return type(spec) is ModuleSpec and getattr(spec, "_initializing", False)


def _remove_package(name: str, folder: Path, sources: PackageFinder | None = None) -> None:
    """Remove a package and all below it from `sys.modules`, except for what *sources* has kept."""
    forget_folders()
    kept = set[str]()
    if sources is not None:  # with the folders that hold what is kept, which are packages without a file
        from promptkit.compiler.loading.code_imports import with_parents  # not in a first import

        folders = {key.rpartition(".")[0] for key in sources.kept}
        kept = {name, *sources.kept}.union(*map(with_parents, folders))
    for key, module in list(sys.modules.items()):
        if key not in kept and _is_within(key, name) and not _is_initializing(module):
            if kept:
                remove_module(key)
            else:
                del sys.modules[key]
    files = set[str]() if sources is None else {one.file for one in sources.executions}
    inside = os.path.join(str(folder), "")
    for file in [file for file in list(linecache.cache) if file.startswith(inside) and file not in files]:
        linecache.cache.pop(file, None)


def _install_finders(
    name: str, folder: Path, installed: Iterable[Finder]
) -> tuple[PackageFinder, bool, bool]:
    """Install finders in place of *installed*; also return whether it is as before, and the project is."""
    root = project_root(folder)
    found, is_same = successor(installed, name, folder, root)
    siblings = SiblingFinder(name, folder, root)
    is_unchanged = not (found.has_changed or any(map(siblings.find_spec, (*found.stamps, *found.namespaces))))
    if not is_unchanged:
        found.forget()
    sources = PackageFinder(name, folder, again=str(folder) in _imported)
    for finder in (sources, siblings, found):
        finder.install()
    _imported[str(folder)] = sources
    return sources, is_same, is_unchanged and not found.is_answered
