"""Loading recipes for a command, and printing what is wrong with them."""

from collections.abc import Collection

import attrs

from promptkit import compiler
from promptkit.catalog.catalog import Catalog
from promptkit.compiler.loading.loader import Recipes, load
from promptkit.errors.diagnostics import Rule
from promptkit.errors.exceptions import LoadError
from promptkit.errors.standard_error import stderr_stream

__all__ = ["load_catalog", "load_recipes", "report_faults", "without_ignored"]


def load_recipes(target: str) -> Recipes:
    """
    Import the recipes at *target*.

    Raises:
        LoadError: If *target* does not exist, or cannot be read.
    """
    try:
        return load(target)
    except OSError as error:
        raise LoadError(target, error.strerror or str(error)) from None
    finally:
        stderr_stream()  # reopens standard error if a recipe removed it: `Thread` needs it


def load_catalog(target: str, ignore: Collection[Rule] = (), *, lint: bool = False) -> Catalog:
    """
    Import and compile the recipes at *target*.

    Args:
        target:
            A folder, a file, a module, or module:object.

        ignore:
            The rules whose diagnostics are left out.

        lint:
            Whether to report probable mistakes, too.

    Raises:
        LoadError: If there is nothing at *target*.
    """
    return without_ignored(compiler.compile(load_recipes(target), lint=lint), ignore)


def without_ignored(catalog: Catalog, ignore: Collection[Rule]) -> Catalog:
    """Return *catalog* without the diagnostics of some rules."""
    if not ignore:
        return catalog
    return attrs.evolve(catalog, diagnostics=tuple(d for d in catalog.diagnostics if d.rule not in ignore))


def report_faults(catalog: Catalog, ignore: Collection[Rule] = ()) -> None:
    """Print what is wrong with the recipes on standard error, but for the rules that are ignored."""
    catalog = without_ignored(catalog, ignore)
    if catalog.diagnostics:
        from promptkit.cli.diagnostics import report_diagnostics  # slow to import, and mostly not needed

        report_diagnostics(catalog.diagnostics)
