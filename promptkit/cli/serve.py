"""
``promptkit serve``: answer an MCP client on standard input and output.

What a compiled set on disk can answer is answered first; what it takes to import recipes is
imported behind that.
"""

import gc
import os
import sys
from argparse import Namespace
from functools import partial
from itertools import chain, repeat
from math import inf
from threading import main_thread
from typing import TYPE_CHECKING, Final

from promptkit.cli import Exit
from promptkit.cli.options import LIMITS
from promptkit.compiler.loading.targets import place_of
from promptkit.errors.exceptions import LoadError
from promptkit.errors.standard_error import say
from promptkit.protocol.jsonrpc import InternalError
from promptkit.protocol.limits import Limits
from promptkit.protocol.results import Identity
from promptkit.transports import stdio
from promptkit.transports.startup_cache.compiled_set import CompiledSet
from promptkit.transports.startup_cache.early import EarlyServer
from promptkit.transports.startup_cache.listings import Listings
from promptkit.version import VERSION

if TYPE_CHECKING:
    from promptkit.server.audit import Audit

__all__ = ["run"]

#: How long a client may take to ask for a list before the recipes are imported anyway, in seconds.
_PATIENCE: Final = 0.05


def run(options: Namespace) -> int:
    """
    Serve until the client hangs up. Does not return once it has served.

    Raises:
        LoadError: If there is nothing at the target.
    """
    try:
        wire = stdio.redirect_stdio(options.grace)
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
    kept = _kept(options)
    early = _early(options, wire, kept.listings() if kept else None)
    try:
        served = _serve(options, wire, audit, kept, early)
    except LoadError:
        _give_up(kept, early)
        raise
    if served is not Exit.FINE:
        _give_up(kept, early)
        return served
    if audit is not None:
        audit.close()
    # Threads that a prompt has left behind do not keep the process: its client is gone.
    return stdio.exit_now()


def _early(options: Namespace, wire: stdio.Wire, listings: Listings | None) -> EarlyServer:
    """
    Return what answers from now on, and has answered what it can at once.
    """
    early = EarlyServer(
        listings,
        _identity(options),
        _limits(options),
        wire.write,
        importing=partial(_importing, options.target),
        changes=options.watch and place_of(options.target) is not None,
        greets=options.audit is None,  # who notes requests is not there yet
    )
    done = partial(stdio.exit_after, options.grace)
    early.read_from(wire.read, done)
    if listings is not None:
        early.wanted.wait(_PATIENCE)
    early.watch(done, options.grace, lambda: wire.is_orphaned)
    return early


def _serve(
    options: Namespace,
    wire: stdio.Wire,
    audit: "Audit | None",
    kept: CompiledSet | None,
    early: EarlyServer,
) -> Exit:
    """
    Import the recipes, and serve them until the client hangs up. Raises LoadError if there are none.
    """
    gc.disable()  # as when this module was imported
    from promptkit.cli.loading import complain  # recipes run from here on
    from promptkit.compiler.loading.reloading import Reloader
    from promptkit.server import Server

    gc.freeze()  # what was imported stays: nobody needs to look through it again
    gc.enable()
    reloader = Reloader(options.target, complain)
    catalog = kept.load(reloader.load) if kept else reloader.load()
    complain(catalog)
    if options.strict and not catalog.healthy:
        say("nothing is served, because of --strict: mend the faults above, or leave the option out")
        return Exit.FAULTY
    watches = options.watch and reloader.watches
    server = Server(
        catalog,
        wire.write,
        identity=_identity(options),
        page_size=options.page_size,
        changes=watches,
        limits=_limits(options),
        audit=audit,
        connection=early.connection,
    )

    def answered() -> None:
        if kept:
            kept.settle(server, early.told, healthy=catalog.healthy)
        if watches:
            reloader.start(server.replace)

    sources = chain((early.read_rest,), repeat(wire.read))
    is_answered = False

    def read() -> bytes:
        nonlocal is_answered
        if not is_answered:  # what was read before
            is_answered = True
            answered()
        return next(sources)()

    served = stdio.serve(server, wire, read=read, events=early.hand_over, grace=options.grace)
    if kept:
        kept.finish(options.grace)
    return Exit.FINE if served else Exit.FAULTY


def _give_up(kept: CompiledSet | None, early: EarlyServer) -> None:
    """
    Keep nothing, and leave no request open: these recipes cannot be served.
    """
    if kept:
        kept.give_up()
    early.refuse(InternalError("the recipes cannot be served: standard error says why"))


def _importing(target: str) -> str:
    """
    Return where the import of the recipes at *target* is at the moment, if that can be seen.
    """
    place = place_of(target)
    frame = sys._current_frames().get(main_thread().ident or 0)  # noqa: SLF001 (there is no other way)
    found = ""
    while frame is not None and place is not None:
        folder, name = os.path.split(frame.f_code.co_filename)
        if folder == place[0]:
            found = f": {name} is at line {frame.f_lineno}"
        frame = frame.f_back
    return found


def _kept(options: Namespace) -> CompiledSet | None:
    """
    Return the compiled set of the target, if nothing is against using one.

    Without a watch clients could not be told if it said something else than the recipes; and it
    neither counts requests nor notes them.
    """
    if not (options.cache and options.watch) or options.audit is not None or options.rate != inf:
        return None
    return CompiledSet.of(options.target, options.name, options.page_size)


def _identity(options: Namespace) -> Identity:
    """
    Return what the server says of itself.
    """
    return Identity(options.name, VERSION)


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
    return Limits(**{field: getattr(options, name.replace("-", "_")) for field, (name, *_) in LIMITS.items()})
