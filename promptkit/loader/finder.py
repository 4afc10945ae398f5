"""
The finder for `sys.meta_path` that imports a folder of recipes, the modules beside them, and their project's.

It notes which files the modules are from: they are watched, and imported again when one of them changes.
"""

import importlib
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeAlias

from promptkit.files.reading import INSTALLED, Stamp, file_stamp
from promptkit.loader import module_records
from promptkit.loader.module_records import Executions, SourceLoader

#: Where modules of a package are looked for; None for those of no package.
SearchPath: TypeAlias = Sequence[str] | None

#: The folder of Python's own modules, which may lie inside of the project.
_STDLIB: Final = os.path.join(os.path.dirname(os.__file__), "")


def active_finders() -> "list[RecipeFinder]":
    """Return the finders of recipes that are in `sys.meta_path`."""
    return [finder for finder in sys.meta_path if isinstance(finder, RecipeFinder)]


def forget_folders() -> None:
    """
    Have every folder read again that modules are imported from.

    Since Python 3.12, `importlib.invalidate_caches` imports `importlib.metadata` for that, which is slow.
    """
    for finder in list(sys.path_importer_cache.values()):
        if (invalidate := getattr(finder, "invalidate_caches", None)) is not None:
            invalidate()


def remove_module(name: str) -> None:
    """Take a module out of `sys.modules`, and out of its parent package."""
    module = sys.modules.pop(name, None)
    package, _, own = name.rpartition(".")
    parent = sys.modules.get(package)
    if isinstance(parent, ModuleType) and module is not None and vars(parent).get(own) is module:
        delattr(parent, own)


def place_module(name: str, module: ModuleType) -> None:
    """Put a module into `sys.modules`, and into its parent package."""
    sys.modules[name] = module
    package, _, own = name.rpartition(".")
    if isinstance(parent := sys.modules.get(package), ModuleType):
        setattr(parent, own, module)


def _first_spec(finders: Iterable[Any], name: str, path: SearchPath) -> ModuleSpec | None:
    """How the first of some finders that knows a module would import it."""
    specs = (finder.find_spec(name, path) for finder in list(finders))
    return next((spec for spec in specs if spec is not None), None)


class RecipeFinder:
    """
    Finds the modules that recipes are made of, for one load of one folder.

    - The folder is a package. Its modules are executed again by each load, unless the load keeps them.
    - ``import helpers`` beside a recipe finds the module of the package (``recipes.helpers``), unless another
      module of that name can be imported: each exists once.
    - The modules of the recipes' project can be imported while the finder is installed. They are executed
      once, as everywhere in Python, until one of them changes: an edit of a recipe does not repeat what they
      do when they are imported.

    It derives from no class of `importlib.abc`, whose import is slow.

    Args:
        name:
            The name of the package.

        folder:
            Its folder.

        root:
            The project's folder.

        before:
            The finder of the last load of the same folder.

    Attributes:
        last:
            The finder of the last load, until the package is imported.

        executions:
            The modules of the package that were executed.

        project:
            The file of each module of the project, and its stamp when it was imported. The file is ``""`` for
            a folder without an ``__init__.py``.

        missing:
            The files of modules that were looked for in vain.

        has_lost:
            Whether modules of the project were removed that modules of the package may hold.
    """

    def __init__(self, name: str, folder: Path, root: str, before: "RecipeFinder | None" = None) -> None:
        self.name = name
        self.folder = folder
        self.root = root
        self.last: RecipeFinder | None = None
        self.executions = Executions()
        self.missing: set[str] = set() if before is None else set(before.missing)
        self.project: dict[str, tuple[str, Stamp | None]] = {} if before is None else dict(before.project)
        self.has_lost: bool = before is not None and before.has_lost
        self._siblings: set[str] = set()
        self._inside = os.path.join(str(folder), "")

    def install(self) -> None:
        """
        Begin to find modules.

        It stands before the finder for `sys.path`, and behind those of test runners. The project's folder is
        the last on the path.
        """
        at = sys.meta_path.index(PathFinder) if PathFinder in sys.meta_path else len(sys.meta_path)
        sys.meta_path.insert(at, self)
        if self.root not in sys.path:
            sys.path.append(self.root)

    def uninstall(self) -> None:
        """Stop. What was found beside the recipes is forgotten: another folder has its own."""
        with suppress(ValueError):
            sys.meta_path.remove(self)
        sys.path[:] = [place for place in sys.path if place is not self.root]  # an equal one is of others
        for name in [name for name in list(sys.modules) if name.partition(".")[0] in self._siblings]:
            del sys.modules[name]

    def find_spec(self, name: str, path: SearchPath = None, _: object = None) -> ModuleSpec | None:
        """Return how to import a module, or None if it is none of its own."""
        found = None
        if name == self.name:
            found = self._package_spec()
        elif path is not None and name.startswith(f"{self.name}."):
            found = self._inner_spec(name, path)
        elif self._is_sibling(name, path):
            if path is None and any(one.has_beside(name) for one in active_finders() if one is not self):
                msg = f"{name!r} lies beside the recipes of two targets: write 'from . import {name}'"
                raise ImportError(msg, name=name)
            found = ModuleSpec(name, self)  # type: ignore[arg-type]  # it has what imports ask for
        return found or self._project_spec(name, path)

    def _package_spec(self) -> ModuleSpec:
        init = f"{self._inside}__init__.py"
        loader = SourceLoader(self.name, init, self.executions) if os.path.isfile(init) else None
        spec = ModuleSpec(self.name, loader, origin=init if loader else None, is_package=True)
        spec.has_location = loader is not None
        spec.submodule_search_locations = [str(self.folder)]
        return spec

    def _inner_spec(self, name: str, path: Sequence[str]) -> ModuleSpec | None:
        """How to import a module of the package, if it is in the folder."""
        if not any(os.path.join(place, "").startswith(self._inside) for place in path):
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = SourceLoader(name, spec.loader.path, self.executions)
        return spec

    @property
    def has_changed(self) -> bool:
        """Whether the file of any module of the package has changed since it was executed."""
        return any(one.stamp != file_stamp(one.file) for one in self.executions if one.file)

    def imported_files(self) -> set[str]:
        """Return the paths of the files that all was made from, and of those that were looked for in vain."""
        files = {file for file, _ in list(self.project.values())} | self.missing
        for execution in self.executions:
            files.update((execution.file, *map(str, execution.read)))
        return files - {""}

    # Modules beside the recipes.

    def _is_sibling(self, name: str, path: SearchPath = None) -> bool:
        """Whether a module is one of the package that is called without its name."""
        if path is not None:
            return name.partition(".")[0] in self._siblings
        if not self.has_beside(name):
            return False
        # Another finder, or another folder of `sys.path`, may have a module of that name.
        places = [place for place in sys.path if place != self.root]
        others = [finder for finder in sys.meta_path if not isinstance(finder, RecipeFinder)]
        found = (finder.find_spec(name, places if finder is PathFinder else None) for finder in others)
        return all(spec is None for spec in found)

    def has_beside(self, name: str) -> bool:
        """Return whether a module of that name lies beside the recipes."""
        beside = self._inside + name
        return os.path.isfile(f"{beside}.py") or os.path.isdir(beside)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the package's own module in place of a sibling."""
        module = importlib.import_module(f"{self.name}.{spec.name}")
        spec.loader_state = module.__spec__
        self._siblings.add(spec.name.partition(".")[0])
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its own spec back. It has been executed already."""
        assert module.__spec__ is not None  # noqa: S101 (imports set it)
        module.__spec__ = module.__spec__.loader_state

    # Modules of the project.

    def _project_spec(self, name: str, path: SearchPath) -> ModuleSpec | None:
        """How to import a module of the project. The files are watched for of one that is not found."""
        top = name.partition(".")[0]
        if top == "promptkit" or top in sys.stdlib_module_names:
            return None
        if path is not None and not any(str(place).startswith(self.root) for place in path):
            return None
        # The finders behind this one, among them those of editable installations.
        spec = _first_spec(sys.meta_path[sys.meta_path.index(self) + 1 :], name, path)
        if spec is None:
            base = os.path.join(self.root, *name.split("."))
            self.missing |= {base, f"{base}.py", os.path.join(base, "__init__.py")}
            return None
        if (file := self._file_of(spec)) is not None:
            self.project[name] = file, file_stamp(file)
            if file:
                spec.loader = SourceLoader(name, file)
        return spec

    def _file_of(self, spec: ModuleSpec | None) -> str | None:
        """The file of a module of the project; `""` for a folder without an ``__init__.py``; else None."""
        if spec is not None and spec.loader is None:
            return "" if any(map(self._is_own, spec.submodule_search_locations or ())) else None
        if spec is not None and type(spec.loader) is SourceFileLoader and self._is_own(spec.loader.path):
            return spec.loader.path
        return None

    def _is_own(self, file: str) -> bool:
        """Whether a file is the author's own, and not installed somewhere in the project."""
        if not file.startswith(os.path.join(self.root, "")) or file.startswith(_STDLIB):
            return False
        return INSTALLED.isdisjoint(file.split(os.sep))

    @property
    def has_changed_project(self) -> bool:
        """Whether a module of the project has another file now, or one beside the recipes in its place."""
        found = list(self.project.items())  # a prompt may import another one meanwhile
        return any(stamp != file_stamp(file) or self._is_sibling(name) for name, (file, stamp) in found)

    def forget_project(self) -> None:
        """Remove the modules of the project, so that they are imported anew."""
        self._remove(set(self.project))

    def leave(self) -> None:
        """
        Remove the modules of the project that others cannot import now; all, if one has changed.

        What others can import from the same place stays: they may hold its classes.
        """
        self._remove(set(self.project) if self.has_changed_project else self._unreachable())

    def _remove(self, names: set[str]) -> None:
        for name in names:
            remove_module(name)
            del self.project[name]
        if names:
            module_records.forget_modules(names)
        self.has_lost = self.has_lost or bool(names)

    def _unreachable(self) -> set[str]:
        """The modules that cannot be imported from their files without this finder."""
        forget_folders()
        names = set[str]()
        for name in sorted(self.project):  # packages before what is in them
            parent = name.rpartition(".")[0]
            path = None if parent in names else getattr(sys.modules.get(parent), "__path__", None)
            spec = _first_spec(sys.meta_path, name, path) if path is not None or not parent else None
            if self._file_of(spec) != self.project[name][0]:
                names.add(name)
        return names
