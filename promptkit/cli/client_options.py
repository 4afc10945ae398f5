"""What the options of `install` and `uninstall` ask for: a configuration, a server in it, and a change."""

import os
from argparse import Namespace
from urllib.parse import urlsplit

from promptkit.cli.clients.changes import Change, Place
from promptkit.cli.clients.report import print_change
from promptkit.cli.clients.servers import as_name, default_name
from promptkit.cli.clients.table import CLIENTS, Scope
from promptkit.cli.configured import configured_target
from promptkit.cli.output import Output

__all__ = ["carry_out", "place_in", "server_name"]


def place_in(options: Namespace, client: str | None, scope: Scope = "user") -> Place:
    """
    Return the configuration of a client.

    Args:
        options:
            The options of the command, with the project's configuration.

        client:
            The client, as in `CLIENTS`.

        scope:
            What it holds for.

    Raises:
        SystemExit: If no client is named, or if it has no configuration of that scope.
    """
    if client is None:
        options.refuse(f"name a client: {', '.join(CLIENTS)}")
    place = Place(str(client), scope, _project(options))
    if scope not in place.profile.scopes:
        options.refuse(f"argument --scope: {place.profile.title} has no configuration of a {scope}")
    return place


def server_name(options: Namespace) -> str:
    """
    Return what the client calls the server: what is told, or as the project, or as the host.

    Raises:
        LoadError: If nothing says so.

        SystemExit: If a target is told, too, where a server has a URL.
    """
    if options.url is not None and options.has_target:
        options.refuse(f"unexpected argument {options.target!r}: what is served at --url is known there")
    if options.name is not None:
        return str(options.name)
    if options.url is not None:
        return as_name(urlsplit(options.url).hostname or "")
    return default_name(configured_target(options))


def carry_out(change: Change, options: Namespace, output: Output) -> None:
    """
    Carry out a change if there is something to do, and print it; with ``--dry-run``, print it alone.

    Args:
        change:
            What would be changed.

        options:
            The options of the command.

        output:
            Where to print.

    Raises:
        FileRefused: If it cannot be carried out.
    """
    backup = change.carry_out() if change.is_needed and not options.dry_run else None
    print_change(change, backup, output, is_done=not options.dry_run, as_json=options.json)


def _project(options: Namespace) -> str:
    """The folder of the project: that of its configuration, else the current one."""
    file = options.configuration.file
    return os.path.dirname(file) if file else os.getcwd()  # noqa: PTH109, PTH120 (text)
