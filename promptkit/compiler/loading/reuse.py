"""Reuse: whether modules of an earlier import need not be executed again."""

import sys
from collections.abc import Collection
from types import ModuleType

from promptkit.compiler.loading.executions import Execution
from promptkit.compiler.loading.finders import SourceLoader, namespace_of

__all__ = ["are_in_place"]


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


def _is_ordinary(module: object) -> bool:
    """Whether a module was made of a source file, or is a folder without an ``__init__.py``."""
    names = namespace_of(module)
    loader = getattr(names.get("__spec__"), "loader", None)
    return type(loader) is SourceLoader or ("__path__" in names and names.get("__file__") is None)
