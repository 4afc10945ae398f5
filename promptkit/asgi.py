"""
Prompts over HTTP: an ASGI application for uvicorn, granian or hypercorn, or to be mounted in another one.

See https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from promptkit.cli.loading import report_faults
from promptkit.compiler.reloading import Reloader
from promptkit.protocol.limits import PAGE_SIZE, Limits
from promptkit.transports.http.application import BODY_BYTES, Application
from promptkit.transports.http.hosting import Settings, host
from promptkit.transports.state_keys import state_keys

if TYPE_CHECKING:
    from promptkit.server.telemetry import Telemetry

__all__ = ["Application", "app"]


def app(  # noqa: PLR0913 (each is an option of serve, too)
    target: str | Path = "recipes",
    *,
    name: str = "promptkit",
    hosts: Iterable[str] = (),
    origins: Iterable[str] = (),
    keys: Iterable[bytes] | None = None,
    watch: bool = True,
    page_size: int = PAGE_SIZE,
    body_limit: int = BODY_BYTES,
    limits: Limits = Limits(),  # noqa: B008 (it cannot be changed)
    otel: bool = False,
) -> Application:
    """
    Return an ASGI application that serves recipes at ``/mcp``.

    It loads the recipes at once, and starts threads with its first request, so a server may fork between the
    two. It needs no lifespan. Mounted in another application, it answers at the path of the mount, too.

    A server that is told to end waits for its open streams, and a stream of events is open for as long as its
    client likes. So bound that wait: uvicorn's option is ``--timeout-graceful-shutdown SECONDS``.

    Args:
        target:
            A folder of recipes, a file, a module, or ``module:object``.

        name:
            The server's name, which clients show. It is also whom tokens are for: replicas have one name.

        hosts:
            The names by which clients call the server, such as ``prompts.example``, with or without a port.
            Those of this machine are always allowed; ``*`` allows every name.

        origins:
            The origins of pages that may send requests, such as ``https://chat.example``.

        keys:
            The keys that tokens are sealed with, 32 bytes each or more: the first seals, all open. By
            default those of the variable PROMPTKIT_STATE_KEYS; without it, a random key that is right for
            one process, and for those that are forked from it.

        watch:
            Whether changed recipes are served without a restart.

        page_size:
            How many prompts or resources a page of a list holds.

        body_limit:
            The longest body of a request, in bytes.

        limits:
            How much else a client may ask for.

        otel:
            Whether OpenTelemetry is told of each request, which needs ``promptkit[otel]``.

    Raises:
        LoadError: If there is nothing at the target.

        ValueError: If an origin is not one, or a key is too short or cannot be read.

        ModuleNotFoundError: If OpenTelemetry is to be told, and its API is not installed.
    """
    reloader = Reloader(target, report_faults)
    catalog = reloader.load()
    report_faults(catalog)
    watches = watch and reloader.watches
    settings = Settings(
        name=name,
        hosts=tuple(hosts),
        origins=tuple(origins),
        keys=state_keys(None) if keys is None else tuple(keys),
        changes=watches,
        page_size=page_size,
        body_limit=body_limit,
        limits=limits,
        telemetry=_telemetry() if otel else None,
    )

    def start(application: Application) -> None:
        if watches:
            reloader.start(application.replace)

    return host(catalog, settings, start)


def _telemetry() -> "Telemetry":
    from promptkit.server.telemetry import TCP, Telemetry  # its imports take as long as all others

    return Telemetry(TCP)
