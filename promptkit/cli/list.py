"""``promptkit list``: show the prompts and their arguments."""

from argparse import Namespace

from promptkit.catalog import Catalog
from promptkit.cli import Exit
from promptkit.cli.recipes import complain, load_catalog

__all__ = ["run"]


def run(options: Namespace) -> int:
    """
    Print every prompt, as a table or as JSON.

    Raises:
        LoadError: If there is nothing at the target.
    """
    catalog = load_catalog(options.target)
    if options.json:
        _print_json(catalog)
    else:
        _print_table(catalog)
    complain(catalog)
    return Exit.FINE if catalog.healthy else Exit.FAULTY


def _print_json(catalog: Catalog) -> None:
    """
    Print the listing as the newest client of a handshake receives it.
    """
    import msgspec

    from promptkit.protocol.lowering import lowering_for
    from promptkit.protocol.pages import pages_of
    from promptkit.protocol.revisions import LATEST_HANDSHAKE

    whole = max(len(catalog), 1)
    listing = pages_of("prompts/list", catalog, lowering_for(LATEST_HANDSHAKE), whole).page()
    print(msgspec.json.format(listing, indent=2).decode())


def _print_table(catalog: Catalog) -> None:
    """
    Print the listing for people; arguments that may be left out stand in brackets.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("prompt", "arguments", "description", box=box.SIMPLE_HEAD, pad_edge=False)
    for prompt in catalog.prompts:
        arguments = [a.name if a.required else f"[{a.name}]" for a in prompt.arguments.ordered]
        # Text, because rich would read brackets as markup.
        table.add_row(prompt.name, Text(" ".join(arguments)), Text(prompt.description or ""))
    console = Console()
    if not console.is_terminal:
        console.width = 1000  # for grep and the like: one line a prompt, nothing cut
    console.print(table)
