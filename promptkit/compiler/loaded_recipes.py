"""One load of recipes, and how the next one begins: with all of it that has not changed."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from promptkit.compiler.composition import CompiledFile
from promptkit.compiler.loading.loader import FolderImport, ModuleImport, begin
from promptkit.compiler.loading.watched_files import Stamps, stamp_of
from promptkit.compiler.recipes import Recipes

__all__ = ["UNKNOWN", "LoadedRecipes"]

#: Differs from the stamp of each file, whether it exists or not.
UNKNOWN: Final = (-1, -1, -1)


class LoadedRecipes(Struct):
    """One load: what was imported and compiled, and the stamps of the files that it was made from."""

    imports: FolderImport | ModuleImport
    recipes: Recipes
    files: Sequence[CompiledFile]
    stamps: Stamps = {}

    def begin_next(
        self, target: str, now: Stamps, importing: Callable[[Path], None]
    ) -> FolderImport | ModuleImport:
        """
        Begin to load the recipes again, as `promptkit.compiler.loading.loader.begin` does.

        Args:
            target:
                Where they are.

            now:
                The stamps of all files.

            importing:
                Called with each file before it is imported.

        Raises:
            LoadError: If there is nothing at the target any more.
        """
        if not isinstance(self.imports, FolderImport):
            return begin(target, importing)
        changed = self._changed(now)
        if self._has_same_files(now, changed):  # so the folder need not be listed
            return self.imports.again(importing, changed)
        return begin(target, importing, self.imports, changed)

    def _changed(self, now: Stamps) -> set[str]:
        """The paths of the files whose stamps differ *now*, and of those that have errors."""
        changed = {path for path, stamp in now.items() if self.stamps.get(path, UNKNOWN) != stamp}
        gone = (path for path in self.stamps.keys() - now.keys() if stamp_of(path) != self.stamps[path])
        faulty = (str(file.file) for file in self.files if file.file and not file.is_sound)
        return changed.union(gone, faulty)

    def _has_same_files(self, now: Stamps, changed: Collection[str]) -> bool:
        """Whether no file is new *now* or is gone, and those at *changed* are still files."""
        known = (self.stamps.get(path) not in {None, UNKNOWN} and Path(path).is_file() for path in changed)
        return self.stamps.keys() == now.keys() and all(known)
