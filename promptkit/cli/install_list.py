"""``promptkit install --list``: show clients, their configurations, and the promptkit servers in them."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from promptkit.cli.options import options_of
from promptkit.cli.output import Output
from promptkit.clients.configuration_files import ConfigurationFile, read_servers
from promptkit.clients.profiles import ClientConfiguration
from promptkit.clients.servers import command_in, serve_arguments_in, url_in, was_added_by_promptkit
from promptkit.files.edits import FileEditError
from promptkit.fragments.shell_words import command_line

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
    """

    targets: tuple[str, ...]
    options: tuple[str, ...]


def parse_serve_arguments(words: Sequence[str], convert_path: Callable[[str], str] = str) -> ServeArguments:
    """
    Separate options from targets, and omit unknown options, which `serve` would reject.

    Args:
        words:
            The arguments after ``serve``.

        convert_path:
            A function that converts a path in an option to the form that the configuration needs.
    """
    known, remaining = options_of("serve"), iter(words)
    targets, options = list[str](), list[str]()
    for word in remaining:
        name, equals, value = word.partition("=")
        action = known.get(name.removeprefix("--"))
        if not word.startswith("-"):
            targets.append(word)
        elif action is not None and action.nargs == 0:
            options.append(word)
        elif action is not None:
            value = value if equals else next(remaining, "")
            options.append(f"{name}={convert_path(value) if action.metavar in _PATHS else value}")
    return ServeArguments(tuple(targets), tuple(options))


def parse_entry_arguments(settings: ClientConfiguration, entry: Any) -> ServeArguments:
    """Return the arguments of ``serve`` in an entry of a client's configuration."""
    return parse_serve_arguments(serve_arguments_in(settings, entry) or ())


def print_clients(configurations: Iterable[ConfigurationFile], url: str | None, output: Output) -> None:
    """
    Print the clients, the paths of their configurations, and the promptkit servers in them.

    Args:
        configurations:
            One configuration for each client.

        url:
            A URL. Servers at this URL count as promptkit servers.

        output:
            The output to print to.
    """
    for configuration in configurations:
        output.print_lines(_client_lines(configuration, url), one_line=True)


def _client_lines(client: ConfigurationFile, url: str | None) -> Iterator[str]:
    yield f"{client.client}: {'found' if client.is_client_found else 'not found'}"
    for scope in client.scopes:
        configuration = ConfigurationFile(client.client, scope, client.project)
        exists = os.path.exists(configuration.path)  # noqa: PTH110 (False if its folder cannot be entered)
        if scope == "project" and not exists:
            continue
        yield f"    {scope}: {configuration.path}{'' if exists else ' (does not exist)'}"
        yield from (f"        {line}" for line in _server_lines(configuration, url))


def _server_lines(configuration: ConfigurationFile, url: str | None) -> Iterator[str]:
    """Yield a line for each promptkit server in a configuration, or the reason why it cannot be read."""
    settings = configuration.settings
    try:
        entries = read_servers(configuration)
    except FileEditError as error:
        yield f"{configuration.path}{error.location}: {error}"
        return
    for name, entry in entries.items():
        if was_added_by_promptkit(settings, entry, url):
            yield f"{name}: {url_in(settings, entry) or command_line(command_in(settings, entry) or ())}"
