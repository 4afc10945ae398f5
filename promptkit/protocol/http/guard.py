"""
The guard: checks a request's head before the body is read, and provides the CORS headers of responses.

It checks the host, the origin, the path, the method, the media types and the transfer encoding.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from promptkit.errors.exceptions import shortened
from promptkit.protocol.http.messages import (
    CLOSE,
    ENDPOINT,
    JSON,
    JSON_BODY,
    SESSION_ID,
    STREAM,
    Head,
    HttpResponse,
    reject,
)
from promptkit.protocol.jsonrpc import InvalidRequest

#: The maximum size of the header fields, in bytes, and their maximum number.
_HEAD_BYTES: Final = 32 * 1024
_HEAD_FIELDS: Final = 100

_CONTENT_ENCODING: Final = b"content-encoding"

_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")

_EVENTS: Final = b"text/event-stream"

_TRANSFER_ENCODING: Final = b"transfer-encoding"

#: The request headers that a page from an allowed origin can send, and the response headers that it can read.
_ALLOWED_HEADERS: Final = (
    b"accept, authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, "
    b"mcp-session-id"
)
_PREFLIGHT: Final = ((b"access-control-allow-headers", _ALLOWED_HEADERS), (b"access-control-max-age", b"600"))
_EXPOSED_HEADERS: Final = (b"access-control-expose-headers", b"mcp-session-id, www-authenticate")

#: Caches must not serve a response for one origin to another origin.
_VARY: Final = (b"vary", b"origin")


class Guard:
    """
    The checks of request heads, in the order in which docs/http.md lists them.

    Args:
        hosts:
            The host names of the server, as clients write them in a URL, with or without a port. Loopback
            names are always allowed. ``*`` allows every name.

        origins:
            The origins of pages that are allowed to send requests, such as ``https://chat.example``. Loopback
            origins are also allowed if no *hosts* are given.

        documents:
            Public JSON documents, keyed by path.

    Raises:
        ValueError: If an origin is invalid.

    See Also:
        https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#security-warning
    """

    def __init__(
        self,
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
        documents: Mapping[str, bytes] = MappingProxyType({}),
    ) -> None:
        names = [host.lower() for host in hosts]
        self._any_host = "*" in names
        self._hosts = frozenset((*names, *_LOOPBACK))
        self._origins = frozenset(map(_parse_origin, origins))
        self._local_origins = not names
        self._documents = documents

    def check(self, head: Head) -> HttpResponse | None:
        """Return the response, such as an error, if the head alone determines it; otherwise return None."""
        if (response := self._check_head(head)) is not None:
            return response
        if (document := self._documents.get(head.path)) is not None:
            reply = HttpResponse(200, document, (JSON_BODY, (b"cache-control", b"max-age=300"), _VARY))
            return _check_read_only(head) or reply
        if head.path != ENDPOINT and head.path != ENDPOINT + "/":
            msg = f"there is nothing at {shortened(head.path)!r}: use {ENDPOINT}"
            return reject(404, InvalidRequest(msg))
        if head.method == STREAM and head.get(SESSION_ID):
            return _check_stream(head)
        if head.method != "POST":
            msg = f"{shortened(head.method)} is not supported here: send each message with POST"
            return _reject_method(head, b"POST", msg)
        return _check_media_types(head)

    def check_page(self, head: Head) -> HttpResponse | None:
        """
        Return the error response to a request for a page other than the endpoint; None if it is allowed.
        """
        return self._check_head(head) or _check_read_only(head)

    def _check_head(self, head: Head) -> HttpResponse | None:
        """Return the error response if a head is too large, or if its host or origin is not allowed."""
        if len(head.sent) > _HEAD_FIELDS or head.size > _HEAD_BYTES:
            limits = f"{_HEAD_BYTES // 1024} KiB and {_HEAD_FIELDS} fields"
            return reject(431, InvalidRequest(f"the head of a request is limited to {limits}"))
        host, origin = head.get(b"host"), head.get(b"origin")
        if b"host" in head.repeated or not host:
            return reject(421, InvalidRequest("a request must have exactly one Host header"))
        name = host.decode("latin-1").lower()
        if not (self._any_host or name in self._hosts or _without_port(name) in self._hosts):
            name = shortened(name)
            hint = f"to allow it, use --allow-host {name}"
            return reject(421, InvalidRequest(f"the host name {name!r} is not allowed; {hint}"))
        if origin is not None and (b"origin" in head.repeated or not self.allows_origin(origin)):
            page_origin = shortened(origin.decode("latin-1"))
            hint = f"to allow them, use --allow-origin {page_origin}"
            return reject(
                403, InvalidRequest(f"pages from {page_origin!r} are not allowed to send requests; {hint}")
            )
        return None

    def allows_origin(self, origin: bytes) -> bool:
        """Return whether pages from this origin are allowed to send requests."""
        if b"*" in self._origins or origin.lower() in self._origins:
            return True
        return self._local_origins and _is_local(origin)

    def cors_headers(self, head: Head) -> tuple[tuple[bytes, bytes], ...]:
        """
        Return the headers that let a page from an allowed origin read the response; empty for other origins.
        """
        origin = head.get(b"origin")
        if origin is None or not self.allows_origin(origin):
            return ()
        return ((b"access-control-allow-origin", origin), _EXPOSED_HEADERS, _VARY)


def check_framing(head: Head) -> HttpResponse | None:
    """
    Return an error response if the request has a transfer encoding other than ``chunked``; otherwise None.

    Some ASGI servers forward a body in another encoding without decoding it.
    """
    encoding = head.get(_TRANSFER_ENCODING)
    if encoding is None or (encoding.lower() == b"chunked" and _TRANSFER_ENCODING not in head.repeated):
        return None
    msg = "Transfer-Encoding must be 'chunked', and must be sent only once"
    return reject(400, InvalidRequest(msg), headers=(CLOSE,))


def _check_read_only(head: Head) -> HttpResponse | None:
    if head.method in ("GET", "HEAD"):
        return None
    return _reject_method(head, b"GET", "this resource is read-only: use GET")


def _reject_method(head: Head, served: bytes, msg: str) -> HttpResponse:
    if head.method == "OPTIONS" and b"origin" in head.fields:  # a preflight request
        return HttpResponse(204, headers=((b"access-control-allow-methods", served), *_PREFLIGHT))
    allow = b"GET, HEAD" if served == b"GET" else served
    return reject(405, InvalidRequest(msg), headers=((b"allow", allow),))


def _check_stream(head: Head) -> HttpResponse | None:
    """
    Return the error response if a client opens a stream, but does not accept streams; otherwise None.
    """
    _, events = parse_accept(head.get(b"accept") or b"*/*")
    if events:
        return None
    return reject(
        406, InvalidRequest("the stream of a session is text/event-stream: include that type in Accept")
    )


def _check_media_types(head: Head) -> HttpResponse | None:
    content = head.get(b"content-type") or b""
    is_json = content == JSON or content.partition(b";")[0].strip().lower() == JSON
    if not is_json or b"content-type" in head.repeated:
        return reject(
            415, InvalidRequest("the body of a request must be JSON: send Content-Type: application/json")
        )
    if (head.get(_CONTENT_ENCODING) or b"identity").lower() != b"identity":
        error = InvalidRequest("the body must not be compressed: send it without Content-Encoding")
        return reject(415, error, headers=((b"accept-encoding", b"identity"),))
    accept = head.get(b"accept")
    if accept is None:
        return None
    json, events = parse_accept(accept)
    # A request gets a stream only if its headers name the method. The body, which is read later, must match.
    if events if head.get(b"mcp-method") == b"subscriptions/listen" else json:
        return None
    msg = "the reply is application/json, or text/event-stream for a stream: include both in Accept"
    return reject(406, InvalidRequest(msg))


@lru_cache(maxsize=64)
def parse_accept(accept: bytes) -> tuple[bool, bool]:
    """
    Return whether an Accept header includes JSON, and whether it includes streams of events.

    Quality values are ignored.

    See Also:
        https://www.rfc-editor.org/rfc/rfc9110#section-12.5.1
    """
    names = {media_range.partition(b";")[0].strip() for media_range in accept.lower().split(b",")}
    json, events = ((name, name.partition(b"/")[0] + b"/*", b"*/*") for name in (JSON, _EVENTS))
    return not names.isdisjoint(json), not names.isdisjoint(events)


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isascii() and port.isdigit() else host


def _parse_origin(text: str) -> bytes:
    parts = urlsplit(text)
    if text != "*" and (not parts.scheme or not parts.netloc or parts.path.strip("/") or parts.query):
        expected = "expected something like https://chat.example, with a port if it has one"
        msg = f"{text!r} is not a valid origin: {expected}"
        raise ValueError(msg)
    return text.rstrip("/").lower().encode("latin-1", "replace")


def _is_local(origin: bytes) -> bool:
    scheme, _, host = origin.decode("latin-1").lower().partition("://")
    return scheme in ("http", "https") and _without_port(host) in _LOOPBACK
