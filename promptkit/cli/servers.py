"""The MCP server that a command names with ``--server``, in place of recipes."""

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager

from promptkit.foreign.address import ServerAddress, parse_address
from promptkit.foreign.catalog import OpenServer, open_server


@contextmanager
def open_named_server(
    options: Namespace, number: int = 0, *, lint: bool = False, sample: bool = False
) -> Iterator[OpenServer]:
    """
    Connect to a server that a command names.

    Args:
        options:
            The options of the command.

        number:
            Which of the servers.

        lint:
            Whether to report probable mistakes.

        sample:
            Whether its prompts can be rendered with made-up arguments.

    Raises:
        SystemExit: If an option is invalid.

        LoadError: If the server cannot be reached.
    """
    with open_server(_parse(options, number), lint=lint, sample=sample) as server:
        yield server


def _parse(options: Namespace, number: int) -> ServerAddress:
    try:
        return parse_address(options.servers[number], options.headers, options.variables)
    except ValueError as error:
        options.error(str(error))
        raise
