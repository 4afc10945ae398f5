"""Reuse: whether modules of an earlier import need not be executed again."""

import os
import sys
from collections.abc import Collection
from pathlib import Path
from types import ModuleType

from promptkit.compiler.loading.executions import Execution, Executions
from promptkit.compiler.loading.finders import PackageFinder, SourceLoader, namespace_of

__all__ = ["are_in_place", "is_package", "modules_in_place"]


def are_in_place(kept: Collection[Execution], package: str, module: ModuleType) -> bool:
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
    inside = f"{package}."
    others = {name for name in list(sys.modules) if name.startswith(inside)}.difference(
        one.name for one in kept
    )
    return all(_is_ordinary(sys.modules.get(name)) for name in others)


def is_package(name: str, folder: Path) -> bool:
    """Return whether the module of that name is the package in *folder*."""
    names = namespace_of(sys.modules.get(name))
    init = folder / "__init__.py"
    file = str(init) if init.is_file() else None
    return names.get("__file__") == file and str(folder) in map(str, names.get("__path__") or ())


def modules_in_place(name: str, folder: Path, last: PackageFinder | None) -> Executions | None:
    """
    Return the modules of a package that are imported already, from files in its folder.

    Of one that was not imported by *last*, Python does not say which version of the file it was: it is used
    as it is, as every import would use it.

    Args:
        name:
            The name of the package.

        folder:
            Its folder.

        last:
            What has imported it last; None if nothing has.

    Returns:
        The modules; None if the file of one that *last* has imported has changed since.
    """
    if last is not None and last.has_changed:
        return None
    known = {} if last is None else last.executions.by_name
    found = Executions()
    for key, module in list(sys.modules.items()):
        file = namespace_of(module).get("__file__") if f"{key}.".startswith(f"{name}.") else None
        if type(file) is str and file.startswith(os.path.join(str(folder), "")):
            one = known.get(key)
            found.add(one if one is not None and one.module is module else Execution(key, file, module))
    return found


def _is_ordinary(module: object) -> bool:
    """Whether a module was made of a source file, or is a folder without an ``__init__.py``."""
    names = namespace_of(module)
    loader = getattr(names.get("__spec__"), "loader", None)
    return type(loader) is SourceLoader or ("__path__" in names and names.get("__file__") is None)
