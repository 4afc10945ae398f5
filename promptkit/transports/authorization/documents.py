"""Fetches JSON documents of an issuer: from where it was told alone, within a time and a size."""

import time
from http.client import HTTPException, HTTPMessage
from typing import IO, Any, Final
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener

import msgspec

from promptkit.protocol.http.bearer import secure_url
from promptkit.version import VERSION

__all__ = ["DocumentUnavailable", "fetch_document"]

#: How long one part of a response may take, and all of it, in seconds.
_PART_S: Final = 5.0
_WHOLE_S: Final = 8.0

_MAX_BYTES: Final = 1024 * 1024
_PIECE_BYTES: Final = 65536


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


def fetch_document(url: str) -> dict[str, Any]:
    """
    Return the JSON object at a URL. This waits for the network.

    Args:
        url:
            A URL of https, or on this machine of http.

    Raises:
        DocumentUnavailable: If it cannot be had in time, is too large, or is no JSON object.
    """
    try:
        secure_url(url)
        data = _read(url)
        found = msgspec.json.decode(data, type=dict[str, Any])
    except (OSError, HTTPException, ValueError, RecursionError) as error:
        if isinstance(error, HTTPError):  # which is an answer, too, and whoever keeps it keeps its connection
            error.close()
        status = getattr(error, "code", None)
        msg = f"{url}: {error}"
        raise DocumentUnavailable(msg, is_absent=status in (404, 410)) from None
    return found


def _read(url: str) -> bytes:
    until = time.monotonic() + _WHOLE_S
    request = Request(url, headers={"accept": "application/json", "user-agent": f"promptkit/{VERSION}"})  # noqa: S310 (it is checked)
    data = b""
    with _opener(url).open(request, timeout=_PART_S) as response:
        while piece := response.read1(_PIECE_BYTES):
            data += piece
            if len(data) > _MAX_BYTES:
                msg = f"it has more than {_MAX_BYTES:,} bytes"
                raise ValueError(msg)
            if time.monotonic() > until:
                msg = f"it did not arrive within {_WHOLE_S:g} s"
                raise TimeoutError(msg)
    return data


def _opener(url: str) -> OpenerDirector:
    is_local = urlsplit(url).scheme == "http"
    return build_opener(_Stay, *([ProxyHandler({})] if is_local else []))
