"""What the commands that show recipes share: loading them, and saying what is wrong."""

from promptkit import compiler
from promptkit.catalog.catalog import Catalog
from promptkit.compiler.loading.loader import Recipes, load
from promptkit.errors.exceptions import LoadError
from promptkit.errors.standard_error import stderr_stream

__all__ = ["complain", "load_catalog", "load_recipes"]


def load_recipes(target: str) -> Recipes:
    """
    Return what is found at *target*.

    Raises:
        LoadError: If there is nothing, or nothing that can be read.
    """
    try:
        return load(target)
    except OSError as error:
        raise LoadError(target, error.strerror or str(error)) from None
    finally:
        stderr_stream()  # no thread can be started without


def load_catalog(target: str, *, lint: bool = False) -> Catalog:
    """
    Return the catalog of *target*.

    Args:
        target:
            What the command line names.

        lint:
            Whether to look for what is probably not meant, too.

    Raises:
        LoadError: If there is nothing at *target*.
    """
    return compiler.compile(load_recipes(target), lint=lint)


def complain(catalog: Catalog) -> None:
    """
    Print on standard error what is wrong with the recipes.
    """
    if catalog.diagnostics:
        from promptkit.cli.diagnostics import complain_of  # a server starts sooner without

        complain_of(catalog.diagnostics)
