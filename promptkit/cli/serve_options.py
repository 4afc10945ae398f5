"""The options of ``promptkit serve``, and what their values stand for."""

import os
from argparse import ArgumentParser, ArgumentTypeError
from functools import partial
from math import inf
from typing import Any, Final

from promptkit.fragments.invisible import escape_invisible
from promptkit.language.annotations import scopes_of
from promptkit.protocol.limits import GRACE_S, HTTP_GRACE_S, OPTIONS, PAGE_SIZE, Limits

__all__ = ["add_serve", "is_port", "refuse_unless"]

#: Larger values are typos, and would overflow clocks and counters.
_MAX_NUMBER: Final = 10**12
_MAX_SECONDS: Final = 10**9


def add_serve(serve: ArgumentParser) -> None:
    """Add the options of a server to its command."""
    add = serve.add_argument
    add("--strict", action="store_true", help="refuse to serve while any recipe has a fault")
    add(
        "--no-watch", dest="watch", action="store_false", help="do not reload recipes when their files change"
    )
    _add_lists(serve)
    workspace = "where commands of prompts run (default: the current folder; over HTTP, nowhere)"
    add("--workspace", type=_folder, metavar="DIR", help=workspace)
    default = f"{GRACE_S:g}, over HTTP {HTTP_GRACE_S:g}"
    grace = f"how long to wait for running prompts at shutdown (default: {default})"
    add("--grace", type=partial(_number, or_zero=True), metavar="SECONDS", help=grace)
    audit = "write one line of JSON per request to FILE, without the values of arguments"
    add("--audit", metavar="FILE", help=audit)
    add("--otel", action="store_true", help="tell OpenTelemetry of each request (the extra otel)")
    stamps = "begin each line of standard error with the time, in UTC"
    add("--timestamps", action="store_true", help=stamps)
    guard = "do not end the process when code never returns Python's lock, as for a debugger"
    add("--no-guard", dest="guard", action="store_false", help=guard)
    _add_http(serve)
    _add_limits(serve)


def _add_lists(command: ArgumentParser) -> None:
    """Add the options that the lists of a server depend on."""
    add = command.add_argument
    name = "the server's name, which clients show (default: promptkit)"
    add("--name", type=_server_name, default="promptkit", help=name)
    size = f"how many prompts or resources one page of a list holds (default: {PAGE_SIZE})"
    add("--page-size", type=_whole_number, default=PAGE_SIZE, metavar="NUMBER", help=size)
    tools = "offer each prompt as a tool, too, for clients without prompts and for models themselves"
    add("--tools", action="store_const", const=True, default=False, help=tools)
    search = "offer two tools in place of one for each prompt: they find prompts, and get one"
    add("--tools-search", dest="tools", action="store_const", const="search", default=False, help=search)
    scopes = "what the client may do, where no token says it: SCOPE, or several in quotes"
    add("--scopes", type=_scopes, metavar="SCOPES", help=scopes)


def _add_http(serve: ArgumentParser) -> None:
    http = serve.add_argument_group("HTTP", "In place of standard input and output. It needs the extra http.")
    add = http.add_argument
    where = "serve clients at this address (default host: 127.0.0.1); port 0 takes one that is free"
    add("--http", type=_address, metavar="[HOST:]PORT", help=where)
    add("--uds", metavar="PATH", help="serve clients at this Unix socket")
    mode = "who may connect to it (default: 600, its user alone; with a group, 660)"
    add("--uds-mode", type=_socket_mode, metavar="MODE", help=mode)
    add("--uds-group", metavar="NAME", help="the group that it belongs to, such as that of the proxy")
    socket = "serve clients at this inherited socket; the word systemd means those that it passes"
    add("--fd", type=_descriptor, metavar="NUMBER", help=socket)
    workers = "how many processes serve (default: 1)"
    add("--workers", type=_whole_number, default=1, metavar="NUMBER", help=workers)
    add("--no-auth", action="store_true", help="let everybody who reaches the server use it, from anywhere")
    add("--issuer", metavar="URL", help="who issues the tokens that each request needs, with --public-url")
    add("--token-file", metavar="FILE", help="the tokens that requests need: NAME TOKEN [SCOPE ...] a line")
    repeated: dict[str, Any] = {"action": "append", "default": []}
    add("--require-scope", metavar="SCOPE", help="of each token; may be repeated", **repeated)
    add("--allow-host", metavar="HOST", help="a name of the server; may be repeated", **repeated)
    add("--allow-origin", metavar="ORIGIN", help="of web pages; may be repeated", **repeated)
    add("--public-url", metavar="URL", help="the URL that clients use, which allows its host and origin")
    add("--state-keys", metavar="FILE", help="the keys that all replicas of this server share")
    size = "how large a body may be (default: 4 MiB)"
    add("--max-body", type=_whole_number, metavar="BYTES", help=size)
    add("--max-connections", type=_whole_number, metavar="NUMBER", help="of a worker (default: 10,000)")
    idle = "how long a connection may be idle (default: 30)"
    add("--keep-alive", type=_number, metavar="SECONDS", help=idle)
    logged = "write one line per HTTP request to standard error, without arguments and tokens"
    add("--access-log", action="store_true", help=logged)
    metrics = "let Prometheus read at /metrics how much is asked for (the extra metrics)"
    add("--metrics", action="store_true", help=metrics)
    actions = http._group_actions  # noqa: SLF001 (argparse has no other way)
    serve.set_defaults(http_options=frozenset(name for action in actions for name in action.option_strings))


def _add_limits(serve: ArgumentParser) -> None:
    about = "A request that exceeds a limit gets an error; later requests are served."
    group = serve.add_argument_group("limits", about)
    for field, option in OPTIONS.items():
        default = getattr(Limits(), field)
        group.add_argument(
            f"--{option.name}",
            type=_whole_number if isinstance(default, int) else _number,
            default=default,
            metavar=option.unit,
            help=f"{option.help} (default: {'none' if default == inf else f'{default:,.15g}'})",
        )


def _server_name(text: str) -> str:
    """The name of a server, as clients show it."""
    refuse_unless(text.strip(), "must not be empty: clients show this name")
    if not text.isprintable():
        is_shown = escape_invisible(text, one_line=True) == text
        refuse_unless(is_shown, f"{text!r} has characters that clients cannot show")
    return text


def _scopes(text: str) -> frozenset[str]:
    """Scopes, with blanks between them."""
    try:
        return scopes_of(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def _folder(text: str) -> str:
    """The absolute path of a folder."""
    refuse_unless(os.path.isdir(text), f"{text!r} is not a folder")  # noqa: PTH112 (False for any text)
    return os.path.abspath(text)  # noqa: PTH100 (links stay)


def _whole_number(text: str) -> int:
    """A whole number from 1 on."""
    # The length is limited because int() raises its own error for too many digits.
    is_number = _has_digits(text, at_most=20) and 1 <= int(text) <= _MAX_NUMBER
    refuse_unless(is_number, f"{text!r} is not a whole number from 1 to {_MAX_NUMBER:,}")
    return int(text)


def _number(text: str, *, or_zero: bool = False) -> float:
    """A number above zero, mostly of seconds, or zero."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    is_fine = 0 < number <= _MAX_SECONDS or (or_zero and number == 0)
    bounds = "from 0 to" if or_zero else "above 0 and up to"
    refuse_unless(is_fine, f"{text!r} is not a number {bounds} {_MAX_SECONDS:,}")
    return number


def _address(text: str) -> tuple[str, int]:
    """The host and the port of ``[HOST:]PORT``."""
    host, colon, number = text.rpartition(":")
    refuse_unless(is_port(number), f"{text!r} has no port: write [HOST:]PORT, with a port from 0 to 65535")
    everywhere = f"write {number}, or 0.0.0.0:{number} for all addresses"
    refuse_unless(host or not colon, f"{text!r} has no host before the colon: {everywhere}")
    is_clear = ":" not in host or (host.startswith("[") and host.endswith("]"))
    refuse_unless(is_clear, f"{text!r} is ambiguous: write an IPv6 address as [{host}]:{number}")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(number)


def _socket_mode(text: str) -> int:
    """The mode of a socket, in octal digits."""
    is_mode = len(text) in (3, 4) and not text.strip("01234567") and int(text, 8) <= 0o777
    refuse_unless(is_mode, f"{text!r} is no mode: write three octal digits, such as 660")
    is_own = int(text, 8) & 0o600 == 0o600
    refuse_unless(is_own, f"{text!r} shuts out the server's own user: begin with 6, as in 660")
    return int(text, 8)


def _descriptor(text: str) -> int | str:
    """The number of a descriptor, or the word ``systemd``."""
    if text == "systemd":
        return text
    refuse_unless(_has_digits(text, at_most=6), f"{text!r} is neither the number of a descriptor nor systemd")
    return int(text)


def _has_digits(text: str, at_most: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= at_most


def is_port(text: str) -> bool:
    """Return whether a text is the number of a port."""
    return _has_digits(text, at_most=5) and int(text) <= 65535


def refuse_unless(is_fine: object, reason: str) -> None:
    """Refuse a word unless it is fine; argparse shows the reason as it is."""
    if not is_fine:
        raise ArgumentTypeError(reason)
