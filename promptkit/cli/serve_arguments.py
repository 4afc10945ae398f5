"""
The words behind ``serve`` in a client's configuration: targets and options.

Options are kept when an entry is written anew, since people have chosen them.
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

#: What stands for the value of an option that is a path.
_PATHS: Final = ("DIR", "FILE")

#: The options that offer prompts as tools.
_TOOLS: Final = {"--tools", "--tools-search"}


class ServedWords(Struct, frozen=True):
    """
    What a server in a configuration is started with.

    Args:
        targets:
            What it serves.

        options:
            Its options, each one word, as in ``--grace=5``.

        unknown:
            What looks like an option, and is none of `serve`.
    """

    targets: tuple[str, ...]
    options: tuple[str, ...]
    unknown: tuple[str, ...]


def served_words(words: Sequence[str], written: Callable[[str], str] = str) -> ServedWords:
    """
    Tell options from targets.

    Args:
        words:
            What follows ``serve``.

        written:
            What makes a path that is the value of an option the one that is to stand there.
    """
    known, rest = options_of("serve"), iter(words)
    targets, options, unknown = list[str](), list[str](), list[str]()
    for word in rest:
        name, equals, value = word.partition("=")
        action = known.get(name.removeprefix("--"))
        if not word.startswith("-"):
            targets.append(word)
        elif action is None:
            unknown.append(word)
        elif action.nargs == 0:
            options.append(word)
        else:
            value = value if equals else next(rest, "")
            options.append(f"{name}={written(value) if action.metavar in _PATHS else value}")
    return ServedWords(tuple(targets), tuple(options), tuple(unknown))


def given_options(options: Namespace, place: ConfigurationFile) -> tuple[str, ...] | None:
    """
    Return the options behind ``--``, as they are to stand in a configuration; None if there is no ``--``.

    Raises:
        SystemExit: If one is none of `serve`, or not for a server that a client starts.
    """
    if options.served is None:
        return None
    parsed = parse(["serve", *options.served])
    if parsed.has_targets:
        options.refuse(f"unexpected argument {parsed.targets[0]!r} behind --: name targets before it")
    if stray := sorted(parsed.http_options & parsed.typed_options):
        hint = "start that server yourself, and install its --url"
        options.refuse(f"{stray[0]} is for HTTP, and a client speaks to what it starts directly: {hint}")
    return served_words(options.served, place.format_path).options


def with_options(
    server: InstalledServer, place: ConfigurationFile, given: Sequence[str] | None, found: Any
) -> InstalledServer:
    """
    Return a server with its options: those that are given, or else those that it has there already.

    Args:
        server:
            What is started, without options.

        place:
            The configuration.

        given:
            The options; None if nothing is said of them.

        found:
            The entry that is there now.
    """
    before = served_words(served_in(place.settings, found) or ())
    options = before.options if given is None else given
    needs_tools = not get_client(place.client).has_prompts and _TOOLS.isdisjoint(options)
    return replace(server, command=(*server.command, *options, *(("--tools",) if needs_tools else ())))
