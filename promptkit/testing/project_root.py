"""
The root of a project with prompts, from which its tests may import as its recipes do.

Every run of pytest comes here, so this imports next to nothing of promptkit, and reads few files.
"""

import os
import re
import sys
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

from promptkit.files.regular import read_beginning
from promptkit.loader.discovery import DEFAULT_FOLDERS, PROJECT_MARKERS, holds_recipes

__all__ = ["make_importable", "root_of"]

#: The configuration of promptkit, in any table or key of a ``pyproject.toml``.
_TABLE: Final = re.compile(rb"tool\.promptkit(?![\w-])")

#: How much is read of a configuration.
_MAX_BYTES: Final = 1 << 20


def make_importable(folder: Path) -> None:
    """
    Append the root of the project that holds *folder* to the module path, if that project has prompts.

    It has prompts if its ``pyproject.toml`` configures promptkit, or if there are recipes in *folder*, or in
    ``recipes`` or ``prompts`` of the root.
    """
    root = _root_with_prompts(folder)
    if root is None:
        return
    if root in sys.path:  # maybe an entry of a finder of recipes, which takes its own out again
        sys.path[sys.path.index(root)] = root
    else:
        sys.path.append(root)  # last, so that it shadows nothing


def root_of(folder: Path) -> Path:
    """
    Return the nearest folder with a mark of a project, from *folder* upwards; its parent if there is none.
    """
    for place in (folder, *folder.parents):
        if any(_counts(place / mark, folder) for mark in PROJECT_MARKERS):
            return place
    return folder.parent


def _counts(mark: Path, folder: Path) -> bool:
    """Whether a mark exists, and is no other user's than the folder itself, as for the recipes."""
    if not mark.exists():
        return False
    own = {0, folder.stat().st_uid, os.geteuid()} if hasattr(os, "geteuid") else {0}
    return mark.lstat().st_uid in own


@lru_cache
def _root_with_prompts(folder: Path) -> str | None:
    root = root_of(folder)
    return str(root) if _has_prompts(root) or holds_recipes(str(folder), depth=0) else None


@lru_cache
def _has_prompts(root: Path) -> bool:
    """Whether a project is configured for prompts, or has a folder of recipes."""
    file = root / "pyproject.toml"
    with suppress(OSError):
        if _TABLE.search(read_beginning(file, _MAX_BYTES)):
            return True
    return any(holds_recipes(str(root / name)) for name in DEFAULT_FOLDERS)
