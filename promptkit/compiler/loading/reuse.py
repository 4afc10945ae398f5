"""Reuse: which modules of an earlier import need not be executed again."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from msgspec import Struct

from promptkit.compiler.loading.executions import Execution, Executions
from promptkit.compiler.loading.finders import SourceLoader, namespace_of

__all__ = ["ChangedModules", "are_in_place", "changed_modules"]


class ChangedModules(Struct, frozen=True):
    """
    What changed files mean to the modules of a package.

    Args:
        names:
            The modules that have changed, that are new or gone, or that have read such a file.

        others:
            Whether other files than those of known modules have changed.
    """

    names: frozenset[str]
    others: bool


def changed_modules(
    changed: Iterable[str], package: str, folder: Path, executions: Executions
) -> ChangedModules | None:
    """
    Return what changed files mean to the modules of a package; None if that cannot be told.

    Args:
        changed:
            The paths of the files.

        package:
            The name of the package.

        folder:
            Its folder.

        executions:
            How its modules were executed.
    """
    readers = _readers(executions)
    sources = {execution.file: execution.name for execution in executions}
    names, others = set[str](), False
    for path in changed:
        names.update(reading := readers.get(path, ()))
        if path in sources:
            names.add(sources[path])
        elif path.endswith(".py") and path.startswith(os.path.join(str(folder), "")):
            names.update(_names_of(path, package, folder))
            others = True
        elif reading:
            others = True
        else:
            return None
    return ChangedModules(frozenset(names), others)


def are_in_place(kept: Iterable[Execution], package: str, module: ModuleType) -> bool:
    """
    Return whether modules are still what imports find, and nothing else was put beside them.

    Args:
        kept:
            How the modules were executed.

        package:
            The name of their package.

        module:
            The package.
    """
    if sys.modules.get(package) is not module:
        return False
    if any(sys.modules.get(one.name) is not one.module for one in kept):
        return False
    return all(_is_ordinary(one) for name, one in list(sys.modules.items()) if _is_below(name, package))


def _readers(executions: Executions) -> dict[str, list[str]]:
    """The modules that have read each file while they were executed."""
    readers: dict[str, list[str]] = {}
    for execution in executions:
        for path in execution.read:
            readers.setdefault(str(path), []).append(execution.name)
    return readers


def _names_of(path: str, package: str, folder: Path) -> set[str]:
    """The modules that a file may make, or unmake: with it, a folder becomes a package or is one no more."""
    place = Path(path).with_suffix("")
    if place.name == "__init__":
        place = place.parent
    parts = place.relative_to(folder).parts
    names = {".".join((package, *parts))}
    for count in range(1, len(parts)):
        above = ".".join((package, *parts[:count]))
        if above not in sys.modules or not folder.joinpath(*parts[:count]).is_dir():
            names.add(above)
    return names


def _is_below(name: str, package: str) -> bool:
    return name.startswith(f"{package}.")


def _is_ordinary(module: object) -> bool:
    """Whether a module was made of a source file, or is a folder without an ``__init__.py``."""
    names = namespace_of(module)
    loader = getattr(names.get("__spec__"), "loader", None)
    return type(loader) is SourceLoader or ("__path__" in names and names.get("__file__") is None)
