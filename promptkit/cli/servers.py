"""The MCP server that a command names with ``--server``, in place of recipes."""

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager

from promptkit.catalog.catalog import Catalog
from promptkit.cli.loading import load_catalog
from promptkit.foreign.address import ServerAddress, parse_address
from promptkit.foreign.catalog import OpenServer, open_server


@contextmanager
def open_catalog(options: Namespace, *, lint: bool = False, sample: bool = False) -> Iterator[Catalog]:
    """
    Yield the catalog of ``--server``, or otherwise of the targets.

    Args:
        options:
            The targets and the server.

        lint:
            Whether to report probable mistakes.

        sample:
            Whether prompts of a server can be rendered with made-up arguments.

    Raises:
        LoadError: If a target does not exist or cannot be read, or the server cannot be reached.
    """
    if not options.servers:
        yield load_catalog(options.targets, lint=lint, elicit=options.elicit)
        return
    with open_named_server(options, lint=lint, sample=sample) as server:
        yield server.catalog


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
