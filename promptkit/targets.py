"""Targets: what the command line, or a test, names to be loaded."""

import os

__all__ = ["place_of", "split_target"]


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
