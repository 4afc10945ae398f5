"""The address of a server: a command or a URL, with its environment variables and HTTP headers."""

import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from promptkit.errors.exceptions import LoadError
from promptkit.files.reading import read_named_file

#: The maximum size of a file that contains a header value, in bytes.
_MAX_HEADER: Final = 64 * 1024

#: Patterns for header names and values: see https://www.rfc-editor.org/rfc/rfc9110#section-5.6.2 and section
#: 5.5.
_HEADER_NAME: Final = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
_HEADER_VALUE: Final = r"[\t\x20-\x7e\x80-\xff]*"


class ServerError(LoadError):
    """
    A server cannot be reached, or its reply violates the protocol.

    Args:
        target:
            The server's command line or URL.

        reason:
            A description of the problem, and how to fix it.
    """

    def __str__(self) -> str:
        return f"cannot connect to {self.target!r}: {self.reason}"


class ServerAddress(Struct, frozen=True):
    """
    The address of a server.

    Args:
        words:
            The words of the command that starts the server; empty for a server with a URL.

        url:
            The URL of a server over Streamable HTTP; ``""`` for a command.

        variables:
            Environment variables for the command, in addition to a few default ones.

        headers:
            HTTP headers for each request to the URL.
    """

    words: tuple[str, ...] = ()
    url: str = ""
    variables: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}

    @property
    def label(self) -> str:
        """The command line, or the URL without the parts that might contain secrets."""
        if not self.url:
            return shlex.join(self.words)

        parts = urlsplit(self.url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def parse_address(text: str, headers: Iterable[str] = (), variables: Iterable[str] = ()) -> ServerAddress:
    """
    Parse the address of a server.

    Args:
        text:
            A URL, or a command line, which is split into words as in a POSIX shell but runs without a shell.

        headers:
            HTTP headers in the form ``NAME=VALUE``, or ``NAME=@FILE`` to read the value from a file. They are
            used only for a URL.

        variables:
            Environment variables in the form ``NAME=VALUE``, or ``NAME`` to pass on a variable of this
            process. They are used only for a command line.

    Raises:
        ValueError: If one of the arguments is invalid, or a file or a variable does not exist.
    """
    if re.match(r"https?://", text, re.IGNORECASE):
        return ServerAddress(url=text, headers=dict(_parse_header(header) for header in headers))
    try:
        words = shlex.split(text, posix=sys.platform != "win32")
    except ValueError as error:
        msg = f"the server's command line has an unclosed quote or an incomplete escape ({error}): {text}"
        raise ValueError(msg) from None
    if not words:
        msg = "the server's address is empty: write a command line, or a URL that starts with https://"
        raise ValueError(msg)
    if sys.platform == "win32":
        words = [word.strip('"') for word in words]
    return ServerAddress(tuple(words), variables=dict(_parse_variable(variable) for variable in variables))


def _parse_header(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not re.fullmatch(_HEADER_NAME, name):
        msg = f"{name!r} is not a valid HTTP header: write NAME=VALUE, or NAME=@FILE"
        raise ValueError(msg)
    if value.startswith("@"):
        value = value[1:] if value.startswith("@@") else _read_header_value(name, value[1:])
    if not re.fullmatch(_HEADER_VALUE, value):
        msg = f"the value of the header {name!r} contains a line break or another invalid character"
        raise ValueError(msg)
    return name, value


def _read_header_value(name: str, path: str) -> str:
    try:
        return read_named_file(path, _MAX_HEADER).decode("latin-1").strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        msg = f"the value of the header {name!r} cannot be read from {path!r}: {reason}"
        raise ValueError(msg) from None


def _parse_variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name:
        msg = f"{text!r} does not name an environment variable: write NAME, or NAME=VALUE"
        raise ValueError(msg)
    if equals:
        return name, value
    if name not in os.environ:
        msg = f"the environment variable {name!r} is not set"
        raise ValueError(msg)
    return name, os.environ[name]
