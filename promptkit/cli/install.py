"""``promptkit install`` and ``uninstall``: a server of prompts, or skills, where a client looks for them."""

import os
from argparse import Namespace
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from promptkit.cli import Exit
from promptkit.cli.clients.changes import EntryChange, change_of
from promptkit.cli.clients.configurations import ConfigurationFile, Scope, ServerTable, read_servers
from promptkit.cli.clients.files import FileRefused, NotOurs
from promptkit.cli.clients.servers import (
    InstalledServer,
    as_name,
    command_in,
    default_name,
    is_ours,
    local_server,
    url_in,
)
from promptkit.cli.diagnostics import print_error, print_text
from promptkit.cli.options import configured_targets
from promptkit.cli.output import Output
from promptkit.compiler.client_profiles import INSTALLABLE, client_of
from promptkit.errors.exceptions import LoadError
from promptkit.fragments.shell_words import command_line

__all__ = ["run"]


def run(options: Namespace, output: Output) -> int:
    """
    Put the entry in, or take it out, or print what would be changed; with ``--list``, print which there are.

    Raises:
        LoadError: If there is nothing at the target, or nothing says which server is meant.
    """
    if options.list:
        names = INSTALLABLE if options.client is None else [options.client]
        _print_clients([_place_in(options, name) for name in names], options, output)
        return Exit.FINE
    if options.client is None:
        options.refuse(f"name a client: {', '.join(INSTALLABLE)}")
    place = _place_in(options, options.client, options.scope)
    if options.skills:
        from promptkit.cli.install_skills import change_skills  # most installs are of servers

        return change_skills(options, place, output)
    if options.scope not in place.scopes:
        options.refuse(f"argument --scope: {place.title} has no configuration of a {options.scope}")
    return _change(options, place, output)


def _place_in(options: Namespace, client: str, scope: Scope = "user") -> ConfigurationFile:
    """The configuration of a client, for the project that the current folder belongs to."""
    file = options.configuration.file
    project = os.path.dirname(file) if file else os.getcwd()  # noqa: PTH109, PTH120 (text)
    return ConfigurationFile(client, scope, project)


def _change(options: Namespace, place: ConfigurationFile, output: Output) -> int:
    """Put a server in, or take it out; if a file is left as it is, show what may be written by hand."""
    name = _server_name(options)
    server = _server(options, place, name) if options.command == "install" else None
    try:
        _carry_out(change_of(place, name, server, options.url), options, output)
    except FileRefused as error:
        print_error(f"{place.path}{error.place}: {error}")
        if server is not None and not isinstance(error, NotOurs):
            text = ServerTable(place.settings, "").changed(name, server.entry(place.settings))
            print_text(f"it is left as it is; you may write this into it yourself:\n\n{text}")
        return Exit.FAULTY
    return Exit.FINE


def _server_name(options: Namespace) -> str:
    """What the client calls the server: what the options say, or as the project, or as the host."""
    if options.url is not None and options.has_targets:
        options.refuse(f"unexpected argument {options.targets[0]!r}: what is served at --url is known there")
    if options.name is not None:
        return str(options.name)
    if options.url is not None:
        return as_name(urlsplit(options.url).hostname or "")
    try:
        return default_name(configured_targets(options))
    except LoadError as error:
        if options.command == "install":
            raise
        raise LoadError(error.target, f"{error.reason}; or name the server by --name") from None


def _server(options: Namespace, place: ConfigurationFile, name: str) -> InstalledServer:
    if options.url is None:
        tools = not client_of(place.client).has_prompts  # else such a client would have nothing of it
        return local_server(name, configured_targets(options), tools=tools)
    if place.settings.url is None:
        remedy = place.settings.instead_of_url
        options.refuse(f"argument --url: {place.title} starts the servers of its file itself: {remedy}")
    return InstalledServer(name, url=options.url)


def _carry_out(change: EntryChange, options: Namespace, output: Output) -> None:
    """Carry out a change if there is something to do, and print it; with ``--dry-run``, print it alone."""
    is_done = not options.dry_run
    backup = change.carry_out() if change.is_needed and is_done else None
    if options.json:
        output.print_json(_change_data(change, backup, is_done=is_done))
    else:
        output.print_lines(_change_lines(change, backup, is_done=is_done))


def _change_data(change: EntryChange, backup: Path | None, *, is_done: bool) -> dict[str, Any]:
    return {
        "client": change.place.client,
        "scope": change.place.scope,
        "file": str(change.place.path),
        "name": change.name,
        "entry": change.entry,
        "changed": change.is_needed and is_done,
        "backup": None if backup is None else str(backup),
        "diff": change.diff,
        "commands": change.commands,
    }


def _change_lines(change: EntryChange, backup: Path | None, *, is_done: bool) -> Iterator[str]:
    title, is_added = change.place.title, change.entry is not None
    if not change.is_needed:
        yield f"{title} has {'the' if is_added else 'no'} server {change.name!r}: nothing to change"
    elif is_done:
        yield f"{title} {'has' if is_added else 'no longer has'} the server {change.name!r}"
    elif change.commands:
        yield from map(command_line, change.commands)
    else:
        yield from change.diff.splitlines()
    if is_done or not change.is_needed:
        yield f"    file: {change.place.path}"
    if backup is not None:
        yield f"    backup: {backup}"
    if not change.client_found:
        yield f"    {title} itself was not found on this machine"
    elif is_done and change.is_needed:
        yield f"    if {title} is running, start it again"


def _print_clients(places: Iterable[ConfigurationFile], options: Namespace, output: Output) -> None:
    """Print which clients there are, where their configurations lie, and their servers of promptkit's."""
    data = [_client_data(place, options.url) for place in places]
    if options.json:
        output.print_json({"clients": data})
    else:
        output.print_lines(chain.from_iterable(map(_client_lines, data)))


def _client_data(place: ConfigurationFile, url: str | None) -> dict[str, Any]:
    """A client; *url* is known to be that of a server of promptkit's."""
    files = [ConfigurationFile(place.client, scope, place.project) for scope in place.scopes]
    return {
        "client": place.client,
        "title": place.title,
        "found": place.client_is_found,
        "configurations": {file.scope: _configuration_data(file, url) for file in files},
    }


def _configuration_data(place: ConfigurationFile, url: str | None) -> dict[str, Any]:
    data: dict[str, Any] = {"file": str(place.path), "exists": place.path.exists(), "servers": {}}
    try:
        entries = read_servers(place)
    except FileRefused as error:
        return {**data, "error": f"{place.path}{error.place}: {error}"}
    ours = {name: entry for name, entry in entries.items() if is_ours(place.settings, entry, url)}
    return {**data, "servers": ours}


def _client_lines(client: dict[str, Any]) -> Iterator[str]:
    settings = INSTALLABLE[client["client"]]
    yield f"{client['client']}: {'found' if client['found'] else 'not found'}"
    for scope, found in client["configurations"].items():
        if scope == "project" and not found["exists"]:
            continue
        yield f"    {scope}: {found['file']}{'' if found['exists'] else ' (does not exist)'}"
        if "error" in found:
            yield f"        {found['error']}"
        for name, entry in found["servers"].items():
            started = url_in(settings, entry) or command_line(command_in(settings, entry) or ())
            yield f"        {name}: {started}"
