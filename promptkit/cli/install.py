"""``promptkit install`` and ``uninstall``: add a prompt server, or skills, to clients, or remove them."""

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
from promptkit.cli.install_list import other_server_lines, print_clients
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

#: Returns the server to write in place of the current entry; None removes the entry.
_Server: TypeAlias = Callable[[Any], InstalledServer] | None


def run(options: Namespace, output: Output) -> int:
    """
    Add or remove entries, or print the changes; with ``--list``, print the existing entries.

    Raises:
        LoadError: If the target does not exist, or the name of the server is unknown.
    """
    if options.list:
        configurations = [_configuration_of(options, name) for name in options.clients or INSTALLABLE]
        print_clients(configurations, options.url, output, as_json=options.json)
        return Exit.FINE
    if not options.clients and not options.all:
        more = ", or --all" if options.command == "uninstall" else ""
        options.refuse(f"name a client: {', '.join(INSTALLABLE)}{more}")
    configurations = [
        _configuration_of(options, name, options.scope) for name in options.clients or INSTALLABLE
    ]
    if options.skills:
        return change_skills(options, configurations, output)
    return _change(options, configurations, output)


def _configuration_of(options: Namespace, client: str, scope: Scope = "user") -> ConfigurationFile:
    """Return the configuration of a client, for the project of the current folder."""
    file = options.configuration.file
    project = os.path.dirname(file) if file else os.getcwd()  # noqa: PTH109, PTH120 (text)
    return ConfigurationFile(client, scope, project)


def _change(options: Namespace, configurations: list[ConfigurationFile], output: Output) -> int:
    """Add a server to configurations, or remove it. A file that cannot be changed stops no other change."""
    configurations = _with_scope(options, configurations)
    name = None if options.all else _server_name(options)
    # Errors are reported before the first change.
    servers = [_server(options, configuration, name) for configuration in configurations]
    code, reports = Exit.FINE, list[dict[str, Any]]()
    for configuration, server in zip(configurations, servers, strict=True):
        try:
            for entry_name in _ours_in(configuration, options.url) if name is None else [name]:
                change = plan_change(configuration, entry_name, server, options.url)
                reports.append(_apply(change, options, output))
        except FileRefusedError as error:
            _print_refusal(configuration, error, server)
            code = Exit.FAULTY
    if options.json and (options.all or len(configurations) > 1):
        output.print_json({"changes": reports})
    elif options.json and reports:
        output.print_json(reports[0])
    elif options.all:
        output.print_lines(_remaining_lines(options, configurations, removed_any=bool(reports)))
    return code


def _with_scope(options: Namespace, configurations: list[ConfigurationFile]) -> list[ConfigurationFile]:
    """Return the configurations of the scope; a named client must have one."""
    for configuration in configurations if options.clients else ():
        if options.scope not in configuration.scopes:
            options.refuse(
                f"argument --scope: {configuration.title} has no configuration of a {options.scope}"
            )
    return [configuration for configuration in configurations if options.scope in configuration.scopes]


def _server_name(options: Namespace) -> str:
    """Return the name of the server: from the options, the project's folder or the URL's host."""
    if options.url is not None and options.has_targets:
        options.refuse(
            f"unexpected argument {options.targets[0]!r}: the server at --url chooses its own targets"
        )
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


def _server(options: Namespace, configuration: ConfigurationFile, name: str | None) -> _Server:
    if options.command == "uninstall" or name is None:
        return None
    if options.url is None:
        server = local_server(name, configured_targets(options), configuration, dict(options.env))
        return partial(with_options, server, configuration, given_options(options, configuration))
    if configuration.settings.url is None:
        hint = configuration.settings.instead_of_url
        options.refuse(f"argument --url: {configuration.title} starts the servers of its file itself: {hint}")
    return lambda _: InstalledServer(name, url=options.url)


def _ours_in(configuration: ConfigurationFile, url: str | None) -> list[str]:
    return [
        name
        for name, entry in read_servers(configuration).items()
        if is_ours(configuration.settings, entry, url)
    ]


def _print_refusal(configuration: ConfigurationFile, error: FileRefusedError, server: _Server) -> None:
    """Print why a file was not changed, and what users can add to it themselves."""
    print_error(escape_invisible(f"{configuration.path}{error.place}: {error}", one_line=True))
    if server is not None and not isinstance(error, ForeignEntryError):
        new_server = server(None)
        text = ServerTable(configuration.settings, "").changed(
            new_server.name, new_server.entry(configuration.settings)
        )
        print_text(f"it was not changed; you can add this yourself:\n\n{text}")


def _remaining_lines(
    options: Namespace, configurations: list[ConfigurationFile], *, removed_any: bool
) -> Iterator[str]:
    """Yield whether there was nothing to remove, and which servers remain in the project's files."""
    if not removed_any:
        yield "no server of promptkit's was found: nothing to change"
    for file in configurations:
        with suppress(FileRefusedError):  # an unreadable file is not an error here
            if options.scope == "user" and "project" in file.scopes:
                shared = ConfigurationFile(file.client, "project", file.project)
                if names := ", ".join(map(repr, _ours_in(shared, options.url))):
                    yield f"{file.title} still has {names} in {shared.path}: --scope project takes it out"


def _apply(change: EntryChange, options: Namespace, output: Output) -> dict[str, Any]:
    """Make a change if it is needed, and print it; with ``--dry-run``, only print it."""
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
        yield from other_server_lines(change.place)
    if not change.client_found:
        yield f"    {title} itself was not found on this machine"
    elif is_done and change.is_needed:
        yield f"    if {title} is running, start it again"


def _added_lines(change: EntryChange) -> Iterator[str]:
    """Yield what users should know about an added entry."""
    configuration = change.place
    yield from (f"removed: {escape_invisible(word, one_line=True)}" for word in _removed(change))
    command = command_in(configuration.settings, change.entry) or []
    if command and configuration.scope == "project":
        if command[0] == "promptkit":
            yield "everyone everyone who works on the project needs promptkit on their PATH"
        values = (word.partition("=")[2] if word.startswith("--") else word for word in command)
        yield from (f"only this machine has {value}" for value in values if Path(value).is_absolute())
    limitations = get_client(configuration.client).limitations
    yield from (f"{configuration.title} {limitation}" for limitation in limitations)
    if limitations:
        yield f"to find the affected prompts, run: promptkit check --client {configuration.client}"


def _removed(change: EntryChange) -> list[str]:
    """Return the targets, options and variables that a changed entry no longer has."""
    if change.entry is None:
        return []
    current = _entry_words(change, change.entry)
    return [word for word in _entry_words(change, change.before) if word not in current]


def _entry_words(change: EntryChange, entry: Any) -> list[str]:
    settings = change.place.settings
    served = served_words(served_in(settings, entry) or ())
    return [*served.targets, *served.options, *served.unknown, *variables_in(settings, entry)]
