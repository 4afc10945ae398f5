"""The project around the recipes, whose modules they may import by their whole names."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Final, TypeAlias

from promptkit.compiler.loading.finders import Finder, Loader, remove_module

__all__ = ["Project"]

#: Where installed packages lie, which are not the author's own even below a project's folder.
_INSTALLED: Final = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")

#: Where Python's own modules lie, which may be below a home folder.
_STDLIB: Final = os.path.join(os.path.dirname(os.__file__), "")

#: What tells one state of a file from another.
Stamp: TypeAlias = tuple[int, int, int]


class Project(Finder):
    """
    Has the modules of the project that the recipes are part of importable, and reads them again.

    They are imported once, as everywhere in Python, and again only when one of them has changed:
    what they register elsewhere when they are imported is not registered at each edit of a recipe.

    Args:
        package:
            The name of the package of recipes.

        folder:
            Where that is.

        root:
            The project's folder.

        before:
            What was here for the last load of the same recipes.
    """

    def __init__(self, package: str, folder: Path, root: str, before: "Project | None" = None) -> None:
        super().__init__(package, folder)
        self.root = root
        self.stamps: dict[str, tuple[str, Stamp | None]] = {} if before is None else dict(before.stamps)
        self.again: set[str] = set() if before is None else set(before.again)
        self.namespaces: set[str] = set() if before is None else set(before.namespaces)
        self.missing: set[str] = set()
        self._has_added = False

    def enter(self) -> None:
        """
        Have modules found in the project's folder, behind all others.
        """
        super().enter()
        if self.root not in sys.path:
            sys.path.append(self.root)
            self._has_added = True

    def leave(self) -> None:
        """
        Leave `sys.path` as it was found.
        """
        super().leave()
        if self._has_added:
            self._has_added = False
            with suppress(ValueError):
                sys.path.remove(self.root)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """
        Note a module of the project, and return how to load it: from its source, if it was imported before.
        """
        if not self._may_have(fullname, path):
            return None
        spec = self._next_spec(fullname, path, target)
        if spec is not None and spec.loader is None:
            if any(map(self._has, spec.submodule_search_locations or ())):
                self.namespaces.add(fullname)  # a folder without an __init__.py
        elif spec is not None and type(spec.loader) is SourceFileLoader and self._has(spec.loader.path):
            file = spec.loader.path
            self.stamps[fullname] = file, _stamp(file)
            spec.loader = Loader(fullname, file, again=fullname in self.again)
        return spec

    @property
    def has_changed(self) -> bool:
        """
        Whether any of the modules is no longer what was imported.
        """
        return any(stamp != _stamp(path) for path, stamp in list(self.stamps.values()))

    def note_missing(self, name: str) -> None:
        """
        Note that a module was not found, wherever in the project it may be made.
        """
        base = os.path.join(self.root, *name.split("."))
        self.missing |= {base, f"{base}.py", os.path.join(base, "__init__.py")}

    def adopt(self, name: str, path: str) -> None:
        """
        Have a module that was put back imported anew the next time.
        """
        self.stamps[name] = path, (0, 0, 0)

    def forget(self) -> None:
        """
        Take the modules out of `sys.modules`, so that they are imported anew.
        """
        for name in (*self.stamps, *self.namespaces):
            remove_module(name)
        self.again.update(self.stamps)
        self.stamps.clear()
        self.namespaces.clear()

    def _may_have(self, name: str, path: Sequence[str] | None) -> bool:
        """
        Return whether a module may be the project's, which is found out at little cost.
        """
        top = name.partition(".")[0]
        if top == "promptkit" or top in sys.stdlib_module_names:
            return False
        return path is None or any(isinstance(place, str) and place.startswith(self.root) for place in path)

    def _next_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        """
        Return what the finders behind this one say, those of editable installations among them.
        """
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            if (spec := finder.find_spec(name, path, target)) is not None:
                return spec
        return None

    def _has(self, file: str) -> bool:
        """
        Return whether *file* is the project's own, and not installed.
        """
        if not file.startswith(os.path.join(self.root, "")) or file.startswith(_STDLIB):
            return False
        return not any(place in file for place in _INSTALLED)


def _stamp(path: str) -> Stamp | None:
    """
    Return what tells a file from what it was before, None if it is not there.
    """
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
