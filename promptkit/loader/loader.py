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
from promptkit.loader.importing import FolderImport, do_nothing, load_markdown
from promptkit.loader.packages import install_finders
from promptkit.loader.recipes import LoadedFile, Recipes, declared_in, named_declarations
from promptkit.loader.targets import (
    PREFIX_RULE,
    Targets,
    find_markdown,
    is_markdown_target,
    is_within,
    linked_root,
    project_root,
    split_prefix,
    split_target,
    suggest,
    targets_of,
)


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
            A folder, whose recipes are the ``*.py`` and ``*.prompt.md`` files in it and below it, except
            tests and names with a leading ``_``; a file; a dotted module; ``module:object`` or
            ``file.py:object``, where the object is a prompt, a resource, or several; or a pattern of Markdown
            files, such as ``commands/**/*.md``. Or several of these, each with ``PREFIX=`` before it if its
            prompts and skills need their own name space.

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
    names = targets_of(target) or ("",)
    markdown = [(split_prefix(name)[0], *find_markdown(name)) for name in names if is_markdown_target(name)]
    others = [name for name in names if not is_markdown_target(name)]
    module_targets = [name for name in others if not _add_folder(name, folders)]
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
    loaded_folders = [part.finish() for part in imports]
    loaded_modules = [part.finish() for part in modules]
    parts = [*loaded_folders, *loaded_modules]
    by_file = [
        loaded.with_prefix(folder.prefix_of(loaded.file))
        for recipes, folder in zip(loaded_folders, folders.values(), strict=True)
        for loaded in recipes.by_file
    ]
    by_file += (
        loaded.with_prefix(split_prefix(name)[0])
        for recipes, name in zip(loaded_modules, module_targets, strict=True)
        for loaded in recipes.by_file
    )
    read = set[str]().union(*(recipes.read for recipes in parts))
    for prefix, folder, files in markdown:
        known = {loaded.file for loaded in by_file}
        new = [file for file in files if Path(folder, file) not in known]
        loaded_files, paths = load_markdown(Path(folder), new, importing)
        by_file += (loaded.with_prefix(prefix) for loaded in loaded_files)
        read |= paths
    root = parts[0].root if parts else Path(markdown[0][1])
    return Recipes(by_file=by_file, root=root, read=read)


class _Folder(Struct):
    """The files of a folder to load: all its recipes, or some files, each with its prefix."""

    target: str
    names: list[str] = []
    named: dict[str, str] = {}
    prefixes: dict[str, str] = {}
    files: DiscoveredFiles | None = None

    def prefix_of(self, file: Path | None) -> str:
        """Return the prefix of a file, or of the whole folder."""
        name = "" if file is None or self.files is not None else file.name
        return self.prefixes.get(name, "")


def _add_folder(target: str, folders: dict[str, _Folder]) -> bool:
    """Add the folder or file of a target to *folders*; return False if the target is neither."""
    if not target:
        raise LoadError(target, "pass a folder, a file or a module")
    prefix, _ = split_prefix(target)
    name, attribute = split_target(target)
    try:
        path = os.path.realpath(name)
    except (OSError, ValueError) as error:  # the current folder is deleted, or the path is invalid
        raise LoadError(target, f"it cannot be found: {error}") from None
    is_folder = os.path.isdir(path)
    if not is_folder and not os.path.isfile(path):
        return False
    if not is_folder and not path.endswith(".py"):
        raise LoadError(target, "it is not Python or Markdown: pass such a file, or a folder of recipes")
    _check_apart(target, path, folders)
    if is_folder:
        files = _find_in(path, target)
        folders[path] = _Folder(target, [*files.names], prefixes={"": prefix}, files=files)
    else:
        folder, file = os.path.split(path)
        entry = folders.setdefault(folder, _Folder(target))
        entry.names.append(file)
        entry.named[file], entry.prefixes[file] = attribute, prefix
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
    prefix, equals, _ = name.partition("=")
    if equals and not {os.sep, "/"}.intersection(prefix):
        reason = f"there is no such file or folder, and {prefix!r} is not a prefix: {PREFIX_RULE}"
        raise LoadError(target, reason)
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
            files = _find_in(str(file.parent), self.target, runs_all=True)
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


def _find_in(folder: str, target: str, *, runs_all: bool = False) -> DiscoveredFiles:
    try:
        return find_recipes(folder, linked_root(folder), runs_all=runs_all)
    except OSError as error:
        raise LoadError(target, f"it cannot be read: {error.strerror}") from None
