"""
Folders of recipes as packages of Python, which can be imported again and again.

What is imported again is read from its source alone, and takes nothing of the last time.
"""

import importlib
import importlib.util
import linecache
import sys
from collections.abc import Iterable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from promptkit.compiler.loading.finders import Finder, Siblings, Sources, finders, namespace_of, place_module
from promptkit.compiler.loading.interpreter import intact
from promptkit.compiler.loading.project_finder import Project
from promptkit.compiler.loading.targets import package_of, project_root

__all__ = ["KeptImports", "Package", "give_up_imports", "import_package", "note_missing", "read_files"]

#: The folders that were imported already.
_imported: set[str] = set()


class Package:
    """
    A folder of recipes, freshly imported as a package.

    Args:
        name:
            What it is called in Python.

        module:
            The package itself.

        sources:
            What finds its modules.
    """

    def __init__(self, name: str, module: ModuleType, sources: Sources) -> None:
        self.name = name
        self._sources = sources
        parts = name.split(".")
        above = (".".join(parts[:count]) for count in range(1, len(parts)))
        self._parents = {name: sys.modules[name] for name in above if name in sys.modules} | {name: module}

    def import_file(self, stem: str) -> ModuleType:
        """
        Import one file, unless that was done by another, and return the module that was executed.

        Args:
            stem:
                The name of the file, without its suffix.

        Raises:
            BaseException: Whatever the file raises.
        """
        name = f"{self.name}.{stem}"
        executed = self._sources.executed
        if name not in executed:
            sys.modules.update(self._parents)  # an earlier recipe may have taken them out
            if not _is_busy(sys.modules.get(name)):
                sys.modules.pop(name, None)  # or have put something in this one's place
            with intact():
                return _import(name, self._sources)
        return executed[name]


def import_package(folder: Path) -> Package:
    """
    Make *folder* a package, freshly imported, and return it.

    It gets its own name wherever that is free, so that tests and recipes may import from
    it; and one that shadows nothing where a module of that name exists.

    Args:
        folder:
            An absolute path.

    Raises:
        BaseException: Whatever an ``__init__.py`` raises.
    """
    root, parts = package_of(folder)
    if len(parts) > 1 and root not in sys.path:
        sys.path.append(root)
    entered = finders()
    for finder in entered:  # what is free is found out without them, the first time and later
        finder.leave()
    name = ".".join(parts) if len(parts) > 1 else _free_name(folder)
    sources = _find_below(name, folder, entered)
    _forget(name, folder)
    with intact():
        package = _import(name, sources) if len(parts) > 1 else _make_package(name, folder, sources)
    return Package(name, package, sources)


def read_files() -> set[Path]:
    """
    Return the files that were read for the last package, of its folder and of the project around it.

    Those that were missing are among them.
    """
    files: set[str] = set()
    for finder in finders():
        if isinstance(finder, Sources):
            files |= finder.read
        elif isinstance(finder, Project):
            files.update(path for path, _ in list(finder.stamps.values()))
            files |= finder.missing
    return set(map(Path, files))


def note_missing(error: BaseException) -> None:
    """
    Note which module an author may be about to make, if *error* says that there is none.
    """
    kind = type(error)  # an author's `__class__` may raise anything
    if kind is not ImportError and kind is not ModuleNotFoundError:
        return
    name, below = getattr(error, "name", None), getattr(error, "name_from", None)  # since Python 3.12
    if isinstance(name, str) and (kind is ModuleNotFoundError or isinstance(below, str)):
        for project in _projects(finders()):
            project.note_missing(f"{name}.{below}" if isinstance(below, str) else name)


def give_up_imports(thread: int) -> None:
    """
    Take back what a thread was importing that is not waited for any more.

    Else whoever imports the same modules would wait for the lock that it holds.

    Args:
        thread:
            Its identifier.
    """
    locks = vars(importlib._bootstrap)["_module_locks"]  # noqa: SLF001 (they are nowhere else)
    for name, reference in list(locks.items()):
        lock = reference()
        if lock is not None and lock.owner == thread:
            locks.pop(name, None)
            sys.modules.pop(name, None)


class KeptImports:
    """
    What is imported at one moment, to be put back where a later load fails.

    What runs already may import a neighbour late, and should then find what belongs to it.
    """

    def __init__(self) -> None:
        self._modules = dict(sys.modules)
        self._finders = finders()

    def put_back(self) -> None:
        """
        Put back everything that was replaced since.
        """
        for finder in finders():
            finder.leave()
        for name, module in self._modules.items():
            if sys.modules.get(name) is not module:
                place_module(name, module)
        for finder in self._finders:
            finder.enter()

    def fill_in(self) -> None:
        """
        Put back what could not be imported anew, of the recipes and of the project around them.
        """
        missing = {name: module for name, module in self._modules.items() if name not in sys.modules}
        stamps = {
            name: stamp for project in _projects(self._finders) for name, stamp in project.stamps.items()
        }
        for project in _projects(finders()):
            for name, module in missing.items():
                if _is_within(name, project.package):
                    place_module(name, module)
                elif name in stamps:
                    place_module(name, module)
                    project.adopt(name, stamps[name][0])


def _projects(entered: Iterable[Finder]) -> list[Project]:
    return [finder for finder in entered if isinstance(finder, Project)]


def _free_name(folder: Path) -> str:
    """
    Return a name for the package in *folder* that no other module has.
    """
    name = "".join(c if c.isalnum() else "_" for c in folder.name) or "recipes"
    if not name.isidentifier() or name in sys.stdlib_module_names or name == "promptkit":
        return f"recipes_{name}"
    loaded = sys.modules.get(name)
    places = namespace_of(loaded).get("__path__")
    if loaded is None and (spec := importlib.util.find_spec(name)) is not None:
        loaded, places = ModuleType(name), spec.submodule_search_locations
    ours = loaded is None or str(folder) in map(str, places or ())
    return name if ours else f"recipes_{name}"


def _import(name: str, sources: Sources) -> ModuleType:
    """
    Import a module, and return what was executed, whatever that has put into `sys.modules`.
    """
    try:
        module = importlib.import_module(name)
    except Exception:
        if name not in sources.executed:
            raise
        return sources.executed[name]
    return sources.executed.get(name, module)


def _make_package(name: str, folder: Path, sources: Sources) -> ModuleType:
    """
    Return a package for *folder*, its ``__init__.py`` executed if it has one.
    """
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
    """
    Return whether a module is *package* or below it.
    """
    return name == package or name.startswith(f"{package}.")


def _is_busy(module: object) -> bool:
    """
    Return whether a module is being imported right now: it is whoever asked to load.
    """
    spec = namespace_of(module).get("__spec__")
    return type(spec) is ModuleSpec and getattr(spec, "_initializing", False)


def _forget(name: str, folder: Path) -> None:
    """
    Take a package and all below it out of `sys.modules`, so that it is imported anew.
    """
    importlib.invalidate_caches()
    for key, module in list(sys.modules.items()):
        if _is_within(key, name) and not _is_busy(module):
            del sys.modules[key]
    for file in [file for file in list(linecache.cache) if Path(file).is_relative_to(folder)]:
        linecache.cache.pop(file, None)


def _find_below(name: str, folder: Path, entered: Iterable[Finder]) -> Sources:
    """
    Find modules in *folder* from now on, and in the project around it, and no more by what was *entered*.
    """
    root = project_root(folder)
    before = None
    for project in _projects(entered):
        if (project.folder, project.root) == (folder, root):
            before = project
        else:
            project.forget()
    found = Project(name, folder, root, before)
    siblings = Siblings(name, folder, root)
    if found.has_changed or any(map(siblings.find_spec, (*found.stamps, *found.namespaces))):
        found.forget()
    sources = Sources(name, folder, again=str(folder) in _imported)
    for finder in (sources, siblings, found):
        finder.enter()
    _imported.add(str(folder))
    return sources
