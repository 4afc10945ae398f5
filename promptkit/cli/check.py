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
    Print every fault with its place and its remedy, as text or as JSON, and whether a built set is stale.

    Raises:
        LoadError: If there is nothing at the target.
    """
    stale = None if options.compiled is None else _why_stale(options)
    catalog = load_catalog(options.target, lint=True)
    if options.json:
        output.print_json(
            {
                "prompts": list(catalog),
                "resources": [resource.uri_template for resource in catalog.resources],
                "diagnostics": [diagnostic.as_data() for diagnostic in catalog.diagnostics],
                **({} if options.compiled is None else {"stale": stale}),
            }
        )
    else:
        print_diagnostics(catalog.diagnostics, output)
        print(_summary(catalog), file=output)
        if stale is not None:
            print(f"{options.compiled} is stale, so run promptkit build again: {stale}", file=output)
    return Exit.FINE if catalog.healthy and stale is None else Exit.FAULTY


def _why_stale(options: Namespace) -> str | None:
    """Why a built set cannot be served, looked for before recipes are imported; None if it can."""
    from promptkit.transports.startup_cache.built import StaleSet, open_built  # only for a built set

    try:
        built = open_built(options.compiled, options.target, None, 0)
    except StaleSet as stale:
        return str(stale)
    built.close()
    return None


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
