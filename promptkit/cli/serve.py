"""
``promptkit serve``: answer an MCP client on standard input and output, or many over HTTP.

Lists are answered from the start-up cache if possible; compiler and recipes are imported after that.
"""

import gc
import os
from contextlib import suppress
from functools import partial
from importlib import import_module
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
from promptkit.transports.startup_cache import StartupCache
from promptkit.version import VERSION

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

    from promptkit.catalog.catalog import Catalog
    from promptkit.cli.lazy_serving import LazyServing
    from promptkit.compiler.reloading import Load
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
    if stray := sorted(options.http_options & options.typed_options):
        options.refuse(f"{stray[0]} is for HTTP: name an address with --http, --uds or --fd")
    options.grace = GRACE_S if options.grace is None else options.grace
    try:
        wire = stdio.redirect_stdio(options.grace)
    except OSError as error:
        say(f"standard input and output must be open: {error}")
        return Exit.USAGE
    if os.isatty(wire.reading):
        from promptkit.fragments.shell_words import quoted_path

        example = f"promptkit render {quoted_path(options.target)} NAME"
        say(f"waiting for an MCP client on standard input; to see a prompt, run: {example}")
    try:
        observers = _observers(options)
    except OSError as error:
        say(f"cannot write to {options.audit!r}: {error.strerror}")
        return Exit.USAGE
    except ModuleNotFoundError as error:
        from promptkit.errors.distribution import install_command

        say(f"--otel needs {error.name}: {install_command('otel')}")
        return Exit.USAGE
    code = _Serving(options, wire, observers).run()
    if code != Exit.FINE:
        return code
    for observer in observers:
        observer.close()
    # The client is gone, so threads that prompts left running are not waited for.
    return stdio.exit_now()


class _Serving:
    """Serves one client on standard input and output, at first from the start-up cache."""

    def __init__(self, options: "Namespace", wire: stdio.Wire, observers: "Sequence[Observer]") -> None:
        self._options = options
        self._wire = wire
        self._observers = observers
        self._scopes: frozenset[str] = options.scopes or frozenset()
        self._cache = _startup_cache(options)
        self._early = self._answer_early()
        self._has_taken_over = False
        self._saving: Thread | None = None
        self._lazy: LazyServing | None = None

    def run(self) -> int:
        """Import the recipes, and serve them until the client hangs up. Raises LoadError."""
        _import_the_rest()
        from promptkit.compiler.reloading import Reloader

        self._reloader = Reloader(self._options.target, self._report_faults)
        try:
            names = self._cache.names() if self._cache and not self._options.strict else None
            code = self._import_and_serve() if names is None else self._serve_while_importing(names)
        except LoadError:
            self._refuse_requests()
            raise
        if code != Exit.FINE:
            self._refuse_requests()
        return code

    def _answer_early(self) -> EarlyServer:
        """Begin to answer from the start-up cache."""
        options, wire = self._options, self._wire
        early = EarlyServer(
            self._cache.found if self._cache else None,
            ServerInfo(options.name, VERSION),
            limits_of(options),
            wire.write,
            importing=partial(import_progress, options.target),
            changes=options.watch and place_of(options.target) is not None,
            tools=options.tools,
            greets=options.audit is None and not options.otel,  # no observer is notified of early replies
        )
        # A client that hangs up at once may want to know nothing but whether --strict finds a fault.
        longest = max(options.grace, options.timeout) if options.strict else options.grace
        done = partial(stdio.exit_after, longest, Exit.FAULTY if options.strict else Exit.FINE)
        early.read_from(wire.read, done)
        if self._cache and self._cache.found:
            early.ready.wait(_FIRST_LIST_WAIT_S)
        early.watch(done, options.grace, lambda: wire.is_orphaned)
        return early

    def _import_and_serve(self) -> int:
        """Import all recipes before anything is served of them."""
        catalog = self._load()
        if self._options.strict and not catalog.healthy:
            say("nothing is served because of --strict: fix the faults above, or leave out the option")
            return Exit.FAULTY
        server = self._make_server(catalog)
        saving = Thread(target=self._after_import, args=(server, catalog), name="promptkit-set", daemon=True)
        self._saving = saving
        code = self._serve(server)
        if saving.is_alive():
            saving.join(self._options.grace)
        return code

    def _serve_while_importing(self, names: "Mapping[str, Sequence[str]]") -> int:
        """Import each recipe when it is needed, as the start-up cache says where each prompt is."""
        from promptkit.cli.lazy_serving import LazyServing  # only with a start-up cache

        options = self._options
        lazy = LazyServing(options.target, names, self._early, options.page_size, self._scopes)
        self._lazy = lazy
        server = self._make_server(lazy.snapshot)
        lazy.start(self._load, server, partial(self._after_import, server), self._wire.end)
        code = self._serve(server)
        lazy.finish(options.grace)
        return code

    def _load(self, work: "Load | None" = None) -> "Catalog":
        """Import all recipes, and report their faults."""
        load = self._reloader.load
        catalog = self._cache.load(load, work) if self._cache else load(work)
        self._report_faults(catalog)
        return catalog

    def _report_faults(self, catalog: "Catalog") -> None:
        if catalog.diagnostics:
            from promptkit.cli.loading import report_faults  # most recipes have none

            report_faults(catalog, self._options.ignore)

    def _make_server(self, found: "Catalog | Snapshot") -> "Server":
        from promptkit.server import Server

        connection = self._early.connection
        return Server(
            found,
            self._wire.write,
            identity=connection.server_info,
            page_size=self._options.page_size,
            changes=self._options.watch and self._reloader.watches,
            tools=self._options.tools,
            limits=limits_of(self._options),
            observers=self._observers,
            connection=connection,
            scopes=self._scopes,
        )

    def _after_import(self, server: "Server", catalog: "Catalog") -> None:
        """Save the start-up cache, and watch the files, now that all recipes are imported and served."""
        if catalog.requirements:
            from promptkit.cli.loading import report_hidden  # few recipes need scopes

            report_hidden(catalog, self._options.scopes)
        if self._cache:
            names = self._reloader.names_by_file if catalog.healthy else None
            self._cache.verify_and_save(server.snapshot, server.correct, catalog, names)
        if server.capabilities.changes:
            self._reloader.start(server.replace)

    def _serve(self, server: "Server") -> int:
        """Serve until the client hangs up."""
        events, grace = self._early.hand_over, self._options.grace
        served = stdio.serve(server, self._wire, read=self._read, events=events, grace=grace)
        return Exit.FINE if served else Exit.FAULTY

    def _read(self) -> bytes:
        """Return what has arrived; the first time, what was being read when the server took over."""
        if self._has_taken_over:
            data = self._wire.read()
        else:
            self._has_taken_over = True
            if self._saving is not None:
                with suppress(RuntimeError):  # there can be no more threads
                    self._saving.start()
            data = self._early.read_rest()
        if not data and self._lazy is not None:
            self._lazy.hold(self._options.grace)  # requests may still need recipes
        return data

    def _refuse_requests(self) -> None:
        """Discard the new start-up cache, and refuse all open requests."""
        if self._cache:
            self._cache.discard()
        self._early.refuse(InternalError("the recipes cannot be served: standard error says why"))


def _import_the_rest() -> None:
    """Import what the first list does not need."""
    gc.disable()  # imports leave no garbage, and looking for it takes time
    import_module("promptkit.compiler.reloading")
    import_module("promptkit.server")
    gc.freeze()  # imported modules stay, so the collector need not look at them again
    gc.enable()


def _startup_cache(options: "Namespace") -> StartupCache | None:
    # Without a watch, clients could not be notified of lists that the cache had wrong. And answers from
    # the cache are neither counted for the rate limit nor noted by anybody.
    is_noted = options.audit is not None or options.otel
    if not (options.cache and options.watch) or is_noted or options.rate != inf:
        if options.compiled is not None:
            say(f"{options.compiled!r} is not used with --no-watch, --no-cache, --audit, --otel or --rate")
        return None
    how = options.name, options.page_size, options.tools, options.scopes
    purpose = Purpose.of(options.target, *how)
    if options.compiled is not None:
        try:
            return StartupCache(options.compiled, purpose, is_built=True)
        except StaleSet as stale:
            say(f"{options.compiled!r} is not used: {stale}")
    return StartupCache.of(purpose)


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
