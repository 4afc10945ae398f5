"""One load of recipes, and how the next one begins: with all of it that has not changed."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from promptkit.compiler.composition import CompiledFile
from promptkit.compiler.loading.loader import FolderImport, ModuleImport, begin
from promptkit.compiler.recipes import Recipes
from promptkit.errors.regular_files import Stamps, file_stamp

__all__ = ["UNKNOWN", "LoadedRecipes"]

#: Differs from the stamp of each file, whether it exists or not.
UNKNOWN: Final = (-1, -1, -1, -1)


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
        before = self.imports if isinstance(self.imports, FolderImport) else None
        changed = {path for path, stamp in now.items() if self.stamps.get(path, UNKNOWN) != stamp}
        changed.update(
            path for path in self.stamps.keys() - now.keys() if file_stamp(path) != self.stamps[path]
        )
        changed.update(str(file.file) for file in self.files if file.file and not file.is_sound)
        return begin(target, importing, before, changed)
