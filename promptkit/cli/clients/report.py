"""Printing what stands in clients' configurations, and what was changed there, as text or as JSON."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from promptkit.cli.clients.changes import Change, Place, read_servers
from promptkit.cli.clients.errors import FileRefused
from promptkit.cli.clients.servers import command_in, is_ours, url_in
from promptkit.cli.clients.table import CLIENTS
from promptkit.cli.output import Output
from promptkit.fragments.invisible import escape_invisible
from promptkit.fragments.shell_words import command_line

__all__ = ["print_change", "print_places"]


def print_change(
    change: Change, backup: Path | None, output: Output, *, is_done: bool, as_json: bool
) -> None:
    """
    Print what was changed, or would be.

    Args:
        change:
            The change.

        backup:
            Where the file as it was is kept.

        output:
            Where to print.

        is_done:
            Whether it was carried out; if not, the diff is printed.

        as_json:
            Whether to print JSON.
    """
    if as_json:
        output.print_json(_change_data(change, backup, is_done=is_done))
        return
    for line in _change_lines(change, backup, is_done=is_done):
        print(escape_invisible(line), file=output)


def print_places(places: Iterable[Place], url: str | None, output: Output, *, as_json: bool) -> None:
    """
    Print which clients there are, where their configurations lie, and the servers of promptkit's in them.

    Args:
        places:
            The clients, each with the scope ``user``.

        url:
            A URL that is known to be a server of promptkit's.

        output:
            Where to print.

        as_json:
            Whether to print JSON.
    """
    data = [_client_data(place, url) for place in places]
    if as_json:
        output.print_json({"clients": data})
        return
    for client in data:
        print(f"{client['client']}: {'found' if client['found'] else 'not found'}", file=output)
        for line in _configuration_lines(client):
            print(escape_invisible(line), file=output)


def _change_data(change: Change, backup: Path | None, *, is_done: bool) -> dict[str, Any]:
    return {
        "client": change.place.client,
        "scope": change.place.scope,
        "file": str(change.contents.file),
        "name": change.name,
        "entry": change.entry,
        "changed": change.is_needed and is_done,
        "backup": None if backup is None else str(backup),
        "diff": change.diff,
        "commands": change.commands,
    }


def _change_lines(change: Change, backup: Path | None, *, is_done: bool) -> Iterator[str]:
    client, is_added = change.place.profile, change.entry is not None
    if not change.is_needed:
        yield f"{client.title} has {'the' if is_added else 'no'} server {change.name!r}: nothing to change"
    elif is_done:
        yield f"{client.title} {'has' if is_added else 'no longer has'} the server {change.name!r}"
    elif change.commands:
        yield from map(command_line, change.commands)
    else:
        yield from change.diff.splitlines()
    if is_done or not change.is_needed:
        yield f"    file: {change.contents.file}"
    if backup is not None:
        yield f"    backup: {backup}"
    if not change.client_found:
        yield f"    {client.title} itself was not found on this machine"
    elif is_done and change.is_needed:
        yield f"    if {client.title} is running, start it again"


def _client_data(place: Place, url: str | None) -> dict[str, Any]:
    client = place.profile
    places = [Place(place.client, scope, place.project) for scope in client.scopes]
    configurations = {one.scope: _configuration_data(one, url) for one in places}
    return {
        "client": place.client,
        "title": client.title,
        "found": client.is_found,
        "configurations": configurations,
    }


def _configuration_data(place: Place, url: str | None) -> dict[str, Any]:
    data: dict[str, Any] = {"file": str(place.file), "exists": place.file.exists(), "servers": {}}
    try:
        _, _, table = read_servers(place)
    except FileRefused as error:
        return {**data, "error": str(error)}
    ours = {name: entry for name, entry in table.entries.items() if is_ours(place.profile, entry, url)}
    return {**data, "servers": ours}


def _configuration_lines(client: dict[str, Any]) -> Iterator[str]:
    profile = CLIENTS[client["client"]]
    for scope, found in client["configurations"].items():
        if scope == "project" and not found["exists"]:
            continue
        yield f"    {scope}: {found['file']}{'' if found['exists'] else ' (does not exist)'}"
        if "error" in found:
            yield f"        {found['error']}"
        for name, entry in found["servers"].items():
            started = url_in(profile, entry) or command_line(command_in(profile, entry) or ())
            yield f"        {name}: {started}"
