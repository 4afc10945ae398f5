"""The search for the recipes in a folder and in those below it."""

import os
import stat
from pathlib import Path

from msgspec import Struct

from promptkit.compiler.loading.recipe_files import FolderWalk, is_recipe, is_test
from promptkit.compiler.recipes import LoadedFile
from promptkit.errors.diagnostics import Diagnostic, Location, Rule
from promptkit.errors.exceptions import LoadError

__all__ = ["FoundFiles", "find_recipes"]


class FoundFiles(Struct, frozen=True):
    """
    What was found in a folder.

    Args:
        root:
            The folder.

        names:
            The paths of the recipes within it, in order.

        unreadable:
            What cannot be read, and why.

        others:
            The paths of Python files that are not served by themselves: tests, and those of packages.
    """

    root: Path
    names: tuple[str, ...]
    unreadable: tuple[LoadedFile, ...]
    others: tuple[str, ...]


def find_recipes(folder: Path, target: str) -> FoundFiles:
    """
    Find the recipes in a folder, and in those below it that are entered.

    Args:
        folder:
            An absolute path.

        target:
            What the user has named.

    Raises:
        LoadError: If the folder cannot be read.
    """
    names, unreadable, others = list[str](), list[LoadedFile](), list[str]()
    walk = FolderWalk(str(folder))
    above = len(os.path.join(str(folder), ""))
    for _, entries in walk:
        for entry in entries:
            if is_recipe(entry.name):
                if (reason := _why_unreadable(entry)) is None:
                    names.append(entry.path[above:])
                elif reason:
                    unreadable.append(_unreadable(Path(entry.path), reason))
            elif is_test(entry.name) or entry.name == "__init__.py":
                others.append(entry.path)
    skipped = dict(walk.skipped)
    if (reason := skipped.get(str(folder))) is not None or not walk.entered:
        raise LoadError(target, f"it cannot be read: {reason or os.strerror(2)}")
    unreadable += [_not_entered(Path(path), reason) for path, reason in skipped.items()]
    return FoundFiles(folder, tuple(sorted(names)), tuple(unreadable), tuple(others))


def _why_unreadable(entry: "os.DirEntry[str]") -> str | None:
    """Why a file cannot be read; None if it can be, and ``""`` for a folder."""
    try:
        # Most are plain files, and this is known from the folder.
        mode = stat.S_IFREG if entry.is_file(follow_symlinks=False) else os.stat(entry.path).st_mode
    except OSError as error:  # a link that leads nowhere, in circles or into a locked folder
        return str(error.strerror)
    if stat.S_ISREG(mode):
        return None
    return "" if stat.S_ISDIR(mode) else "it is a pipe, a socket or a device"


def _unreadable(file: Path, reason: str) -> LoadedFile:
    from promptkit.compiler.loading.import_errors import import_failed

    return LoadedFile(file, diagnostics=(import_failed(file, f"cannot be read: {reason}"),))


def _not_entered(folder: Path, reason: str) -> LoadedFile:
    message = f"what is in the folder {folder.name!r} is not served: {reason}"
    remedy = "let it be read, or begin its name with '_' if no prompts are in it"
    fault = Diagnostic(Rule.NOT_SERVED, message, remedy, Location(str(folder)))
    return LoadedFile(folder, diagnostics=(fault,))
