"""
The loader: imports the recipes in a folder, a file or a module, and collects what they declare.

No other module imports authors' code. An error in one recipe becomes a diagnostic, and the other
recipes are loaded all the same.
"""

import importlib
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from promptkit.compiler.loading.executions import collecting
from promptkit.compiler.loading.folder_import import (
    FolderImport,
    declared_in,
    do_nothing,
    fault_of,
    named_declarations,
)
from promptkit.compiler.loading.recipe_files import FoundFiles, find_recipes
from promptkit.compiler.loading.targets import project_root, split_target, suggest
from promptkit.compiler.prompts import Prompt, declared_prompts
from promptkit.compiler.recipes import LoadedFile, Recipes
from promptkit.errors.exceptions import LoadError

__all__ = ["FolderImport", "ModuleImport", "Recipes", "begin", "load"]


def load(target: str | Path) -> Recipes:
    """
    Import the recipes at *target* and return what they declare.

    A module that is imported already, by anybody, is used as it is: a test may have patched it. If a file has
    changed since it was imported here, everything is imported anew.

    Args:
        target:
            A folder, whose ``*.py`` files are the recipes, and those below it, except for tests and for what
            begins with ``_``; a file; a dotted module; or ``module:object`` or ``file.py:object``, where the
            object is a prompt, a resource, or several.

    Raises:
        LoadError: If there is no such folder, file, module or object.
    """
    return begin(target, keep=True).finish()


def begin(
    target: str | Path,
    importing: Callable[[Path], None] = do_nothing,
    before: "FolderImport | ModuleImport | None" = None,
    changed: Iterable[str] = (),
    *,
    keep: bool = False,
) -> "FolderImport | ModuleImport":
    """
    Begin to load the recipes at *target*: its files are known, and imported when they are asked for.

    Args:
        target:
            As for `load`.

        importing:
            Called with each file of a folder before it is imported. If it raises, the file is not
            imported, and the error is reported as an error of the file.

        before:
            An earlier import, whose modules are used again, as `FolderImport` does.

        changed:
            The paths of the files that have changed since then.

        keep:
            Whether modules that are imported already are used, as `load` does.

    Raises:
        LoadError: If there is no such folder or file.
    """
    target = str(target)
    if not target:
        raise LoadError(target, "name a folder, a file or a module")
    name, attribute = split_target(target)
    try:
        path = os.path.realpath(name)
    except (OSError, ValueError) as error:  # the current folder is gone, or this is not a valid path
        raise LoadError(target, f"it cannot be found: {error}") from None
    last = before if isinstance(before, FolderImport) else None
    begun = partial(FolderImport, importing=importing, before=last, changed=changed, keep=keep)
    if os.path.isdir(path):
        found = _found_in(path, target)
        return begun(Path(path), found.names, found=found)
    if os.path.isfile(path):
        if not path.endswith(".py"):
            raise LoadError(target, "it is not a Python file")
        folder, file = os.path.split(path)
        return begun(Path(folder), [file], attribute=attribute)
    if name.endswith(".py") or os.sep in name or "/" in name:
        raise LoadError(target, f"there is no such file or folder{suggest(name)}")
    return ModuleImport(target, name, attribute, importing)


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
    """

    target: str
    name: str
    attribute: str
    importing: Callable[[Path], None]

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
            names = ("__init__.py", *found.names)
            return FolderImport(file.parent, names, self.importing, found=found, keep=True).finish()
        own = [prompt for prompt in made if prompt.__module__ == self.name]
        return Recipes(by_file=[declared_in(file, module, own, self.name, package=self.name)])


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
