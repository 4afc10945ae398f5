"""``promptkit serve``: answer an MCP client on standard input and output."""

import os
import sys
from argparse import Namespace
from contextlib import suppress

from promptkit.cli import Exit
from promptkit.transports import stdio

__all__ = ["run"]


def run(options: Namespace) -> int:
    """
    Serve until the client hangs up. Does not return once it has served.

    Raises:
        LoadError: If there is nothing at the target.
    """
    try:
        wire = stdio.take(options.grace)
    except OSError as error:
        print(f"promptkit: standard input and output must be open: {error}", file=sys.stderr)
        return Exit.USAGE
    if os.isatty(wire.reading):
        print(
            "promptkit: waiting for an MCP client on standard input; "
            f"to see a prompt, run: promptkit render {options.target} NAME",
            file=sys.stderr,
        )
    from promptkit.cli.recipes import complain, load_catalog  # recipes run from here on

    catalog = load_catalog(options.target)
    complain(catalog)
    if options.strict and not catalog.healthy:
        return Exit.FAULTY
    stdio.serve(catalog, wire, name=options.name, grace=options.grace)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    # Threads that a prompt has left behind do not keep the process: its client is gone.
    os._exit(0)
