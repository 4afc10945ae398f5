"""How recipes are served over HTTP."""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

from promptkit.protocol.capabilities import ToolMode
from promptkit.protocol.key_ring import Keys
from promptkit.protocol.limits import PAGE_SIZE, Limits

if TYPE_CHECKING:
    from promptkit.server.metrics import Metrics
    from promptkit.server.telemetry import Telemetry
    from promptkit.transports.auth.authorizer import Authorizer

#: The longest body, in bytes, unless another limit is given. The official servers have the same.
BODY_BYTES: Final = 4 * 1024 * 1024


class Settings(Struct, frozen=True, kw_only=True):
    """
    How recipes are served over HTTP.

    Args:
        name:
            The server's name, which clients show. Tokens of servers with another name are refused.

        hosts:
            By which names clients may call the server, besides those of this machine; ``*`` for any.

        origins:
            The origins of pages that may send requests.

        keys:
            What tokens are sealed with, which all replicas have; or what returns them at any time.

        own_key:
            What they are sealed with if there are none; by default, a random key.

        changes:
            Whether another catalog may be served later.

        audit:
            The file to which one line is written for each request; None if none is.

        telemetry:
            Tells OpenTelemetry of each request; None if it is told of none.

        metrics:
            Counts for Prometheus, and answers it; None if nothing does.

        faulty:
            Returns how many recipes have a fault.

        page_size:
            How many items a page of a list holds.

        tools:
            Whether prompts are offered as tools.

        body_limit:
            The longest body of a request, in bytes.

        limits:
            What else a client may ask for.

        authorizer:
            Finds who sends a request; None if nobody asks.

        scopes:
            What clients may do if nobody asks who they are.

    Raises:
        ValueError: If there are scopes beside an authorizer.
    """

    name: str = "promptkit"
    hosts: Iterable[str] = ()
    origins: Iterable[str] = ()
    keys: Keys = ()
    own_key: bytes | None = None
    changes: bool = True
    audit: str | None = None
    telemetry: "Telemetry | None" = None
    metrics: "Metrics | None" = None
    faulty: Callable[[], int] = int
    page_size: int = PAGE_SIZE
    tools: ToolMode = False
    body_limit: int = BODY_BYTES
    limits: Limits = Limits()
    authorizer: "Authorizer | None" = None
    scopes: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.scopes and self.authorizer is not None:
            msg = "scopes are for applications without tokens: here, tokens say it"
            raise ValueError(msg)


def public_names(url: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """
    Return the hosts and the origins that the URL by which clients call a server allows; none without one.

    Raises:
        ValueError: If it is no such URL.
    """
    if url is None:
        return (), ()
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        msg = f"the public URL {url!r} is no URL of a server: write it as https://prompts.example/mcp"
        raise ValueError(msg)
    return (parts.netloc,), (f"{parts.scheme}://{parts.netloc}",)


Scope: TypeAlias = MutableMapping[str, Any]
Event: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]
ASGIApplication: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
