"""Serving the pages to this machine, until Ctrl-C."""

import asyncio
import socket
from collections.abc import Callable

from starlette.types import ASGIApp
from uvicorn import Config, Server

__all__ = ["serve"]

#: How long requests may take to end after Ctrl-C, in seconds.
_GRACE_S = 1


def serve(
    application: ASGIApp,
    listening: socket.socket,
    *,
    ready: Callable[[], object],
    close: Callable[[], object],
) -> None:
    """
    Serve the pages until the process is told to end.

    Args:
        application:
            The pages.

        listening:
            Where browsers connect.

        ready:
            Called once a signal ends this properly, before the first request is answered.

        close:
            Ends the streams that would go on for ever.

    Raises:
        KeyboardInterrupt: On Ctrl-C.
    """
    config = Config(
        application,
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_S,
    )
    config.load()  # what is slow comes before anybody is told
    server = _Server(config, ready, close)
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(server.serve(sockets=[listening]))


class _Server(Server):
    """Says when it is ready, and ends the streams of events first, since it waits for all that runs."""

    def __init__(self, config: Config, ready: Callable[[], object], close: Callable[[], object]) -> None:
        super().__init__(config)
        self._ready = ready
        self._close = close

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._close()
        await super().shutdown(sockets)
