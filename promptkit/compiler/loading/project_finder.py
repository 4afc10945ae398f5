"""Finds the modules of the project that recipes belong to, and notices when they change."""

import os
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeAlias

from promptkit.compiler.loading.finders import (
    Finder,
    SourceLoader,
    forget_folders,
    namespace_of,
    remove_module,
)
from promptkit.compiler.loading.watched_files import Stamp, stamp_of

__all__ = ["ProjectFinder", "project_finders", "successor"]

#: Folders of installed packages: these are not the author's own, even inside of the project.
_INSTALLED: Final = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")

#: The folder of Python's own modules, which may be inside of the project, too.
_STDLIB: Final = os.path.join(os.path.dirname(os.__file__), "")

#: What finders put into `sys.path`, one object for each folder: an equal one is somebody else's entry.
_entries: Final[dict[str, str]] = {}

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

    def install(self) -> None:
        """Make the project's folder importable, after all others."""
        super().install()
        if self.root not in sys.path:
            sys.path.append(_entries.setdefault(self.root, self.root))

    def uninstall(self) -> None:
        """Take what finders have put into `sys.path` out of it, also if somebody has put it back since."""
        super().uninstall()
        sys.path[:] = [
            place for place in sys.path if type(place) is not str or _entries.get(place) is not place
        ]

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
        file = self._file_of(spec)
        if spec is None:
            if not fullname.startswith(f"{self.package}."):
                self.unanswered.add((fullname, None if path is None else tuple(path)))
        elif file:
            self.stamps[fullname] = file, stamp_of(file)
            spec.loader = SourceLoader(fullname, file, again=fullname in self.again)
        elif file is not None:
            self.namespaces.add(fullname)
        return spec

    @property
    def has_changed(self) -> bool:
        """Whether the file of any imported module has changed."""
        return any(stamp != stamp_of(path) for path, stamp in list(self.stamps.values()))

    @property
    def is_answered(self) -> bool:
        """Whether any module can be found now that could not be found before."""
        return any(self._next_spec(name, path, None) for name, path in list(self.unanswered))

    @property
    def is_complete(self) -> bool:
        """Whether no module is gone that was removed: recipes may hold it still, and would get another."""
        return all(name in sys.modules for name in self.again)

    def note_missing(self, name: str) -> None:
        """Note that a module was not found, so that its files are watched for."""
        base = os.path.join(self.root, *name.split("."))
        self.missing |= {base, f"{base}.py", os.path.join(base, "__init__.py")}

    def mark_stale(self, name: str, path: str) -> None:
        """Note that an old module was restored, which the next load has to import anew."""
        self.stamps[name] = path, (0, 0, 0)

    def forget(self) -> None:
        """Remove the modules from `sys.modules`, so that they are imported anew."""
        self._remove({*self.stamps, *self.namespaces})

    def leave(self) -> None:
        """
        Remove what could only be imported while this finder was installed; all, if a file has changed.

        What others can import from the same place stays: they may hold its classes.
        """
        if self.has_changed:
            self.forget()
        else:
            self._remove(self._unreachable())

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            remove_module(name)
            self.stamps.pop(name, None)
            self.namespaces.discard(name)
            self.again.add(name)
        self.unanswered.clear()

    def _unreachable(self) -> set[str]:
        """The modules that cannot be imported from their files now."""
        forget_folders()
        names = set[str]()
        for name in sorted({*self.stamps, *self.namespaces}):  # packages before what is in them
            parent = name.rpartition(".")[0]
            path = None if parent in names else namespace_of(sys.modules.get(parent)).get("__path__")
            spec = _first_spec(sys.meta_path, name, path) if path is not None or not parent else None
            file = self.stamps[name][0] if name in self.stamps else ""
            if self._file_of(spec) != file:
                names.add(name)
        return names

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
        return _first_spec(sys.meta_path[sys.meta_path.index(self) + 1 :], name, path, target)

    def _file_of(self, spec: ModuleSpec | None) -> str | None:
        """The file of a module of the project; `""` for a folder without an ``__init__.py``; else None."""
        if spec is not None and spec.loader is None:
            return "" if any(map(self._is_ours, spec.submodule_search_locations or ())) else None
        if spec is not None and type(spec.loader) is SourceFileLoader and self._is_ours(spec.loader.path):
            return spec.loader.path
        return None

    def _is_ours(self, file: str) -> bool:
        if not file.startswith(os.path.join(self.root, "")) or file.startswith(_STDLIB):
            return False
        return not any(place in file for place in _INSTALLED)


#: The finders of recipes that others were loaded after.
_left: Final[dict[tuple[Path, str], ProjectFinder]] = {}


def project_finders(finders: Iterable[Finder]) -> list[ProjectFinder]:
    """Return those of *finders* that find modules of projects."""
    return [finder for finder in finders if isinstance(finder, ProjectFinder)]


def successor(
    installed: Iterable[Finder], package: str, folder: Path, root: str
) -> tuple[ProjectFinder, bool]:
    """
    Return the finder that takes the place of others, and whether one of them was of the same recipes.

    Args:
        installed:
            The finders of the last load, which are uninstalled. Those of other recipes leave.

        package:
            The name of the package of recipes.

        folder:
            Its folder.

        root:
            The project's folder.

    Returns:
        A finder that is not installed yet, and knows what an earlier one of the same recipes has imported.
    """
    places = {(finder.folder, finder.root): finder for finder in project_finders(installed)}
    last = places.pop((folder, root), None)
    for place, finder in places.items():
        left = ProjectFinder(finder.package, finder.folder, finder.root, finder)  # it may be restored
        left.leave()
        _left[place] = left
    return ProjectFinder(package, folder, root, last or _left.get((folder, root))), last is not None


def _first_spec(
    finders: Iterable[Any], name: str, path: Sequence[str] | None, target: ModuleType | None = None
) -> ModuleSpec | None:
    for finder in list(finders):
        spec: ModuleSpec | None = finder.find_spec(name, path, target)
        if spec is not None:
            return spec
    return None
