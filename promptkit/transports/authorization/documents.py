"""Fetches JSON documents of an issuer: from where it was told alone, within a time and a size."""

import socket
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from threading import Timer
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

import msgspec

from promptkit.transports.authorization.bearer import secure_url
from promptkit.version import VERSION

__all__ = ["WHOLE_S", "DocumentUnavailable", "fetch_document"]

#: How long one part of a response may take, and all of it, in seconds.
_PART_S: Final = 5.0
WHOLE_S: Final = 8.0

_MAX_BYTES: Final = 1024 * 1024


class DocumentUnavailable(Exception):
    """
    A document that was not fetched.

    Args:
        reason:
            Why not.

        is_absent:
            Whether there is none at its URL.
    """

    def __init__(self, reason: str, *, is_absent: bool = False) -> None:
        super().__init__(reason)
        self.is_absent = is_absent


class _Stay(HTTPRedirectHandler):
    """Follows no redirect: another server must not get to say what this one trusts."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class _Timed(HTTPSHandler, HTTPHandler):
    """Connects to a server or its proxy, and disconnects in time: sockets begin again with each byte."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.is_over = False
        self._seconds = seconds
        self._connected: socket.socket | None = None
        self._timer = Timer(seconds, self._disconnect)
        self._timer.daemon = True
        self._timer.start()

    def do_open(self, http_class: Any, req: Request, **arguments: Any) -> HTTPResponse:
        def connection(*given: Any, **named: Any) -> HTTPConnection:
            made: HTTPConnection = http_class(*given, **named)
            made._create_connection = self._connect  # type: ignore[attr-defined]  # noqa: SLF001 (it has no other way)
            return made

        return super().do_open(connection, req, **arguments)

    def check(self) -> None:
        """Raise TimeoutError if the time is up."""
        if self.is_over:
            msg = f"it did not arrive within {self._seconds:g} s"
            raise TimeoutError(msg)

    def end(self) -> None:
        """Stop the clock, and let go of the connection."""
        self._timer.cancel()
        if self._connected is not None:
            self._connected.close()

    def _connect(self, *address: Any) -> socket.socket:
        connected = socket.create_connection(*address)
        self._connected = connected.dup()  # TLS takes the other one over
        if self.is_over:
            self._disconnect()
        return connected

    def _disconnect(self) -> None:
        self.is_over = True
        if self._connected is not None:
            with suppress(OSError):  # the other side was faster
                self._connected.shutdown(socket.SHUT_RDWR)


def fetch_document(url: str, seconds: float = WHOLE_S) -> dict[str, Any]:
    """
    Return the JSON object at a URL. This waits for the network.

    Args:
        url:
            A URL of https, or on this machine of http.

        seconds:
            How long it may take. Then the connection is closed.

    Raises:
        DocumentUnavailable: If it cannot be had in time, is too large, or is no JSON object.
    """
    try:
        found = msgspec.json.decode(_read(secure_url(url), seconds), type=dict[str, Any])
    except (OSError, HTTPException, ValueError, RecursionError) as error:
        if isinstance(error, HTTPError):  # it is an answer, too, and would keep its connection open
            error.close()
        msg = f"{url}: {error}"
        raise DocumentUnavailable(msg, is_absent=getattr(error, "code", None) in (404, 410)) from None
    return found


def _read(url: str, seconds: float) -> bytes:
    request = Request(url, headers={"accept": "application/json", "user-agent": f"promptkit/{VERSION}"})  # noqa: S310 (it is checked)
    timed = _Timed(seconds)
    proxies = [ProxyHandler({})] if urlsplit(url).scheme == "http" else []  # on this machine, there is none
    try:
        with build_opener(_Stay, timed, *proxies).open(request, timeout=_PART_S) as response:
            data: bytes = response.read(_MAX_BYTES + 1)
    except HTTPError:
        raise
    except (OSError, HTTPException):
        timed.check()
        raise
    finally:
        timed.end()
    timed.check()  # a connection that is shut down may look like the end of the document
    if len(data) > _MAX_BYTES:
        msg = f"it has more than {_MAX_BYTES:,} bytes"
        raise ValueError(msg)
    return data
