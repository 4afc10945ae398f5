"""``promptkit uninstall``: take a server of prompts out of the configuration of a client."""

from argparse import Namespace

from promptkit.cli import Exit
from promptkit.cli.client_options import carry_out, place_in, server_name
from promptkit.cli.clients.changes import uninstall
from promptkit.cli.clients.errors import FileRefused
from promptkit.cli.diagnostics import print_error
from promptkit.cli.output import Output
from promptkit.errors.exceptions import LoadError

__all__ = ["run"]


def run(options: Namespace, output: Output) -> int:
    """
    Take the entry out, or print what would be taken out.

    Raises:
        LoadError: If neither a name nor a target says which server is meant.
    """
    place = place_in(options, options.client, options.scope)
    try:
        carry_out(uninstall(place, _name(options), options.url), options, output)
    except FileRefused as error:
        print_error(str(error))
        return Exit.FAULTY
    return Exit.FINE


def _name(options: Namespace) -> str:
    try:
        return server_name(options)
    except LoadError as error:  # the prompts may be gone
        raise LoadError(error.target, f"{error.reason}; or name the server by --name") from None
