"""
``promptkit serve``: answer an MCP client on standard input and output, or many over HTTP.

Lists are answered from the start-up cache if possible; compiler and recipes are imported after that.
"""

import gc
import os
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from itertools import chain, repeat
from math import inf
from threading import Event
from typing import TYPE_CHECKING, Final

from promptkit.cli import Exit
from promptkit.cli.options import limits_of
from promptkit.errors.exceptions import LoadError
from promptkit.errors.standard_error import say, stamp_lines
from promptkit.protocol.capabilities import Capabilities, ServerInfo
from promptkit.protocol.connection import Connection
from promptkit.protocol.jsonrpc import InternalError
from promptkit.protocol.limits import GRACE_S
from promptkit.transports import stdio
from promptkit.transports.early_server import EarlyServer
from promptkit.transports.kept_lists import KeptLists
from promptkit.transports.read_files import Purpose, StaleSet
from promptkit.transports.startup_cache import StartupCache
from promptkit.version import VERSION

if TYPE_CHECKING:
    from argparse import Namespace

    from promptkit.catalog.catalog import Catalog
    from promptkit.compiler.lazy_import import LazyImport
    from promptkit.compiler.reloading import Load, Reloader
    from promptkit.server import Server
    from promptkit.server.observers import Observer
    from promptkit.server.snapshot import Snapshot

__all__ = ["run"]

#: How long to wait for a request for a list before recipes are imported, in seconds.
_FIRST_LIST_WAIT_S: Final = 0.05

#: When the handshake is answered at the latest, though it is not known yet what the recipes hold.
_GREET_AFTER_S: Final = 3.0

#: How long requests wait for recipes at least if the client has closed the input.
_HOLD_AFTER_END_S: Final = 5.0

#: What requests are told when recipes are not served.
_REFUSED: Final = "the recipes cannot be served: standard error says why"


class FaultyRecipes(Exception):
    """The recipes have faults, and are to be served only without any."""


def run(options: "Namespace") -> int:
    """
    Serve until the client hangs up, and then end the process. Returns only if nothing was served.

    Raises:
        LoadError: If there is nothing at the target.
    """
    is_http = any(place is not None for place in (options.http, options.uds, options.fd))
    if is_http or options.workspace is not None:
        # The folder, and the project, in which a server of many is started say nothing of its clients.
        os.environ["PROMPTKIT_WORKSPACE"] = options.workspace or ""
    if is_http:
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
    stamp_lines(stamps=options.timestamps)
    if os.isatty(wire.reading):
        from promptkit.fragments.shell_words import quoted_path

        example = f"promptkit render {' '.join(map(quoted_path, options.targets))} NAME"
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
    if (code := StdioSession(options, wire, observers).serve()) != Exit.FINE:
        return code
    for observer in observers:
        observer.close()
    # The client is gone, so threads that prompts left running are not waited for.
    return stdio.exit_now()


class StdioSession:
    """
    The session of one client on standard input and output.

    Args:
        options:
            The command line.

        wire:
            The client.

        observers:
            What is notified of each request.
    """

    def __init__(self, options: "Namespace", wire: stdio.Wire, observers: "Sequence[Observer]") -> None:
        self._options, self._wire, self._observers = options, wire, observers
        self._identity = ServerInfo(options.name, VERSION)
        self._limits = limits_of(options)
        self._scopes: frozenset[str] = options.scopes or frozenset()
        self._cache = _startup_cache(options)
        self._early: EarlyServer | None = None
        self._changes = False
        self._is_answered = Event()

    def serve(self) -> int:
        """
        Serve until the client hangs up, and return the exit code.

        Raises:
            LoadError: If there is nothing at the target.
        """
        if self._cache and self._cache.found:
            self._early = self._answer_early(self._cache.found)
        _import_the_rest()
        try:
            return self._import_and_serve()
        except (LoadError, FaultyRecipes) as error:
            if self._cache:
                self._cache.discard()
            if isinstance(error, LoadError):
                raise
            return Exit.FAULTY

    def _answer_early(self, kept: KeptLists) -> EarlyServer:
        """Begin to answer from the start-up cache."""
        connection = Connection(self._identity, kept.capabilities, self._limits)
        early = EarlyServer(kept, connection, self._limits, self._wire.write)
        early.read_from(self._wire.read)
        early.ready.wait(_FIRST_LIST_WAIT_S)
        return early

    def _import_and_serve(self) -> int:
        from promptkit.compiler.lazy_import import LazyImport
        from promptkit.compiler.reloading import Reloader

        options, early = self._options, self._early
        reloader = Reloader(options.targets, self._report_faults)
        self._changes = options.watch and reloader.watches
        kept = self._cache.found if self._cache and not options.strict else None
        expected = early.expected_prompts() if early else ()
        recipes = LazyImport(options.targets, kept.prompts if kept else {}, expected)

        def imported(catalog: "Catalog") -> None:
            self._is_answered.wait()  # until then, clients are still sent the lists that were kept
            if whole is None:
                server.complete(catalog)
            self._keep_current(server, reloader, catalog)

        load = partial(self._load, reloader)
        recipes.start(load, imported, self._wire.end, InternalError(_REFUSED))
        whole = None if early else recipes.wait(_GREET_AFTER_S)
        server = self._server(self._unfinished(recipes) if whole is None else whole)
        read, events = self._reading(recipes), early.hand_over if early else tuple
        look, grace = reloader.clock.look, options.grace
        served = stdio.serve(server, self._wire, read=read, events=events, look=look, grace=grace)
        is_known = recipes.finish(self._longest_import) or not options.strict
        return Exit.FINE if served and is_known else Exit.FAULTY

    @property
    def _longest_import(self) -> float:
        """How long importing may go on, in seconds, once the client has hung up."""
        grace: float = self._options.grace
        # Who starts it with --strict may want to know nothing but whether there are faults.
        return max(grace, self._options.timeout) if self._options.strict else grace

    def _load(self, reloader: "Reloader", work: "Load") -> "Catalog":
        """Import all recipes, and report their faults. Raises `FaultyRecipes` if none may be there."""
        catalog = self._cache.load(reloader.load, work) if self._cache else reloader.load(work)
        self._report_faults(catalog)
        if self._options.strict and not catalog.healthy:
            say("nothing is served because of --strict: fix the faults above, or leave out the option")
            raise FaultyRecipes
        return catalog

    def _report_faults(self, catalog: "Catalog") -> None:
        if catalog.diagnostics:
            from promptkit.cli.loading import report_faults  # most recipes have none

            report_faults(catalog, self._options.ignore)

    def _unfinished(self, recipes: "LazyImport") -> "Snapshot":
        """What is served until all recipes are imported."""
        from promptkit.compiler.loading.import_thread import import_progress
        from promptkit.server.snapshot import Snapshot

        early, options = self._early, self._options
        # Lists of resources are answered even if there are none, so that declaring them is harmless.
        usual = Capabilities(resources=True, changes=self._changes, tools=options.tools)
        snapshot = Snapshot(
            recipes.catalog.visible_to(self._scopes),
            self._identity,
            options.page_size,
            changes=self._changes,
            capabilities=early.connection.capabilities if early else usual,
            known_page=early.page if early else None,
        )
        snapshot.importing = partial(import_progress, options.targets)
        return snapshot

    def _server(self, found: "Catalog | Snapshot") -> "Server":
        from promptkit.server import Server

        return Server(
            found,
            self._wire.write,
            identity=self._identity,
            page_size=self._options.page_size,
            changes=self._changes,
            tools=self._options.tools,
            limits=self._limits,
            observers=self._observers,
            connection=self._early.connection if self._early else None,
            scopes=self._scopes,
        )

    def _reading(self, recipes: "LazyImport") -> Callable[[], bytes]:
        """What reads the client's bytes, and waits at their end for what requests need of the recipes."""

        def first() -> bytes:
            self._is_answered.set()
            return self._early.read_rest() if self._early else self._wire.read()

        sources = chain((first,), repeat(self._wire.read))

        def read() -> bytes:
            if not (data := next(sources)()):
                recipes.hold(max(self._longest_import, _HOLD_AFTER_END_S), self._still_imported)
            return data

        return read

    def _still_imported(self) -> InternalError:
        from promptkit.compiler.loading.import_thread import import_progress

        return InternalError(f"the recipes are still being imported{import_progress(self._options.targets)}")

    def _keep_current(self, server: "Server", reloader: "Reloader", catalog: "Catalog") -> None:
        """Save the start-up cache, and watch the files, now that all recipes are imported and served."""
        if catalog.requirements:
            from promptkit.cli.loading import report_hidden  # few recipes need scopes

            report_hidden(catalog, self._options.scopes)
        if self._cache:
            self._cache.verify_and_save(server.snapshot, server.correct, catalog, reloader.names_by_file)
        if server.capabilities.changes:
            reloader.start(server.replace)


def _import_the_rest() -> None:
    """Import what the first list does not need."""
    gc.disable()  # imports leave no garbage, and looking for it takes time
    import_module("promptkit.compiler.lazy_import")
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
    purpose = Purpose.of(options.targets, options.name, options.page_size, options.tools, options.scopes)
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
