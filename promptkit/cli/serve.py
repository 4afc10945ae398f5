"""``promptkit serve``: serve the recipes to an MCP client over stdio, or to many over HTTP."""

import os
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from threading import Event, Thread
from typing import Final

from promptkit.catalog.catalog import Catalog
from promptkit.cli import Exit
from promptkit.cli.diagnostics import fail
from promptkit.cli.loading import REFUSED_BY_STRICT, report_faults, report_hidden
from promptkit.cli.options import limits_of
from promptkit.compiler.reloading import Reloader
from promptkit.errors.distribution import install_command
from promptkit.fragments.shell_words import quoted_path
from promptkit.loader.import_thread import import_progress
from promptkit.memory import share_one_arena
from promptkit.protocol.capabilities import ServerInfo
from promptkit.protocol.limits import GRACE_S
from promptkit.server import Server
from promptkit.server.audit import Audit
from promptkit.server.server import Observer
from promptkit.server.threads import Watchdog
from promptkit.standard_error import say, stamp_lines
from promptkit.transports import stdio
from promptkit.version import VERSION

#: How often to check for the client while no request is answered, in seconds.
_POLL_INTERVAL_S: Final = 0.25


class FaultyRecipesError(Exception):
    """The recipes have errors, and ``--strict`` forbids serving them."""


def run(options: Namespace) -> int:
    """
    Serve until the client disconnects, then end the process. Return only if the recipes cannot be served.

    Raises:
        LoadError: If the recipes cannot be loaded.
    """
    is_http = any(address is not None for address in (options.http, options.uds, options.fd))
    if is_http or options.workspace is not None:
        # The folder in which a server for many clients is started is unrelated to their projects.
        os.environ["PROMPTKIT_WORKSPACE"] = options.workspace or ""
    if is_http:
        return _serve_http(options)
    if stray := sorted(options.http_options & options.typed_options):
        options.refuse(f"{stray[0]} is for HTTP: name an address with --http, --uds or --fd")
    options.grace = GRACE_S if options.grace is None else options.grace
    try:
        pipes = stdio.redirect_stdio(options.grace)
    except OSError as error:
        say(f"standard input and output must be open: {error}")
        return Exit.USAGE
    stamp_lines(stamps=options.timestamps)
    if os.isatty(pipes.reading):
        example = f"promptkit render {' '.join(map(quoted_path, options.targets))} NAME"
        say(f"waiting for an MCP client on standard input; to see a prompt, run: {example}")
    try:
        observers = _observers(options)
    except OSError as error:
        say(f"cannot write to {options.audit!r}: {error.strerror}")
        return Exit.USAGE
    except ModuleNotFoundError as error:
        say(f"--otel needs {error.name}: {install_command('otel')}")
        return Exit.USAGE
    try:
        code = StdioSession(options, pipes, observers).serve()
    finally:
        for observer in observers:
            observer.close()
    if code != Exit.FINE:
        return code
    # The client has disconnected: do not wait for threads that prompts left running.
    return stdio.exit_now()


def _serve_http(options: Namespace) -> int:
    try:
        from promptkit.cli import serve_http  # it needs the extra
    except ModuleNotFoundError as error:
        option = "--http" if options.http is not None else "--uds" if options.uds is not None else "--fd"
        return fail(f"{option} needs {error.name}: {install_command('http')}", Exit.USAGE)
    return serve_http.run(options)


class StdioSession:
    """
    The session of one client on standard input and output.

    The recipes are imported on a thread. Until then, handshakes and pings are answered, and all other
    requests wait.

    Args:
        options:
            The parsed command line.

        pipes:
            The connection to the client.

        observers:
            Notified of each request.
    """

    def __init__(self, options: Namespace, pipes: stdio.StdioPipes, observers: Sequence[Observer]) -> None:
        self._options, self._pipes = options, pipes
        self._reloader = Reloader(options.targets, self._report_faults)
        self._server = Server(
            None,
            pipes.write,
            identity=ServerInfo(options.name, VERSION),
            page_size=options.page_size,
            changes=options.watch and self._reloader.watches,
            tools=options.tools,
            limits=limits_of(options),
            observers=observers,
            scopes=options.scopes or frozenset(),
            guard=Watchdog() if options.guard else None,
            importing=partial(import_progress, options.targets),
        )
        self._imported = Event()
        self._error: BaseException | None = None

    def serve(self) -> int:
        """
        Serve until the client disconnects, and return the exit code.

        Raises:
            LoadError: If the recipes cannot be loaded.

            BaseException: Any other error that stopped the import.
        """
        share_one_arena()
        Thread(target=self._import, name="promptkit-import", daemon=True).start()
        is_allowed = not self._options.strict or self._wait_for_import()
        grace = self._options.grace
        served = is_allowed and stdio.serve(self._server, self._pipes, grace=grace)
        self._imported.wait(grace)  # report errors in the recipes even if the input ends immediately
        if isinstance(self._error, FaultyRecipesError):
            return Exit.FAULTY
        if self._error is not None:
            raise self._error
        return Exit.FINE if served or self._pipes.was_signalled else Exit.FAULTY

    def _wait_for_import(self) -> bool:
        """Wait for the import before any request is answered; return whether it succeeded without errors."""
        while not self._imported.wait(_POLL_INTERVAL_S):
            if self._pipes.has_hung_up:
                return self._imported.wait(self._options.grace) and self._error is None
        return self._error is None

    def _import(self) -> None:
        try:
            catalog = self._reloader.load()
            self._report_faults(catalog)
            if self._options.strict and not catalog.healthy:
                say(REFUSED_BY_STRICT)
                raise FaultyRecipesError  # noqa: TRY301 (handled like any other error of the import)
        except BaseException as error:  # noqa: BLE001 (the main thread raises it)
            self._error = error
            self._pipes.end()
        else:
            self._server.load(catalog)
            report_hidden(catalog, self._options.scopes)
            if self._server.capabilities.changes:
                self._reloader.start(self._server.replace, lambda: self._server.is_idle)
        finally:
            self._imported.set()

    def _report_faults(self, catalog: Catalog) -> None:
        report_faults(catalog, self._options.ignore)


def _observers(options: Namespace) -> list[Observer]:
    """Return the observers of requests. Raises OSError, or ModuleNotFoundError without OpenTelemetry."""
    observers: list[Observer] = []
    if options.audit is not None:
        observers.append(Audit(options.audit))
    if options.otel:
        from promptkit.server.telemetry import PIPE, Telemetry  # it needs the extra otel

        observers.append(Telemetry(PIPE))
    return observers
