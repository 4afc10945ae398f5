"""``promptkit install`` and ``uninstall``: a server of prompts, or skills, where clients look for them."""

import os
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from promptkit.cli import Exit
from promptkit.cli.diagnostics import print_error, print_text
from promptkit.cli.install_list import lines_of_others, print_clients
from promptkit.cli.install_skills import change_skills
from promptkit.cli.options import configured_targets
from promptkit.cli.output import Output
from promptkit.cli.serve_arguments import given_options, served_words, with_options
from promptkit.clients.changes import EntryChange, plan_change
from promptkit.clients.configurations import ConfigurationFile, Scope, ServerTable, read_servers
from promptkit.clients.profiles import INSTALLABLE, get_client
from promptkit.clients.servers import (
    InstalledServer,
    as_name,
    command_in,
    default_name,
    is_ours,
    local_server,
    served_in,
    variables_in,
)
from promptkit.errors.exceptions import LoadError
from promptkit.files.writing import FileRefusedError, ForeignEntryError
from promptkit.fragments.invisible import escape_invisible
from promptkit.fragments.shell_words import command_line

#: What is put in, for the entry that is there; None if that is taken out.
_Server: TypeAlias = Callable[[Any], InstalledServer] | None


def run(options: Namespace, output: Output) -> int:
    """
    Put entries in, or take them out, or print what would be changed; with ``--list``, print which there are.

    Raises:
        LoadError: If there is nothing at the target, or nothing says which server is meant.
    """
    if options.list:
        places = [_place_in(options, name) for name in options.clients or INSTALLABLE]
        print_clients(places, options.url, output, as_json=options.json)
        return Exit.FINE
    if not options.clients and not options.all:
        more = ", or --all" if options.command == "uninstall" else ""
        options.refuse(f"name a client: {', '.join(INSTALLABLE)}{more}")
    places = [_place_in(options, name, options.scope) for name in options.clients or INSTALLABLE]
    if options.skills:
        return change_skills(options, places, output)
    return _change(options, places, output)


def _place_in(options: Namespace, client: str, scope: Scope = "user") -> ConfigurationFile:
    """The configuration of a client, for the project that the current folder belongs to."""
    file = options.configuration.file
    project = os.path.dirname(file) if file else os.getcwd()  # noqa: PTH109, PTH120 (text)
    return ConfigurationFile(client, scope, project)


def _change(options: Namespace, places: list[ConfigurationFile], output: Output) -> int:
    """Put a server into configurations, or take it out of them: one that is refused holds up no other."""
    places = _with_scope(options, places)
    name = None if options.all else _server_name(options)
    servers = [_server(options, place, name) for place in places]  # what is wrong is told before any change
    code, told = Exit.FINE, list[dict[str, Any]]()
    for place, server in zip(places, servers, strict=True):
        try:
            for each in _ours_in(place, options.url) if name is None else [name]:
                change = plan_change(place, each, server, options.url)
                told.append(_carry_out(change, options, output))
        except FileRefusedError as error:
            _print_refusal(place, error, server)
            code = Exit.FAULTY
    if options.json and (options.all or len(places) > 1):
        output.print_json({"changes": told})
    elif options.json and told:
        output.print_json(told[0])
    elif options.all:
        output.print_lines(_lines_of_what_is_left(options, places, was_any=bool(told)))
    return code


def _with_scope(options: Namespace, places: list[ConfigurationFile]) -> list[ConfigurationFile]:
    """Those that there can be; a client that is named, and has none of that scope, is refused."""
    for place in places if options.clients else ():
        if options.scope not in place.scopes:
            options.refuse(f"argument --scope: {place.title} has no configuration of a {options.scope}")
    return [place for place in places if options.scope in place.scopes]


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
        more = "or name the server by --name, as install --list shows it"
        raise LoadError(error.target, f"{error.reason}; {more}") from None


def _server(options: Namespace, place: ConfigurationFile, name: str | None) -> _Server:
    if options.command == "uninstall" or name is None:
        return None
    if options.url is None:
        server = local_server(name, configured_targets(options), place, dict(options.env))
        return partial(with_options, server, place, given_options(options, place))
    if place.settings.url is None:
        hint = place.settings.instead_of_url
        options.refuse(f"argument --url: {place.title} starts the servers of its file itself: {hint}")
    return lambda _: InstalledServer(name, url=options.url)


def _ours_in(place: ConfigurationFile, url: str | None) -> list[str]:
    return [name for name, entry in read_servers(place).items() if is_ours(place.settings, entry, url)]


def _print_refusal(place: ConfigurationFile, error: FileRefusedError, server: _Server) -> None:
    """Say why a file is left as it is, and what may be written by hand."""
    print_error(escape_invisible(f"{place.path}{error.place}: {error}", one_line=True))
    if server is not None and not isinstance(error, ForeignEntryError):
        wanted = server(None)
        text = ServerTable(place.settings, "").changed(wanted.name, wanted.entry(place.settings))
        print_text(f"it is left as it is; you may write this into it yourself:\n\n{text}")


def _lines_of_what_is_left(
    options: Namespace, places: list[ConfigurationFile], *, was_any: bool
) -> Iterator[str]:
    """Whether there was nothing to take out, and what stays in the files of the project."""
    if not was_any:
        yield "no server of promptkit's was found: nothing to change"
    for place in places:
        with suppress(FileRefusedError):  # nobody has asked for these files
            if options.scope == "user" and "project" in place.scopes:
                shared = ConfigurationFile(place.client, "project", place.project)
                if names := ", ".join(map(repr, _ours_in(shared, options.url))):
                    yield f"{place.title} still has {names} in {shared.path}: --scope project takes it out"


def _carry_out(change: EntryChange, options: Namespace, output: Output) -> dict[str, Any]:
    """Carry out a change if there is something to do, and print it; with ``--dry-run``, print it alone."""
    is_done = not options.dry_run
    backup = change.carry_out() if change.is_needed and is_done else None
    if not options.json:
        output.print_lines(_change_lines(change, backup, is_done=is_done))
    return _change_data(change, backup, is_done=is_done)


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
        "removed": _removed(change),
        "limitations": get_client(change.place.client).limitations if change.entry else (),
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
    if is_added:
        yield from (f"    {line}" for line in _added_lines(change))
    elif not change.is_needed:
        yield from lines_of_others(change.place)
    if not change.client_found:
        yield f"    {title} itself was not found on this machine"
    elif is_done and change.is_needed:
        yield f"    if {title} is running, start it again"


def _added_lines(change: EntryChange) -> Iterator[str]:
    """What people should know of an entry that is put in."""
    place = change.place
    yield from (f"removed: {escape_invisible(word, one_line=True)}" for word in _removed(change))
    command = command_in(place.settings, change.entry) or []
    if command and place.scope == "project":
        if command[0] == "promptkit":
            yield "who works on the project needs promptkit on their PATH"
        values = (word.partition("=")[2] if word.startswith("--") else word for word in command)
        yield from (f"nobody else has {value}" for value in values if Path(value).is_absolute())
    limitations = get_client(place.client).limitations
    yield from (f"{place.title} {limitation}" for limitation in limitations)
    if limitations:
        yield f"which prompts that means: promptkit check --client {place.client}"


def _removed(change: EntryChange) -> list[str]:
    """What an entry says that is changed, and will say no more: targets, options, and names of variables."""
    if change.entry is None:
        return []
    said = _said(change, change.entry)
    return [word for word in _said(change, change.before) if word not in said]


def _said(change: EntryChange, entry: Any) -> list[str]:
    settings = change.place.settings
    served = served_words(served_in(settings, entry) or ())
    return [*served.targets, *served.options, *served.unknown, *variables_in(settings, entry)]
