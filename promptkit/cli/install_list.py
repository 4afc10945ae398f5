"""``promptkit install --list``: clients, their configurations, and the promptkit servers in each of these."""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

from msgspec import Struct

from promptkit.cli.options import options_of
from promptkit.cli.output import Output
from promptkit.clients.configuration_files import ConfigurationFile, read_servers
from promptkit.clients.profiles import INSTALLABLE, ClientConfiguration
from promptkit.clients.servers import command_in, is_ours, served_in, url_in
from promptkit.files.edits import FileEditError
from promptkit.files.reading import may_exist
from promptkit.fragments.invisible import escape_invisible
from promptkit.fragments.shell_words import command_line
from promptkit.loader.targets import split_prefix

#: The metavars of options whose value is a path.
_PATHS: Final = ("DIR", "FILE")


class ServeArguments(Struct, frozen=True):
    """
    The parsed command-line arguments of ``serve``.

    Args:
        targets:
            The targets.

        options:
            The options, each as one argument, such as ``--grace=5``.

        unknown:
            Arguments that look like options, but are not options of `serve`.
    """

    targets: tuple[str, ...]
    options: tuple[str, ...]
    unknown: tuple[str, ...]


def parse_serve_arguments(words: Sequence[str], convert_path: Callable[[str], str] = str) -> ServeArguments:
    """
    Separate options from targets.

    Args:
        words:
            The arguments after ``serve``.

        convert_path:
            Converts an option's path to the form for the configuration.
    """
    known, remaining = options_of("serve"), iter(words)
    targets, options, unknown = list[str](), list[str](), list[str]()
    for word in remaining:
        name, equals, value = word.partition("=")
        action = known.get(name.removeprefix("--"))
        if not word.startswith("-"):
            targets.append(word)
        elif action is None:
            unknown.append(word)
        elif action.nargs == 0:
            options.append(word)
        else:
            value = value if equals else next(remaining, "")
            options.append(f"{name}={convert_path(value) if action.metavar in _PATHS else value}")
    return ServeArguments(tuple(targets), tuple(options), tuple(unknown))


def parse_served(settings: ClientConfiguration, entry: Any) -> ServeArguments:
    """Return the arguments of ``serve`` in an entry of a client's configuration."""
    return parse_serve_arguments(served_in(settings, entry) or ())


def print_clients(
    configurations: Iterable[ConfigurationFile], url: str | None, output: Output, *, as_json: bool
) -> None:
    """
    Print the clients, the paths of their configurations, and the promptkit servers in these.

    Args:
        configurations:
            A configuration of each client.

        url:
            A URL whose entries count as promptkit servers.

        output:
            Where to print.

        as_json:
            Whether to print JSON.
    """
    data = [_client_data(configuration, url) for configuration in configurations]
    if as_json:
        output.print_json({"clients": data})
    else:
        output.print_lines(chain.from_iterable(map(_client_lines, data)), one_line=True)


def other_server_lines(configuration: ConfigurationFile) -> Iterator[str]:
    """Yield lines with the promptkit servers in a configuration, to print if the named server is missing."""
    data = _configuration_data(configuration, None)
    if data["servers"]:
        yield "    promptkit servers in it, which --name NAME removes:"
        lines = _server_lines(configuration.settings, data)
        yield from (escape_invisible(line, one_line=True) for line in lines)


def _client_data(configuration: ConfigurationFile, url: str | None) -> dict[str, Any]:
    files = [
        ConfigurationFile(configuration.client, scope, configuration.project)
        for scope in configuration.scopes
    ]
    return {
        "client": configuration.client,
        "title": configuration.title,
        "found": configuration.is_client_found,
        "configurations": {file.scope: _configuration_data(file, url) for file in files},
    }


def _configuration_data(configuration: ConfigurationFile, url: str | None) -> dict[str, Any]:
    exists = os.path.exists(configuration.path)  # noqa: PTH110 (False if its folder cannot be entered)
    data: dict[str, Any] = {"file": str(configuration.path), "exists": exists, "servers": {}}
    try:
        entries = read_servers(configuration)
    except FileEditError as error:
        return {**data, "error": f"{configuration.path}{error.location}: {error}"}
    ours = {name: entry for name, entry in entries.items() if is_ours(configuration.settings, entry, url)}
    missing_paths = {
        name: missing for name, entry in ours.items() if (missing := _missing_paths(configuration, entry))
    }
    return {**data, "servers": ours, "gone": missing_paths}


def _client_lines(client: dict[str, Any]) -> Iterator[str]:
    settings = INSTALLABLE[client["client"]]
    yield f"{client['client']}: {'found' if client['found'] else 'not found'}"
    for scope, file in client["configurations"].items():
        if scope == "project" and not file["exists"]:
            continue
        yield f"    {scope}: {file['file']}{'' if file['exists'] else ' (does not exist)'}"
        if "error" in file:
            yield f"        {file['error']}"
        yield from _server_lines(settings, file)


def _server_lines(settings: ClientConfiguration, data: dict[str, Any]) -> Iterator[str]:
    for name, entry in data["servers"].items():
        started = url_in(settings, entry) or command_line(command_in(settings, entry) or ())
        yield f"        {name}: {started}"
        yield from (f"            missing: {word}" for word in data["gone"].get(name, ()))


def _missing_paths(configuration: ConfigurationFile, entry: Any) -> list[str]:
    """Return those paths of an entry's program, targets and workspace that no longer exist."""
    command = command_in(configuration.settings, entry)
    if command is None or url_in(configuration.settings, entry) is not None:
        return []
    served = parse_served(configuration.settings, entry)
    folders = [word.partition("=")[2] for word in served.options if word.startswith("--workspace=")]
    missing = [] if _can_start(configuration, command[0]) else [command[0]]
    paths = (*(split_prefix(target)[1] for target in served.targets), *folders)
    return missing + [path for path in paths if not _can_exist(configuration, path)]


def _can_start(configuration: ConfigurationFile, program: str) -> bool:
    """Return whether a program exists and, if it is in a virtual environment, whether its Python exists."""
    if not os.path.dirname(program):  # noqa: PTH120 (text)
        return shutil.which(program) is not None
    python = os.path.join(os.path.dirname(configuration.resolve_path(program)), "python")  # noqa: PTH118, PTH120 (text)
    return _can_exist(configuration, program) and (may_exist(python) or not os.path.islink(python))  # noqa: PTH114


def _can_exist(configuration: ConfigurationFile, word: str) -> bool:
    """Return False for a path, with or without ``:object``, that does not exist; True for other words."""
    path = configuration.resolve_path(word)
    is_path = os.path.basename(word) != word and "$" not in path and "{" not in path  # noqa: PTH119 (text)
    return not is_path or any(map(may_exist, (path, path.rpartition(":")[0])))
