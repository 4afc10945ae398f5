"""Targets: the folder, file, module or object that a user asks to load."""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias

from promptkit.errors.suggestions import nearest
from promptkit.files.reading import is_foreign
from promptkit.loader.discovery import PROJECT_MARKERS, folders_with_recipes

if TYPE_CHECKING:
    from pathlib import Path

#: What names recipes: a folder, a file, a module or ``module:object``; or several of these.
Targets: TypeAlias = "str | Path | Iterable[str | Path]"

#: Limits of the search for what was perhaps meant: levels of folders, and what is in them.
_NEAR: Final = (2, 2000)

#: How many folders are named where it cannot be told which one was meant.
_MOST_NAMED: Final = 5


def targets_of(named: Targets) -> tuple[str, ...]:
    """Return each of the targets that are named."""
    return tuple(os.fspath(one) for one in ([named] if isinstance(named, str | os.PathLike) else named))


def target_of(file: str, targets: Sequence[str]) -> str:
    """Return the target that a file is served from, among those that are served."""
    places = {target: os.path.realpath(split_target(target)[0]) for target in targets}
    holding = (target for target, place in places.items() if is_within(os.path.realpath(file), place))
    modules = (target for target in targets if locate_target(target) is None)
    return next(holding, None) or next(modules, targets[0])  # what no folder and no file holds is a module's


def is_within(path: str, place: str) -> bool:
    """Return whether a path is *place*, or in the folder *place*."""
    return path == place or path.startswith(os.path.join(place, ""))


def split_target(target: str) -> tuple[str, str]:
    """Split *target* into a folder, file or module, and the object in it, ``""`` for all objects."""
    name, colon, attribute = target.rpartition(":")
    return (target, "") if not colon or os.path.exists(target) else (name, attribute)


def locate_target(target: str) -> tuple[str, str] | None:
    """Return the folder that *target* names, without links, and what to load from it; None for a module."""
    name, attribute = split_target(target)
    try:
        path = os.path.realpath(name)
    except (OSError, ValueError):  # the current folder is gone, or this is not a valid path
        return None
    if os.path.isdir(path):
        return path, attribute
    folder, file = os.path.split(path)
    return (folder, f"{file}:{attribute}") if os.path.isfile(path) else None


def is_project(folder: str, beside: str | None = None) -> bool:
    """
    Return whether *folder* is a project's own: it holds a ``pyproject.toml`` or a ``.git``.

    With *beside*, a folder, marks count that belong to its owner, or to nobody other: see `is_foreign`.
    """
    marks = (os.path.join(folder, mark) for mark in PROJECT_MARKERS)
    return any(os.path.exists(mark) and not (beside and is_foreign(mark, beside)) for mark in marks)


def project_root(folder: "str | Path") -> str:
    """
    Return the folder from which recipes may import the modules of their project.

    Args:
        folder:
            The folder that holds the recipes.

    Returns:
        The absolute path of the nearest folder above it that holds a ``pyproject.toml`` or a
        ``.git``; its parent if none does. *folder* itself does not count, as its modules are
        the recipes. What another user has put there does not count.
    """
    own = os.path.abspath(folder)
    parent = above = os.path.dirname(own)
    while not is_project(above, own):
        if (upper := os.path.dirname(above)) == above:
            return parent
        above = upper
    return above


def package_of(folder: "str | Path") -> tuple[str, tuple[str, ...]]:
    """
    Return which package of Python a folder is.

    Args:
        folder:
            An absolute path.

    Returns:
        The folder that holds the outermost package, and the names from there down to *folder*.
    """
    root, *parts = os.path.split(folder)
    while _is_package(root) and _is_package(os.path.join(root, parts[0])):
        root, name = os.path.split(root)
        parts.insert(0, name)
    return root, tuple(parts)


def suggest(target: str) -> str:
    """Return what to add to an error if a folder near *target* may have been meant."""
    starts = (os.path.dirname(target.rstrip("/" + os.sep)) or ".", ".")
    places = [place for start in starts for place in _recipes_below(start)]
    near = {os.path.normpath(place): place for place in map(display_path, places)}
    # A folder above recipes serves them, too. The search goes no deeper, so there is one at most.
    above = [folder for folder in map(os.path.dirname, places) if folder not in starts]
    named = {os.path.normpath(place): place for place in map(display_path, above)} | near
    if (meant := nearest(os.path.normpath(target), named)) is not None:
        return f"; did you mean {named[meant]!r}?"
    shown = [*map(repr, near.values())][:_MOST_NAMED] + ["others"] * (len(near) > _MOST_NAMED)
    return f"; there are recipes in {', '.join(shown)}" if near else ""


def recipes_near(folder: "str | Path") -> list[str]:
    """Return the folders with recipes below *folder*, or else beside it."""
    return _recipes_below(folder) or _recipes_below(os.path.dirname(os.path.abspath(folder)))


def display_path(folder: str) -> str:
    """Return a folder's path as one would type it here."""
    with suppress(OSError, ValueError):  # the current folder is gone, or on another drive
        relative = os.path.relpath(folder)
        is_root = os.getcwd() == os.path.abspath(os.sep)  # everything is below that
        folder = folder if is_root or relative.startswith(os.pardir) else relative
    return os.path.join(folder, "")


def _recipes_below(folder: "str | Path") -> list[str]:
    return folders_with_recipes(str(folder), *_NEAR)


def _is_package(folder: str) -> bool:
    """Whether a folder can be imported from the folder that holds it."""
    name = os.path.basename(folder)
    return name != "" and "." not in name and os.path.isfile(os.path.join(folder, "__init__.py"))
