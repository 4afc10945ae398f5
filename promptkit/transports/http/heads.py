"""What a head and a socket say, as an ASGI application has it."""

from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from httptools import HttpParserError, HttpParserInvalidURLError, parse_url

from promptkit.transports.http.asgi_types import Scope

__all__ = ["Head", "scope_of", "target"]


class Head:
    """
    The head of a request, of which the parser tells piece by piece.

    Attributes:
        fields:
            The fields, their names in small letters.

        awaits_continue:
            Whether the client wants to be told that it may send the body.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Forget the head of another request."""
        self._target = b""
        self.fields: list[tuple[bytes, bytes]] = []
        self.awaits_continue = False

    def add_to_target(self, piece: bytes) -> None:
        """Keep a part of the target."""
        self._target += piece

    def add_field(self, name: bytes, value: bytes) -> None:
        """Keep a field."""
        name = name.lower()
        if name == b"expect":
            self.awaits_continue = value.lower() == b"100-continue"
        elif name == b"transfer-encoding" and value.strip().lower() != b"chunked":
            raise HttpParserError  # the body would be passed on as it was encoded
        self.fields.append((name, value))

    @property
    def size(self) -> int:
        """How many bytes it has, about."""
        return len(self._target) + sum(len(name) + len(value) + 4 for name, value in self.fields)

    def scope(self) -> Scope:
        """Return the target and the fields, as ASGI has them. Trailers are not added."""
        path, raw_path, query = target(self._target)
        fields, self.fields = self.fields, []
        return {"path": path, "raw_path": raw_path, "query_string": query, "headers": fields}


def scope_of(transport: Any) -> Scope:
    """
    Return what ASGI says of each request of a connection.
    """
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "scheme": "http",
        "root_path": "",
        "client": _address(transport.get_extra_info("peername")),
        "server": _address(transport.get_extra_info("sockname")),
    }


@lru_cache(maxsize=16)
def target(url: bytes) -> tuple[str, bytes, bytes]:
    """
    Return the path of a request, decoded and as it was sent, and its query.

    Raises:
        HttpParserInvalidURLError: If the target is no path. One that names a host, as proxies are sent it,
            would have to take the place of the field ``host``.

    See Also:
        https://www.rfc-editor.org/rfc/rfc9112#section-3.2.2
    """
    if not url.startswith(b"/"):
        raise HttpParserInvalidURLError
    parts = parse_url(url)
    return unquote(parts.path.decode("ascii")), parts.path, parts.query or b""


def _address(found: Any) -> tuple[str, int] | None:
    """An address as ASGI has it; None for that of a Unix socket."""
    return (str(found[0]), int(found[1])) if isinstance(found, tuple) and found else None
