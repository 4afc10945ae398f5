"""Types of options: what a word on the command line stands for, and why it is refused."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from argparse import ArgumentTypeError

__all__ = [
    "address",
    "client",
    "descriptor",
    "entry_name",
    "http_url",
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
    if not text:
        msg = "must not be empty: name a folder, a file or a module"
        raise _refused(msg)
    return text


def server_name(text: str) -> str:
    """The name of a server, as clients show it."""
    if not text.strip():
        msg = "must not be empty: clients show this name"
        raise _refused(msg)
    if not text.isprintable():
        from promptkit.fragments.invisible import escape_invisible

        if escape_invisible(text, one_line=True) != text:
            msg = f"{text!r} has characters that clients cannot show"
            raise _refused(msg)
    return text


def scopes(text: str) -> frozenset[str]:
    """Scopes, with blanks between them."""
    from promptkit.language.scopes import scopes_of  # few servers have any

    try:
        return scopes_of(text)
    except ValueError as error:
        raise _refused(str(error)) from None


def whole_number(text: str) -> int:
    """A whole number from 1 on."""
    # The length is limited because int() raises its own error for too many digits.
    if not (text.isascii() and text.isdigit() and len(text) <= 20 and 1 <= int(text) <= _MAX_NUMBER):
        msg = f"{text!r} is not a whole number from 1 to {_MAX_NUMBER:,}"
        raise _refused(msg)
    return int(text)


def positive_number(text: str) -> float:
    """A number above zero, mostly of seconds."""
    number = _number(text)
    if not 0 < number <= _MAX_SECONDS:
        msg = f"{text!r} is not a number above 0 and up to {_MAX_SECONDS:,}"
        raise _refused(msg)
    return number


def number_or_zero(text: str) -> float:
    """A number, or zero."""
    number = _number(text)
    if not 0 <= number <= _MAX_SECONDS:
        msg = f"{text!r} is not a number from 0 to {_MAX_SECONDS:,}"
        raise _refused(msg)
    return number


def port(text: str) -> int:
    """A port of this machine; 0 for one that is free."""
    if not _is_port(text):
        msg = f"{text!r} is not a port: write a number from 0 to 65535"
        raise _refused(msg)
    return int(text)


def address(text: str) -> tuple[str, int]:
    """The host and the port of ``[HOST:]PORT``."""
    host, colon, number = text.rpartition(":")
    if not _is_port(number):
        msg = f"{text!r} has no port: write [HOST:]PORT, with a port from 0 to 65535"
        raise _refused(msg)
    if colon and not host:
        msg = f"{text!r} has no host before the colon: write {number}, or 0.0.0.0:{number} for all addresses"
        raise _refused(msg)
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        msg = f"{text!r} is ambiguous: write an IPv6 address as [{host}]:{number}"
        raise _refused(msg)
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(number)


def descriptor(text: str) -> int | str:
    """The number of a descriptor, or the word ``systemd``."""
    if text == "systemd":
        return text
    if not (text.isascii() and text.isdigit() and len(text) <= 6):
        msg = f"{text!r} is neither the number of a descriptor nor systemd"
        raise _refused(msg)
    return int(text)


def client(text: str) -> str:
    """A client that promptkit can be put into."""
    from promptkit.cli.clients.table import client_named

    try:
        client_named(text)
    except ValueError as error:
        raise _refused(str(error)) from None
    return text


def entry_name(text: str) -> str:
    """The name of a server in a client's configuration."""
    from promptkit.cli.clients.servers import as_name

    if (name := as_name(text)) != text:
        msg = f"{text!r} is not 1 to 64 letters, digits, - or _: as in {name!r}"
        raise _refused(msg)
    return text


def http_url(text: str) -> str:
    """The URL of a server over HTTP."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(text)
        is_http = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port is no number
        is_http = False
    if not is_http or not text.isprintable() or " " in text:
        msg = f"{text!r} is not a URL: write it as in http://127.0.0.1:8000/mcp"
        raise _refused(msg)
    return text


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65535


def _number(text: str) -> float:
    """Return the number, or -1, which no option accepts, if *text* is not a number."""
    try:
        return float(text)
    except ValueError:
        return -1.0


def _refused(reason: str) -> "ArgumentTypeError":
    """The error that argparse shows as it is."""
    from argparse import ArgumentTypeError  # slow to import

    return ArgumentTypeError(reason)
