"""One load of recipes: what it was made from, so that the next one can begin with what has not changed."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from promptkit.compiler.composition import CompiledFile
from promptkit.compiler.loading.loader import FolderImport, ModuleImport
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

    def changed(self, now: Stamps) -> set[str]:
        """
        Return the paths of the files that the next load has to look at: they have changed, or have errors.

        Args:
            now:
                The stamps of all files.
        """
        changed = {path for path, stamp in now.items() if self.stamps.get(path, UNKNOWN) != stamp}
        gone = (path for path in self.stamps.keys() - now.keys() if file_stamp(path) != self.stamps[path])
        return changed.union(gone, (str(one.file) for one in self.files if one.file and not one.is_sound))
