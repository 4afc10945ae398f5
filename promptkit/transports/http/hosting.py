"""What is put together to serve recipes over HTTP."""

from collections.abc import Iterable

from msgspec import Struct

from promptkit.catalog.catalog import Catalog
from promptkit.compiler.reloading import Reloader
from promptkit.protocol.capabilities import ServerInfo
from promptkit.protocol.http.endpoint import Endpoint
from promptkit.protocol.http.guard import Guard
from promptkit.protocol.http.sessions import Sessions
from promptkit.protocol.key_ring import KeyRing
from promptkit.protocol.limits import PAGE_SIZE, Limits
from promptkit.protocol.request_state import RequestStateSigner
from promptkit.server.shared_server import SharedServer
from promptkit.transports.http.application import BODY_BYTES, Application
from promptkit.version import VERSION

__all__ = ["Settings", "host"]


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
            What tokens are sealed with; if there are none, a random key.

        watch:
            Whether changed recipes are served.

        page_size:
            How many items a page of a list holds.

        body_limit:
            The longest body of a request, in bytes.

        limits:
            What else a client may ask for.
    """

    name: str = "promptkit"
    hosts: Iterable[str] = ()
    origins: Iterable[str] = ()
    keys: Iterable[bytes] = ()
    watch: bool = True
    page_size: int = PAGE_SIZE
    body_limit: int = BODY_BYTES
    limits: Limits = Limits()


def host(reloader: Reloader, catalog: Catalog, settings: Settings) -> Application:
    """
    Return the application that serves a catalog. It starts no thread until its first request.

    Args:
        reloader:
            What has loaded the catalog, and loads it again.

        catalog:
            What is served.

        settings:
            How.

    Raises:
        ValueError: If an origin is not one, or a key is too short.
    """
    identity = ServerInfo(settings.name, VERSION)
    ring = KeyRing(settings.keys, settings.name)
    watches = settings.watch and reloader.watches
    server = SharedServer(
        catalog,
        _nowhere,
        identity=identity,
        page_size=settings.page_size,
        changes=watches,
        limits=settings.limits,
        signer=RequestStateSigner(ring),
    )
    application = Application(
        server,
        Endpoint(identity, Sessions(ring), settings.limits),
        Guard(settings.hosts, settings.origins),
        body_limit=settings.body_limit,
        held_limit=settings.limits.held,
    )
    if watches:
        application.when_started(lambda: reloader.start(application.publish))
    return application


def _nowhere(_line: bytes) -> None:
    """Where lines go that belong to no request: to nobody."""
