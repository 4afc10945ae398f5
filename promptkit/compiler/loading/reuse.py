"""Reuse: whether modules of an earlier import need not be executed again."""

import os
import sys
from collections.abc import Collection
from pathlib import Path
from types import ModuleType

from promptkit.compiler.loading.executions import Execution, Executions
from promptkit.compiler.loading.finders import PackageFinder, SourceLoader, active_finders, namespace_of
from promptkit.compiler.loading.project_finder import project_finders
from promptkit.compiler.prompts import imported_prompts

__all__ = ["are_in_place", "modules_in_place"]


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
        The modules; None if the package is another, if the file of a module that *last* has imported has
        changed since, or if a module of the project is gone that they may hold.
    """
    is_complete = all(project.is_complete for project in project_finders(active_finders()))
    if not is_complete or not _is_package(name, folder) or (last is not None and last.has_changed):
        return None
    known = {} if last is None else last.executions.by_name
    found = Executions()
    for key, module in list(sys.modules.items()):
        file = namespace_of(module).get("__file__") if f"{key}.".startswith(f"{name}.") else None
        if type(file) is str and file.startswith(os.path.join(str(folder), "")):
            one = known.get(key)
            if one is None or one.module is not module:
                one = Execution(key, file, module, made=list(imported_prompts.get(module, ())))
            found.add(one)
    return found


def _is_package(name: str, folder: Path) -> bool:
    """Whether the module of that name is the package in *folder*."""
    names = namespace_of(sys.modules.get(name))
    init = folder / "__init__.py"
    file = str(init) if init.is_file() else None
    return names.get("__file__") == file and str(folder) in map(str, names.get("__path__") or ())


def _is_ordinary(module: object) -> bool:
    """Whether a module was made of a source file, or is a folder without an ``__init__.py``."""
    names = namespace_of(module)
    loader = getattr(names.get("__spec__"), "loader", None)
    return type(loader) is SourceLoader or ("__path__" in names and names.get("__file__") is None)
