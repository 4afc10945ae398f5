"""``promptkit serve --http``: serve many clients over Streamable HTTP, in one process or in several."""

import gc
import signal
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from types import FrameType
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from msgspec import Struct

from promptkit import standard_error
from promptkit.catalog.catalog import Catalog
from promptkit.cli import Exit
from promptkit.cli.diagnostics import fail
from promptkit.cli.loading import STRICT_ERROR, report_catalog_errors, report_hidden, server_info_of
from promptkit.cli.options import limits_of
from promptkit.compiler.reloading import Reloader
from promptkit.errors.distribution import install_command
from promptkit.memory import share_one_arena
from promptkit.protocol.limits import HTTP_GRACE_S
from promptkit.server.audit import Audit
from promptkit.standard_error import say
from promptkit.transports.auth.authorizer import create_authorizer
from promptkit.transports.http import sockets
from promptkit.transports.http.application import Application, LoggedApplication
from promptkit.transports.http.connection import ConnectionLimits
from promptkit.transports.http.settings import BODY_BYTES, Settings, public_hosts_and_origins
from promptkit.transports.http.sockets import Listener, ListenError
from promptkit.transports.http.supervisor import Siblings, Supervisor
from promptkit.transports.http.worker import HttpWorker, die_by_signal
from promptkit.transports.state_keys import own_key, state_keys
from promptkit.transports.stdio import exit_now

if TYPE_CHECKING:
    from promptkit.server.metrics import Metrics
    from promptkit.server.telemetry import Telemetry
    from promptkit.transports.auth.authorizer import Authorizer


def create_metrics(options: Namespace) -> "Metrics | None":
    """Return Prometheus metrics if ``--metrics`` is given. Call this before recipes can define metrics."""
    if not options.metrics:
        return None
    from promptkit.server.metrics import Metrics  # it needs the extra

    return Metrics(options.workers)


def _create_telemetry(options: Namespace) -> "Telemetry | None":
    """Return an observer that reports requests to OpenTelemetry; None if ``--otel`` is not given."""
    if not options.otel:
        return None
    from promptkit.server.telemetry import TCP, Telemetry, has_sdk  # it needs the extra

    if not has_sdk():
        say(
            "--otel has no exporter: configure an SDK, for example by starting promptkit with "
            "opentelemetry-instrument"
        )
    return Telemetry(TCP)


#: Maximum number of workers. A larger number is a typo.
_MAX_WORKERS: Final = 256

#: Options, each with the library that it needs and the extras that install the library.
_LIBRARIES: Final = (
    ("metrics", "prometheus_client", "http,metrics"),
    ("otel", "opentelemetry", "otel"),
    ("issuer", "joserfc", "http,auth"),
)


def application_factory(
    options: Namespace, reloader: Reloader, catalog: Catalog, listeners: Sequence[Listener]
) -> "Callable[[], Application]":
    """
    Return a function that creates the application of a worker.

    Args:
        options:
            The parsed command line.

        reloader:
            The reloader that loaded the catalog.

        catalog:
            The first catalog to serve.

        listeners:
            The listeners, whose addresses are allowed as Host headers.

    Raises:
        ValueError: If an origin, a URL, a scope, a key or a token is invalid.

        OSError: If the audit log cannot be written.
    """
    public_hosts, public_origins = public_hosts_and_origins(options.public_url)
    own_hosts = (urlsplit(listener.url).netloc for listener in listeners if not listener.is_local)
    keys = state_keys(options.state_keys)
    settings = Settings(
        identity=server_info_of(options),
        hosts=(*options.allow_host, *public_hosts, *own_hosts),
        origins=(*options.allow_origin, *public_origins),
        keys=keys,
        own_key=None if keys else own_key(options.targets),  # shared by all workers
        changes=options.watch and reloader.has_watched_files,
        audit=options.audit,
        telemetry=_create_telemetry(options),
        metrics=options.metrics,
        count_invalid=lambda: reloader.invalid,
        page_size=options.page_size,
        tools=options.tools,
        skills_as=options.skills_as,
        body_limit=options.max_body or BODY_BYTES,
        limits=limits_of(options),
        authorizer=_create_authorizer(options, listeners),
        scopes=options.scopes or frozenset(),
    )
    if options.audit is not None:
        Audit(options.audit).close()  # each worker opens it again
    if not options.access_log:
        return partial(Application, catalog, settings)

    return partial(LoggedApplication, catalog, settings)


def _create_authorizer(options: Namespace, listeners: Sequence[Listener]) -> "Authorizer | None":
    """Return the authorizer; None if no tokens are required. Raises ValueError for invalid settings."""
    if not _requires_tokens(options):
        return None

    resource = options.public_url or _find_single_url(listeners)
    if options.issuer is not None and resource is None:
        msg = "--issuer needs --public-url, because tokens are issued for the URL that clients use"
        raise ValueError(msg)
    return create_authorizer(
        resource=resource,
        issuer=options.issuer,
        token_file=options.token_file,
        scopes=options.require_scope,
    )


def _find_single_url(listeners: Sequence[Listener]) -> str | None:
    if len(listeners) != 1 or not listeners[0].is_local or not listeners[0].url.startswith("http"):
        return None
    return f"{listeners[0].url}/mcp"


def run(options: Namespace) -> int:
    """
    Serve until a signal terminates the process. Return only if nothing was served.

    Raises:
        LoadError: If the recipes cannot be loaded.
    """
    for reason in _usage_errors(options):
        return fail(reason, Exit.USAGE)
    options.grace = HTTP_GRACE_S if options.grace is None else options.grace
    try:
        listeners = _listen(options)
    except ListenError as error:
        return fail(str(error), Exit.USAGE)
    with ExitStack() as cleanup:
        for listener in listeners:
            cleanup.callback(listener.close)
        _close_on_signal(cleanup)
        options.metrics = create_metrics(options)
        if options.metrics is not None:
            cleanup.callback(options.metrics.remove)
        return _serve(options, listeners, cleanup)


def _close_on_signal(cleanup: ExitStack) -> None:
    """Clean up if a signal terminates the process before a worker or the supervisor handles signals."""

    def handle_signal(number: int, _frame: FrameType | None) -> None:
        cleanup.close()
        die_by_signal(number)

    for name in ("SIGTERM", "SIGHUP"):  # SIGINT raises KeyboardInterrupt
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), handle_signal)


def _usage_errors(options: Namespace) -> Iterator[str]:
    """Yield the reasons why the server cannot be started with these options."""
    for option, library, extras in _LIBRARIES:
        if getattr(options, option) and find_spec(library) is None:
            yield f"--{option} needs {library}: {install_command(extras)}"
    if options.workers > 1 and sys.platform == "win32":
        yield "--workers is not supported on Windows, which cannot fork"
    if options.workers > _MAX_WORKERS:
        yield f"--workers accepts at most {_MAX_WORKERS}: one worker for each processor is enough"
    if options.uds is None and (options.uds_mode is not None or options.uds_group is not None):
        yield "--uds-mode and --uds-group require --uds"
    yield from _token_errors(options)


def _token_errors(options: Namespace) -> Iterator[str]:
    if options.issuer is not None and options.token_file is not None:
        yield "--issuer and --token-file cannot be combined: choose one"
    if not _requires_tokens(options):
        if options.require_scope:
            yield "--require-scope requires --issuer or --token-file"
    elif options.no_auth:
        yield "--no-auth cannot be combined with --issuer or --token-file, which require tokens"
    elif options.scopes is not None:
        yield "--scopes cannot be combined with --issuer or --token-file: tokens contain the scopes"


def _requires_tokens(options: Namespace) -> bool:
    """Return whether every request must have a token."""
    return options.issuer is not None or options.token_file is not None


def _listen(options: Namespace) -> list[Listener]:
    """Listen on every address in the options. Raises ListenError if that fails or is not allowed."""
    listeners: list[Listener] = []
    if options.http is not None:
        host, port = options.http
        listeners += sockets.listen_tcp(host, port, options.workers)
    if options.fd is not None:
        numbers = sockets.systemd_descriptors() if options.fd == "systemd" else [options.fd]
        listeners += map(sockets.listen_inherited, numbers)
    is_open = not options.no_auth and not _requires_tokens(options)
    if public := [listener.url for listener in listeners if not listener.is_local and is_open]:
        msg = (
            f"{public[0]} can be reached from other machines without authentication: listen on "
            f"127.0.0.1, require tokens with --issuer or --token-file, or pass --no-auth to "
            f"let every caller use these prompts"
        )
        raise ListenError(msg)
    if options.uds is not None:
        listeners.append(sockets.listen_unix(options.uds, options.uds_mode, options.uds_group))
    return listeners


def _serve(options: Namespace, listeners: Sequence[Listener], cleanup: ExitStack) -> int:
    """Compile the recipes and serve them. Return only if they cannot be served."""
    standard_error.redirect()  # before recipes are imported, because they can keep the streams
    standard_error.set_timestamps(enabled=options.timestamps)
    share_one_arena()
    with suppress(ModuleNotFoundError):  # asyncio's own loop replaces it
        import_module("uvloop")
    report = partial(report_catalog_errors, ignore=options.ignore)
    reloader = Reloader(options.targets, report, elicit=options.elicit)
    catalog = reloader.load()
    report(catalog)
    if options.strict and not catalog.healthy:
        return fail(STRICT_ERROR, Exit.FAILED)
    try:
        make_application = application_factory(options, reloader, catalog, listeners)
    except OSError as error:
        return fail(f"cannot write to {options.audit!r}: {error.strerror}", Exit.USAGE)
    except ValueError as error:
        return fail(str(error), Exit.USAGE)
    if not _requires_tokens(options):
        report_hidden(catalog, options.scopes)
    gc.freeze()  # imported objects stay, and workers share their memory until it is written
    gc.enable()
    service = _Service(options, listeners, reloader, make_application)
    code = service.run(0) if options.workers == 1 else service.supervise()
    cleanup.close()
    return exit_now(code)


class _Service(Struct):
    """A server that runs in this process, or in workers that this process forks."""

    options: Namespace
    listeners: Sequence[Listener]
    reloader: Reloader
    make_application: "Callable[[], Application]"

    siblings: Siblings | None = None

    def announce(self) -> None:
        """Report the addresses of the server. Call this after the signal handlers are installed."""
        say(f"serving at {' and '.join(map(_format_address, self.listeners))}")

    def supervise(self) -> int:
        """Serve in forked workers until a signal arrives, and return the exit code."""
        count, grace = self.options.workers, self.options.grace
        self.siblings = Siblings(count)
        supervisor = Supervisor(count, self.run_forked, stop_listening=self.stop_listening, grace=grace)
        if sys.platform != "win32":
            supervisor.run(self.announce)
        self.siblings.close()
        return Exit.OK

    def run_forked(self, number: int, lifeline: int) -> None:
        """Serve as a forked worker, and exit the process."""
        exit_now(self.run(number, lifeline))

    def run(self, number: int, lifeline: int | None = None) -> int:
        """
        Serve as the worker *number*, and return the exit code.

        If *lifeline* is None, this process is the only worker.
        """
        if number > 0:  # only the first worker reports
            self.reloader.is_quiet = True
        if self.options.metrics is not None:
            self.options.metrics.serve_as(str(number))
        application = self.make_application()
        if self.siblings is not None:
            application.join(self.siblings, number)
        worker = HttpWorker(
            application,
            [listener.claim(number) for listener in self.listeners],
            limits=_connection_limits(self.options),
            grace=self.options.grace,
            lifeline=lifeline,
        )
        application.start()
        if self.options.watch:
            # This first reloads files that have changed since they were loaded.
            self.reloader.start(application.replace, application.is_idle)
        worker.run(self.announce if lifeline is None else bool)
        return Exit.FAILED if worker.cannot_accept else Exit.OK

    def stop_listening(self) -> None:
        """Stop listening in this process."""
        for listener in self.listeners:
            listener.close()


def _connection_limits(options: Namespace) -> "ConnectionLimits":
    chosen = {
        "connections": options.max_connections,
        "keep_alive": options.keep_alive,
        "unread": options.max_held,
    }
    return ConnectionLimits(**{name: value for name, value in chosen.items() if value is not None})


def _format_address(listener: Listener) -> str:
    return f"{listener.url}/mcp" if listener.url.startswith("http") else listener.url
