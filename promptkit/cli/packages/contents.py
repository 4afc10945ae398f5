"""The contents of a package: the files of the recipes, and the packages that they import."""

import ast
import os
import stat
import sys
from collections.abc import Collection, Iterator, Mapping
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from unicodedata import normalize
from warnings import catch_warnings

from msgspec import Struct
from packaging.utils import canonicalize_name

from promptkit.cli.packages.project import PackagedProject, PackageError, distribution_name
from promptkit.cli.packages.sources import PackagedFile, SourceReader
from promptkit.declarations.skill_files import SkillError, is_left_out, paths_below
from promptkit.errors.exceptions import shortened
from promptkit.files.folder import check_plain
from promptkit.files.reading import INSTALLED
from promptkit.loader.discovery import FolderWalk, find_recipes, is_cases, is_test, may_enter
from promptkit.loader.targets import is_within

#: Maximum number of files, and length of their paths: longer paths fail on some systems.
_MAX_FILES: Final = 10_000
_MAX_PATH: Final = 1_000


class Contents(Struct, frozen=True):
    """
    The files of a package.

    Args:
        folder:
            The folder of the recipes.

        files:
            The packaged files by their paths within the folder, in order.

        skills:
            The folders of skills, as paths within the folder.
    """

    folder: Path
    files: Mapping[str, PackagedFile]
    skills: tuple[str, ...]


def read_contents(folder: Path, without: Path, reader: SourceReader) -> Contents:
    """
    Read the files that a server of a folder can need, without tests, cases and hidden files.

    Args:
        folder:
            The folder of the recipes.

        without:
            A folder to exclude: the folder to which packages are written.

        reader:
            Reads the files.

    Raises:
        PackageError: If a file or folder cannot be read, leads out of the folder, or must not be published.
    """
    paths = set(_paths_in(folder, without))
    skills = tuple(Path(skill).relative_to(folder).as_posix() for skill in find_recipes(str(folder)).skills)
    for skill in skills:  # skills are served with all of their files
        try:
            paths |= {f"{skill}/{path}" for path in paths_below(str(folder / skill))[0]}
        except SkillError as error:
            msg = f"the skill {skill!r}: {error}: {error.hint}"
            raise PackageError(msg) from None
    _check_paths(folder.name, paths)
    return Contents(folder, {path: reader.read(folder, path) for path in sorted(paths)}, skills)


def _paths_in(folder: Path, without: Path) -> Iterator[str]:
    """Yield the paths of the files that belong in the package, except those in skills."""
    walk, root = FolderWalk(str(folder), private=True), str(folder)
    is_below = is_within(str(without), root)
    for path, entries in walk:
        relative = Path(path).relative_to(folder)
        if "__snapshots__" in relative.parts or (is_below and is_within(path, str(without))):
            continue
        for entry in entries:
            if _is_packaged(entry.name) and _is_file(entry, file := (relative / entry.name).as_posix(), root):
                yield file
    for path, reason in walk.skipped:
        msg = f"{shortened(path)} cannot be read: {reason}"
        raise PackageError(msg)


def _is_file(entry: "os.DirEntry[str]", path: str, root: str) -> bool:
    """Return whether an entry is a file rather than a folder. Raises PackageError if it is neither."""
    try:
        mode = entry.stat().st_mode
    except OSError as error:  # a link that leads nowhere, or in a circle
        msg = f"{shortened(path)!r} cannot be read: {error.strerror}: remove it"
        raise PackageError(msg) from None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        msg = f"{shortened(path)!r} is a pipe, a socket or a device: remove it"
        raise PackageError(msg)
    is_entered = stat.S_ISDIR(mode) and may_enter(entry.name)
    if is_entered and entry.is_symlink() and not is_within(os.path.realpath(entry.path), root):
        msg = f"{shortened(path)!r} leads out of {Path(root).name!r}: put a copy in place of the link"
        raise PackageError(msg)
    return stat.S_ISREG(mode)


def _check_paths(folder: str, paths: Collection[str]) -> None:
    """Raise PackageError unless these paths are valid and distinct on all systems."""
    if len(paths) > _MAX_FILES:
        msg = f"{folder!r} has more than {_MAX_FILES:,} files: move data elsewhere"
        raise PackageError(msg)
    known = dict[str, str]()
    for path in (folder, *sorted(paths)):
        try:
            check_plain(path)
        except OSError:
            msg = f"{shortened(path)!r} is not a valid name on some systems: rename it, without control "
            msg += "characters, backslashes, colons and bytes that are not UTF-8"
            raise PackageError(msg) from None
        if len(path) > _MAX_PATH:
            msg = f"{shortened(path)!r} has more than {_MAX_PATH:,} characters: use shorter names"
            raise PackageError(msg)
    for path in sorted(paths):
        part = path
        while part and (other := known.get(folded := normalize("NFC", part.casefold()))) != part:
            if other is not None:
                msg = f"{other!r} and {part!r} differ in case alone, and are one file on some systems: "
                msg += "rename one of them"
                raise PackageError(msg)
            known[folded] = part
            part = part.rpartition("/")[0]  # once a folder is known, so are its parents


def find_requirements(contents: Contents, root: Path, project: PackagedProject) -> list[str]:
    """
    Return requirements for imports that the project does not cover, at least at their installed versions.

    Args:
        contents:
            The files to package.

        root:
            The project's folder.

        project:
            The metadata of the package.

    Raises:
        PackageError: If an imported module cannot be installed with the package.
    """
    required, owners = set(map(distribution_name, project.requirements)), packages_distributions()
    missing = list[str]()
    for name, file in sorted(_find_imports(contents).items()):
        installed = sorted({canonicalize_name(owner) for owner in owners.get(name, ())})
        subject = f"{file} imports {name!r}"
        if canonicalize_name(project.name) in installed or (not installed and _is_own(name, root)):
            msg = (
                f"{subject}, which the project has outside of {contents.folder.name!r}, so the package would "
                "lack it: move it there, or publish it as a package of another name, and name that with "
                "--require"
            )
            raise PackageError(msg)
        if len(installed) > 1 and required.isdisjoint(installed):
            msg = f"{subject}, which several packages have: name one of {', '.join(installed)} with --require"
            raise PackageError(msg)
        if installed and required.isdisjoint(installed):
            missing.append(f"{installed[0]}>={version(installed[0])}")
            required.add(installed[0])
    return missing


def _is_packaged(name: str) -> bool:
    return not (is_left_out(name) or is_test(name) or is_cases(name) or name.endswith((".compiled", ".pyc")))


def _find_imports(contents: Contents) -> dict[str, str]:
    """Return the top-level modules that recipes import from elsewhere, each with a file that imports it."""
    folder, skills = contents.folder, tuple(f"{skill}/" for skill in contents.skills)
    known = sys.stdlib_module_names | {"promptkit", folder.name}
    return {
        name: path
        for path, file in contents.files.items()
        if path.endswith(".py") and not path.startswith(skills)  # agents run these, in their own environment
        for name in set(_top_names(file.data))
        if name not in known
        and not any(
            os.path.exists(parent / f"{name}{suffix}")  # noqa: PTH110 (Path raises an error if a name is too long)
            for parent in (folder, (folder / path).parent)
            for suffix in ("", ".py")
        )
    }


def _top_names(source: bytes) -> Iterator[str]:
    try:
        with catch_warnings(action="ignore"):  # loading the recipes reports their warnings
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # a file that no served recipe imports
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _is_own(name: str, root: Path) -> bool:
    """Return whether a module belongs to the project itself, rather than to an installed package."""
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return False
    paths = [] if spec is None else [spec.origin, *(spec.submodule_search_locations or ())]
    return any(
        is_within(os.path.realpath(path), str(root)) and INSTALLED.isdisjoint(Path(path).parts)
        for path in paths
        if path is not None
    )
