"""``promptkit serve --http``: answer many clients over Streamable HTTP, with one process or several."""

import gc
import signal
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
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
from promptkit.cli.loading import report_faults, report_hidden
from promptkit.cli.options import limits_of
from promptkit.compiler.reloading import Reloader
from promptkit.errors.distribution import install_command
from promptkit.memory import share_one_arena
from promptkit.protocol.limits import HTTP_GRACE_S
from promptkit.server.audit import Audit
from promptkit.standard_error import say
from promptkit.transports.auth.authorizer import protect
from promptkit.transports.http import sockets
from promptkit.transports.http.access_log import LoggedApplication
from promptkit.transports.http.application import Application
from promptkit.transports.http.connection_limits import ConnectionLimits
from promptkit.transports.http.settings import BODY_BYTES, Settings, public_names
from promptkit.transports.http.sockets import Balance, Listener, ListenError
from promptkit.transports.http.supervisor import Supervisor
from promptkit.transports.http.worker import HttpWorker, die_of
from promptkit.transports.secret_files import own_key, state_keys
from promptkit.transports.stdio import exit_now

if TYPE_CHECKING:
    from promptkit.server.metrics import Metrics
    from promptkit.server.telemetry import Telemetry
if TYPE_CHECKING:
    from promptkit.transports.auth.authorizer import Authorizer


def metrics_of(options: Namespace) -> "Metrics | None":
    """
    Return what counts for Prometheus, before recipes may do so.

    Raises:
        ValueError: If there is no folder for its files.
    """
    if not options.metrics:
        return None
    from promptkit.server.metrics import Metrics  # it needs the extra

    try:
        return Metrics(options.workers)
    except OSError as error:
        msg = f"--metrics needs a folder for its files, which TMPDIR may name: {error.strerror or error}"
        raise ValueError(msg) from None


def telemetry_of(options: Namespace) -> "Telemetry | None":
    """
    Return what tells OpenTelemetry of requests.

    Raises:
        ValueError: If its API is not installed.
    """
    if not options.otel:
        return None
    try:
        from promptkit.server.telemetry import TCP, Telemetry, is_recorded
    except ModuleNotFoundError as error:
        msg = f"--otel needs {error.name}: {install_command('otel')}"
        raise ValueError(msg) from None
    if not is_recorded():
        say("--otel tells nobody: set up an SDK, as opentelemetry-instrument does before it starts promptkit")
    return Telemetry(TCP)


#: More would be a typo.
_MAX_WORKERS: Final = 256


def application_factory(
    options: Namespace, reloader: Reloader, catalog: Catalog, listening: Sequence[Listener]
) -> "Callable[[], Application]":
    """
    Return what makes the application of a worker.

    Args:
        options:
            The command line.

        reloader:
            What has loaded the catalog.

        catalog:
            What is served at first.

        listening:
            Where clients connect: they may call the server by these names.

    Raises:
        ValueError: If an origin, a URL, a scope, a key or a token is not one, or if an extra is missing.

        OSError: If the audit cannot be written.
    """
    public_hosts, public_origins = public_names(options.public_url)
    own_hosts = (urlsplit(listener.url).netloc for listener in listening if not listener.is_local)
    keys = state_keys(options.state_keys)
    settings = Settings(
        name=options.name,
        hosts=(*options.allow_host, *public_hosts, *own_hosts),
        origins=(*options.allow_origin, *public_origins),
        keys=keys,
        own_key=None if keys else own_key(options.targets),  # what all workers share
        changes=options.watch and reloader.watches,
        audit=options.audit,
        telemetry=telemetry_of(options),
        metrics=options.metrics,
        faulty=lambda: reloader.faulty,
        page_size=options.page_size,
        tools=options.tools,
        body_limit=options.max_body or BODY_BYTES,
        limits=limits_of(options),
        authorizer=_authorizer(options, listening),
        scopes=options.scopes or frozenset(),
    )
    if options.audit is not None:
        Audit(options.audit).close()  # each worker opens it again
    if not options.access_log:
        return partial(Application, catalog, settings)

    return partial(LoggedApplication, catalog, settings)


def _authorizer(options: Namespace, listening: Sequence[Listener]) -> "Authorizer | None":
    """What asks for tokens. Raises ValueError if a URL, a scope, a token or an extra is none."""
    if not _asks_for_tokens(options):
        return None

    resource = options.public_url or _only_url(listening)
    if options.issuer is not None and resource is None:
        msg = "--issuer needs --public-url: its tokens are for the URL that clients use"
        raise ValueError(msg)
    try:
        return protect(
            resource=resource,
            issuer=options.issuer,
            token_file=options.token_file,
            scopes=options.require_scope,
        )
    except ModuleNotFoundError as error:
        msg = f"--issuer needs {error.name}: {install_command('http,auth')}"
        raise ValueError(msg) from None


def _only_url(listening: Sequence[Listener]) -> str | None:
    if len(listening) != 1 or not listening[0].is_local or not listening[0].url.startswith("http"):
        return None
    return f"{listening[0].url}/mcp"


def run(options: Namespace) -> int:
    """
    Serve until a signal ends the process. Returns only if nothing was served.

    Raises:
        LoadError: If there is nothing at the target.
    """
    if (fault := _unusable(options)) is not None:
        return fail(fault, Exit.USAGE)
    options.grace = HTTP_GRACE_S if options.grace is None else options.grace
    try:
        listening = _listen(options)
    except ListenError as error:
        return fail(str(error), Exit.USAGE)
    with ExitStack() as ends:
        for listener in listening:
            ends.callback(listener.close)
        _close_on_signal(ends)
        return _serve(options, listening, ends)


def _close_on_signal(ends: ExitStack) -> None:
    """Remove the socket file if a signal ends the process before a worker or the supervisor handles it."""

    def end(number: int, _frame: FrameType | None) -> None:
        ends.close()
        die_of(number)

    for name in ("SIGTERM", "SIGHUP"):  # SIGINT raises KeyboardInterrupt
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), end)


def _unusable(options: Namespace) -> str | None:
    """Say why nothing can be served with these options; None if something can."""
    if options.metrics and find_spec("prometheus_client") is None:
        return f"--metrics needs prometheus_client: {install_command('http,metrics')}"
    if options.workers > 1 and sys.platform == "win32":
        return "--workers needs another system than Windows, which cannot fork"
    if options.workers > _MAX_WORKERS:
        return f"--workers takes at most {_MAX_WORKERS}: a worker for each processor is enough"
    if options.uds is None and (options.uds_mode is not None or options.uds_group is not None):
        return "--uds-mode and --uds-group are about the socket of --uds: name its path, too"
    return _contradiction(options)


def _asks_for_tokens(options: Namespace) -> bool:
    """Whether each request needs a token."""
    return options.issuer is not None or options.token_file is not None


def _contradiction(options: Namespace) -> str | None:
    """What is wrong with options that do not go together, or lack a library; None if nothing is."""
    if options.issuer is not None and options.token_file is not None:
        return "--issuer and --token-file do not go together: tokens come from one of them"
    if _asks_for_tokens(options) and options.no_auth:
        return "--no-auth does not go together with --issuer or --token-file, which ask for tokens"
    if options.require_scope and not _asks_for_tokens(options):
        return "--require-scope is about tokens: name --issuer or --token-file, too"
    if options.scopes is not None and _asks_for_tokens(options):
        return "--scopes is for servers without tokens: with --issuer or --token-file, tokens say it"
    if options.issuer is not None and find_spec("joserfc") is None:
        return f"--issuer needs joserfc: {install_command('http,auth')}"
    return None


def _listen(options: Namespace) -> list[Listener]:
    """Listen at every address that is named. Raises ListenError."""
    listening: list[Listener] = []
    if options.http is not None:
        host, port = options.http
        listening += sockets.listen_tcp(host, port, options.workers)
    if options.fd is not None:
        numbers = sockets.systemd_descriptors() if options.fd == "systemd" else [options.fd]
        listening += map(sockets.listen_inherited, numbers)
    is_open = not options.no_auth and not _asks_for_tokens(options)
    if public := [listener.url for listener in listening if not listener.is_local and is_open]:
        msg = (
            f"{public[0]} can be reached from other machines, and nothing asks who they are: "
            "serve at 127.0.0.1, ask for tokens with --issuer or --token-file, "
            "or say --no-auth if everybody may use these prompts"
        )
        raise ListenError(msg)
    if options.uds is not None:
        listening.append(sockets.listen_unix(options.uds, options.uds_mode, options.uds_group))
    return listening


def _serve(options: Namespace, listening: Sequence[Listener], ends: ExitStack) -> int:
    """Compile the recipes, and serve them. Returns if they are not to be served."""
    try:
        options.metrics = metrics_of(options)
    except ValueError as error:
        return fail(str(error), Exit.USAGE)
    if options.metrics is not None:
        ends.callback(options.metrics.remove)
    work = _prepared(options, listening)
    if isinstance(work, int):
        return work
    code = work.serve()
    ends.close()
    return exit_now(code)


def _prepared(options: Namespace, listening: Sequence[Listener]) -> "_Work | int":
    """Compile the recipes, and return what serves them; the exit code if they are not to be served."""
    reloader, catalog = _load(options)
    if options.strict and not catalog.healthy:
        why = "nothing is served because of --strict: fix the faults above, or leave out the option"
        return fail(why, Exit.FAULTY)
    try:
        make = application_factory(options, reloader, catalog, listening)
    except OSError as error:
        return fail(f"cannot write to {options.audit!r}: {error.strerror}", Exit.USAGE)
    except ValueError as error:
        return fail(str(error), Exit.USAGE)
    if not _asks_for_tokens(options):
        report_hidden(catalog, options.scopes)
    gc.freeze()  # what is imported stays, and workers share its memory as long as nobody touches it
    gc.enable()
    return _Work(options, listening, reloader, make, Balance(options.workers))


def _load(options: Namespace) -> tuple[Reloader, Catalog]:
    """Import what serves, and the recipes, and report their faults."""
    standard_error.redirect()  # before recipes are imported, as they may keep the streams
    standard_error.stamp_lines(stamps=options.timestamps)
    share_one_arena()
    gc.disable()  # imports leave no garbage, and looking for it takes time
    import_module("promptkit.transports.http.worker")  # before the fork, so that the workers share its memory
    with suppress(ModuleNotFoundError):  # asyncio's own loop takes its place
        import_module("uvloop")
    report = partial(report_faults, ignore=options.ignore)
    reloader = Reloader(options.targets, report)
    catalog = reloader.load()
    report(catalog)
    return reloader, catalog


class _Work(Struct):
    """Serving, by this process, or by workers that it forks."""

    options: Namespace
    listening: Sequence[Listener]
    reloader: Reloader
    make: "Callable[[], Application]"
    balance: Balance

    def serve(self) -> int:
        """Serve until a signal ends it; return the exit code."""
        return self.run(0) if self.options.workers == 1 else self.supervise()

    def announce(self) -> None:
        """Report the addresses. To be called once a signal ends the process properly."""
        say(f"serving at {' and '.join(map(_where, self.listening))}")

    def supervise(self) -> int:
        """Have workers serve."""
        count, grace = self.options.workers, self.options.grace
        supervisor = Supervisor(count, self.run_forked, stop_connecting=self.stop_connecting, grace=grace)
        if sys.platform != "win32":
            supervisor.run(self.announce)
        return Exit.FINE

    def run_forked(self, number: int, lifeline: int) -> None:
        """Serve as a worker, and end its process."""
        exit_now(self.run(number, lifeline))

    def run(self, number: int, lifeline: int | None = None) -> int:
        """Serve as the worker of a number; return the exit code. Without a lifeline, it is the only one."""
        if number > 0:  # the first worker reports for all
            self.reloader.is_quiet = True
        if self.options.metrics is not None:
            self.options.metrics.serve_as(str(number))
        application = self.make()
        worker = HttpWorker(
            application,
            [listener.of(number) for listener in self.listening],
            limits=_connection_limits(self.options),
            grace=self.options.grace,
            stop_connecting=self.stop_connecting if lifeline is None else bool,
            lifeline=lifeline,
            balance=self.balance,
            number=number,
        )
        application.start()
        if self.options.watch:
            # What has changed since the load is loaded first.
            self.reloader.start(application.replace, application.is_idle)
        worker.run(self.announce if lifeline is None else bool)
        return Exit.FAULTY if worker.cannot_accept else Exit.FINE

    def stop_connecting(self) -> None:
        """Let nobody connect from now on."""
        for listener in self.listening:
            listener.stop_connecting()


def _connection_limits(options: Namespace) -> "ConnectionLimits":
    chosen = {
        "connections": options.max_connections,
        "keep_alive": options.keep_alive,
        "unread": options.max_held,
    }
    return ConnectionLimits(**{name: value for name, value in chosen.items() if value is not None})


def _where(listener: Listener) -> str:
    return f"{listener.url}/mcp" if listener.url.startswith("http") else listener.url
