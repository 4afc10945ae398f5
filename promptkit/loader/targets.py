"""
Targets: the folder, file, module or object that a user asks to load.

``PREFIX=TARGET`` is a target whose prompts and skills have their own namespace.
"""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from promptkit.files.reading import has_untrusted_owner
from promptkit.loader.discovery import (
    PROJECT_MARKERS,
    FolderWalk,
    describe_unreadable,
    folders_with_recipes,
    mentions_skills,
)

#: A target, or several: a folder, a file, a module or ``module:object``, with or without ``PREFIX=``.
Targets: TypeAlias = str | Path | Iterable[str | Path]

#: A prefix, which starts a prompt's name and is the host in a skill's URI. It must be in lower case, because
#: RFC 3986 ignores the case of hosts.
_PREFIX: Final = "[a-z](?:[a-z0-9_-]{0,30}[a-z0-9])?"

#: The rule for prefixes, for error messages.
PREFIX_RULE: Final = (
    "a prefix must have 1 to 32 characters: a-z, digits, '-' and '_'; it must start with a letter and cannot "
    "end with '-' or '_'"
)

#: Maximum number of folders that an error message suggests.
_MAX_SUGGESTIONS: Final = 5


def targets_of(targets: Targets) -> tuple[str, ...]:
    """Return the targets as a tuple of strings."""
    several = [targets] if isinstance(targets, str | os.PathLike) else targets
    return tuple(os.fspath(target) for target in several)


def with_markdown(targets: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """Return the targets, followed by *patterns* for Markdown prompts in each target that is a folder."""
    patterns, names = tuple(patterns), [*targets]
    folders = [(name, path) for name in names if os.path.isdir(path := split_prefix(name)[1])]
    return names + [
        with_path(name, os.path.join(path, pattern)) for name, path in folders for pattern in patterns
    ]


def target_of(file: str, targets: Sequence[str]) -> str:
    """Return the target that contains a file; the first module if the file is outside all folders."""
    paths = {target: os.path.realpath(split_target(target)[0]) for target in targets}
    holding = (target for target, path in paths.items() if is_within(os.path.realpath(file), path))
    modules = (target for target in targets if locate_target(target) is None)
    return next(holding, None) or next(
        modules, targets[0]
    )  # a file outside of all folders belongs to a module


def is_within(path: str, folder: str) -> bool:
    """Return whether *path* is *folder* or inside it."""
    return path == folder or path.startswith(os.path.join(folder, ""))


def is_prefix(text: str) -> bool:
    """Return whether a string can be the prefix of a target."""
    return re.fullmatch(_PREFIX, text) is not None


def split_prefix(target: str) -> tuple[str, str]:
    """Split ``PREFIX=TARGET`` into its parts. The prefix is ``""`` if *target* has none or is a path."""
    prefix, _, rest = target.partition("=")
    if not rest or not is_prefix(prefix):
        return "", target
    fixed = re.split(r"[/\\]?[^/\\]*[*?]", target)[0]  # a pattern up to its first wildcard
    is_path = os.path.exists(fixed) or os.path.exists(fixed.rpartition(":")[0])
    return ("", target) if is_path else (prefix, rest)


def split_target(target: str) -> tuple[str, str]:
    """
    Split *target* into a folder, file or module, and the object in it (``""`` for all objects).

    The target's prefix is dropped.
    """
    _, target = split_prefix(target)
    name, colon, attribute = target.rpartition(":")
    is_path = os.path.exists(target) or _is_pattern(target)
    return (target, "") if not colon or is_path else (name, attribute)


def with_path(target: str, path: str) -> str:
    """Return a target with the same prefix and object, but with *path* as its path."""
    prefix, attribute = split_prefix(target)[0], split_target(target)[1]
    return f"{prefix}{'=' if prefix else ''}{path}{':' if attribute else ''}{attribute}"


def format_render_targets(targets: Sequence[str], quote: Callable[[str], str]) -> str:
    """
    Return the quoted targets as arguments for a ``promptkit render`` command.

    The command accepts a target with a prefix, or several targets, only as options.
    """
    is_word = len(targets) == 1 and not split_prefix(targets[0])[0]
    return " ".join(f"{'' if is_word else '--target '}{quote(target)}" for target in targets)


def is_markdown_target(target: str) -> bool:
    """Return whether a target is a Markdown file, or a pattern for such files (``commands/**/*.md``)."""
    _, path = split_prefix(target)
    return path.endswith(".md") and (os.path.isfile(path) or _is_pattern(path))


def find_markdown(target: str) -> tuple[str, list[str]]:
    """
    Find the files of a Markdown target.

    Files that match a pattern are omitted if their names start with ``_`` or a dot, or if they are in a
    skill's folder or in a folder that is never searched.

    Returns:
        The resolved folder (the file's folder, or the fixed part of the pattern), and the sorted paths of the
        files, relative to this folder.
    """
    _, path = split_prefix(target)
    if not _is_pattern(path):
        folder, name = os.path.split(os.path.realpath(path))
        return folder, [name]
    parts = os.path.abspath(path).replace(os.sep, "/").split("/")
    fixed = next(number for number, part in enumerate(parts) if _is_pattern(part))
    folder = os.path.realpath("/".join(parts[:fixed]) or "/")
    pattern = re.compile("".join(map(_convert_to_regex, parts[fixed:])).removesuffix("/"))
    prefix_length = len(os.path.join(folder, ""))
    paths = [
        entry.path[prefix_length:]
        for _, entries in FolderWalk(folder)
        for entry in entries
        if not entry.name.startswith(("_", ".")) and describe_unreadable(entry) is None
    ]
    return folder, sorted(path for path in paths if pattern.fullmatch(path.replace(os.sep, "/")))


def _is_pattern(path: str) -> bool:
    return not {"*", "?"}.isdisjoint(path)


def _convert_to_regex(part: str) -> str:
    """Return a regular expression for a part of a pattern. ``**`` matches any number of folders."""
    if part == "**":
        return "(?:[^/]+/)*"
    signs = {"*": "[^/]*", "?": "[^/]"}
    return "".join(signs.get(character, re.escape(character)) for character in part) + "/"


def locate_target(target: str) -> tuple[str, str] | None:
    """
    Return the folder of *target*, and the name to load from it; None for a module or a missing target.
    """
    name, attribute = split_target(target)
    if is_markdown_target(target):
        return find_markdown(target)[0], ""
    try:
        path = os.path.realpath(name)
    except (OSError, ValueError):  # the current folder is deleted, or the path is invalid
        return None
    if os.path.isdir(path):
        return path, attribute
    folder, file = os.path.split(path)
    return (folder, f"{file}:{attribute}") if os.path.isfile(path) else None


def has_skills(targets: Iterable[str]) -> bool:
    """Guess whether there are skills at any target, without importing recipes."""
    folders = (located[0] for target in targets if (located := locate_target(target)) is not None)
    return any(map(mentions_skills, folders))


def is_project(folder: str, trusted: str | None = None) -> bool:
    """
    Return whether *folder* is the root of a project: whether it has a ``pyproject.toml`` or a ``.git``.

    If *trusted* is a folder, files that belong to other users do not count; see `has_untrusted_owner`.
    """
    paths = (os.path.join(folder, marker) for marker in PROJECT_MARKERS)
    return any(
        os.path.exists(path) and not (trusted and has_untrusted_owner(path, trusted)) for path in paths
    )


def project_of(target: str) -> str | None:
    """Return the root of a target's project; None for a module, and for a target that does not exist."""
    location = locate_target(target)
    if location is None:
        return None
    folder, _ = location
    return folder if is_project(folder) else project_root(folder)


def project_root(folder: str | Path) -> str:
    """
    Return the folder from which recipes can import the modules of their project.

    Args:
        folder:
            The folder of the recipes.

    Returns:
        The absolute path of the nearest parent folder that contains a ``pyproject.toml`` or a ``.git``, or of
        the direct parent if none does. *folder* itself does not count, because its modules are the recipes.
        Files of other users do not count either.
    """
    recipes = os.path.abspath(folder)
    parent = ancestor = os.path.dirname(recipes)
    while not is_project(ancestor, recipes):
        if (next_ancestor := os.path.dirname(ancestor)) == ancestor:
            return parent
        ancestor = next_ancestor
    return ancestor


def root_for_links(folder: str) -> str:
    """Return the root of the project in which a folder's links are followed; ``""`` if there is none."""
    root = folder if is_project(folder, folder) else project_root(folder)
    return os.path.realpath(root) if is_project(root, folder) else ""


def package_of(folder: str | Path) -> tuple[str, tuple[str, ...]]:
    """
    Return the position of a folder in a Python package.

    Args:
        folder:
            An absolute path.

    Returns:
        The folder that contains the outermost package, and the names from there down to *folder*.
    """
    root, *parts = os.path.split(folder)
    while _is_package(root) and _is_package(os.path.join(root, parts[0])):
        root, name = os.path.split(root)
        parts.insert(0, name)
    return root, tuple(parts)


def suggest_folders(target: str) -> str:
    """
    Return a suffix for an error message that lists folders with recipes near *target*, or ``""``.
    """
    starts = (os.path.dirname(target.rstrip("/" + os.sep)) or ".", ".")
    folders = [os.path.normpath(folder) for start in starts for folder in folders_with_recipes(start)]
    near = list(map(display_path, dict.fromkeys(folders)))
    names = [*map(repr, near[:_MAX_SUGGESTIONS])] + ["and others"] * (len(near) > _MAX_SUGGESTIONS)
    return f"; there are recipes in {', '.join(names)}" if near else ""


def recipes_near(folder: str | Path) -> list[str]:
    """Return the folders with recipes below *folder*; if there are none, those in its parent folder."""
    parent = os.path.dirname(os.path.abspath(folder))
    return folders_with_recipes(str(folder)) or folders_with_recipes(parent)


def display_path(folder: str) -> str:
    """Return a folder's path in the form in which a user would type it in the current folder."""
    with suppress(OSError, ValueError):  # the current folder is deleted, or on another drive
        relative = os.path.relpath(folder)
        is_root = os.getcwd() == os.path.abspath(os.sep)  # every path is below the root
        folder = folder if is_root or relative.startswith(os.pardir) else relative
    return os.path.join(folder, "")


def _is_package(folder: str) -> bool:
    """Return whether a folder can be imported from its parent folder."""
    name = os.path.basename(folder)
    return name != "" and "." not in name and os.path.isfile(os.path.join(folder, "__init__.py"))
