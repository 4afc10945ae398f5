"""What the commands that show recipes share: loading them quietly, and saying what is wrong."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress

from promptkit import compiler
from promptkit.catalog import Catalog
from promptkit.cli.printing import print_diagnostics
from promptkit.loader import load
from promptkit.standard_error import current

__all__ = ["authors_code", "complain", "load_catalog"]


@contextmanager
def authors_code() -> Iterator[None]:
    """
    While authors' code runs, send all that it prints to standard error, children's output too.
    """
    sys.stdout.flush()
    ours = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(ours, 1)
        os.close(ours)


def load_catalog(target: str, *, lint: bool = False) -> Catalog:
    """
    Return the catalog of *target*; what recipes print goes to standard error.

    Args:
        target:
            What the command line names.

        lint:
            Whether to look for what is probably not meant, too.

    Raises:
        LoadError: If there is nothing at *target*.
    """
    with authors_code():
        return compiler.compile(load(target), lint=lint)


def complain(catalog: Catalog) -> None:
    """
    Print on standard error what is wrong with the recipes.
    """
    stream = current()
    with suppress(OSError, ValueError):  # a recipe may have closed it
        if stream is not None:
            print_diagnostics(catalog.diagnostics, stream)
