"""``promptkit install --list``: the clients, their configurations, and promptkit's servers in these."""

import os
import shutil
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from promptkit.cli.output import Output
from promptkit.cli.serve_arguments import served_words
from promptkit.clients.configurations import ConfigurationFile, read_servers
from promptkit.clients.profiles import INSTALLABLE, ClientConfiguration
from promptkit.clients.servers import command_in, is_ours, served_in, url_in
from promptkit.files.reading import may_exist
from promptkit.files.writing import FileRefusedError
from promptkit.fragments.invisible import escape_invisible
from promptkit.fragments.shell_words import command_line


def print_clients(
    places: Iterable[ConfigurationFile], url: str | None, output: Output, *, as_json: bool
) -> None:
    """
    Print which clients there are, where their configurations lie, and their servers of promptkit's.

    Args:
        places:
            A configuration of each client.

        url:
            A URL that is known to be that of a server of promptkit's.

        output:
            Where to print.

        as_json:
            Whether it is for programs.
    """
    data = [_client_data(place, url) for place in places]
    if as_json:
        output.print_json({"clients": data})
    else:
        output.print_lines(chain.from_iterable(map(_client_lines, data)), one_line=True)


def lines_of_others(place: ConfigurationFile) -> Iterator[str]:
    """Return what to print below a server that is not in a configuration: those of promptkit's that are."""
    found = _configuration_data(place, None)
    if found["servers"]:
        yield "    servers of promptkit's in it, which --name NAME takes out:"
        lines = _server_lines(place.settings, found)
        yield from (escape_invisible(line, one_line=True) for line in lines)


def _client_data(place: ConfigurationFile, url: str | None) -> dict[str, Any]:
    files = [ConfigurationFile(place.client, scope, place.project) for scope in place.scopes]
    return {
        "client": place.client,
        "title": place.title,
        "found": place.client_is_found,
        "configurations": {file.scope: _configuration_data(file, url) for file in files},
    }


def _configuration_data(place: ConfigurationFile, url: str | None) -> dict[str, Any]:
    exists = os.path.exists(place.path)  # noqa: PTH110 (False if its folder cannot be entered)
    data: dict[str, Any] = {"file": str(place.path), "exists": exists, "servers": {}}
    try:
        entries = read_servers(place)
    except FileRefusedError as error:
        return {**data, "error": f"{place.path}{error.place}: {error}"}
    ours = {name: entry for name, entry in entries.items() if is_ours(place.settings, entry, url)}
    gone = {name: missing for name, entry in ours.items() if (missing := _gone(place, entry))}
    return {**data, "servers": ours, "gone": gone}


def _client_lines(client: dict[str, Any]) -> Iterator[str]:
    settings = INSTALLABLE[client["client"]]
    yield f"{client['client']}: {'found' if client['found'] else 'not found'}"
    for scope, found in client["configurations"].items():
        if scope == "project" and not found["exists"]:
            continue
        yield f"    {scope}: {found['file']}{'' if found['exists'] else ' (does not exist)'}"
        if "error" in found:
            yield f"        {found['error']}"
        yield from _server_lines(settings, found)


def _server_lines(settings: ClientConfiguration, found: dict[str, Any]) -> Iterator[str]:
    for name, entry in found["servers"].items():
        started = url_in(settings, entry) or command_line(command_in(settings, entry) or ())
        yield f"        {name}: {started}"
        yield from (f"            gone: {word}" for word in found["gone"].get(name, ()))


def _gone(place: ConfigurationFile, entry: Any) -> list[str]:
    """What an entry needs to start, and is there no more: its program, and what it serves."""
    command = command_in(place.settings, entry)
    if command is None or url_in(place.settings, entry) is not None:
        return []
    served = served_words(served_in(place.settings, entry) or ())
    folders = [word.partition("=")[2] for word in served.options if word.startswith("--workspace=")]
    gone = [] if _starts(place, command[0]) else [command[0]]
    return gone + [word for word in (*served.targets, *folders) if not _is_there(place, word)]


def _starts(place: ConfigurationFile, program: str) -> bool:
    """Whether a program is there, and so is the Python of its environment."""
    if not os.path.dirname(program):  # noqa: PTH120 (text)
        return shutil.which(program) is not None
    python = os.path.join(os.path.dirname(place.resolve_path(program)), "python")  # noqa: PTH118, PTH120 (text)
    return _is_there(place, program) and (may_exist(python) or not os.path.islink(python))  # noqa: PTH114


def _is_there(place: ConfigurationFile, word: str) -> bool:
    """Whether a path is there, with or without an object in it; what is none, or has variables, may be."""
    path = place.resolve_path(word)
    is_path = os.path.basename(word) != word and "$" not in path and "{" not in path  # noqa: PTH119 (text)
    return not is_path or any(map(may_exist, (path, path.rpartition(":")[0])))
