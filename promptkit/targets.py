"""Targets: what the command line, or a test, names to be loaded."""

import os
from pathlib import Path
from typing import Final

__all__ = ["place_of", "project_root", "split_target"]

#: What stands in a project's own folder.
_MARKS: Final = ("pyproject.toml", ".git")


def split_target(target: str) -> tuple[str, str]:
    """
    Return what names the folder, file or module in *target*, and the object in it, ``""`` for all.
    """
    name, colon, attribute = target.rpartition(":")
    return (target, "") if not colon or os.path.exists(target) else (name, attribute)


def place_of(target: str) -> tuple[str, str] | None:
    """
    Return the folder whose recipes *target* names, free of links, and what of it; None for a module.
    """
    name, attribute = split_target(target)
    path = os.path.realpath(name)
    if os.path.isdir(path):
        return path, attribute
    folder, file = os.path.split(path)
    return (folder, f"{file}:{attribute}") if os.path.isfile(path) else None


def project_root(folder: str | Path) -> str:
    """
    Return the folder whose modules recipes may import by their whole names.

    Args:
        folder:
            The folder that holds the recipes.

    Returns:
        The absolute path of the nearest folder above it that holds a ``pyproject.toml`` or a
        ``.git``; its parent if none does. A mark in *folder* itself does not count: its modules
        are the recipes.
    """
    parent = above = os.path.dirname(os.path.abspath(folder))
    while not any(os.path.exists(os.path.join(above, mark)) for mark in _MARKS):
        if (upper := os.path.dirname(above)) == above:
            return parent
        above = upper
    return above
