"""What the commands that show recipes share: loading them quietly, and saying what is wrong."""

import sys
from contextlib import redirect_stdout

from promptkit import compiler
from promptkit.catalog import Catalog
from promptkit.loader import load

__all__ = ["complain", "load_catalog"]


def load_catalog(target: str) -> Catalog:
    """
    Return the catalog of *target*; what recipes print goes to standard error.

    Raises:
        LoadError: If there is nothing at *target*.
    """
    with redirect_stdout(sys.stderr):
        return compiler.compile(load(target))


def complain(catalog: Catalog) -> None:
    """
    Print on standard error what is wrong with the recipes.
    """
    for diagnostic in catalog.diagnostics:
        print(diagnostic, file=sys.stderr)
