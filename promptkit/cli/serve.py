"""
``promptkit serve``: answer an MCP client on standard input and output, or many over HTTP.

Lists are answered from the start-up cache if possible; compiler and recipes are imported after that.
"""

import gc
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import chain, repeat
from math import inf
from threading import Thread
from typing import TYPE_CHECKING, Final

from promptkit.cli import Exit
from promptkit.cli.options import limits_of
from promptkit.compiler.loading.targets import place_of
from promptkit.errors.exceptions import LoadError
from promptkit.protocol.capabilities import ServerInfo
from promptkit.protocol.jsonrpc import InternalError
from promptkit.protocol.limits import GRACE_S
from promptkit.standard_error import say
from promptkit.transports import stdio
from promptkit.transports.early import EarlyServer, import_progress
from promptkit.transports.import_inputs import Purpose, StaleSet
from promptkit.transports.kept_lists import KeptLists
from promptkit.transports.startup_cache import StartupCache
from promptkit.version import VERSION

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

    from promptkit.catalog.catalog import Catalog
    from promptkit.cli.lazy_serving import LazyServing
    from promptkit.compiler.reloading import Load, Reloader
    from promptkit.protocol.connection import Connection
    from promptkit.server import Server
    from promptkit.server.observers import Observer
    from promptkit.server.snapshot import Snapshot

__all__ = ["run"]

#: How long to wait for a request for a list before recipes are imported, in seconds.
_FIRST_LIST_WAIT_S: Final = 0.05


def run(options: "Namespace") -> int:
    """
    Serve until the client hangs up, and then end the process. Returns only if nothing was served.

    Raises:
        LoadError: If there is nothing at the target.
    """
    if any(place is not None for place in (options.http, options.uds, options.fd)):
        from promptkit.cli import serve_http

        return serve_http.run(options)
    if stray := sorted(options.http_options & options.told):
        options.refuse(f"{stray[0]} is for HTTP: name an address with --http, --uds or --fd")
    options.grace = GRACE_S if options.grace is None else options.grace
    try:
        wire = stdio.redirect_stdio(options.grace)
    except OSError as error:
        _print(f"standard input and output must be open: {error}")
        return Exit.USAGE
    if os.isatty(wire.reading):
        from promptkit.fragments.shell_words import quoted_path

        example = f"promptkit render {quoted_path(options.target)} NAME"
        _print(f"waiting for an MCP client on standard input; to see a prompt, run: {example}")
    try:
        observers = _observers(options)
    except OSError as error:
        _print(f"cannot write to {options.audit!r}: {error.strerror}")
        return Exit.USAGE
    except ModuleNotFoundError as error:
        from promptkit.errors.distribution import install_command

        _print(f"--otel needs {error.name}: {install_command('otel')}")
        return Exit.USAGE
    cache = _startup_cache(options)
    early = _answer_early(options, wire, cache.found if cache else None)
    try:
        code = _serve(options, wire, observers, cache, early)
    except LoadError:
        _refuse_requests(cache, early)
        raise
    if code != Exit.FINE:
        _refuse_requests(cache, early)
        return code
    for observer in observers:
        observer.close()
    # The client is gone, so threads that prompts left running are not waited for.
    return stdio.exit_now()


def _print(text: str) -> None:
    print(f"promptkit: {text}", file=sys.stderr)


def _answer_early(options: "Namespace", wire: stdio.Wire, kept: KeptLists | None) -> EarlyServer:
    """Begin to answer from the start-up cache."""
    early = EarlyServer(
        kept,
        _server_info(options),
        limits_of(options),
        wire.write,
        importing=partial(import_progress, options.target),
        changes=options.watch and place_of(options.target) is not None,
        tools=options.tools,
        greets=options.audit is None and not options.otel,  # of early replies nobody is told
    )
    done = partial(stdio.exit_after, *_longest_import(options))
    early.read_from(wire.read, done)
    if kept is not None:
        early.ready.wait(_FIRST_LIST_WAIT_S)
    early.watch(done, options.grace, lambda: wire.is_orphaned)
    return early


def _longest_import(options: "Namespace") -> tuple[float, int]:
    """How long importing may go on, in seconds, once the client has hung up, and the exit code after that."""
    if not options.strict:
        return options.grace, Exit.FINE
    # Whoever starts it may want to know nothing but whether there are faults.
    return max(options.grace, options.timeout), Exit.FAULTY


def _serve(
    options: "Namespace",
    wire: stdio.Wire,
    observers: "Sequence[Observer]",
    cache: StartupCache | None,
    early: EarlyServer,
) -> int:
    """Import the recipes, and serve them until the client hangs up."""
    _import_the_rest()
    from promptkit.compiler.reloading import Reloader

    reloader = Reloader(options.target, partial(_report_faults, options))
    load = partial(_load, options, reloader, cache)
    names = cache.names() if cache and not options.strict else None
    lazy = None if names is None else _lazy_serving(options, early, names)
    loaded = None if lazy else load()
    if loaded is not None and options.strict and not loaded.healthy:
        say("nothing is served because of --strict: fix the faults above, or leave out the option")
        return Exit.FAULTY
    changes = options.watch and reloader.watches
    found = lazy.snapshot if lazy else loaded
    assert found is not None  # noqa: S101 (what is not imported lazily is loaded)
    server = _server(options, found, wire, early.connection, observers, changes=changes)
    imported = partial(_imported, options, server, reloader, cache)
    saving = Thread(target=imported, args=(loaded,), name="promptkit-set", daemon=True)
    if lazy:
        lazy.start(load, server, imported, wire.end)
        read = _reading(early, wire, ended=partial(lazy.hold, options.grace))
    else:
        read = _reading(early, wire, answered=saving.start)
    served = stdio.serve(server, wire, read=read, events=early.hand_over, grace=options.grace)
    if lazy:
        lazy.finish(options.grace)
    elif saving.is_alive():
        saving.join(options.grace)
    return Exit.FINE if served else Exit.FAULTY


def _import_the_rest() -> None:
    """Import what the first list does not need."""
    gc.disable()  # imports leave no garbage, and looking for it takes time
    import_module("promptkit.compiler.reloading")
    import_module("promptkit.server")
    gc.freeze()  # imported modules stay, so the collector need not look at them again
    gc.enable()


def _lazy_serving(
    options: "Namespace", early: EarlyServer, names: "Mapping[str, Sequence[str]]"
) -> "LazyServing":
    from promptkit.cli.lazy_serving import LazyServing  # only with a start-up cache

    return LazyServing(options.target, names, early, options.page_size, _scopes(options))


def _load(
    options: "Namespace", reloader: "Reloader", cache: StartupCache | None, work: "Load | None" = None
) -> "Catalog":
    """Import all recipes, and report their faults."""
    catalog = cache.load(reloader.load, work) if cache else reloader.load(work)
    _report_faults(options, catalog)
    return catalog


def _report_faults(options: "Namespace", catalog: "Catalog") -> None:
    if catalog.diagnostics:
        from promptkit.cli.loading import report_faults  # most recipes have none

        report_faults(catalog, options.ignore)


def _server(  # noqa: PLR0913 (a server has that many properties)
    options: "Namespace",
    found: "Catalog | Snapshot",
    wire: stdio.Wire,
    connection: "Connection",
    observers: "Sequence[Observer]",
    *,
    changes: bool,
) -> "Server":
    from promptkit.server import Server

    return Server(
        found,
        wire.write,
        identity=_server_info(options),
        page_size=options.page_size,
        changes=changes,
        tools=options.tools,
        limits=limits_of(options),
        observers=observers,
        connection=connection,
        scopes=_scopes(options),
    )


def _imported(
    options: "Namespace",
    server: "Server",
    reloader: "Reloader",
    cache: StartupCache | None,
    catalog: "Catalog",
) -> None:
    """Save the start-up cache, and watch the files, now that all recipes are imported and served."""
    if catalog.requirements:
        from promptkit.cli.loading import report_hidden  # few recipes need scopes

        report_hidden(catalog, options.scopes)
    if cache:
        names = reloader.names_by_file if catalog.healthy else None
        cache.verify_and_save(server.snapshot, server.correct, catalog, names)
    if server.capabilities.changes:
        reloader.start(server.replace)


def _reading(
    early: EarlyServer,
    wire: stdio.Wire,
    answered: Callable[[], object] = bool,
    ended: Callable[[], object] = bool,
) -> Callable[[], bytes]:
    """What reads the client's bytes, calling *answered* before the first read, and *ended* at the end."""
    sources = chain((early.read_rest,), repeat(wire.read))
    is_answered = False

    def read() -> bytes:
        nonlocal is_answered
        if not is_answered:
            is_answered = True
            with suppress(RuntimeError):  # there can be no more threads
                answered()
        data = next(sources)()
        if not data:
            ended()
        return data

    return read


def _refuse_requests(cache: StartupCache | None, early: EarlyServer) -> None:
    """Discard the new start-up cache, and refuse all open requests."""
    if cache:
        cache.discard()
    early.refuse(InternalError("the recipes cannot be served: standard error says why"))


def _startup_cache(options: "Namespace") -> StartupCache | None:
    # Without a watch, clients could not be told of lists that the cache had wrong. And answers from
    # the cache are neither counted for the rate limit nor noted by anybody.
    is_noted = options.audit is not None or options.otel
    if not (options.cache and options.watch) or is_noted or options.rate != inf:
        if options.compiled is not None:
            _print(f"{options.compiled!r} is not used with --no-watch, --no-cache, --audit, --otel or --rate")
        return None
    how = options.name, options.page_size, options.tools, _scopes(options)
    purpose = Purpose.of(options.target, *how)
    if options.compiled is not None:
        try:
            return StartupCache(options.compiled, purpose, is_built=True)
        except StaleSet as stale:
            _print(f"{options.compiled!r} is not used: {stale}")
    return StartupCache.of(purpose)


def _scopes(options: "Namespace") -> frozenset[str]:
    """What the client may do."""
    return options.scopes or frozenset()


def _server_info(options: "Namespace") -> ServerInfo:
    return ServerInfo(options.name, VERSION)


def _observers(options: "Namespace") -> "list[Observer]":
    """What is notified of each request. Raises OSError, or ModuleNotFoundError without OpenTelemetry."""
    observers: list[Observer] = []
    if options.audit is not None:
        from promptkit.server.audit import Audit

        observers.append(Audit(options.audit))
    if options.otel:
        from promptkit.server.telemetry import PIPE, Telemetry

        observers.append(Telemetry(PIPE))
    return observers
