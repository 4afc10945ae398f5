"""``promptkit serve``: serve the recipes to an MCP client over stdio, or to many over HTTP."""

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from functools import partial
from ipaddress import ip_address
from math import inf
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.skill_access import SKILL_FORMS, SkillForm
from promptkit.cli import Exit
from promptkit.cli.diagnostics import fail
from promptkit.cli.loading import STRICT_ERROR, report_catalog_errors, report_hidden, server_info_of
from promptkit.cli.options import limits_of
from promptkit.cli.parsers import (
    add_markdown_option,
    add_positional_targets,
    is_port,
    is_unsigned_number,
    parse_whole_number,
    report_value_error,
    require,
)
from promptkit.compiler.reloading import Reloader
from promptkit.errors.distribution import install_command
from promptkit.fragments.invisible import escape_invisible
from promptkit.fragments.shell_words import quoted_path
from promptkit.language.annotations import parse_scopes
from promptkit.loader.import_thread import import_progress
from promptkit.loader.targets import format_render_targets
from promptkit.memory import share_one_arena
from promptkit.protocol.limits import GRACE_S, HTTP_GRACE_S, OPTIONS, Limits
from promptkit.protocol.pagination import PAGE_SIZE
from promptkit.server import Server
from promptkit.server.audit import Audit
from promptkit.server.server import Observer
from promptkit.server.threads import Watchdog
from promptkit.standard_error import say, set_timestamps
from promptkit.transports import stdio

if TYPE_CHECKING:
    from argparse import _ArgumentGroup

#: Interval in seconds at which to check whether the client has hung up, while waiting for the import.
_POLL_INTERVAL_S: Final = 0.25

#: Larger values are typos, and would overflow clocks.
_MAX_SECONDS: Final = 10**9

_REPEATED: Final[dict[str, Any]] = {"action": "append", "default": []}


class InvalidRecipesError(Exception):
    """The recipes have errors, and ``--strict`` forbids serving them."""


def run(options: Namespace) -> int:
    """
    Serve until the client disconnects, then exit the process. Return only if the recipes cannot be served.

    Raises:
        LoadError: If the recipes cannot be loaded.
    """
    is_http = any(address is not None for address in (options.http, options.uds, options.fd))
    if is_http or options.workspace is not None:
        # The folder in which a server for many clients is started is unrelated to their projects.
        os.environ["PROMPTKIT_WORKSPACE"] = options.workspace or ""
    if is_http:
        return _serve_http(options)
    if http_options := sorted(options.http_options & options.typed_options):
        options.error(f"{http_options[0]} is for HTTP: set an address with --http, --uds or --fd")
    options.grace = GRACE_S if options.grace is None else options.grace
    try:
        pipes = stdio.redirect_stdio(options.grace)
    except OSError as error:
        return fail(f"standard input and output must be open: {error}", Exit.USAGE)
    set_timestamps(enabled=options.timestamps)
    if os.isatty(pipes.reading):
        example = f"promptkit render {format_render_targets(options.targets, quoted_path)} NAME"
        say(f"waiting for an MCP client on standard input; to see a prompt, run: {example}")
    try:
        observers = _create_observers(options)
    except OSError as error:
        return fail(f"cannot write to {options.audit!r}: {error.strerror}", Exit.USAGE)
    except ModuleNotFoundError as error:
        return fail(f"--otel needs {error.name}: {install_command('otel')}", Exit.USAGE)
    try:
        code = StdioSession(options, pipes, observers).serve()
    finally:
        for observer in observers:
            observer.close()
    if code != Exit.OK:
        return code
    # The client has disconnected, so do not wait for threads that prompts left running.
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
            Objects that are notified of each request.
    """

    def __init__(self, options: Namespace, pipes: stdio.StdioPipes, observers: Sequence[Observer]) -> None:
        self._options, self._pipes = options, pipes
        self._reloader = Reloader(options.targets, self._report_errors, elicit=options.elicit)
        self._server = Server(
            None,
            pipes.write,
            identity=server_info_of(options),
            page_size=options.page_size,
            changes=options.watch and self._reloader.has_watched_files,
            tools=options.tools,
            skills_as=options.skills_as,
            limits=limits_of(options),
            observers=observers,
            scopes=options.scopes or frozenset(),
            watchdog=Watchdog() if options.guard else None,
            describe_import=partial(import_progress, options.targets),
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
        self._imported.wait(grace)  # report errors in the recipes even if the client disconnects immediately
        if isinstance(self._error, InvalidRecipesError):
            return Exit.FAILED
        if self._error is not None:
            raise self._error
        return Exit.OK if served or self._pipes.was_signalled else Exit.FAILED

    def _wait_for_import(self) -> bool:
        """Wait for the import before answering any request; return whether it succeeded without errors."""
        while not self._imported.wait(_POLL_INTERVAL_S):
            if self._pipes.has_hung_up:
                return self._imported.wait(self._options.grace) and self._error is None
        return self._error is None

    def _import(self) -> None:
        try:
            catalog = self._reloader.load()
            self._report_errors(catalog)
            if self._options.strict and not catalog.healthy:
                say(STRICT_ERROR)
                raise InvalidRecipesError  # noqa: TRY301 (handled like any other error of the import)
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

    def _report_errors(self, catalog: Catalog) -> None:
        report_catalog_errors(catalog, self._options.ignore)


def _create_observers(options: Namespace) -> list[Observer]:
    """Return the requested observers. Raises OSError, and ModuleNotFoundError if OpenTelemetry is missing."""
    observers: list[Observer] = []
    if options.audit is not None:
        observers.append(Audit(options.audit))
    if options.otel:
        from promptkit.server.telemetry import PIPE, Telemetry  # it needs the extra otel

        observers.append(Telemetry(PIPE))
    return observers


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `serve` to a parser."""
    add_positional_targets(parser)
    _add_recipe_options(parser)
    _add_identity_options(parser)
    http = parser.add_argument_group(
        "HTTP", "Serve over HTTP instead of standard input and output. This needs the extra http."
    )
    _add_http_options(http)
    authorization = parser.add_argument_group("authorization", "Who can use the server over HTTP.")
    _add_authorization_options(authorization)
    _add_observability_options(parser)
    _add_process_options(parser)
    _add_limit_options(parser)
    actions = [*http._group_actions, *authorization._group_actions]  # noqa: SLF001 (argparse offers no other way)
    need_http = {option for action in actions for option in action.option_strings}
    parser.set_defaults(http_options=frozenset({*need_http, "--access-log", "--metrics"}))


def _add_recipe_options(parser: ArgumentParser) -> None:
    recipes = parser.add_argument_group("recipes")
    add_markdown_option(recipes)
    add = recipes.add_argument
    add("--strict", action="store_true", help="exit instead of serving if any recipe has an error")
    add(
        "--no-watch", dest="watch", action="store_false", help="do not reload recipes when their files change"
    )
    workspace = "folder in which prompts run commands (default: the current folder; none over HTTP)"
    add("--workspace", type=_parse_folder, metavar="DIR", help=workspace)


def _add_identity_options(parser: ArgumentParser) -> None:
    add = parser.add_argument_group("what clients see").add_argument
    name = "name of the server (default: the one in [project] of pyproject.toml)"
    add("--name", type=_parse_server_name, help=name)
    version = "version of the recipes (default: the one in [project], or that of the installed project)"
    add("--version", type=_parse_server_name, help=version)
    tools = "also offer each prompt as a tool, for models and for clients that do not support prompts"
    add("--tools", action="store_const", const=True, default=False, help=tools)
    search = "offer two tools instead: one finds prompts, and the other renders a prompt"
    add("--tools-search", dest="tools", action="store_const", const="search", default=False, help=search)
    forms = "also offer skills as tools, as prompts, or as both: tools,prompts"
    add("--skills-as", type=_parse_skill_forms, default=frozenset(), metavar="FORM[,FORM]", help=forms)
    scopes = "scopes of callers without a token: SCOPE, or several in quotes"
    add("--scopes", type=report_value_error(parse_scopes), metavar="SCOPES", help=scopes)
    size = f"number of prompts or resources on one page of a list (default: {PAGE_SIZE})"
    add("--page-size", type=parse_whole_number, default=PAGE_SIZE, metavar="NUMBER", help=size)


def _add_http_options(group: "_ArgumentGroup") -> None:
    add = group.add_argument
    address = (
        "listen on this address (default: 127.0.0.1 and the port in the variable PORT, or 8000); port 0 "
        "picks a free port"
    )
    add("--http", type=_parse_address, nargs="?", const="", metavar="[HOST:]PORT", help=address)
    add("--uds", metavar="PATH", help="listen on this Unix socket")
    mode = "permissions of the Unix socket (default: 600; with --uds-group, 660)"
    add("--uds-mode", type=_parse_socket_mode, metavar="MODE", help=mode)
    add("--uds-group", metavar="NAME", help="group of the Unix socket, such as that of the proxy")
    socket = "listen on this inherited socket; the word systemd means all sockets that systemd passes on"
    add("--fd", type=_parse_descriptor, metavar="NUMBER", help=socket)
    add(
        "--workers",
        type=parse_whole_number,
        default=1,
        metavar="NUMBER",
        help="number of worker processes (default: 1)",
    )
    add("--public-url", metavar="URL", help="URL that clients use; its host and origin are allowed")
    add("--allow-host", metavar="HOST", help="allow this Host header; can be repeated", **_REPEATED)
    origin = "allow web pages from this origin; can be repeated"
    add("--allow-origin", metavar="ORIGIN", help=origin, **_REPEATED)
    add("--state-keys", metavar="FILE", help="file with the keys that all replicas share")
    add(
        "--max-body",
        type=parse_whole_number,
        metavar="BYTES",
        help="maximum size of a request body (default: 4 MiB)",
    )
    connections = "maximum number of connections per worker (default: 10,000)"
    add("--max-connections", type=parse_whole_number, metavar="NUMBER", help=connections)
    add(
        "--keep-alive",
        type=_parse_positive_number,
        metavar="SECONDS",
        help="close idle connections after this time (default: 30)",
    )


def _add_authorization_options(group: "_ArgumentGroup") -> None:
    add = group.add_argument
    add("--issuer", metavar="URL", help="accept JSON Web Tokens from this issuer; needs --public-url")
    add("--token-file", metavar="FILE", help="accept the tokens in FILE: NAME TOKEN [SCOPE ...] on each line")
    add(
        "--require-scope",
        metavar="SCOPE",
        help="reject tokens without this scope; can be repeated",
        **_REPEATED,
    )
    add(
        "--no-auth",
        action="store_true",
        help="serve everyone who can reach the server, without tokens",
    )


def _add_observability_options(parser: ArgumentParser) -> None:
    add = parser.add_argument_group("logs and metrics").add_argument
    audit = "append a line of JSON to FILE for each request, without the values of arguments"
    add("--audit", metavar="FILE", help=audit)
    logged = "log each HTTP request to standard error, without arguments or tokens"
    add("--access-log", action="store_true", help=logged)
    add("--timestamps", action="store_true", help="begin each line of standard error with the time in UTC")
    add(
        "--metrics",
        action="store_true",
        help="serve Prometheus metrics at /metrics (needs the extra metrics)",
    )
    add("--otel", action="store_true", help="report each request to OpenTelemetry (needs the extra otel)")


def _add_process_options(parser: ArgumentParser) -> None:
    add = parser.add_argument_group("process").add_argument
    grace = (
        f"time that running prompts have to finish at shutdown (default: {GRACE_S:g}; {HTTP_GRACE_S:g} over "
        "HTTP)"
    )
    add("--grace", type=partial(_parse_positive_number, allow_zero=True), metavar="SECONDS", help=grace)
    guard = "do not end a process that hangs in C code, for example in a debugger"
    add("--no-guard", dest="guard", action="store_false", help=guard)


def _add_limit_options(parser: ArgumentParser) -> None:
    about = "A request that exceeds a limit gets an error. Later requests are still served."
    group = parser.add_argument_group("limits", about)
    for field, option in OPTIONS.items():
        default = getattr(Limits(), field)
        group.add_argument(
            f"--{option.name}",
            type=parse_whole_number if isinstance(default, int) else _parse_positive_number,
            default=default,
            metavar=option.unit,
            help=f"{option.help} (default: {'none' if default == inf else f'{default:,.15g}'})",
        )


def _parse_server_name(text: str) -> str:
    """Return a name or a version of the server, which clients must be able to show."""
    require(text.strip(), "must not be empty: clients show it")
    is_shown = escape_invisible(text, one_line=True) == text
    require(is_shown, f"{text!r} has characters that clients cannot show")
    return text


def _parse_skill_forms(text: str) -> frozenset[SkillForm]:
    """Parse comma-separated forms of skills."""
    forms = frozenset(part.strip() for part in text.split(","))
    known = frozenset(SKILL_FORMS)
    require(forms <= known, f"{text!r} is invalid: use tools, prompts, or tools,prompts")
    return known & forms


def _parse_folder(text: str) -> str:
    """Return the absolute path of a folder, which must exist."""
    require(os.path.isdir(text), f"{text!r} is not a folder")  # noqa: PTH112 (False for any text)
    return os.path.abspath(text)  # noqa: PTH100 (links stay)


def _parse_positive_number(text: str, *, allow_zero: bool = False) -> float:
    """Parse a positive number, usually of seconds; with *allow_zero*, accept zero as well."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    is_valid = 0 < number <= _MAX_SECONDS or (allow_zero and number == 0)
    bounds = "from 0 to" if allow_zero else "above 0 and up to"
    require(is_valid, f"{text!r} is not a number {bounds} {_MAX_SECONDS:,}")
    return number


def _parse_address(text: str) -> tuple[str, int]:
    """
    Parse ``[HOST:]PORT``.

    If there is no port, as in an IP address alone or an empty string, use the port in the environment
    variable PORT, which platforms set. If PORT is not set, use 8000.
    """
    if not text or _is_ip_address(text):
        port = os.environ.get("PORT", "8000")
        require(
            is_port(port), f"the variable PORT is {port!r}, which is not a port: unset it, or pass a port"
        )
        text = f"{text or '127.0.0.1'}:{port}"
    host, colon, number = text.rpartition(":")
    require(is_port(number), f"{text!r} has no port: write [HOST:]PORT, with a port from 0 to 65535")
    everywhere = f"write {number}, or 0.0.0.0:{number} for all addresses"
    require(host or not colon, f"{text!r} has no host before the colon: {everywhere}")
    is_clear = ":" not in host or (host.startswith("[") and host.endswith("]"))
    require(is_clear, f"{text!r} is ambiguous: write an IPv6 address as [{host}]:{number}")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(number)


def _is_ip_address(text: str) -> bool:
    """Return whether a string is an IP address without a port; IPv6 addresses are in brackets."""
    is_ipv6 = text.startswith("[") and text.endswith("]")
    try:
        ip_address(text[1:-1] if is_ipv6 else text)
    except ValueError:
        return False
    return is_ipv6 or ":" not in text


def _parse_socket_mode(text: str) -> int:
    """Parse the permissions of a socket, in octal digits."""
    is_mode = len(text) in (3, 4) and not text.strip("01234567") and int(text, 8) <= 0o777
    require(is_mode, f"{text!r} is not a mode: write three octal digits, such as 660")
    is_own = int(text, 8) & 0o600 == 0o600  # TOML parses 0o660 as 432
    require(is_own, f"{text!r} denies access to the server's own user: start with 6, for example 660")
    return int(text, 8)


def _parse_descriptor(text: str) -> int | str:
    """Parse a descriptor number, or the word ``systemd``."""
    if text == "systemd":
        return text
    require(
        is_unsigned_number(text, max_digits=6),
        f"{text!r} is not the number of a descriptor or the word systemd",
    )
    return int(text)
