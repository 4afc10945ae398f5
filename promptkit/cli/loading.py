"""Loading of recipes for a command, and printing of their diagnostics."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from promptkit import compiler
from promptkit.catalog.catalog import Catalog
from promptkit.cli.diagnostics import print_error, report_diagnostics
from promptkit.errors.diagnostics import printable
from promptkit.errors.exceptions import LoadError
from promptkit.errors.rules import Rule
from promptkit.loader.import_thread import timed_imports
from promptkit.loader.loader import load
from promptkit.loader.recipes import Recipes
from promptkit.loader.targets import locate_target
from promptkit.standard_error import say, stderr_stream

#: How many hidden items are named.
_MAX_NAMED: Final = 5

#: The message if recipes with errors are served with ``--strict``.
REFUSED_BY_STRICT: Final = (
    "nothing is served because of --strict: fix the faults above, or leave out the option"
)


def load_recipes(targets: Sequence[str], *, cases: bool = False) -> Recipes:
    """
    Import the recipes at *targets*.

    Args:
        targets:
            Folders, files, modules, or module:object.

        cases:
            Whether to import case files as well.

    Raises:
        LoadError: If a target does not exist, or cannot be read.
    """
    try:
        with timed_imports() as importing:
            return load(targets, importing=importing, cases=cases)
    except OSError as error:
        raise LoadError(" ".join(targets), error.strerror or str(error)) from None
    finally:
        stderr_stream()  # reopens standard error if a recipe removed it: `Thread` needs it


def check_existence(targets: Iterable[str]) -> None:
    """
    Check that all targets exist, so that a missing target is the first error a command reports.

    Raises:
        LoadError: If a target is neither a folder, nor a file, nor a module.
    """
    for target in targets:
        if locate_target(target) is None:
            load_recipes([target])


def load_catalog(targets: Sequence[str], ignore: Collection[Rule] = (), *, lint: bool = False) -> Catalog:
    """
    Import and compile the recipes at *targets*.

    Args:
        targets:
            Folders, files, modules, or module:object.

        ignore:
            The rules whose diagnostics are omitted.

        lint:
            Whether to report probable mistakes and import the case files as well.

    Raises:
        LoadError: If a target does not exist, or cannot be read.
    """
    return _without_ignored(compiler.compile(load_recipes(targets, cases=lint), lint=lint), ignore)


def _without_ignored(catalog: Catalog, ignore: Collection[Rule]) -> Catalog:
    """Return *catalog* without the diagnostics of ignored rules."""
    return catalog.with_diagnostics(d for d in catalog.diagnostics if d.rule not in ignore)


def report_faults(catalog: Catalog, ignore: Collection[Rule] = ()) -> None:
    """Print the diagnostics of a catalog on standard error, except those with ignored rules."""
    report_diagnostics(_without_ignored(catalog, ignore).diagnostics)


def report_hidden(catalog: Catalog, scopes: frozenset[str] | None) -> None:
    """Report on standard error which items are hidden because no scopes were configured."""
    if scopes is not None or not (requirements := catalog.requirements):
        return
    needed = " ".join(sorted(frozenset().union(*requirements)))
    names = [printable(item.name) for item in catalog.scoped]
    more = [f"{len(names) - _MAX_NAMED} more"] if len(names) > _MAX_NAMED else []
    say(
        f"hidden because they need scopes: {', '.join([*names[:_MAX_NAMED], *more])}; "
        f"serve with --scopes '{needed}' to show all of them, or with --scopes '' to silence this"
    )


def load_for_files(targets: Sequence[str]) -> Catalog | None:
    """
    Load the recipes for a command that writes files, and report their diagnostics and hidden items.

    Returns:
        The catalog without items that need scopes; None if the recipes have errors; the errors are reported.

    Raises:
        LoadError: If a target does not exist, or cannot be read.
    """
    catalog = load_catalog(targets)
    report_faults(catalog)
    if not catalog.healthy:
        print_error("nothing was written: fix the faults above")
        return None
    report_hidden(catalog, None)
    return catalog.visible_to(frozenset())
