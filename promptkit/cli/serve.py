"""``promptkit serve``: answer an MCP client on standard input and output."""

import os
import sys
from argparse import Namespace
from contextlib import suppress
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from promptkit.cli import Exit
from promptkit.protocol.limits import Limits
from promptkit.protocol.results import Identity
from promptkit.server import Server
from promptkit.transports import stdio
from promptkit.version import VERSION

if TYPE_CHECKING:
    from promptkit.server.audit import Audit

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
    try:
        audit = _audit(options)
    except OSError as error:
        print(f"promptkit: cannot write to {options.audit!r}: {error.strerror}", file=sys.stderr)
        return Exit.USAGE
    from promptkit.cli.recipes import complain  # recipes run from here on
    from promptkit.reloading import Reloader

    reloader = Reloader(options.target, complain)
    catalog = reloader.load()
    complain(catalog)
    if options.strict and not catalog.healthy:
        return Exit.FAULTY
    watches = options.watch and reloader.watches
    server = Server(
        catalog,
        wire.write,
        identity=Identity(options.name, VERSION),
        page_size=options.page_size,
        changes=watches,
        limits=_limits(options),
        audit=audit,
    )
    stdio.serve(
        server,
        wire,
        grace=options.grace,
        answered=partial(reloader.start, server.replace) if watches else lambda: None,
    )
    if audit is not None:
        audit.close()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # an author may have closed or replaced it
            stream.flush()
    # Threads that a prompt has left behind do not keep the process: its client is gone.
    os._exit(0)


def _audit(options: Namespace) -> "Audit | None":
    """
    Return what notes requests, if the command line asks for it. Raises OSError if it cannot.
    """
    if options.audit is None:
        return None
    from promptkit.server.audit import Audit

    return Audit(options.audit)


def _limits(options: Namespace) -> Limits:
    """
    Return the limits that the command line names.
    """
    return Limits(
        line=options.max_line,
        depth=options.max_depth,
        arguments=options.max_arguments,
        argument=options.max_argument,
        renders=options.max_renders,
        seconds=options.timeout,
        rate=options.rate or inf,
        completions=options.completion_rate,
        reply=options.max_reply,
    )
