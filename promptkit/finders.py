"""Finders: what takes part in Python's imports while one folder of recipes is loaded."""

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.machinery import BYTECODE_SUFFIXES, ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeAlias

__all__ = [
    "Finder",
    "Project",
    "Siblings",
    "Sources",
    "finders",
    "namespace_of",
    "place_module",
    "remove_module",
]

#: The modules that have been executed, by name.
Executed: TypeAlias = dict[str, ModuleType]

#: Where installed packages lie, which are not the author's own even below a project's folder.
_INSTALLED: Final = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")

#: Where Python's own modules lie, which may be below a home folder.
_STDLIB: Final = os.path.join(os.path.dirname(os.__file__), "")

#: What tells one state of a file from another.
Stamp: TypeAlias = tuple[int, int, int]


def finders() -> "list[Finder]":
    """
    Return what this module has put into `sys.meta_path`.
    """
    return [finder for finder in sys.meta_path if isinstance(finder, Finder)]


def namespace_of(module: object) -> Mapping[str, Any]:
    """
    Return the names in a module, without running code of its own; none if it is no module.
    """
    if not issubclass(type(module), ModuleType):  # a proxy's `__class__` may run anything
        return {}
    names: dict[str, Any] = object.__getattribute__(module, "__dict__")
    return names


class Finder:
    """
    Takes part in imports as long as one package is the one that is loaded.

    It is of no class of `importlib.abc`, which brings archives, temporary files and random numbers.
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
        """
        Return how to import *fullname*; None if it is none of these modules.
        """
        raise NotImplementedError

    def enter(self) -> None:
        """
        Be asked from now on, before the folders of `sys.path`, and after what a test runner has put there.
        """
        at = sys.meta_path.index(PathFinder) if PathFinder in sys.meta_path else len(sys.meta_path)
        sys.meta_path.insert(at, self)

    def leave(self) -> None:
        """
        Be asked no more.
        """
        with suppress(ValueError):  # a recipe may have taken it out
            sys.meta_path.remove(self)


class Sources(Finder):
    """
    Finds the modules of a package, and notes which are executed, whatever they do to `sys.modules`.

    Args:
        package:
            Its name.

        folder:
            Where it is.

        again:
            Whether it was imported before, so that its bytecode may be stale.
    """

    def __init__(self, package: str, folder: Path, *, again: bool) -> None:
        super().__init__(package, folder)
        self.executed: Executed = {}
        self.read: set[str] = set()
        self._again = again
        self._within = (str(folder), f"{str(folder).rstrip(os.sep)}{os.sep}")

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """
        Return how to import *fullname*, if it is the package or in its folder.
        """
        folder, inside = self._within
        below = path is not None and any(place == folder or place.startswith(inside) for place in path)
        if not below and fullname != self.package:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = self.loader(fullname, spec.loader.path)
        return spec

    def loader(self, name: str, path: str) -> SourceFileLoader:
        """
        Return what loads the module in the file at *path*.
        """
        self.read.add(path)
        return _Loader(name, path, again=self._again, executed=self.executed)


class _Loader(SourceFileLoader):
    """
    Loads a module, perhaps without looking at its bytecode, which it writes for the next process.

    Python tells whether bytecode is stale by the whole second in which its source was written, and
    by its size. Edits may follow each other faster.
    """

    def __init__(self, name: str, path: str, *, again: bool, executed: Executed | None = None) -> None:
        super().__init__(name, path)
        self._again = again
        self._executed = executed

    def get_data(self, path: str) -> bytes:
        """
        Return the content of a file. Raises `OSError` for stale bytecode, as if there were none.
        """
        if self._again and path.endswith(tuple(BYTECODE_SUFFIXES)):
            raise FileNotFoundError(path)
        return super().get_data(path)

    def exec_module(self, module: ModuleType) -> None:
        """
        Execute the module, and note it if that went well.
        """
        # What is served for long must not keep alive all that was loaded with it.
        executed, self._executed = self._executed, None
        super().exec_module(module)
        if executed is not None:
            executed[self.name] = module


class Siblings(Finder):
    """
    Finds ``import helpers`` beside a recipe, where nothing else but the project has such a module.

    The module is the package's own (``recipes.helpers``), so that it exists once.

    Args:
        package:
            The name of the package.

        folder:
            Where it is.

        root:
            The project's folder, which is on `sys.path` behind all that counts more than siblings.
    """

    def __init__(self, package: str, folder: Path, root: str) -> None:
        super().__init__(package, folder)
        self.found: set[str] = set()
        self._root = root
        self._beside = os.path.join(str(folder), "")

    def leave(self) -> None:
        """
        Find nothing any more, and take back what was found: another folder has its own.
        """
        super().leave()
        for key in list(sys.modules):
            if key.partition(".")[0] in self.found:
                del sys.modules[key]

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """
        Return how to import *fullname*, if a file or folder beside the recipes is called so.
        """
        if path is not None:
            return None
        beside = self._beside + fullname
        if not (os.path.isfile(f"{beside}.py") or os.path.isdir(beside)) or self._is_elsewhere(
            fullname, target
        ):
            return None
        return ModuleSpec(fullname, self)  # type: ignore[arg-type]  # it has what imports ask for

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """
        Return the package's own module.
        """
        module = importlib.import_module(f"{self.package}.{spec.name}")
        self.own_spec = module.__spec__
        self.found.add(spec.name)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """
        Give the module its own name back; it has been executed already.
        """
        module.__spec__ = self.own_spec

    def _is_elsewhere(self, name: str, target: ModuleType | None) -> bool:
        """
        Return whether anything else has a module called *name*.
        """
        for finder in list(sys.meta_path):
            if isinstance(finder, Finder):
                continue
            places = [place for place in sys.path if place != self._root] if finder is PathFinder else None
            if finder.find_spec(name, places, target) is not None:
                return True
        return False


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
        Note a module of the project; return how to read it from its source, if it was imported before.
        """
        if not self._may_have(fullname, path):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if (
            spec is None
            or type(spec.loader) is not SourceFileLoader
            or not self._has(file := spec.loader.path)
        ):
            return None
        self.stamps[fullname] = file, _stamp(file)
        if fullname not in self.again:
            return None
        spec.loader = _Loader(fullname, file, again=True)
        return spec

    @property
    def has_changed(self) -> bool:
        """
        Whether any of the modules is no longer what was imported.
        """
        return any(stamp != _stamp(path) for path, stamp in list(self.stamps.values()))

    def adopt(self, name: str, path: str) -> None:
        """
        Have a module that was put back imported anew the next time.
        """
        self.stamps[name] = path, (0, 0, 0)

    def forget(self) -> None:
        """
        Take the modules out of `sys.modules`, so that they are imported anew.
        """
        for name in list(self.stamps):
            remove_module(name)
        self.again.update(self.stamps)
        self.stamps.clear()

    def _may_have(self, name: str, path: Sequence[str] | None) -> bool:
        """
        Return whether a module may be the project's, which is found out at little cost.
        """
        top = name.partition(".")[0]
        if top == "promptkit" or top in sys.stdlib_module_names:
            return False
        if path is not None:
            return any(place.startswith(self.root) for place in path)
        beside = os.path.join(self.root, name)
        return os.path.isfile(f"{beside}.py") or os.path.isdir(beside)

    def _has(self, file: str) -> bool:
        """
        Return whether *file* is the project's own, and none of the recipes.
        """
        if not file.startswith(os.path.join(self.root, "")) or file.startswith(os.path.join(self.folder, "")):
            return False
        return not file.startswith(_STDLIB) and not any(place in file for place in _INSTALLED)


def remove_module(name: str) -> None:
    """
    Take a module out of `sys.modules`, and out of the package that holds it.
    """
    module = sys.modules.pop(name, None)
    parent, _, child = name.rpartition(".")
    names = namespace_of(sys.modules.get(parent))
    if module is not None and names.get(child) is module:
        delattr(sys.modules[parent], child)


def place_module(name: str, module: ModuleType) -> None:
    """
    Put a module into `sys.modules`, and into the package that holds it.
    """
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if parent and issubclass(type(sys.modules.get(parent)), ModuleType):
        setattr(sys.modules[parent], child, module)


def _stamp(path: str) -> Stamp | None:
    """
    Return what tells a file from what it was before, None if it is not there.
    """
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
