"""
The arguments of ``serve`` in a client's configuration: targets and options.

Options are kept when an entry is rewritten, because users have chosen them.
"""

from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from promptkit.cli.options import options_of, parse
from promptkit.clients.configurations import ConfigurationFile
from promptkit.clients.profiles import get_client
from promptkit.clients.servers import InstalledServer, served_in

#: The metavars of options whose value is a path.
_PATHS: Final = ("DIR", "FILE")

#: The options that offer prompts as tools.
_TOOLS: Final = {"--tools", "--tools-search"}


class ServedWords(Struct, frozen=True):
    """
    The parsed command-line arguments of ``serve``.

    Args:
        targets:
            The targets.

        options:
            The options, each as one argument, such as ``--grace=5``.

        unknown:
            Arguments that look like options but that `serve` does not have.
    """

    targets: tuple[str, ...]
    options: tuple[str, ...]
    unknown: tuple[str, ...]


def served_words(words: Sequence[str], convert_path: Callable[[str], str] = str) -> ServedWords:
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
    return ServedWords(tuple(targets), tuple(options), tuple(unknown))


def given_options(options: Namespace, configuration: ConfigurationFile) -> tuple[str, ...] | None:
    """
    Return the options after ``--`` in the form for a configuration; None without ``--``.

    Raises:
        SystemExit: If an option is unknown, or cannot be used by a server that a client starts.
    """
    if options.served is None:
        return None
    parsed = parse(["serve", *options.served])
    if parsed.has_targets:
        options.refuse(f"unexpected argument {parsed.targets[0]!r} after --: name targets before it")
    if stray := sorted(parsed.http_options & parsed.typed_options):
        hint = "start that server yourself, and install its --url"
        options.refuse(
            f"{stray[0]} is for HTTP, and a client talks over stdio to a server that it starts: {hint}"
        )
    return served_words(options.served, configuration.format_path).options


def with_options(
    server: InstalledServer, configuration: ConfigurationFile, options: Sequence[str] | None, entry: Any
) -> InstalledServer:
    """
    Return a server with its options: the given ones, or otherwise those of its current entry.

    Args:
        server:
            The server, without options.

        configuration:
            The configuration.

        options:
            The options; None keeps those of the entry.

        entry:
            The current entry.
    """
    current = served_words(served_in(configuration.settings, entry) or ())
    chosen = current.options if options is None else options
    needs_tools = not get_client(configuration.client).has_prompts and _TOOLS.isdisjoint(chosen)
    return replace(server, command=(*server.command, *chosen, *(("--tools",) if needs_tools else ())))
