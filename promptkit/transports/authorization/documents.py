"""Fetches JSON documents of an issuer: from where it was told alone, within a time and a size."""

import socket
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse
from threading import Timer
from typing import IO, Any, Final, Self
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import (
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    build_opener,
)

import msgspec

from promptkit.protocol.http.bearer import secure_url
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

    def redirect_request(  # noqa: PLR0913, PLR0917 (urllib calls it so)
        self,
        req: Request,  # noqa: ARG002
        fp: IO[bytes],  # noqa: ARG002
        code: int,  # noqa: ARG002
        msg: str,  # noqa: ARG002
        headers: HTTPMessage,  # noqa: ARG002
        newurl: str,  # noqa: ARG002
    ) -> None:
        return None


class _Deadline:
    """Ends a fetch once its time is up, whatever it waits for: a socket's own begins again with each byte."""

    def __init__(self, seconds: float) -> None:
        self.is_over = False
        self._seconds = seconds
        self._timer = Timer(seconds, self._end)
        self._timer.daemon = True
        self._connected: socket.socket | None = None

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        if self._connected is not None:
            self._connected.close()

    def check(self) -> None:
        """Raise TimeoutError if the time is up."""
        if self.is_over:
            msg = f"it did not arrive within {self._seconds:g} s"
            raise TimeoutError(msg)

    def connect(self, *address: Any) -> socket.socket:
        """Connect, as `socket.create_connection` does."""
        connected = socket.create_connection(*address)
        self._connected = connected.dup()  # TLS takes the other one over
        if self.is_over:
            self._end()
        return connected

    def _end(self) -> None:
        self.is_over = True
        if self._connected is not None:
            with suppress(OSError):  # the other side was faster
                self._connected.shutdown(socket.SHUT_RDWR)


class _Timed(HTTPSHandler, HTTPHandler):
    """Connects under a deadline, with TLS or without, to the server or to its proxy."""

    def __init__(self, deadline: _Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def do_open(self, http_class: Any, req: Request, **arguments: Any) -> HTTPResponse:
        def connection(*given: Any, **named: Any) -> HTTPConnection:
            made: HTTPConnection = http_class(*given, **named)
            made._create_connection = self._deadline.connect  # type: ignore[attr-defined]  # noqa: SLF001 (it has no other way)
            return made

        return super().do_open(connection, req, **arguments)


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
        secure_url(url)
        with _Deadline(seconds) as deadline:
            data = _read(url, deadline)
        found = msgspec.json.decode(data, type=dict[str, Any])
    except (OSError, HTTPException, ValueError, RecursionError) as error:
        if isinstance(error, HTTPError):  # which is an answer, too, and whoever keeps it keeps its connection
            error.close()
        status = getattr(error, "code", None)
        msg = f"{url}: {error}"
        raise DocumentUnavailable(msg, is_absent=status in (404, 410)) from None
    return found


def _read(url: str, deadline: _Deadline) -> bytes:
    request = Request(url, headers={"accept": "application/json", "user-agent": f"promptkit/{VERSION}"})  # noqa: S310 (it is checked)
    try:
        with _opener(url, deadline).open(request, timeout=_PART_S) as response:
            data: bytes = response.read(_MAX_BYTES + 1)
    except HTTPError:
        raise
    except (OSError, HTTPException):
        deadline.check()
        raise
    deadline.check()  # a connection that is shut down may look like the end of the document
    if len(data) > _MAX_BYTES:
        msg = f"it has more than {_MAX_BYTES:,} bytes"
        raise ValueError(msg)
    return data


def _opener(url: str, deadline: _Deadline) -> OpenerDirector:
    is_local = urlsplit(url).scheme == "http"
    return build_opener(_Stay, _Timed(deadline), *([ProxyHandler({})] if is_local else []))
