"""
The loader: imports the recipes in a folder, a file or a module, and collects their declarations.

No other module imports authors' code. An error in one recipe becomes a diagnostic, and the other recipes are
still loaded.
"""

import importlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from msgspec import Struct

from promptkit.declarations.base import Decorated, declarations
from promptkit.errors.exceptions import LoadError
from promptkit.language.files import collecting
from promptkit.loader.discovery import DiscoveredFiles, find_recipes, is_cases
from promptkit.loader.finder import RecipeFinder
from promptkit.loader.import_errors import describe_hidden, diagnose_import
from promptkit.loader.importing import FolderImport, do_nothing
from promptkit.loader.packages import install_finders
from promptkit.loader.recipes import LoadedFile, Recipes, declared_in, named_declarations
from promptkit.loader.targets import Targets, is_within, project_root, split_target, suggest, targets_of


def load(
    target: Targets,
    *,
    importing: Callable[[Path], None] = do_nothing,
    keep: bool = True,
    cases: bool = False,
    skills: Iterable[str] = (),
) -> Recipes:
    """
    Import the recipes at *target* and return their declarations.

    Args:
        target:
            A folder, whose recipes are the ``*.py`` files in it and below it, except tests and names with a
            leading ``_``; a file; a dotted module; or ``module:object`` or ``file.py:object``, where the
            object is a prompt, a resource, or several. Or several of these.

        importing:
            Called with each file of a folder before it is imported. If it raises, the file is not imported,
            and the exception is reported as an error of the file.

        keep:
            Whether to use modules unchanged that are already imported, by any code: a test may have patched
            them. If a file has changed since it was imported here, all modules are imported again.

        cases:
            Whether to import the case files (``cases_*.py``) next to the recipes as well.

        skills:
            See `FolderImport`.

    Raises:
        LoadError: If a folder, file, module or object does not exist, or targets overlap.
    """
    folders = dict[str, _Folder]()
    module_targets = [name for name in targets_of(target) or ("",) if not _add_folder(name, folders)]
    finders = list[RecipeFinder]()
    modules = [_module_in(name, importing, finders, cases=cases) for name in module_targets]
    if folders:
        finders += install_finders([Path(path) for path in folders])
    file_names = [
        [*folder.names, *(_cases_in(path, folder) if cases else ())] for path, folder in folders.items()
    ]
    start_import = partial(FolderImport, importing=importing, keep=keep, skills=skills)
    imports = [
        start_import(finder, names, named=folder.named, files=folder.files)
        for finder, names, folder in zip(finders, file_names, folders.values(), strict=True)
    ]
    parts = [*(part.finish() for part in imports), *(part.finish() for part in modules)]
    by_file = (loaded for recipes in parts for loaded in recipes.by_file)
    read = frozenset[str]().union(*(recipes.read for recipes in parts))
    return Recipes(by_file=by_file, root=parts[0].root, read=read)


class _Folder(Struct):
    """The files of a folder to load: all its recipes, or some files."""

    target: str
    names: list[str] = []
    named: dict[str, str] = {}
    files: DiscoveredFiles | None = None


def _add_folder(target: str, folders: dict[str, _Folder]) -> bool:
    """Add the folder or file of a target to *folders*; return False if the target is neither."""
    if not target:
        raise LoadError(target, "pass a folder, a file or a module")
    name, attribute = split_target(target)
    try:
        path = os.path.realpath(name)
    except (OSError, ValueError) as error:  # the current folder is deleted, or the path is invalid
        raise LoadError(target, f"it cannot be found: {error}") from None
    is_folder = os.path.isdir(path)
    if not is_folder and not os.path.isfile(path):
        return False
    if not is_folder and not path.endswith(".py"):
        raise LoadError(target, "it is not a Python file: pass a Python file, or a folder of recipes")
    _check_apart(target, path, folders)
    if is_folder:
        files = _find_in(path, target)
        folders[path] = _Folder(target, [*files.names], files=files)
    else:
        folder, file = os.path.split(path)
        entry = folders.setdefault(folder, _Folder(target))
        entry.names.append(file)
        entry.named[file] = attribute
    return True


def _cases_in(path: str, folder: _Folder) -> Iterable[str]:
    """Return the case files for the recipes in a folder."""
    if folder.files is not None:
        return folder.files.cases
    return sorted({*filter(is_cases, os.listdir(path))}.difference(folder.names))


def _check_apart(target: str, path: str, folders: Mapping[str, _Folder]) -> None:
    """Raise LoadError if two targets share files, because those would be imported twice."""
    for folder, other in folders.items():
        loaded_paths = (
            [folder] if other.files is not None else [os.path.join(folder, name) for name in other.names]
        )
        if any(is_within(path, loaded_path) or is_within(loaded_path, path) for loaded_path in loaded_paths):
            raise LoadError(
                target, f"{other.target!r} includes some of the same files: pass only one of them"
            )


def _module_in(
    target: str, importing: Callable[[Path], None], finders: list[RecipeFinder], *, cases: bool
) -> "ModuleImport":
    name, attribute = split_target(target)
    if name.endswith(".py") or os.sep in name or "/" in name:
        raise LoadError(target, f"there is no such file or folder{suggest(name)}")
    return ModuleImport(target, name, attribute, importing, finders, cases)


class ModuleImport(Struct, frozen=True):
    """
    The import of a module given by its dotted name. The module is imported as a whole.

    Args:
        target:
            The target as the user named it.

        name:
            The dotted name of the module.

        attribute:
            The object to load from it; ``""`` for all declarations.

        importing:
            See `load`.

        finders:
            The finders that this load has created so far. If the module is a package, its finder is appended.

        cases:
            Whether to import the case files in a package.
    """

    target: str
    name: str
    attribute: str
    importing: Callable[[Path], None]
    finders: list[RecipeFinder]
    cases: bool

    def finish(self) -> Recipes:
        """
        Import the module as Python would in the current folder, and return its declarations.

        Raises:
            LoadError: If the module does not exist, or the object in it.
        """
        _extend_path(self.name)
        declared: list[Decorated] = []
        try:
            with collecting(declarations, declared):
                module = importlib.import_module(self.name)
        except BaseException as error:  # noqa: BLE001 (a recipe may raise anything)
            missing = error.name if type(error) is ModuleNotFoundError else None
            if missing and f"{self.name}.".startswith(f"{missing}."):
                hidden = describe_hidden(self.name, Path())
                advice = f"; {hidden}" if hidden else suggest(self.name)
                raise LoadError(self.target, f"there is no such folder, file or module{advice}") from None
            diagnostic = diagnose_import(Path(self.name), None, error)
            return Recipes(by_file=[LoadedFile(Path(self.name), diagnostics=(diagnostic,))])
        file = Path(getattr(module, "__file__", None) or self.name)
        if self.attribute:
            return Recipes(by_file=[named_declarations(self.target, file, module, self.attribute)])
        if file.name == "__init__.py":
            files = _find_in(str(file.parent), self.target)
            names = ("__init__.py", *files.names, *(files.cases if self.cases else ()))
            named = {"__init__.py": ""}
            (finder,) = install_finders([file.parent], self.finders)
            self.finders.append(finder)
            return FolderImport(finder, names, self.importing, named, files=files, keep=True).finish()
        own = [declaration for declaration in declared if declaration.__module__ == self.name]
        return Recipes(by_file=[declared_in(file, module, own, self.name)])


def _extend_path(name: str) -> None:
    """Make modules of the current folder and its project importable, after all others."""
    with suppress(OSError):  # the current folder may be deleted
        here = os.getcwd()
        folders = (here, project_root(os.path.join(here, name)))
        sys.path += [folder for folder in folders if folder not in sys.path]


def _find_in(folder: str, target: str) -> DiscoveredFiles:
    try:
        return find_recipes(folder)
    except OSError as error:
        raise LoadError(target, f"it cannot be read: {error.strerror}") from None
