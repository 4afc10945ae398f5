"""
The loader: imports the recipes in a folder, a file or a module, and collects what they declare.

No other module imports authors' code. An error in one recipe becomes a diagnostic, and the other
recipes are loaded all the same.
"""

import importlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from promptkit.declarations.prompts import Prompt, declared_prompts
from promptkit.errors.exceptions import LoadError
from promptkit.loader.discovery import FoundFiles, find_recipes, is_cases
from promptkit.loader.finder import RecipeFinder
from promptkit.loader.import_errors import fault_of
from promptkit.loader.importing import FolderImport, do_nothing
from promptkit.loader.module_records import collecting
from promptkit.loader.packages import install_finders
from promptkit.loader.recipes import LoadedFile, Recipes, declared_in, named_declarations
from promptkit.loader.targets import Targets, is_within, project_root, split_target, suggest, targets_of


def load(target: Targets, *, importing: Callable[[Path], None] = do_nothing, cases: bool = False) -> Recipes:
    """
    Import the recipes at *target* and return what they declare.

    A module that is imported already, by anybody, is used as it is: a test may have patched it. If a file has
    changed since it was imported here, everything is imported anew.

    Args:
        target:
            A folder, whose ``*.py`` files are the recipes, and those below it, except for tests and for what
            begins with ``_``; a file; a dotted module; or ``module:object`` or ``file.py:object``, where the
            object is a prompt, a resource, or several. Or several of these.

        importing:
            Called with each file of a folder before it is imported.

        cases:
            Whether the ``cases_*.py`` files beside the recipes are imported, too.

    Raises:
        LoadError: If there is no such folder, file, module or object, or one target lies in another.
    """
    return begin(target, importing, keep=True, cases=cases).finish()


def begin(
    target: Targets,
    importing: Callable[[Path], None] = do_nothing,
    *,
    keep: bool = False,
    cases: bool = False,
    skills: Iterable[str] = (),
) -> "RecipeImport":
    """
    Begin to load the recipes at *target*: its files are known, and imported when they are asked for.

    Args:
        target:
            As for `load`.

        importing:
            Called with each file of a folder before it is imported. If it raises, the file is not
            imported, and the error is reported as an error of the file.

        keep:
            Whether modules that are imported already are used, as `load` does.

        cases:
            As for `load`.

        skills:
            As for `FolderImport`.

    Raises:
        LoadError: If there is no such folder or file, or one target lies in another.
    """
    places = dict[str, _Folder]()
    others = [one for one in targets_of(target) or ("",) if not _add_place(one, places)]
    finders = list[RecipeFinder]()
    modules = [_module_in(one, importing, finders, cases=cases) for one in others]
    if places:
        finders += install_finders([Path(folder) for folder in places])
    named = [[*one.names, *(_cases_in(folder, one) if cases else ())] for folder, one in places.items()]
    begun = partial(FolderImport, importing=importing, keep=keep, cases=cases, skills=skills)
    folders = [
        begun(finder, names, named=one.named, found=one.found)
        for finder, names, one in zip(finders, named, places.values(), strict=True)
    ]
    return RecipeImport((*folders, *modules))


class _Folder(Struct):
    """What of a folder is loaded: all that was found in it, or some files."""

    target: str
    names: list[str] = []
    named: dict[str, str] = {}
    found: FoundFiles | None = None


def _add_place(target: str, places: dict[str, _Folder]) -> bool:
    """Add the folder or the file that a target names to those that are loaded; return whether it is one."""
    if not target:
        raise LoadError(target, "name a folder, a file or a module")
    name, attribute = split_target(target)
    try:
        path = os.path.realpath(name)
    except (OSError, ValueError) as error:  # the current folder is gone, or this is not a valid path
        raise LoadError(target, f"it cannot be found: {error}") from None
    is_folder = os.path.isdir(path)
    if not is_folder and not os.path.isfile(path):
        return False
    if not is_folder and not path.endswith(".py"):
        raise LoadError(target, "it is not a Python file: name one, or a folder of them")
    _check_apart(target, path, places)
    if is_folder:
        found = _found_in(path, target)
        places[path] = _Folder(target, [*found.names], found=found)
    else:
        folder, file = os.path.split(path)
        one = places.setdefault(folder, _Folder(target))
        one.names.append(file)
        one.named[file] = attribute
    return True


def _cases_in(folder: str, one: _Folder) -> Iterable[str]:
    """The files with cases of the recipes in a folder."""
    if one.found is not None:
        return one.found.cases
    return sorted({*filter(is_cases, os.listdir(folder))}.difference(one.names))


def _check_apart(target: str, path: str, places: Mapping[str, _Folder]) -> None:
    """Raise LoadError if a target has files that another one has, which would be imported twice."""
    for folder, other in places.items():
        taken = [folder] if other.found is not None else [os.path.join(folder, name) for name in other.names]
        if any(is_within(path, one) or is_within(one, path) for one in taken):
            raise LoadError(target, f"{other.target!r} has files of it, too: name one of the two")


def _module_in(
    target: str, importing: Callable[[Path], None], beside: list[RecipeFinder], *, cases: bool
) -> "ModuleImport":
    name, attribute = split_target(target)
    if name.endswith(".py") or os.sep in name or "/" in name:
        raise LoadError(target, f"there is no such file or folder{suggest(name)}")
    return ModuleImport(target, name, attribute, importing, beside, cases)


class RecipeImport(Struct, frozen=True):
    """
    An import of all targets, which become one set of recipes.

    Args:
        parts:
            The imports of folders, each with the files of it that are targets, and of modules.
    """

    parts: "tuple[FolderImport | ModuleImport, ...]"

    def finish(self) -> Recipes:
        """
        Import what is left, and return what all declare.

        Raises:
            LoadError: If there is no such module, or no such object in a file or module.
        """
        found = [part.finish() for part in self.parts]
        by_file = (loaded for recipes in found for loaded in recipes.by_file)
        read = frozenset[str]().union(*(recipes.read for recipes in found))
        return Recipes(by_file=by_file, root=found[0].root, read=read)


class ModuleImport(Struct, frozen=True):
    """
    An import of a dotted module, which is imported as a whole.

    Args:
        target:
            What the user has named.

        name:
            The module.

        attribute:
            What to take of it; ``""`` for all that it declares.

        importing:
            As for `begin`.

        beside:
            The finders of the same load. That of a package is added.

        cases:
            Whether the files with cases in a package are imported.
    """

    target: str
    name: str
    attribute: str
    importing: Callable[[Path], None]
    beside: list[RecipeFinder]
    cases: bool

    def finish(self) -> Recipes:
        """
        Import the module as Python would in the current folder, and return what it declares.

        Raises:
            LoadError: If there is no such module, or no such object in it.
        """
        _extend_path(self.name)
        made: list[Prompt[..., Any]] = []
        try:
            with collecting(declared_prompts, made):
                module = importlib.import_module(self.name)
        except BaseException as error:  # noqa: BLE001 (a recipe may raise anything)
            missing = error.name if type(error) is ModuleNotFoundError else None
            if missing and f"{self.name}.".startswith(f"{missing}."):
                reason = f"there is no such folder, file or module{suggest(self.name)}"
                raise LoadError(self.target, reason) from None
            fault = fault_of(Path(self.name), None, error)
            return Recipes(by_file=[LoadedFile(Path(self.name), diagnostics=(fault,))])
        file = Path(getattr(module, "__file__", None) or self.name)
        if self.attribute:
            return Recipes(by_file=[named_declarations(self.target, file, module, self.attribute)])
        if file.name == "__init__.py":
            found = _found_in(str(file.parent), self.target)
            names = ("__init__.py", *found.names, *(found.cases if self.cases else ()))
            named = {"__init__.py": ""}
            (finder,) = install_finders([file.parent], self.beside)
            self.beside.append(finder)
            return FolderImport(finder, names, self.importing, named, found=found, keep=True).finish()
        own = [prompt for prompt in made if prompt.__module__ == self.name]
        return Recipes(by_file=[declared_in(file, module, own, self.name)])


def _extend_path(name: str) -> None:
    """Let modules of the current folder, and of its project, be imported where no other has their name."""
    with suppress(OSError):  # the current folder may be gone
        here = os.getcwd()
        places = (here, project_root(os.path.join(here, name)))
        sys.path += [place for place in places if place not in sys.path]


def _found_in(folder: str, target: str) -> FoundFiles:
    try:
        return find_recipes(folder)
    except OSError as error:
        raise LoadError(target, f"it cannot be read: {error.strerror}") from None
