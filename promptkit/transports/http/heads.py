"""What a head and a socket say, as an ASGI application has it."""

from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from httptools import HttpParserInvalidURLError, parse_url

__all__ = ["address", "target"]


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


def address(found: Any) -> tuple[str, int] | None:
    """
    Return an address as ASGI has it; None for that of a Unix socket.
    """
    return (str(found[0]), int(found[1])) if isinstance(found, tuple) and found else None
