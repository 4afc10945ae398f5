"""An import of a folder of recipes, file by file, and what each file declares."""

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import Any, Final, TypeVar

from promptkit.compiler.loading.declarations import declared_in, named_declarations
from promptkit.compiler.loading.executions import Execution, collecting
from promptkit.compiler.loading.interpreter import exit_if_forked, raise_if_interrupted
from promptkit.compiler.loading.packages import Package, import_package, note_missing, read_files
from promptkit.compiler.prompts import Prompt, declared_prompts
from promptkit.compiler.recipes import LoadedFile, Recipes
from promptkit.errors.diagnostics import Diagnostic
from promptkit.language.files import files_read

__all__ = ["FolderImport", "fault_of", "ignore"]

T = TypeVar("T")

#: How long an import waits for another one to end, in seconds.
_PATIENCE_S: Final = 0.1


def ignore(_: Path) -> None:
    """Do nothing with a file that is about to be imported."""


class FolderImport:
    """
    An import of a folder's recipes that has begun: each file is imported when it is asked for.

    Any thread may ask. The files are imported one at a time, but for one whose import takes long: it delays
    the others by a moment.

    Args:
        folder:
            The folder, whose files become modules of one package.

        files:
            The recipe files, in order.

        importing:
            Called with each file before it is imported. If it raises, the file is not imported, and
            the error is reported as an error of the file.

        attribute:
            What to take of the only file; ``""`` for all that it declares.

        unreadable:
            Files that cannot be read, and why.

        root:
            The folder, if it is the target.
    """

    def __init__(  # noqa: PLR0913 (they are the ways to name recipes)
        self,
        folder: Path,
        files: Sequence[Path],
        importing: Callable[[Path], None] = ignore,
        attribute: str = "",
        *,
        unreadable: Iterable[LoadedFile] = (),
        root: Path | None = None,
    ) -> None:
        self.files = tuple(files)
        self.folder = folder
        self._importing = importing
        self._attribute = attribute
        self._unreadable = tuple(unreadable)
        self._root = root
        self._lock = RLock()  # a recipe may ask for another one
        self.package: Package | LoadedFile | None = None
        self._found: dict[Path, ModuleType | LoadedFile] = {}
        self.declared: dict[Path, LoadedFile] = {}
        self._names: dict[Path, str] = {}
        self._recipes: set[str] = set()
        self._before: FolderImport | None = None
        self._changed: frozenset[str] = frozenset()

    def reuse(self, before: "FolderImport", changed: Iterable[str]) -> None:
        """
        Use modules again that an earlier import of the folder has executed. To be called first.

        Args:
            before:
                The earlier import, which is finished, and whose modules are still in `sys.modules`.

            changed:
                The paths of all files that have changed since it began, or that are to be imported
                anew for other reasons. What failed then is tried again in any case.
        """
        if before.folder == self.folder:
            self._before, self._changed = before, frozenset(changed)

    def load(self, file: Path) -> LoadedFile:
        """
        Import one of the files, and what that imports, unless it is imported already.

        Returns:
            What the file declares. What cannot be imported has a diagnostic.
        """
        alone = self._lock.acquire(timeout=_PATIENCE_S)
        try:
            self._import(file)
            return self._declared_in(file)
        finally:
            if alone:
                self._lock.release()

    def finish(self) -> Recipes:
        """
        Import the files that are left, and return what all declare.

        Raises:
            LoadError: If there is no such object in the file.
        """
        with self._lock:
            for file in self.files:
                self._import(file)
            by_file = [*map(self._declared_in, self.files), *self._unreadable]
            self._before, self._importing = None, ignore  # neither is kept alive
            # Most are recipes, and paths are slow to make.
            read = {*self.files, *map(Path, read_files().difference(map(str, self.files)))}
            if isinstance(package := self._open_package(), LoadedFile):
                read.add(self.folder / "__init__.py")
                by_file.append(package)
            elif self._attribute and isinstance(module := self._found[self.files[0]], ModuleType):
                target = f"{self.files[0]}:{self._attribute}"
                return named_declarations(target, self.files[0], module, self._attribute, read)
            return Recipes(by_file=sorted(by_file, key=lambda one: str(one.file)), root=self._root, read=read)

    def _import(self, file: Path) -> None:
        if file in self._found:
            return
        package = self._open_package()
        if isinstance(package, LoadedFile):
            self._found[file] = LoadedFile(file, diagnostics=package.diagnostics)
            return
        name = self._names[file]
        if name in package.kept and (module := package.executions.module(name)) is not None:
            self._found[file] = module
            return
        execution = Execution(name)
        self._found[file] = found = self._attempt(file, partial(package.import_file, file.stem), execution)
        if execution.made or execution.read:  # by a module that another loader has executed
            package.executions.add(execution)
        if isinstance(found, LoadedFile):
            self._recipes.discard(name)

    def _open_package(self) -> Package | LoadedFile:
        """The package, imported when it is first needed; or why it cannot be imported."""
        if self.package is None:
            before, call = self._before, partial(import_package, self.folder)
            if before is not None and isinstance(before.package, Package):
                call = partial(call, before.package, self._changed.union(before.failed))
            init = self.folder / "__init__.py"
            self.package = package = self._attempt(init, call, Execution(init.stem))
            if isinstance(package, Package):
                self._names = {file: f"{package.name}.{file.name[:-3]}" for file in self.files}
                self._recipes = set(self._names.values())
        return self.package

    def prepare_reuse(self) -> None:
        """Find out what depends on what, so that the next import need not do so."""
        if isinstance(self.package, Package):
            self.package.executions.find_imports(self.package.name)

    @property
    def failed(self) -> set[str]:
        """The paths of the files that could not be imported."""
        return {str(file) for file, found in self._found.items() if isinstance(found, LoadedFile)}

    def made_of(self, name: str) -> list[Prompt[..., Any]]:
        """The prompts that were made of functions of a module."""
        return self.package.executions.made.get(name, []) if isinstance(self.package, Package) else []

    def _attempt(self, file: Path, call: Callable[[], T], execution: Execution) -> T | LoadedFile:
        """Import *file* by calling *call*; an error becomes a diagnostic of the file."""
        process = os.getpid()
        try:
            with collecting(declared_prompts, execution.made), collecting(files_read, execution.read):
                self._importing(file)
                return call()
        except BaseException as error:  # noqa: BLE001 (a recipe may raise anything)
            exit_if_forked(process)
            raise_if_interrupted(error)
            note_missing(error)
            return LoadedFile(file, diagnostics=(fault_of(file, self.folder, error),))
        finally:
            exit_if_forked(process)

    def _declared_in(self, file: Path) -> LoadedFile:
        """What a file declares that was imported. What is as before is the same object."""
        package, found = self._open_package(), self._found[file]
        if isinstance(found, LoadedFile) or isinstance(package, LoadedFile):
            return found if isinstance(found, LoadedFile) else LoadedFile(file)
        name, before = self._names[file], self._before
        if before is not None and name in package.kept and before.made_of(name) == self.made_of(name):
            declared = before.declared[file]
        else:
            declared = declared_in(file, found, name, self._recipes, package.executions.made)
        self.declared[file] = declared
        return declared


def fault_of(file: Path, folder: Path | None, error: BaseException) -> Diagnostic:
    """Return the diagnostic for a recipe that raised *error*."""
    from promptkit.compiler.loading import import_errors  # only a broken recipe needs it

    return import_errors.fault_of(file, folder, error)
