"""``promptkit check``: report every fault in the recipes."""

from argparse import Namespace

from promptkit.catalog.catalog import Catalog
from promptkit.cli import Exit
from promptkit.cli.diagnostics import print_diagnostics
from promptkit.cli.loading import load_catalog
from promptkit.cli.output import Output
from promptkit.errors.diagnostics import Severity

__all__ = ["run"]


def run(options: Namespace, output: Output) -> int:
    """
    Print every fault with its place and its remedy, as text or as JSON.

    Raises:
        LoadError: If there is nothing at the target.
    """
    catalog = load_catalog(options.target, lint=True)
    if options.json:
        output.print_json(
            {
                "prompts": list(catalog),
                "resources": [resource.uri_template for resource in catalog.resources],
                "diagnostics": [diagnostic.as_data() for diagnostic in catalog.diagnostics],
            }
        )
    else:
        print_diagnostics(catalog.diagnostics, output)
        print(_summary(catalog), file=output)
    return Exit.FINE if catalog.healthy else Exit.FAULTY


def _summary(catalog: Catalog) -> str:
    served = [_counted(len(catalog.resources), "resource")] if catalog.resources else []
    if len(catalog) or not served:
        served.insert(0, _counted(len(catalog), "prompt"))
    severities = [diagnostic.severity for diagnostic in catalog.diagnostics]
    found = [
        _counted(severities.count(severity), severity.value)
        for severity in Severity
        if severity in severities
    ]
    return ", ".join([f"{' and '.join(served)} can be served", *found])


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
