"""
Folders of recipes as packages of Python, which can be imported again and again.

What is imported again is read from its source alone, and takes nothing of the last time.
"""

import importlib
import importlib.util
import linecache
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import BYTECODE_SUFFIXES, ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType

__all__ = ["import_package", "imported_files", "keep_imports"]


def import_package(folder: Path) -> str:
    """
    Make *folder* a package, freshly imported, and return its name.

    It gets its own name wherever that is free, so that tests and recipes may import from
    it; and one that shadows nothing where a module of that name exists.

    Args:
        folder:
            An absolute path.

    Raises:
        BaseException: Whatever an ``__init__.py`` raises.
    """
    parts = [folder.name]
    root = folder.parent
    while (root / parts[0] / "__init__.py").is_file() and (root / "__init__.py").is_file():
        parts.insert(0, root.name)
        root = root.parent
    if len(parts) > 1 and str(root) not in sys.path:
        sys.path.append(str(root))
    name = ".".join(parts) if len(parts) > 1 else _free_name(folder)
    again = _find_below(name, folder)
    _forget(name, folder)
    if len(parts) > 1:
        importlib.import_module(name)
    else:
        _make_package(name, folder, again=again)
    return name


def imported_files(package: str) -> tuple[Path, ...]:
    """
    Return the files of the modules that a package consists of by now.

    Args:
        package:
            What `import_package` returned.
    """
    modules = [module for key, module in list(sys.modules.items()) if _is_within(key, package)]
    files = {getattr(module, "__file__", None) for module in modules}
    return tuple(sorted(Path(file) for file in files if file))


def keep_imports() -> Callable[[], None]:
    """
    Note what is imported now, and return a function that puts back what was replaced since.

    What runs already may import a neighbour late, and should then find what belongs to it.
    """
    modules, finders = dict(sys.modules), _finders()

    def put_back() -> None:
        for finder in _finders():
            finder.leave()
        sys.modules.update({name: m for name, m in modules.items() if sys.modules.get(name) is not m})
        for finder in finders:
            finder.enter()

    return put_back


def _free_name(folder: Path) -> str:
    """
    Return a name for the package in *folder* that no other module has.
    """
    name = "".join(c if c.isalnum() else "_" for c in folder.name) or "recipes"
    if not name.isidentifier() or name in sys.stdlib_module_names or name == "promptkit":
        return f"recipes_{name}"
    loaded = sys.modules.get(name)
    places = getattr(loaded, "__path__", None)
    if loaded is None and (spec := importlib.util.find_spec(name)) is not None:
        loaded, places = ModuleType(name), spec.submodule_search_locations
    ours = loaded is None or str(folder) in map(str, places or ())
    return name if ours else f"recipes_{name}"


def _make_package(name: str, folder: Path, *, again: bool) -> None:
    """
    Put a package for *folder* into `sys.modules`, its ``__init__.py`` executed if it has one.
    """
    init = folder / "__init__.py"
    if init.is_file():
        loader = _FromSource(name, str(init)) if again else None
        places = [str(folder)]
        spec = importlib.util.spec_from_file_location(
            name, init, loader=loader, submodule_search_locations=places
        )
    else:
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
    assert spec is not None  # noqa: S101 (a file that exists has a spec)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if spec.loader is not None:
        spec.loader.exec_module(module)


def _is_within(name: str, package: str) -> bool:
    """
    Return whether a module is *package* or below it.
    """
    return name == package or name.startswith(f"{package}.")


def _forget(name: str, folder: Path) -> None:
    """
    Take a package and all below it out of `sys.modules`, so that it is imported anew.
    """
    importlib.invalidate_caches()
    for key, module in list(sys.modules.items()):
        # A module that is being imported right now is whoever asked to load.
        busy = getattr(getattr(module, "__spec__", None), "_initializing", False)
        if _is_within(key, name) and not busy:
            del sys.modules[key]
    for file in [file for file in list(linecache.cache) if Path(file).is_relative_to(folder)]:
        linecache.cache.pop(file, None)


def _finders() -> "list[_Finder]":
    """
    Return what this module has put into `sys.meta_path`.
    """
    return [finder for finder in sys.meta_path if isinstance(finder, _Finder)]


def _find_below(name: str, folder: Path) -> bool:
    """
    Find modules in *folder* from now on, and in no other; return whether they were found before.
    """
    finders = _finders()
    for finder in finders:
        finder.leave()
    again = any(finder.folder == folder for finder in finders)
    if again:
        _Sources(name, folder).enter()
    _Siblings(name, folder).enter()
    return again


class _Finder:
    """
    Takes part in imports as long as one package is the one that is loaded.

    It is of no class of `importlib.abc`, which brings archives, temporary files and random numbers.
    """

    def __init__(self, package: str, folder: Path) -> None:
        self.package = package
        self.folder = folder

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """
        Return how to import *fullname*; None if it is none of these modules.
        """
        raise NotImplementedError

    def enter(self) -> None:
        """
        Be asked from now on, once nothing else has found a module.
        """
        sys.meta_path.append(self)

    def leave(self) -> None:
        """
        Be asked no more.
        """
        sys.meta_path.remove(self)


class _Sources(_Finder):
    """
    Finds the modules of a package that was imported before, to be read from their sources.
    """

    def enter(self) -> None:
        """
        Be asked from now on, before anything else.
        """
        sys.meta_path.insert(0, self)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """
        Return how to import *fullname*, if it is the package or in its folder.
        """
        below = path is not None and any(Path(place).is_relative_to(self.folder) for place in path)
        if not below and fullname != self.package:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _FromSource(fullname, spec.loader.path)
        return spec


class _FromSource(SourceFileLoader):
    """
    Loads a module without looking at its bytecode, which it writes for the next process.

    Python tells whether bytecode is stale by the whole second in which its source was written, and
    by its size. Edits may follow each other faster.
    """

    def get_data(self, path: str) -> bytes:
        """
        Return the content of a file. Raises `OSError` for bytecode, as if there were none.
        """
        if path.endswith(tuple(BYTECODE_SUFFIXES)):
            raise FileNotFoundError(path)
        return super().get_data(path)


class _Siblings(_Finder):
    """
    Finds ``import helpers`` beside a recipe, once nothing else has found such a module.

    The module is the package's own (``recipes.helpers``), so that it exists once.
    """

    def __init__(self, package: str, folder: Path) -> None:
        super().__init__(package, folder)
        self.found: set[str] = set()

    def leave(self) -> None:
        """
        Find nothing any more, and take back what was found: another folder has its own.
        """
        super().leave()
        for key in list(sys.modules):
            if key.partition(".")[0] in self.found:
                del sys.modules[key]

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,  # noqa: ARG002 (the protocol of finders)
    ) -> ModuleSpec | None:
        """
        Return how to import *fullname*, if a file or folder beside the recipes is called so.
        """
        beside = self.folder / fullname
        if path is not None or not (beside.with_suffix(".py").is_file() or beside.is_dir()):
            return None
        return ModuleSpec(fullname, self)  # type: ignore[arg-type]  # it has what imports ask for

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """
        Return the package's own module.
        """
        module = importlib.import_module(f"{self.package}.{spec.name}")
        self.own_spec = module.__spec__
        self.found.add(spec.name)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """
        Give the module its own name back; it has been executed already.
        """
        module.__spec__ = self.own_spec
