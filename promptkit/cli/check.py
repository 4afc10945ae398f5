"""``promptkit check``: report every fault in the recipes."""

from argparse import Namespace

from promptkit.catalog import Catalog
from promptkit.cli import Exit
from promptkit.cli.recipes import load_catalog

__all__ = ["run"]


def run(options: Namespace) -> int:
    """
    Print every fault with its place and its remedy, for people or for machines.

    Raises:
        LoadError: If there is nothing at the target.
    """
    catalog = load_catalog(options.target)
    if options.json:
        import msgspec

        data = {
            "prompts": list(catalog),
            "diagnostics": [diagnostic.as_data() for diagnostic in catalog.diagnostics],
        }
        print(msgspec.json.format(msgspec.json.encode(data), indent=2).decode())
    else:
        for diagnostic in catalog.diagnostics:
            print(diagnostic)
        print(_summary(catalog))
    return Exit.FINE if catalog.healthy else Exit.FAULTY


def _summary(catalog: Catalog) -> str:
    """
    Return how many prompts and faults there are, in one line.
    """
    prompts, faults = len(catalog), len(catalog.diagnostics)
    counted = f"{prompts} prompt{'' if prompts == 1 else 's'} can be served"
    return f"{counted}, {faults} fault{'' if faults == 1 else 's'} found" if faults else counted
