"""
The finder in `sys.meta_path` for the modules in a folder of recipes and in the recipes' project.

It records the modules' declarations, the modules' own files, and the files that they read. If one of these
files changes, the modules are imported again.
"""

import importlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from promptkit.declarations.base import Decorated, declarations
from promptkit.files.reading import (
    INSTALL_FOLDERS,
    MAX_SOURCE_BYTES,
    Stamp,
    TooLargeError,
    file_stamp,
    read_regular_file,
)
from promptkit.language.files import collecting, files_read

#: The search path of a module in a package; None for top-level modules.
SearchPath: TypeAlias = Sequence[str] | None

#: The folder of the standard library, which may be inside the project.
_STDLIB: Final = os.path.join(os.path.dirname(os.__file__), "")


#: The code of each file that this process has executed, by path, with the file's stamp before it was read.
_CODE: Final[dict[str, tuple[Stamp | None, CodeType]]] = {}


class Execution(Struct, eq=False):
    """
    The record of one executed module.

    Args:
        name:
            The module's full name.

        file:
            The path of the module's source; ``""`` if another loader executed the module.

        module:
            The module; None if its execution failed.

        declared:
            The module's own declarations, without those of modules that it imported.

        read_paths:
            The files that the module itself read, except for those that its imports read.

        stamp:
            The file's stamp when the module was executed.
    """

    name: str
    file: str = ""
    module: ModuleType | None = None
    declared: list[Decorated] = field(default_factory=list)
    read_paths: list[Path] = field(default_factory=list)
    stamp: Stamp | None = None


class Executions:
    """The executed modules of one package, keyed by name, and their declarations."""

    def __init__(self) -> None:
        self.by_name: dict[str, Execution] = {}
        self.declared: dict[str, tuple[Decorated, ...]] = {}

    def __iter__(self) -> Iterator[Execution]:
        return iter(list(self.by_name.values()))

    def module(self, name: str) -> ModuleType | None:
        """Return the module called *name*; None if it was not executed, or if its execution failed."""
        execution = self.by_name.get(name)
        return None if execution is None else execution.module

    def add(self, execution: Execution) -> None:
        """Record an execution. If a module was executed twice, its last successful execution counts."""
        by_module: dict[str, list[Decorated]] = {}
        for declaration in execution.declared:
            by_module.setdefault(declaration.__module__, []).append(declaration)
        for module, declared in by_module.items():
            self.declared[module] = (*self.declared.get(module, ()), *declared)
        if (earlier := self.by_name.get(execution.name)) is not None:
            execution.declared[:0] = earlier.declared
            execution.read_paths[:0] = earlier.read_paths
            execution.module = execution.module or earlier.module
        self.by_name[execution.name] = execution


class SourceLoader(SourceFileLoader):
    """
    Loads a module. Only the first import in this process uses its cached bytecode.

    To detect edits, Python compares only the source's size and its modification time in whole seconds, but a
    file can be edited twice within a second.

    Args:
        name:
            The module's full name.

        path:
            The module's file.

        executions:
            Receives the module's record, if the module belongs to a package of recipes.
    """

    def __init__(self, name: str, path: str, executions: Executions | None = None) -> None:
        super().__init__(name, path)
        self._executions = executions
        self._stamp = file_stamp(path)

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the module's code, which is compiled again only if the file has changed."""
        stamp, code = _CODE.get(self.path, (None, None))
        if code is None:
            code = super().get_code(fullname)
        elif stamp != self._stamp:
            code = self.source_to_code(self.get_data(self.path), self.path)
        if code is not None:
            _CODE[self.path] = self._stamp, code
        return code

    def get_data(self, path: str) -> bytes:
        """Return the content of a file. Raises ImportError if it is the module's source and is too large."""
        if path != self.path:
            return super().get_data(path)
        try:
            return read_regular_file(path, MAX_SOURCE_BYTES)
        except TooLargeError as error:
            msg = f"{error.strerror}, which is too large for a source file"
            raise ImportError(msg) from None

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module, and record its declarations and the files that it reads."""
        # Released, because the loader lives as long as the module.
        executions, self._executions = self._executions, None
        if executions is None:
            super().exec_module(module)
            return
        execution = Execution(self.name, self.path, stamp=self._stamp)
        try:
            with collecting(declarations, execution.declared), collecting(files_read, execution.read_paths):
                super().exec_module(module)
            execution.module = module
        finally:
            executions.add(execution)


def active_finders() -> "list[RecipeFinder]":
    """Return the finders of recipes in `sys.meta_path`."""
    return [finder for finder in sys.meta_path if isinstance(finder, RecipeFinder)]


def clear_folder_caches() -> None:
    """
    Clear Python's caches for the folders from which modules are imported.

    Since Python 3.12, `importlib.invalidate_caches` also imports `importlib.metadata`, which is slow.
    """
    for finder in list(sys.path_importer_cache.values()):
        if (invalidate := getattr(finder, "invalidate_caches", None)) is not None:
            invalidate()


def remove_module(name: str) -> None:
    """Remove a module from `sys.modules` and from its parent package."""
    module = sys.modules.pop(name, None)
    package, _, own = name.rpartition(".")
    parent = sys.modules.get(package)
    if isinstance(parent, ModuleType) and module is not None and vars(parent).get(own) is module:
        delattr(parent, own)


def add_module(name: str, module: ModuleType) -> None:
    """Add a module to `sys.modules` and to its parent package."""
    sys.modules[name] = module
    package, _, own = name.rpartition(".")
    if isinstance(parent := sys.modules.get(package), ModuleType):
        setattr(parent, own, module)


def _find_first_spec(finders: Iterable[Any], name: str, path: SearchPath) -> ModuleSpec | None:
    """Return the spec from the first finder that finds a module; None if none finds it."""
    specs = (finder.find_spec(name, path) for finder in list(finders))
    return next((spec for spec in specs if spec is not None), None)


class RecipeFinder:
    """
    A finder for recipe modules, for one load of one folder.

    - The folder is a package. Each load executes its modules again, unless it reuses them.
    - ``import helpers`` in a recipe finds the module in the package (``recipes.helpers``), so that each
      module exists only once. If any other module of that name can be imported, it has precedence.
    - The modules of the recipes' project can be imported while the finder is installed. As always in Python,
      they are executed only once, until one of them changes. Editing a recipe therefore does not repeat the
      side effects of importing them.

    The class does not derive from a class in `importlib.abc`, whose import is slow.

    Args:
        name:
            The name of the package.

        folder:
            The folder of the package.

        root:
            The project's folder.

        before:
            The finder of the last load of the same folder.

    Attributes:
        last:
            The finder of the last load; None once the package is imported.

        executions:
            The executed modules of the package.

        project:
            The file of each module of the project, and its stamp when it was imported. The file is ``""`` for
            a folder without an ``__init__.py``.

        missing:
            The files of modules that were not found.

        has_missing_modules:
            Whether modules of the project were removed although the package's modules may still refer to
            them.
    """

    def __init__(self, name: str, folder: Path, root: str, before: "RecipeFinder | None" = None) -> None:
        self.name = name
        self.folder = folder
        self.root = root
        self.last: RecipeFinder | None = None
        self.executions = Executions()
        self.missing: set[str] = set() if before is None else set(before.missing)
        self.project: dict[str, tuple[str, Stamp | None]] = {} if before is None else dict(before.project)
        self.has_missing_modules: bool = before is not None and before.has_missing_modules
        self._siblings: set[str] = set()
        self._folder_prefix = os.path.join(str(folder), "")

    def install(self) -> None:
        """
        Start finding modules.

        The finder is inserted before the finder for `sys.path` and after those of test runners. The project's
        folder is appended to `sys.path`.
        """
        index = sys.meta_path.index(PathFinder) if PathFinder in sys.meta_path else len(sys.meta_path)
        sys.meta_path.insert(index, self)
        if self.root not in sys.path:
            sys.path.append(self.root)

    def uninstall(self) -> None:
        """
        Stop finding modules. Remove the modules next to the recipes, because other folders can have the same.
        """
        # New lists, because an import on another thread that iterates over a list would skip an entry.
        sys.meta_path = [finder for finder in sys.meta_path if finder is not self]
        # Compared by identity, because an equal entry that is a different object was added by other code.
        sys.path = [entry for entry in sys.path if entry is not self.root]
        if self._siblings:
            for name in [name for name in list(sys.modules) if name.partition(".")[0] in self._siblings]:
                del sys.modules[name]

    def find_spec(self, name: str, path: SearchPath = None, _: object = None) -> ModuleSpec | None:
        """Return the spec of a module, or None if the finder is not responsible for it."""
        spec = None
        if name == self.name:
            spec = self._package_spec()
        elif path is not None and name.startswith(f"{self.name}."):
            spec = self._inner_spec(name, path)
        elif self._is_package_module(name, path):
            if path is None and any(
                finder.has_own_module(name) for finder in active_finders() if finder is not self
            ):
                msg = f"two targets have a module {name!r} next to recipes: write 'from . import {name}'"
                raise ImportError(msg, name=name)
            spec = ModuleSpec(name, self)  # type: ignore[arg-type]  # implements what imports use
        return spec or self._project_spec(name, path)

    def _package_spec(self) -> ModuleSpec:
        init = f"{self._folder_prefix}__init__.py"
        loader = SourceLoader(self.name, init, self.executions) if os.path.isfile(init) else None
        spec = ModuleSpec(self.name, loader, origin=init if loader else None, is_package=True)
        spec.has_location = loader is not None
        spec.submodule_search_locations = [str(self.folder)]
        return spec

    def _inner_spec(self, name: str, path: Sequence[str]) -> ModuleSpec | None:
        """Return the spec for a module in the package; None if the module is not in the folder."""
        if not any(os.path.join(entry, "").startswith(self._folder_prefix) for entry in path):
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = SourceLoader(name, spec.loader.path, self.executions)
        return spec

    @property
    def has_changed(self) -> bool:
        """Whether any file of the package has changed since its module was executed."""
        return any(
            execution.stamp != file_stamp(execution.file) for execution in self.executions if execution.file
        )

    def imported_files(self) -> set[str]:
        """Return the paths of all files that were imported, read, or not found by an import."""
        files = {file for file, _ in list(self.project.values())} | self.missing
        for execution in self.executions:
            files.update((execution.file, *map(str, execution.read_paths)))
        return files - {""}

    # Modules next to the recipes.

    def _is_package_module(self, name: str, path: SearchPath = None) -> bool:
        """Return whether a module that is imported without the package's name is in the package."""
        if path is not None:
            return name.partition(".")[0] in self._siblings
        if not self.has_own_module(name) or any(
            finder.name.partition(".")[0] == name for finder in active_finders()
        ):
            return False
        # Another finder, or another folder of `sys.path`, may have a module of that name.
        paths = [entry for entry in sys.path if entry != self.root]
        finders = [finder for finder in sys.meta_path if not isinstance(finder, RecipeFinder)]
        specs = (finder.find_spec(name, paths if finder is PathFinder else None) for finder in finders)
        return all(spec is None for spec in specs)

    def has_own_module(self, name: str) -> bool:
        """Return whether there is a module of this name next to the recipes."""
        base = self._folder_prefix + name
        return os.path.isfile(f"{base}.py") or os.path.isdir(base)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the package's module for an import without the package's name."""
        module = importlib.import_module(f"{self.name}.{spec.name}")
        spec.loader_state = module.__spec__
        self._siblings.add(spec.name.partition(".")[0])
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's own spec. The module has already been executed."""
        assert module.__spec__ is not None  # noqa: S101 (imports set it)
        module.__spec__ = module.__spec__.loader_state

    # Modules of the project.

    def _project_spec(self, name: str, path: SearchPath) -> ModuleSpec | None:
        """
        Return the spec of a module in the project. If none is found, record the files that could define it.
        """
        top = name.partition(".")[0]
        if top == "promptkit" or top in sys.stdlib_module_names:
            return None
        if path is not None and not any(str(place).startswith(self.root) for place in path):
            return None
        # Ask the finders after this one, including those of editable installations.
        spec = _find_first_spec(sys.meta_path[sys.meta_path.index(self) + 1 :], name, path)
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
        """
        Return the file of a module in the project, or None for any other module.

        The file is ``""`` for a folder without an ``__init__.py``.
        """
        if spec is not None and spec.loader is None:
            return "" if any(map(self._is_authors_file, spec.submodule_search_locations or ())) else None
        if (
            spec is not None
            and type(spec.loader) is SourceFileLoader
            and self._is_authors_file(spec.loader.path)
        ):
            return spec.loader.path
        return None

    def _is_authors_file(self, file: str) -> bool:
        """Return whether a file belongs to the author, and not to a package installed inside the project."""
        if not file.startswith(os.path.join(self.root, "")) or file.startswith(_STDLIB):
            return False
        return INSTALL_FOLDERS.isdisjoint(file.split(os.sep))

    @property
    def has_changed_project(self) -> bool:
        """Whether a module of the project has changed, or is shadowed by a module next to the recipes."""
        modules = list(self.project.items())  # copied, because a running prompt may import another module
        return any(
            stamp != file_stamp(file) or self._is_package_module(name) for name, (file, stamp) in modules
        )

    def remove_project_modules(self) -> None:
        """Remove the modules of the project, so that they are imported again."""
        self._remove_modules(set(self.project))

    def remove_unreachable_modules(self) -> None:
        """
        Remove the project's modules that only this finder can import, or all of them if one has changed.

        Modules that other finders can import from the same file are kept, because other code may use their
        classes.
        """
        self._remove_modules(
            set(self.project) if self.has_changed_project else self._find_unreachable_modules()
        )

    def _remove_modules(self, names: set[str]) -> None:
        for name in names:
            remove_module(name)
            del self.project[name]
        self.has_missing_modules = self.has_missing_modules or bool(names)

    def _find_unreachable_modules(self) -> set[str]:
        """Return the names of the modules that cannot be imported from their files without this finder."""
        clear_folder_caches()
        names = set[str]()
        for name in sorted(self.project):  # packages before their modules
            parent = name.rpartition(".")[0]
            path = None if parent in names else getattr(sys.modules.get(parent), "__path__", None)
            spec = _find_first_spec(sys.meta_path, name, path) if path is not None or not parent else None
            if self._file_of(spec) != self.project[name][0]:
                names.add(name)
        return names
