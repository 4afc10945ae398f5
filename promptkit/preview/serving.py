"""Serving the pages to this machine, until Ctrl-C."""

import signal
import socket
from collections.abc import Callable
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from promptkit.transports.http.connections import ConnectionLimits
from promptkit.transports.http.worker import Worker

__all__ = ["serve"]

#: How long requests may take to end after Ctrl-C, in seconds.
_GRACE_S: Final = 1.0

#: Some browsers have fewer connections.
_LIMITS: Final = ConnectionLimits(connections=256)


def serve(
    application: ASGIApp,
    listening: socket.socket,
    *,
    ready: Callable[[], object],
    close: Callable[[], object],
) -> bool:
    """
    Serve the pages until the process is told to end. Return False if it could not go on until then.

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
    worker = Worker(_Pages(application, close), [listening], limits=_LIMITS, grace=_GRACE_S)
    worker.run(ready)
    if worker.signal == signal.SIGINT:
        raise KeyboardInterrupt
    return not worker.is_deaf


class _Pages:
    """The pages, as a worker serves them."""

    draining = False

    def __init__(self, application: ASGIApp, close: Callable[[], object]) -> None:
        self._application = application
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._application(scope, receive, send)

    def close(self, grace: float) -> None:  # noqa: ARG002 (what is rendered does not hold up the end)
        self._close()
