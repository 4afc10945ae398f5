"""An import of a folder of recipes, file by file, and what each file declares."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import Final, TypeVar

from promptkit.compiler.loading.declarations import MadePrompts, declared_in, named_declarations
from promptkit.compiler.loading.executions import Execution, collecting
from promptkit.compiler.loading.interpreter import exit_if_forked, raise_if_interrupted
from promptkit.compiler.loading.packages import Package, import_package, note_missing, read_files
from promptkit.compiler.loading.recipe_files import mentions_prompts
from promptkit.compiler.loading.recipe_search import FoundFiles
from promptkit.compiler.prompts import declared_prompts
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

        names:
            The paths of the recipe files within it, in order.

        importing:
            Called with each file before it is imported. If it raises, the file is not imported, and
            the error is reported as an error of the file.

        attribute:
            What to take of the only file; ``""`` for all that it declares.

        found:
            All that was found in the folder, if it is the target.

        keep:
            As for `promptkit.compiler.loading.packages.import_package`.

        before:
            An earlier import, which is finished, and whose modules are still in `sys.modules`. They are used
            again if it was of the same folder.

        changed:
            The paths of all files that have changed since *before* began, or that are to be imported
            anew for other reasons. What failed then is tried again in any case.
    """

    def __init__(  # noqa: PLR0913 (they are the ways to name recipes)
        self,
        folder: Path,
        names: Sequence[str],
        importing: Callable[[Path], None] = ignore,
        attribute: str = "",
        *,
        found: FoundFiles | None = None,
        keep: bool = False,
        before: "FolderImport | None" = None,
        changed: Iterable[str] = (),
    ) -> None:
        self.names = tuple(names)
        self.folder = folder
        self._importing = importing
        self._attribute = attribute
        self._files = found
        self._keep = keep
        self._lock = RLock()  # a recipe may ask for another one
        self.package: Package | LoadedFile | None = None
        # By the names of the files without their suffix, as all below: paths are slow to look up.
        self._found: dict[str, ModuleType | LoadedFile] = {}
        self.declared: dict[str, LoadedFile] = {}
        self._recipes: set[str] = set()
        self._before = before if before is not None and before.folder == folder else None
        self._changed = frozenset(changed)
        # With what follows the package's name in that of the module: .ops.deploy of ops/deploy.
        self.stems: dict[str, str] = {}
        if self._before is not None and self._before.names == self.names:
            self.names, self.stems = self._before.names, self._before.stems
        else:
            self.stems = {name[:-3]: _module_below(name) for name in self.names}
        # Each is made once, and not before it is needed: paths are slow to make.
        self.paths: dict[str, Path] = {} if self._before is None else self._before.paths

    def again(self, importing: Callable[[Path], None], changed: Iterable[str]) -> "FolderImport":
        """Begin another import of the same files: the parameters are those of the class."""
        return FolderImport(
            self.folder,
            self.names,
            importing,
            self._attribute,
            found=self._files,
            before=self,
            changed=changed,
        )

    def load(self, name: str) -> LoadedFile:
        """
        Import the file of that name, and what it imports, unless it is imported already.

        Returns:
            What the file declares. What cannot be imported has a diagnostic.
        """
        alone = self._lock.acquire(timeout=_PATIENCE_S)
        try:
            stem = name[:-3]
            self._import(stem)
            return self._declared_in(stem)
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
            package = self._open_package()
            for stem in self.stems:
                if stem not in self._found:
                    self._import(stem)
            by_file = [*self._declare(), *(() if self._files is None else self._files.unreadable)]
            read, read_before = self._read()
            if isinstance(package, LoadedFile):
                by_file.append(package)
            elif self._attribute:
                by_file = [self._named(one) for one in by_file]
            by_file += self._unserved(by_file)
            self._before, self._importing = None, ignore  # neither is kept alive
            by_file.sort(key=lambda one: str(one.file))
            root = None if self._files is None else self._files.root
            return Recipes(by_file=by_file, root=root, read=read, read_before=read_before)

    def name_of(self, file: Path) -> str:
        """Return the path of a file within the folder."""
        return str(file).removeprefix(os.path.join(str(self.folder), ""))

    def _file(self, stem: str) -> Path:
        if (file := self.paths.get(stem)) is None:
            file = self.paths[stem] = self.folder / f"{stem}.py"
        return file

    def _import(self, stem: str) -> None:
        package = self._open_package()
        if stem in self._found:
            return
        file = self._file(stem)
        if isinstance(package, LoadedFile):
            self._found[stem] = LoadedFile(file, diagnostics=package.diagnostics)
            return
        name = package.name + self.stems[stem]
        execution = Execution(name)
        self._found[stem] = found = self._attempt(file, partial(package.import_file, name, file), execution)
        if execution.made or execution.read:  # by a module that another loader has executed
            package.executions.add(execution)
        if isinstance(found, LoadedFile):
            self._recipes.discard(name)

    def _open_package(self) -> Package | LoadedFile:
        """The package, imported when it is first needed; or why it cannot be imported."""
        if self.package is None:
            before, call = self._before, partial(import_package, self.folder, keep=self._keep)
            if before is not None and isinstance(before.package, Package):
                call = partial(call, before.package, self._changed.union(before.failed))
            init = self.folder / "__init__.py"
            self.package = package = self._attempt(init, call, Execution(init.stem))
            if isinstance(package, Package):
                self._recipes = {package.name + name for name in self.stems.values()}
                kept = {name: package.executions.module(name) for name in package.kept & self._recipes}
                self._found = {
                    stem: module
                    for stem, name in self.stems.items()
                    if (module := kept.get(package.name + name)) is not None
                }
        return self.package

    def prepare_reuse(self) -> None:
        """Find out what depends on what, so that the next import need not do so."""
        if isinstance(self.package, Package):
            self.package.graph()

    @property
    def failed(self) -> set[str]:
        """The paths of the files that could not be imported."""
        return {str(self._file(stem)) for stem in self.stems if isinstance(self._found.get(stem), LoadedFile)}

    @property
    def made(self) -> MadePrompts:
        """The prompts that were made, by the module of the function that each was made of."""
        return self.package.executions.made if isinstance(self.package, Package) else {}

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

    def _declare(self) -> list[LoadedFile]:
        """What each file declares. What is as before is the same object."""
        same: Mapping[str, LoadedFile] = {}
        if self._before is not None and isinstance(self.package, Package):
            now, then, kept, package = self.made, self._before.made, self.package.kept, self.package.name
            declared = self._before.declared
            same = {
                stem: declared[stem]
                for stem, module in self.stems.items()
                if (name := package + module) in kept and now.get(name, ()) == then.get(name, ())
            }
        self.declared = {stem: same.get(stem) or self._declared_in(stem) for stem in self.stems}
        return list(self.declared.values())

    def _declared_in(self, stem: str) -> LoadedFile:
        package, found, file = self._open_package(), self._found[stem], self._file(stem)
        if isinstance(found, LoadedFile) or isinstance(package, LoadedFile):
            return found if isinstance(found, LoadedFile) else LoadedFile(file)
        return declared_in(
            file, found, package.name + self.stems[stem], self._recipes, self.made, package=package.name
        )

    def _named(self, loaded: LoadedFile) -> LoadedFile:
        """What the target names of its only file, unless that cannot be imported."""
        (found,) = self._found.values()
        file = loaded.file
        if file is None or not isinstance(found, ModuleType):
            return loaded
        return named_declarations(f"{file}:{self._attribute}", file, found, self._attribute)

    def _unserved(self, by_file: Iterable[LoadedFile]) -> list[LoadedFile]:
        """The files that define prompts, are no recipes, and whose prompts no recipe imports."""
        others = () if self._files is None else self._files.others
        faults = {path: fault for path in others if (fault := _unserved_prompts(path)) is not None}
        if not faults:
            return []
        served = {one.location.file for file in by_file for one in file.prompts}
        served.update(one.location.file for file in by_file for one in file.resources)
        served.update(str(file.file) for file in by_file)  # a package that cannot be imported
        return [LoadedFile(Path(path), diagnostics=(faults[path],)) for path in faults.keys() - served]

    def _read(self) -> tuple[set[str], set[str]]:
        """The paths of the files that this import has read, and of those that only an earlier one has."""
        read, read_before = read_files()
        if isinstance(self.package, LoadedFile):
            read.add(str(self.folder / "__init__.py"))
        kept, package = frozenset[str](), ""
        if isinstance(self.package, Package):
            kept, package = self.package.kept, self.package.name
        read.update(str(self._file(stem)) for stem, name in self.stems.items() if package + name not in kept)
        return read, read_before - read


def _module_below(name: str) -> str:
    """What is added to the package's name: nothing for its own file."""
    return "" if name == "__init__.py" else f".{name[:-3].replace(os.sep, '.')}"


def _unserved_prompts(path: str) -> Diagnostic | None:
    if not mentions_prompts(path):
        return None
    from promptkit.compiler.loading.unserved import unserved_prompts  # few files have such a fault

    return unserved_prompts(path)


def fault_of(file: Path, folder: Path | None, error: BaseException) -> Diagnostic:
    """Return the diagnostic for a recipe that raised *error*."""
    from promptkit.compiler.loading import import_errors  # only a broken recipe needs it

    return import_errors.fault_of(file, folder, error)
