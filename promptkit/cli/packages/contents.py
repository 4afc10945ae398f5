"""What goes into a package: the files of the recipes, and what these import besides."""

import ast
import os
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec
from pathlib import Path

from packaging.utils import canonicalize_name

from promptkit.cli.packages.project import PackagedProject, PackageFault, distribution_of
from promptkit.compiler.loading.recipe_files import FolderWalk, find_recipes, is_cases, is_test
from promptkit.compiler.loading.targets import is_within
from promptkit.compiler.skills.files import is_left_out, paths_below
from promptkit.files.regular import INSTALLED

__all__ = ["files_of", "requirements_of"]


def files_of(folder: Path, without: Path) -> dict[str, Path]:
    """
    Return what a server of a folder may read: everything but tests, cases, and what is hidden.

    Args:
        folder:
            The recipes.

        without:
            A folder whose files are left out: where packages are written.

    Returns:
        The files by their paths within the folder, in order.

    Raises:
        PackageFault: If one of its folders cannot be read.
    """
    found: dict[str, Path] = {}
    walk = FolderWalk(str(folder), private=True)
    for path, entries in walk:
        within = Path(path).relative_to(folder)
        if "__snapshots__" not in within.parts and not is_within(path, str(without)):
            names = [entry.name for entry in entries if entry.is_file() and _goes_along(entry.name)]
            found |= {(within / name).as_posix(): Path(path, name) for name in names}
    for path, reason in walk.skipped:
        msg = f"{path} cannot be read: {reason}"
        raise PackageFault(msg)
    for skill in map(Path, find_recipes(str(folder)).skills):  # each is served with all of its files
        within = skill.relative_to(folder)
        found |= {
            (within / path).as_posix(): Path(place) for path, place in paths_below(str(skill))[0].items()
        }
    return dict(sorted(found.items()))


def requirements_of(
    files: Mapping[str, Path], folder: Path, root: Path, project: PackagedProject
) -> list[str]:
    """
    Return what recipes import, and the project does not require: at least as new as it is here.

    Args:
        files:
            The files that are packaged.

        folder:
            The recipes.

        root:
            The project's folder.

        project:
            What the package says.

    Raises:
        PackageFault: If something is imported that cannot be installed with the package.
    """
    required, owners = set(map(distribution_of, project.requirements)), packages_distributions()
    found = list[str]()
    for name, file in sorted(_imported(files, folder).items()):
        installed = sorted({canonicalize_name(owner) for owner in owners.get(name, ())})
        where = f"{file} imports {name!r}"
        if canonicalize_name(project.name) in installed or (not installed and _is_own(name, root)):
            msg = (
                f"{where}, which the project has outside of {folder.name!r}, so the package would lack it: "
                "move it there, or publish it as a package of another name, and name that with --require"
            )
            raise PackageFault(msg)
        if len(installed) > 1 and required.isdisjoint(installed):
            msg = f"{where}, which several packages have: name one of {', '.join(installed)} with --require"
            raise PackageFault(msg)
        if installed and required.isdisjoint(installed):
            found.append(f"{installed[0]}>={version(installed[0])}")
            required.add(installed[0])
    return found


def _goes_along(name: str) -> bool:
    return not (is_left_out(name) or is_test(name) or is_cases(name) or name.endswith((".compiled", ".pyc")))


def _imported(files: Mapping[str, Path], folder: Path) -> dict[str, str]:
    """The modules of others that recipes import, anywhere in them: each with a file that does."""
    skills = tuple(f"{skill}{os.sep}" for skill in find_recipes(str(folder)).skills)
    known = sys.stdlib_module_names | {"promptkit", folder.name}
    return {
        name: path
        for path, file in files.items()
        if path.endswith(".py") and not str(file).startswith(skills)  # agents run those, wherever they do
        for name in _top_names(file)
        if name not in known and not any((file.parent / f"{name}{end}").exists() for end in ("", ".py"))
        if not any((folder / f"{name}{end}").exists() for end in ("", ".py"))
    }


def _top_names(file: Path) -> Iterator[str]:
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):  # nothing that is served imports it
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _is_own(name: str, root: Path) -> bool:
    """Whether a module lies in the project itself, and is not installed there."""
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return False
    places = [] if spec is None else [spec.origin, *(spec.submodule_search_locations or ())]
    return any(
        is_within(os.path.realpath(place), str(root)) and INSTALLED.isdisjoint(Path(place).parts)
        for place in places
        if place is not None
    )
