"""What is checked before a body is read: who asks, for what, and in which form."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from promptkit.errors.exceptions import shortened
from promptkit.protocol.http.messages import CLOSE, JSON, JSON_BODY, Head, HttpResponse, refuse
from promptkit.protocol.jsonrpc import InvalidRequest

#: Where clients send their requests. A slash at the end makes no difference: clients do not follow a
#: redirect with a body.
ENDPOINT: Final = "/mcp"

#: The most that a head may have: bytes of its fields, and fields.
_HEAD_BYTES: Final = 32 * 1024
_HEAD_FIELDS: Final = 100

#: How many heads that were fine are known. Clients send few that differ in what is checked.
_MOST_KNOWN: Final = 64

_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")

_EVENTS: Final = b"text/event-stream"

_TRANSFER_ENCODING: Final = b"transfer-encoding"

#: The method whose reply is a stream.
_METHOD: Final = b"mcp-method"
_LISTEN: Final = b"subscriptions/listen"

#: What a page of an allowed origin may send, and what it may read of a response.
_SENT: Final = (
    b"accept, authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, "
    b"mcp-session-id"
)
_ALLOWED: Final = ((b"access-control-allow-headers", _SENT), (b"access-control-max-age", b"600"))
_EXPOSED: Final = (b"access-control-expose-headers", b"mcp-session-id, www-authenticate")

#: A cache may not give one page what another one was allowed to read.
_VARY: Final = (b"vary", b"origin")


class Guard:
    """
    Checks heads, in the order in which http.md lists them.

    Args:
        hosts:
            The names of the server, as clients write them in a URL, with or without a port. Those of
            this machine are always allowed. ``*`` allows every name.

        origins:
            The origins of pages that may send requests, such as ``https://chat.example``. Those of this
            machine are always allowed if no *hosts* are given.

        documents:
            What anybody may read besides: JSON by its path.

    Raises:
        ValueError: If an origin is not one.

    See Also:
        https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#security-warning
    """

    def __init__(
        self,
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
        documents: Mapping[str, bytes] = MappingProxyType({}),
    ) -> None:
        named = [host.lower() for host in hosts]
        self._any_host = "*" in named
        self._hosts = frozenset((*named, *_LOOPBACK))
        self._origins = frozenset(map(_origin, origins))
        self._local_origins = not named
        self._documents = documents
        self._fine: set[tuple[str | bytes | None, ...]] = set()

    def check(self, head: Head) -> HttpResponse | None:
        """
        Return the response to a request that is not served, or is answered by its head alone; else None.
        """
        if len(head.sent) > _HEAD_FIELDS or head.size > _HEAD_BYTES:
            most = f"{_HEAD_BYTES // 1024} KiB and {_HEAD_FIELDS} fields"
            return refuse(431, InvalidRequest(f"the head of a request has at most {most}"))
        fields = head.fields
        asks = (
            head.path,
            head.method,
            fields.get(b"host"),
            fields.get(b"origin"),
            fields.get(b"content-type"),
            fields.get(b"accept"),
        )
        if asks in self._fine and not head.repeated and fields.get(_METHOD) != _LISTEN:
            return None
        response = self._check(head)
        if response is None and len(self._fine) < _MOST_KNOWN:
            self._fine.add(asks)
        return response

    def check_reading(self, head: Head) -> HttpResponse | None:
        """
        Return the response to a request that may not read what is shown at a path of its own; else None.
        """
        return self._check_caller(head) or _check_read_only(head)

    def _check(self, head: Head) -> HttpResponse | None:
        if (refused := self._check_caller(head)) is not None:
            return refused
        if (document := self._documents.get(head.path)) is not None:
            found = HttpResponse(200, document, (JSON_BODY, (b"cache-control", b"max-age=300"), _VARY))
            return _check_read_only(head) or found
        if head.path != ENDPOINT and head.path != ENDPOINT + "/":
            use = "promptkit serve --metrics shows them" if head.path == "/metrics" else f"use {ENDPOINT}"
            return refuse(404, InvalidRequest(f"there is nothing at {shortened(head.path)!r}: {use}"))
        if head.method != "POST":
            msg = f"{shortened(head.method)} is not served here: send each message with POST"
            return _other_method(head, b"POST", msg)
        return _check_form(head)

    def _check_caller(self, head: Head) -> HttpResponse | None:
        """Refuse who calls the server by a foreign name, and pages of foreign origins."""
        if (refused := self._check_host(head)) is not None:
            return refused
        origin = head.get(b"origin")
        if origin is not None and (b"origin" in head.repeated or not self.allows(origin)):
            shown = shortened(origin.decode("latin-1"))
            hint = f"if they should, allow them with --allow-origin {shown}"
            return refuse(403, InvalidRequest(f"pages of {shown!r} may not send requests; {hint}"))
        return None

    def allows(self, origin: bytes) -> bool:
        """Whether a page of this origin may send requests."""
        if b"*" in self._origins or origin.lower() in self._origins:
            return True
        return self._local_origins and _is_local(origin)

    def cors(self, head: Head) -> tuple[tuple[bytes, bytes], ...]:
        """Return the headers that let a page of an allowed origin read the response."""
        origin = head.get(b"origin")
        if origin is None or not self.allows(origin):
            return ()
        return ((b"access-control-allow-origin", origin), _EXPOSED, _VARY)

    def _check_host(self, head: Head) -> HttpResponse | None:
        host = head.get(b"host")
        if b"host" in head.repeated or not host:
            return refuse(421, InvalidRequest("a request names its host, once"))
        name = host.decode("latin-1").lower()
        if not (self._any_host or name in self._hosts or _without_port(name) in self._hosts):
            shown = shortened(name)
            hint = f"if it should be, allow it with --allow-host {shown}"
            return refuse(421, InvalidRequest(f"this server is not called {shown!r}; {hint}"))
        return None


def check_framing(head: Head) -> HttpResponse | None:
    """
    Return the response to a request whose body is encoded in another way than in chunks; else None.

    Some servers pass such a body on as it was sent.
    """
    encoding = head.get(_TRANSFER_ENCODING)
    if encoding is None or (encoding.lower() == b"chunked" and _TRANSFER_ENCODING not in head.repeated):
        return None
    return refuse(400, InvalidRequest("Transfer-Encoding can only be chunked, once"), headers=(CLOSE,))


def _check_read_only(head: Head) -> HttpResponse | None:
    if head.method in ("GET", "HEAD"):
        return None
    return _other_method(head, b"GET", "this can only be read: use GET")


def _other_method(head: Head, served: bytes, msg: str) -> HttpResponse:
    if head.method == "OPTIONS" and b"origin" in head.fields:  # a page asks what it may send
        return HttpResponse(204, headers=((b"access-control-allow-methods", served), *_ALLOWED))
    allow = b"GET, HEAD" if served == b"GET" else served
    return refuse(405, InvalidRequest(msg), headers=((b"allow", allow),))


def _check_form(head: Head) -> HttpResponse | None:
    content = head.get(b"content-type") or b""
    is_json = content == JSON or content.partition(b";")[0].strip().lower() == JSON
    if not is_json or b"content-type" in head.repeated:
        return refuse(
            415, InvalidRequest("the body of a request is JSON: send Content-Type: application/json")
        )
    accept = head.get(b"accept")
    if accept is None:
        return None
    json, events = accepts(accept)
    # Only requests that say in their head what they are get a stream: the body comes later, and has to agree.
    if events if head.get(_METHOD) == _LISTEN else json:
        return None
    msg = "the reply is application/json, or text/event-stream for a stream: name both in Accept"
    return refuse(406, InvalidRequest(msg))


@lru_cache(maxsize=64)
def accepts(accept: bytes) -> tuple[bool, bool]:
    """
    Return whether a client takes JSON, and whether it takes a stream of events.

    See Also:
        https://www.rfc-editor.org/rfc/rfc9110#section-12.5.1
    """
    taken: dict[bytes, bool] = {}
    for each in accept.lower().split(b","):
        name, *parameters = (part.strip() for part in each.split(b";"))
        taken[name] = not any(_is_zero(parameter) for parameter in parameters)

    def takes(kind: bytes) -> bool:
        general = kind.partition(b"/")[0] + b"/*"
        return next((taken[name] for name in (kind, general, b"*/*") if name in taken), False)

    return takes(JSON), takes(_EVENTS)


def _is_zero(parameter: bytes) -> bool:
    name, _, value = parameter.partition(b"=")
    return name.strip() == b"q" and not value.strip().strip(b"0.")


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isascii() and port.isdigit() else host


def _origin(text: str) -> bytes:
    parts = urlsplit(text)
    if text != "*" and (not parts.scheme or not parts.netloc or parts.path.strip("/") or parts.query):
        msg = f"{text!r} is not an origin: write it as https://chat.example, with a port if it has one"
        raise ValueError(msg)
    return text.rstrip("/").lower().encode("latin-1", "replace")


def _is_local(origin: bytes) -> bool:
    scheme, _, host = origin.decode("latin-1").lower().partition("://")
    return scheme in ("http", "https") and _without_port(host) in _LOOPBACK
