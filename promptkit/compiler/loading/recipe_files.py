"""
Recipe files: which files of a folder are recipes, and which folders below it are entered.

All that look for recipes ask here: the loader, the watcher, the start-up cache, pytest. Every run of pytest
imports this where promptkit is installed, so it imports nothing.
"""

import os
from collections.abc import Iterator
from typing import Final

__all__ = [
    "FolderWalk",
    "end_of",
    "holds_recipes",
    "is_folder",
    "is_recipe",
    "is_test",
    "may_enter",
    "mentions_prompts",
]

#: Folders on which no recipe depends: caches, tests, packages of others.
_NEVER_ENTERED: Final = frozenset({"__pycache__", "node_modules", "tests"})

#: A folder that holds this file is a virtual environment; one that holds the other is a skill, whose programs
#: are no recipes.
_ENVIRONMENT: Final = "pyvenv.cfg"
_SKILL: Final = "SKILL.md"

#: How much is read of a file, and what is in those that define prompts.
_READ_BYTES: Final = 1 << 16
_DECORATORS: Final = (b"@prompt", b"@resource", b".prompt", b".resource")

#: At most this many folders are entered.
_MAX_FOLDERS: Final = 10_000


def is_recipe(name: str) -> bool:
    """Return whether a file of that name is a recipe, in a folder that is entered."""
    # Editors and archives leave files whose names begin with a dot.
    return name.endswith(".py") and not name.startswith(("_", ".")) and not is_test(name)


def is_test(name: str) -> bool:
    """Return whether a file of that name belongs to pytest."""
    return name.endswith(".py") and (
        name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"
    )


def may_enter(name: str) -> bool:
    """Return whether recipes may depend on what is in a folder of that name."""
    return not name.startswith(".") and name not in _NEVER_ENTERED


def mentions_prompts(path: str) -> bool:
    """Guess from its first bytes whether a file defines prompts or resources."""
    try:
        if not os.path.isfile(path):  # a pipe would never end
            return False
        with open(path, "rb") as file:
            text = file.read(_READ_BYTES)
    except OSError:
        return False
    return b"promptkit" in text and any(one in text for one in _DECORATORS)


def holds_recipes(folder: str, *, below: bool = True) -> bool:
    """Guess whether there are recipes in a folder, or in one *below* it."""
    return any(
        is_recipe(entry.name) and mentions_prompts(entry.path)
        for _, entries in FolderWalk(folder, below=below)
        for entry in entries
    )


class FolderWalk:
    """
    A walk through a folder and those below it: an iterator of the path and the entries of each.

    Links to folders are followed only within the folder, where a ConfigMap of Kubernetes has them, and no
    folder is entered twice.

    Args:
        folder:
            The folder, which is entered whatever it is called.

        below:
            Whether to enter folders below it.

        private:
            Whether to enter what recipes may read, and which holds none: folders whose names begin with
            ``_``, and skills.

    Attributes:
        entered:
            The paths of the folders so far.

        skipped:
            The folders that cannot be entered, each with the reason.
    """

    def __init__(self, folder: str, *, below: bool = True, private: bool = False) -> None:
        self._folder = folder
        self._below = below
        self._private = private
        self.entered: set[str] = set()
        self.skipped: list[tuple[str, str]] = []

    def __iter__(self) -> Iterator[tuple[str, list["os.DirEntry[str]"]]]:
        root = end_of(self._folder) or self._folder
        folders, links, known = [(self._folder, root)], list[tuple[str, str]](), set[str]()
        while folders or links:
            path, real = (folders or links).pop()
            entries = None if real in known else self.entries_of(path)
            known.add(real)
            if entries is None:
                continue
            if len(self.entered) == _MAX_FOLDERS:
                self.skipped.append((path, "there are too many folders"))
                return
            self.entered.add(path)
            yield path, entries
            for entry in entries:
                if self._below and is_folder(entry) and self._may_enter(entry.name):
                    if not entry.is_symlink():
                        folders.append((entry.path, os.path.join(real, entry.name)))
                    elif (end := end_of(entry.path)).startswith(os.path.join(root, "")):
                        links.append((entry.path, end))

    def _may_enter(self, name: str) -> bool:
        return may_enter(name) and (self._private or not name.startswith("_"))

    def entries_of(self, folder: str) -> list["os.DirEntry[str]"] | None:
        """Return what a folder holds; None if it is not entered."""
        try:
            with os.scandir(folder) as found:
                entries = list(found)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.skipped.append((folder, str(error.strerror)))
            return None
        names = {entry.name for entry in entries}
        if folder != self._folder and (_ENVIRONMENT in names or (_SKILL in names and not self._private)):
            return None
        return entries


def is_folder(entry: "os.DirEntry[str]") -> bool:
    """Return whether an entry is a folder, or a link to one."""
    try:
        return entry.is_dir()
    except OSError:  # a link to itself, or into a folder that may not be read
        return False


def end_of(link: str) -> str:
    """Return where a link leads in the end; ``""`` if that cannot be known."""
    try:
        return os.path.realpath(link)
    except OSError:  # some links in /proc refuse to say where they lead
        return ""
