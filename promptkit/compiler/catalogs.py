"""Targets: whatever can be served becomes a catalog, as tests and servers of others are given it."""

from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from promptkit import compiler
from promptkit.catalog.catalog import Catalog
from promptkit.compiler.loading.loader import load
from promptkit.compiler.prompts import Prompt
from promptkit.compiler.recipes import Recipes
from promptkit.compiler.resources import Resource
from promptkit.errors.exceptions import CompileError

__all__ = ["Target", "catalog_of", "sound"]

#: What can be served: a folder, a file, a module, a catalog, or prompts and resources.
Target: TypeAlias = (
    str
    | Path
    | ModuleType
    | Catalog
    | Prompt[..., Any]
    | Resource[..., Any]
    | Iterable[Prompt[..., Any] | Resource[..., Any]]
)


def catalog_of(target: Target) -> Catalog:
    """
    Return the catalog of *target*, with the faults that were found.

    Raises:
        LoadError: If there is nothing at *target*.
    """
    if isinstance(target, Catalog):
        return target
    if isinstance(target, ModuleType):
        target = target.__name__
    if isinstance(target, str | Path):
        return compiler.compile(load(target))
    made = [target] if isinstance(target, Prompt | Resource) else list(target)
    return compiler.compile(
        Recipes(
            [one for one in made if isinstance(one, Prompt)],
            [one for one in made if isinstance(one, Resource)],
        )
    )


def sound(catalog: Catalog) -> Catalog:
    """
    Return *catalog*. Raises `CompileError` if something is missing in it.
    """
    if not catalog.healthy:
        raise CompileError(catalog.diagnostics)
    return catalog
