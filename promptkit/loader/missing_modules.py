"""
Modules that cannot be found: what was meant, or where they were looked for.

What to install is not guessed. Anybody may have made a package that is called as a module of the author's, so
a command names one only if promptkit knows it, or the project declares it.
"""

import ast
import re
import sys
from contextlib import suppress
from pathlib import Path
from pkgutil import iter_modules
from typing import Final

from promptkit.declarations.foreign_names import instead_of
from promptkit.declarations.name_hints import modules_of
from promptkit.errors.distribution import DISTRIBUTION, other_package, pip, quoted
from promptkit.errors.sources import nodes_of, tree_of
from promptkit.errors.suggestions import is_misspelt, nearest
from promptkit.files.regular import is_foreign, read_regular_file
from promptkit.files.toml import parse_toml
from promptkit.loader.discovery import FolderWalk
from promptkit.loader.targets import project_root

__all__ = ["import_from_project", "missing_module"]

#: A repeated letter is probably a typo. Names that differ otherwise, such as http and httpx, may both exist.
_REPEATED: Final = re.compile(r"(.)\1+")

#: How a requirement begins.
_PACKAGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

#: A larger ``pyproject.toml`` is not read.
_MAX_BYTES: Final = 1 << 20

#: How far down in a project a module is searched for, and among how many files and folders at most.
_MAX_DEPTH: Final = 5
_MAX_ENTRIES: Final = 5_000


def missing_module(name: str, file: Path) -> str:
    """Return what to do when *file* imports the module *name*, which cannot be found."""
    parent, _, last = name.rpartition(".")
    if parent.partition(".")[0] == "promptkit" and (other := other_package()) is not None:
        return other
    if (package := sys.modules.get(parent)) is None:
        top = name.partition(".")[0]
        return _in_project(top, file) or _installed_by(top, file) or _not_found(top, file)
    if last in (siblings := modules_of(package)):
        return f"{name} exists, but cannot be imported: see its own error"
    is_beside = file.parent in map(Path, getattr(package, "__path__", ()))
    is_hidden = parent == "promptkit" and not last.startswith("_")
    meant = nearest(last, [other for other in siblings if not (is_hidden and other.startswith("_"))])
    if meant is not None:
        return f"did you mean {meant if is_beside else f'{parent}.{meant}'!r}?"
    if is_beside:
        return f"correct the name: no file beside the recipe is called {last}.py"
    return f"correct the name: {parent!r} has no module {last!r}"


def import_from_project(file: Path, line: int) -> str | None:
    """
    Return what to write in place of a relative import that leads out of the folder that is loaded.

    Args:
        file:
            The file that imports.

        line:
            A line of the statement.

    Returns:
        None if there is no such module in the project.
    """
    tree = tree_of(str(file))
    statements = nodes_of(tree, ast.ImportFrom) if tree is not None else []
    found = next((one for one in statements if one.lineno <= line <= (one.end_lineno or line)), None)
    if found is None or found.level > len(file.parents):
        return None
    place = file.parents[found.level - 1].joinpath(*(found.module or "").split("."))
    root = Path(project_root(file.parent))
    if not place.is_relative_to(root) or not (place.is_dir() or place.with_suffix(".py").is_file()):
        return None
    return _written(place.relative_to(root))


def _written(place: Path) -> str | None:
    """How to import from a file or a folder of the project; None if its path has what no import can name."""
    parts = place.with_suffix("").parts if place.name else ()  # the root itself has no name
    named = bool(parts) and all(part.isidentifier() for part in parts)
    return f"write 'from {'.'.join(parts)} import ...'" if named else None


def _in_project(name: str, file: Path) -> str | None:
    """How to import *name* if it is somewhere in the recipe's project."""
    root, seen, found = project_root(file.absolute().parent), 0, []
    for folder, entries in FolderWalk(root, depth=_MAX_DEPTH, private=True):
        seen += len(entries)
        if seen > _MAX_ENTRIES:
            break
        path, names = Path(folder).relative_to(root), {entry.name for entry in entries}
        if path.name == name and any(other.endswith(".py") for other in names):
            found.append(path)
        if f"{name}.py" in names:
            found.append(path / f"{name}.py")
    for place in sorted(found, key=lambda path: (len(path.parts), path)):
        if (written := _written(place)) is not None:
            return f"it is at {place}, and imports start at the project's root, {root}: {written}"
    return None


def _not_found(name: str, file: Path) -> str:
    """Where a module was looked for, and what is called alike."""
    folder = file.absolute().parent
    looked = (
        f"beside the recipe, in the project's root {project_root(folder)}, or installed for {sys.executable}"
    )
    own = "a module of your own belongs into one of the two folders"
    others = f"if it is a package of somebody else's, check its name, and give that to {pip()}"
    advice = f"there is no {name!r} {looked}: {own}; {others}"
    beside = nearest(name, [path.stem for path in folder.glob("*.py") if path != file])
    if beside is not None:
        return f"did you mean {beside!r}, which is beside the recipe? {advice}"
    modules = (*sys.stdlib_module_names, *(module.name for module in iter_modules()))
    meant = nearest(name, [module for module in modules if not module.startswith("_")])
    if meant is None or not is_misspelt(name, meant):
        return advice
    another = (meant in name or name in meant) and _REPEATED.sub(r"\1", name) != _REPEATED.sub(r"\1", meant)
    return advice if another else f"did you mean {meant!r}? {advice}"


def _installed_by(module: str, file: Path) -> str | None:
    """How to install a module of a package that promptkit knows, or that the project declares."""
    package = instead_of("packages", module)
    if package is None:
        requirements = (*_own_requirements(), *_declared(project_root(file.absolute().parent)))
        names = (found[0] for found in map(_PACKAGE.match, requirements) if found)
        package = next((name for name in names if _normal(name) == _normal(module)), None)
    if package is None:
        return None
    return f"install it: {pip()} {quoted(package)}"


def _normal(name: str) -> str:
    """The name of a package, or of a module, as indexes compare them."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _own_requirements() -> list[str]:
    from importlib.metadata import PackageNotFoundError, requires  # it imports an email parser

    try:
        return requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        return []


def _declared(root: str) -> list[str]:
    """What the ``pyproject.toml`` of a project requires, as far as it can be read."""
    file = Path(root, "pyproject.toml")
    with suppress(OSError, ValueError, AttributeError):
        table = {} if is_foreign(file) else parse_toml(read_regular_file(file, _MAX_BYTES))
        project, tool = table.get("project", {}), table.get("tool", {})
        lists = [
            project.get("dependencies", []),
            *project.get("optional-dependencies", {}).values(),
            *table.get("dependency-groups", {}).values(),
            [*tool.get("poetry", {}).get("dependencies", [])],
        ]
        return [one for each in lists if isinstance(each, list) for one in each if isinstance(one, str)]
    return []
