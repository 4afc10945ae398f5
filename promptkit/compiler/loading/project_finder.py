"""Finds the modules of the project that recipes belong to, and notices when they change."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Final, TypeAlias

from promptkit.compiler.loading.finders import Finder, SourceLoader, remove_module
from promptkit.compiler.loading.watched_files import Stamp, stamp_of

__all__ = ["ProjectFinder"]

#: Folders of installed packages: these are not the author's own, even inside of the project.
_INSTALLED: Final = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")

#: The folder of Python's own modules, which may be inside of the project, too.
_STDLIB: Final = os.path.join(os.path.dirname(os.__file__), "")


#: What was looked for: the name of a module, and where.
Question: TypeAlias = tuple[str, tuple[str, ...] | None]


class ProjectFinder(Finder):
    """
    Makes the modules of the recipes' project importable, and imports them anew when one of them changed.

    Otherwise they are imported once, as everywhere in Python: an edit of a recipe does not repeat what
    they do when they are imported.

    Args:
        package:
            The name of the package of recipes.

        folder:
            Its folder.

        root:
            The project's folder.

        before:
            The finder of the last load of the same recipes.
    """

    def __init__(self, package: str, folder: Path, root: str, before: "ProjectFinder | None" = None) -> None:
        super().__init__(package, folder)
        self.root = root
        self.stamps: dict[str, tuple[str, Stamp | None]] = {} if before is None else dict(before.stamps)
        self.again: set[str] = set() if before is None else set(before.again)
        self.namespaces: set[str] = set() if before is None else set(before.namespaces)
        self.missing: set[str] = set()
        self.unanswered: set[Question] = set() if before is None else set(before.unanswered)
        self._is_on_path = False

    def install(self) -> None:
        """Make the project's folder importable, after all others."""
        super().install()
        if self.root not in sys.path:
            sys.path.append(self.root)
            self._is_on_path = True

    def uninstall(self) -> None:
        """Leave `sys.path` as it was."""
        super().uninstall()
        if self._is_on_path:
            self._is_on_path = False
            with suppress(ValueError):
                sys.path.remove(self.root)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return how to load a module of the project; from source, if it was imported before."""
        if not self._may_be_ours(fullname, path):
            return None
        spec = self._next_spec(fullname, path, target)
        if spec is None and not fullname.startswith(f"{self.package}."):
            self.unanswered.add((fullname, None if path is None else tuple(path)))
        elif spec is not None and spec.loader is None:
            if any(map(self._is_ours, spec.submodule_search_locations or ())):
                self.namespaces.add(fullname)  # a folder without an __init__.py
        elif spec is not None and type(spec.loader) is SourceFileLoader and self._is_ours(spec.loader.path):
            file = spec.loader.path
            self.stamps[fullname] = file, stamp_of(file)
            spec.loader = SourceLoader(fullname, file, again=fullname in self.again)
        return spec

    @property
    def has_changed(self) -> bool:
        """Whether the file of any imported module has changed."""
        return any(stamp != stamp_of(path) for path, stamp in list(self.stamps.values()))

    @property
    def is_answered(self) -> bool:
        """Whether any module can be found now that could not be found before."""
        return any(self._next_spec(name, path, None) for name, path in list(self.unanswered))

    def note_missing(self, name: str) -> None:
        """Note that a module was not found, so that its files are watched for."""
        base = os.path.join(self.root, *name.split("."))
        self.missing |= {base, f"{base}.py", os.path.join(base, "__init__.py")}

    def mark_stale(self, name: str, path: str) -> None:
        """Note that an old module was restored, which the next load has to import anew."""
        self.stamps[name] = path, (0, 0, 0)

    def forget(self) -> None:
        """Remove the modules from `sys.modules`, so that they are imported anew."""
        for name in (*self.stamps, *self.namespaces):
            remove_module(name)
        self.again.update(self.stamps)
        self.stamps.clear()
        self.unanswered.clear()
        self.namespaces.clear()

    def _may_be_ours(self, name: str, path: Sequence[str] | None) -> bool:
        """A cheap test that rules out most other modules."""
        top = name.partition(".")[0]
        if top == "promptkit" or top in sys.stdlib_module_names:
            return False
        return path is None or any(isinstance(place, str) and place.startswith(self.root) for place in path)

    def _next_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        """Ask the finders behind this one, among them those of editable installations."""
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            if (spec := finder.find_spec(name, path, target)) is not None:
                return spec
        return None

    def _is_ours(self, file: str) -> bool:
        if not file.startswith(os.path.join(self.root, "")) or file.startswith(_STDLIB):
            return False
        return not any(place in file for place in _INSTALLED)
