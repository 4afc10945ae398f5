"""What is put together to serve recipes over HTTP."""

from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct

from promptkit.catalog.catalog import Catalog
from promptkit.protocol.capabilities import ServerInfo, ToolMode
from promptkit.protocol.http.endpoint import Endpoint
from promptkit.protocol.http.guard import Guard
from promptkit.protocol.http.sessions import Sessions
from promptkit.protocol.key_ring import KeyRing
from promptkit.protocol.limits import PAGE_SIZE, Limits
from promptkit.protocol.request_state import RequestStateSigner
from promptkit.server.shared_server import SharedServer
from promptkit.transports.http.application import BODY_BYTES, Application
from promptkit.version import VERSION

if TYPE_CHECKING:
    from promptkit.server.observers import Observer
    from promptkit.server.telemetry import Telemetry
    from promptkit.transports.authorization.authorizer import Authorizer

__all__ = ["Settings", "host", "public_names"]


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
            What tokens are sealed with, which all replicas have.

        own_key:
            What they are sealed with if there are none; by default, a random key.

        changes:
            Whether another catalog may be served later.

        audit:
            The file to which one line is written for each request; None if none is.

        telemetry:
            Tells OpenTelemetry of each request; None if it is told of none.

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
    """

    name: str = "promptkit"
    hosts: Iterable[str] = ()
    origins: Iterable[str] = ()
    keys: Iterable[bytes] = ()
    own_key: bytes | None = None
    changes: bool = True
    audit: str | None = None
    telemetry: "Telemetry | None" = None
    page_size: int = PAGE_SIZE
    tools: ToolMode = False
    body_limit: int = BODY_BYTES
    limits: Limits = Limits()
    authorizer: "Authorizer | None" = None
    scopes: frozenset[str] = frozenset()


def host(
    catalog: Catalog, settings: Settings, on_start: Callable[[Application], object] = bool
) -> Application:
    """
    Return the application that serves a catalog. It starts no thread until its first request.

    Args:
        catalog:
            What is served.

        settings:
            How.

        on_start:
            Called with the application once its threads are started.

    Raises:
        ValueError: If an origin is not one, or a key is too short.
    """
    identity = ServerInfo(settings.name, VERSION)
    ring = KeyRing(settings.keys, settings.name, settings.own_key)
    authorizer = settings.authorizer
    documents = MappingProxyType({}) if authorizer is None else authorizer.scheme.documents

    def make_server() -> SharedServer:
        return SharedServer(
            catalog,
            _nowhere,
            identity=identity,
            page_size=settings.page_size,
            tools=settings.tools,
            changes=settings.changes,
            limits=settings.limits,
            signer=RequestStateSigner(ring),
            observer=_observer(settings),
            scopes=settings.scopes,
        )

    return Application(
        make_server,
        Endpoint(identity, Sessions(ring), settings.limits),
        Guard(settings.hosts, settings.origins, documents),
        body_limit=settings.body_limit,
        held_limit=settings.limits.held,
        on_start=on_start,
        authorizer=authorizer,
        ring=ring if ring.is_shared else None,
        telemetry=settings.telemetry,
    )


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


def _observer(settings: Settings) -> "Observer | None":
    """What is told of each request. Each process opens the audit by itself."""
    if settings.audit is None:
        return settings.telemetry
    from promptkit.server.audit import Audit  # few keep one
    from promptkit.server.observers import joined

    return joined((Audit(settings.audit), settings.telemetry))


def _nowhere(_line: bytes) -> None:
    """Where lines go that belong to no request: to nobody."""
