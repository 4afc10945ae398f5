"""``promptkit check``: report every fault in the recipes."""

import sys
from argparse import Namespace

from promptkit.catalog import Catalog
from promptkit.cli import Exit
from promptkit.cli.printing import print_diagnostics
from promptkit.cli.recipes import load_catalog
from promptkit.diagnostics import Severity

__all__ = ["run"]


def run(options: Namespace) -> int:
    """
    Print every fault with its place and its remedy, for people or for machines.

    Raises:
        LoadError: If there is nothing at the target.
    """
    catalog = load_catalog(options.target, lint=True)
    if options.json:
        import msgspec

        data = {
            "prompts": list(catalog),
            "diagnostics": [diagnostic.as_data() for diagnostic in catalog.diagnostics],
        }
        print(msgspec.json.format(msgspec.json.encode(data), indent=2).decode())
    else:
        print_diagnostics(catalog.diagnostics, sys.stdout)
        print(_summary(catalog))
    return Exit.FINE if catalog.healthy else Exit.FAULTY


def _summary(catalog: Catalog) -> str:
    """
    Return how many prompts, errors and warnings there are, in one line.
    """
    severities = [diagnostic.severity for diagnostic in catalog.diagnostics]
    found = [
        _counted(severities.count(severity), severity.value)
        for severity in Severity
        if severity in severities
    ]
    return ", ".join([f"{_counted(len(catalog), 'prompt')} can be served", *found])


def _counted(number: int, noun: str) -> str:
    """
    Return *number* and *noun*, in the plural where it is due.
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"
