"""Types of options: what a word on the command line stands for, and why it is refused."""

from argparse import ArgumentTypeError
from functools import partial
from typing import Final

__all__ = [
    "address",
    "client",
    "descriptor",
    "entry_name",
    "http_url",
    "installable",
    "number_or_zero",
    "port",
    "positive_number",
    "scopes",
    "server_name",
    "target",
    "whole_number",
]

#: Larger values are typos, and would overflow clocks and counters.
_MAX_NUMBER: Final = 10**12
_MAX_SECONDS: Final = 10**9


def target(text: str) -> str:
    """A target to load. Whether it exists is found out when it is loaded."""
    _check(text, "must not be empty: name a folder, a file or a module")
    return text


def server_name(text: str) -> str:
    """The name of a server, as clients show it."""
    _check(text.strip(), "must not be empty: clients show this name")
    if not text.isprintable():
        from promptkit.fragments.invisible import escape_invisible

        is_shown = escape_invisible(text, one_line=True) == text
        _check(is_shown, f"{text!r} has characters that clients cannot show")
    return text


def scopes(text: str) -> frozenset[str]:
    """Scopes, with blanks between them."""
    from promptkit.language.scopes import scopes_of  # few servers have any

    try:
        return scopes_of(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def whole_number(text: str) -> int:
    """A whole number from 1 on."""
    # The length is limited because int() raises its own error for too many digits.
    is_number = _has_digits(text, at_most=20) and 1 <= int(text) <= _MAX_NUMBER
    _check(is_number, f"{text!r} is not a whole number from 1 to {_MAX_NUMBER:,}")
    return int(text)


def positive_number(text: str) -> float:
    """A number above zero, mostly of seconds."""
    number = _number(text)
    _check(0 < number <= _MAX_SECONDS, f"{text!r} is not a number above 0 and up to {_MAX_SECONDS:,}")
    return number


def number_or_zero(text: str) -> float:
    """A number, or zero."""
    number = _number(text)
    _check(0 <= number <= _MAX_SECONDS, f"{text!r} is not a number from 0 to {_MAX_SECONDS:,}")
    return number


def port(text: str) -> int:
    """A port of this machine; 0 for one that is free."""
    _check(_is_port(text), f"{text!r} is not a port: write a number from 0 to 65535")
    return int(text)


def address(text: str) -> tuple[str, int]:
    """The host and the port of ``[HOST:]PORT``."""
    host, colon, number = text.rpartition(":")
    _check(_is_port(number), f"{text!r} has no port: write [HOST:]PORT, with a port from 0 to 65535")
    everywhere = f"write {number}, or 0.0.0.0:{number} for all addresses"
    _check(host or not colon, f"{text!r} has no host before the colon: {everywhere}")
    is_clear = ":" not in host or (host.startswith("[") and host.endswith("]"))
    _check(is_clear, f"{text!r} is ambiguous: write an IPv6 address as [{host}]:{number}")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(number)


def descriptor(text: str) -> int | str:
    """The number of a descriptor, or the word ``systemd``."""
    if text == "systemd":
        return text
    _check(_has_digits(text, at_most=6), f"{text!r} is neither the number of a descriptor nor systemd")
    return int(text)


def client(text: str, *, is_installable: bool = False) -> str:
    """A client that promptkit knows, or can be put into."""
    from promptkit.compiler.lints.client_profiles import CLIENTS, INSTALLABLE, client_of

    try:
        client_of(text, INSTALLABLE if is_installable else CLIENTS)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
    return text


installable: Final = partial(client, is_installable=True)


def entry_name(text: str) -> str:
    """The name of a server in a client's configuration."""
    from promptkit.cli.clients.servers import as_name

    name = as_name(text)
    _check(name == text, f"{text!r} is not 1 to 64 letters, digits, - or _: as in {name!r}")
    return text


def http_url(text: str) -> str:
    """The URL of a server over HTTP."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(text)
        is_http = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port is no number
        is_http = False
    is_url = is_http and text.isprintable() and " " not in text
    _check(is_url, f"{text!r} is not a URL: write it as in http://127.0.0.1:8000/mcp")
    return text


def _check(is_fine: object, reason: str) -> None:
    """Refuse a word unless it is fine; argparse shows the reason as it is."""
    if not is_fine:
        raise ArgumentTypeError(reason)


def _has_digits(text: str, at_most: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= at_most


def _is_port(text: str) -> bool:
    return _has_digits(text, at_most=5) and int(text) <= 65535


def _number(text: str) -> float:
    """The number; if *text* is none, -1, which no option accepts."""
    try:
        return float(text)
    except ValueError:
        return -1.0
