"""``promptkit uninstall``: take a server of prompts out of the configuration of a client."""

from argparse import Namespace

from promptkit.cli import Exit
from promptkit.cli.client_options import place_in, server_name
from promptkit.cli.clients.changes import uninstall
from promptkit.cli.clients.errors import FileRefused
from promptkit.cli.clients.report import print_change
from promptkit.cli.diagnostics import print_error
from promptkit.cli.output import Output

__all__ = ["run"]


def run(options: Namespace, output: Output) -> int:
    """
    Take the entry out, or print what would be taken out.

    Raises:
        LoadError: If neither a name nor a target says which server is meant.
    """
    place = place_in(options, options.client, options.scope)
    try:
        change = uninstall(place, server_name(options), options.url)
        backup = change.carry_out() if change.is_needed and not options.dry_run else None
    except FileRefused as error:
        print_error(str(error))
        return Exit.FAULTY
    print_change(change, backup, output, is_done=not options.dry_run, as_json=options.json)
    return Exit.FINE
