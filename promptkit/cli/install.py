"""``promptkit install``: put a server of prompts into the configuration of a client."""

from argparse import Namespace

from promptkit.cli import Exit
from promptkit.cli.client_options import carry_out, place_in, server_name
from promptkit.cli.clients.changes import Place, install
from promptkit.cli.clients.documents import text_of
from promptkit.cli.clients.errors import FileRefused, NotOurs
from promptkit.cli.clients.report import print_places
from promptkit.cli.clients.servers import Server, local_server
from promptkit.cli.clients.table import CLIENTS
from promptkit.cli.configured import configured_target
from promptkit.cli.diagnostics import print_error, print_text
from promptkit.cli.output import Output
from promptkit.compiler.lints.client_profiles import client_of

__all__ = ["run"]


def run(options: Namespace, output: Output) -> int:
    """
    Write the entry, or print what would be written; with ``--list``, print which clients have one.

    Raises:
        LoadError: If there is nothing at the target.
    """
    if options.list:
        names = CLIENTS if options.client is None else [options.client]
        print_places([place_in(options, name) for name in names], options.url, output, as_json=options.json)
        return Exit.FINE
    place = place_in(options, options.client, options.scope)
    server = _server(options, place)
    try:
        carry_out(install(place, server), options, output)
    except FileRefused as error:
        print_error(str(error))
        if not isinstance(error, NotOurs):
            text = text_of(place.profile, server.name, server.entry(place.profile))
            print_text(f"it is left as it is; you may write this into it yourself:\n\n{text}")
        return Exit.FAULTY
    return Exit.FINE


def _server(options: Namespace, place: Place) -> Server:
    if options.url is None:
        tools = not client_of(place.client).has_prompts  # else such a client would have nothing of it
        return local_server(server_name(options), configured_target(options), tools=tools)
    client = place.profile
    if client.url is None:
        options.refuse(
            f"argument --url: {client.title} starts the servers of its file itself: {client.instead_of_url}"
        )
    return Server(server_name(options), url=options.url)
