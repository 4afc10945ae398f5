"""Finders for `sys.meta_path`: they import a folder of recipes, and the modules beside them."""

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from importlib.machinery import BYTECODE_SUFFIXES, ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from promptkit.compiler.loading.executions import Execution, Executions, collecting
from promptkit.compiler.prompts import declared_prompts
from promptkit.errors.interruptions import call_interruptible, shielded
from promptkit.errors.regular_files import Stamp, file_stamp
from promptkit.language.files import files_read

__all__ = [
    "Finder",
    "PackageFinder",
    "SiblingFinder",
    "SourceLoader",
    "active_finders",
    "executed_code",
    "forget_folders",
    "import_state",
    "namespace_of",
    "place_module",
    "remove_module",
]


def active_finders() -> "list[Finder]":
    """Return the finders of this module that are in `sys.meta_path`."""
    installed: list[Any] = list(sys.meta_path)
    # An author's finder may have a `__class__` that raises anything.
    return [finder for finder in installed if issubclass(type(finder), Finder)]


def import_state() -> tuple[object, ...]:
    """Return what decides where modules are found, to be compared later."""
    ours = active_finders()
    roots = {root for finder in ours if (root := getattr(finder, "root", None)) is not None}
    return (
        tuple(place for place in sys.path if place not in roots),
        tuple(id(finder) for finder in sys.meta_path if finder not in ours),
        tuple(map(id, sys.path_hooks)),
    )


def executed_code(module: ModuleType) -> CodeType | None:
    """Return what was executed to make a module; None if that is not known, or if another loader did so."""
    name = str(namespace_of(module).get("__name__"))
    ours = (finder for finder in active_finders() if isinstance(finder, PackageFinder))
    found = (finder.executions.by_name.get(name) for finder in ours)
    return next((one.code for one in found if one is not None and one.module is module), None)


def forget_folders() -> None:
    """
    Have every folder read again that modules are imported from.

    Since Python 3.12, `importlib.invalidate_caches` imports `importlib.metadata` for that, which is slow.
    """
    for finder in list(sys.path_importer_cache.values()):
        if (invalidate := getattr(finder, "invalidate_caches", None)) is not None:
            invalidate()


def namespace_of(module: object) -> Mapping[str, Any]:
    """Return the names in a module without running its code; none if it is not a module."""
    if not issubclass(type(module), ModuleType):  # a proxy's `__class__` may run anything
        return {}
    names: dict[str, Any] = object.__getattribute__(module, "__dict__")
    return names


class Finder:
    """
    Takes part in imports while one package of recipes is loaded.

    It derives from no class of `importlib.abc`, whose import is slow.
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
        """Return how to import *fullname*, or None if it is not one of this finder's modules."""
        raise NotImplementedError

    def install(self) -> None:
        """Put it before the finder for `sys.path`, and after those of test runners."""
        at = sys.meta_path.index(PathFinder) if PathFinder in sys.meta_path else len(sys.meta_path)
        sys.meta_path.insert(at, self)

    def uninstall(self) -> None:
        """Take it out of `sys.meta_path`."""
        with suppress(ValueError):  # a recipe may have taken it out
            sys.meta_path.remove(self)


class PackageFinder(Finder):
    """
    Finds the modules of a package, and keeps those that were executed, whatever they do to `sys.modules`.

    Args:
        package:
            Its name.

        folder:
            Its folder.

        again:
            Whether it was imported before, so that its bytecode may be stale.
    """

    def __init__(self, package: str, folder: Path, *, again: bool) -> None:
        super().__init__(package, folder)
        self.executions = Executions()
        self.kept: AbstractSet[str] = frozenset()
        self.read: set[str] = set()
        self.stamps: dict[str, Stamp | None] = {}
        self._again = again
        self._within = (str(folder), f"{str(folder).rstrip(os.sep)}{os.sep}")

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return how to import *fullname*, if it is the package or in it, and in its folder."""
        folder, inside = self._within
        below = path is not None and any(place == folder or place.startswith(inside) for place in path)
        if fullname != self.package and not (below and fullname.startswith(f"{self.package}.")):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = self.loader(fullname, spec.loader.path)
        return spec

    def keep(self, executions: Executions, stamps: Mapping[str, Stamp | None]) -> None:
        """Take over what was executed before, and is not to be again. *stamps* are its files' of then."""
        self.executions, self.kept = executions, frozenset(executions.by_name)
        for file in {one.file for one in executions if one.file}:
            self.stamps[file] = stamps.get(file) or file_stamp(file)

    @property
    def has_changed(self) -> bool:
        """Whether the file of any module has changed since it was imported."""
        return any(stamp != file_stamp(path) for path, stamp in self.stamps.items())

    def loader(self, name: str, path: str) -> SourceFileLoader:
        """Return the loader of the module in the file at *path*."""
        self.read.add(path)
        self.stamps[path] = file_stamp(path)
        return SourceLoader(name, path, again=self._again, executions=self.executions)


class SourceLoader(SourceFileLoader):
    """
    Loads a module without using stale bytecode, and writes new bytecode for the next process.

    Python compares the whole second in which the source was written, and its size. But edits may follow
    each other faster, and tools may reset the time of a file.
    """

    def __init__(self, name: str, path: str, *, again: bool, executions: Executions | None = None) -> None:
        super().__init__(name, path)
        self._again = again
        self._executions = executions
        self._execution: Execution | None = None

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the code of the module, and note it if the module is about to be executed."""
        code = super().get_code(fullname)
        if self._execution is not None:
            self._execution.code = code
        return code

    def get_data(self, path: str) -> bytes:
        """Return the content of a file. Raises `OSError` for stale bytecode, as if it did not exist."""
        if path.endswith(tuple(BYTECODE_SUFFIXES)) and (self._again or self._is_stale(path)):
            raise FileNotFoundError(path)
        return super().get_data(path)

    def _is_stale(self, bytecode: str) -> bool:
        """Whether the source changed after its bytecode was written."""
        source, link = os.stat(self.path), os.lstat(self.path)
        changed = max(source.st_mtime_ns, source.st_ctime_ns, link.st_ctime_ns)
        return changed >= os.stat(bytecode).st_ctime_ns

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module, and note what it did."""
        # The loader lives as long as the module, and must not keep all others alive.
        executions, self._executions = self._executions, None
        if executions is None:
            call_interruptible(super().exec_module, module)
        else:
            shielded(self._execute, module, executions)  # a recipe may import it

    def _execute(self, module: ModuleType, executions: Executions) -> None:
        self._execution = execution = Execution(self.name, self.path)
        try:
            with collecting(declared_prompts, execution.made), collecting(files_read, execution.read):
                call_interruptible(super().exec_module, module)
            execution.module = module
        finally:
            self._execution = None
            executions.add(execution)


class SiblingFinder(Finder):
    """
    Finds ``import helpers`` beside a recipe, unless another module of that name can be imported.

    The module is the one of the package (``recipes.helpers``), and so are those below it: each exists once.

    Args:
        package:
            The name of the package.

        folder:
            Its folder.

        root:
            The project's folder, which is on `sys.path`. Siblings have precedence over it.
    """

    def __init__(self, package: str, folder: Path, root: str) -> None:
        super().__init__(package, folder)
        self.found: set[str] = set()
        self._root = root
        self._beside = os.path.join(str(folder), "")

    def uninstall(self) -> None:
        """Stop, and take what was found out of `sys.modules`: another folder has its own."""
        super().uninstall()
        for key in list(sys.modules):
            if key.partition(".")[0] in self.found:
                del sys.modules[key]

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return how to import *fullname*, if there is such a file or folder beside the recipes."""
        if path is not None:
            return self._spec(fullname) if fullname.partition(".")[0] in self.found else None
        beside = self._beside + fullname
        if not (os.path.isfile(f"{beside}.py") or os.path.isdir(beside)) or self._is_elsewhere(
            fullname, target
        ):
            return None
        return self._spec(fullname)

    def _spec(self, name: str) -> ModuleSpec:
        return ModuleSpec(name, self)  # type: ignore[arg-type]  # it has what imports ask for

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the package's own module."""
        module = importlib.import_module(f"{self.package}.{spec.name}")
        self.own_spec = module.__spec__
        self.found.add(spec.name.partition(".")[0])
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's own spec. It has been executed already."""
        module.__spec__ = self.own_spec

    def _is_elsewhere(self, name: str, target: ModuleType | None) -> bool:
        """Whether another finder, or another folder of `sys.path`, has a module of that name."""
        for finder in list(sys.meta_path):
            if issubclass(type(finder), Finder):
                continue
            places = [place for place in sys.path if place != self._root] if finder is PathFinder else None
            if finder.find_spec(name, places, target) is not None:
                return True
        return False


def remove_module(name: str) -> None:
    """Take a module out of `sys.modules`, and out of its parent package."""
    module = sys.modules.pop(name, None)
    parent, _, child = name.rpartition(".")
    names = namespace_of(sys.modules.get(parent))
    if module is not None and names.get(child) is module:
        delattr(sys.modules[parent], child)


def place_module(name: str, module: ModuleType) -> None:
    """Put a module into `sys.modules`, and into its parent package."""
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if parent and issubclass(type(sys.modules.get(parent)), ModuleType):
        setattr(sys.modules[parent], child, module)
