"""A worker: one process that answers what arrives at its listening sockets, until it is told to end."""

import asyncio
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from email.utils import formatdate
from types import FrameType
from typing import Any, Final, Protocol, TypeAlias

from uvicorn.config import Config

from promptkit.catalog.catalog import Catalog
from promptkit.errors.standard_error import say
from promptkit.transports.http.connections import BoundedConnection, ConnectionLimits, Connections
from promptkit.transports.stdio import exit_after

__all__ = ["Application", "Worker"]

_Message: TypeAlias = MutableMapping[str, Any]

#: How often deadlines are looked at, in seconds.
_SWEEP_EVERY_S: Final = 1.0

#: How long connections that are being made take to get into the queue, in seconds.
_SETTLE_S: Final = 0.05

#: How long clients with an open connection have for one more request once the end has begun, in seconds.
#: Closing at once would lose requests that are on their way.
_LINGER_S: Final = 1.0

#: How often it is looked whether connections have ended, in seconds.
_LOOK_EVERY_S: Final = 0.02

#: How long what is written at last may take to be read, in seconds.
_FLUSH_S: Final = 0.5

#: How much later than the grace the process ends in any case, in seconds.
_EXIT_MARGIN_S: Final = 2.0

_OF_TERMINALS: Final = [name for name in ("SIGINT", "SIGHUP") if hasattr(signal, name)]
_ENDING_SIGNALS: Final = ["SIGTERM", *_OF_TERMINALS]


class Application(Protocol):
    """
    What answers the requests: a raw ASGI callable that can be ended.

    Attributes:
        draining:
            Set when the end has begun: the application tells balancers that it is no longer ready.
    """

    draining: bool

    async def __call__(
        self,
        scope: _Message,
        receive: Callable[[], Awaitable[_Message]],
        send: Callable[[_Message], Awaitable[None]],
    ) -> None:
        """Answer one request."""

    def start(self) -> object:
        """Start its threads. Called once, in the process that serves."""

    def replace(self, catalog: Catalog) -> None:
        """Serve another catalog from now on. Called on another thread, after a reload."""

    def close(self, grace: float) -> None:
        """End streams with their results, answer what is open within *grace* seconds, and end all threads."""


class Worker:
    """
    Serves one application in this process, with uvicorn's protocol.

    Args:
        application:
            What answers the requests.

        sockets:
            Where to listen. They stay open.

        limits:
            What a connection may be.

        grace:
            How long running requests are waited for at the end, in seconds.

        stop_connecting:
            Called when the end begins, before the sockets are read for the last time.

        lifeline:
            A descriptor that can be read as soon as the parent process has ended.
    """

    def __init__(  # noqa: PLR0913 (a process is told that much)
        self,
        application: Application,
        sockets: Sequence[socket.socket],
        *,
        limits: ConnectionLimits,
        grace: float,
        stop_connecting: Callable[[], object] = bool,
        lifeline: int | None = None,
    ) -> None:
        self._application = application
        self._sockets = sockets
        self._grace = grace
        self._stop_connecting = stop_connecting
        self._lifeline = lifeline
        self._connections = Connections(limits)
        self._config = Config(
            application,
            http=BoundedConnection,
            interface="asgi3",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
        )
        self._config.load()
        self._is_ending = False

    def run(self) -> None:
        """Serve until the process is told to end, and what was asked is answered. To be called once."""
        factory = self._config.get_loop_factory() or asyncio.new_event_loop
        self._loop = factory()
        asyncio.set_event_loop(self._loop)
        self._ended = asyncio.Event()
        for name in _ENDING_SIGNALS:
            signal.signal(getattr(signal, name), self._on_signal)
        if self._lifeline is not None:  # Ctrl-C reaches all processes of a terminal, but the parent decides
            for name in _OF_TERMINALS:
                signal.signal(getattr(signal, name), signal.SIG_IGN)
        if sys.platform != "win32":  # whoever forked this process has blocked them until now
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [getattr(signal, name) for name in _ENDING_SIGNALS])
        # The loop is never closed: it would wait for threads that authors' code has left.
        self._loop.run_until_complete(self._serve())

    def end(self) -> None:
        """Begin to end. May be called in a signal handler."""
        if not self._is_ending:
            self._is_ending = True
            exit_after(self._grace + _EXIT_MARGIN_S)
            self._loop.call_soon_threadsafe(self._ended.set)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self._is_ending and self._lifeline is None:  # whoever sends another does not want to wait
            die_of(number)
        self.end()

    async def _serve(self) -> None:
        self._tick()
        servers = [await self._listen(one.dup()) for one in self._sockets]
        if self._lifeline is not None:
            self._loop.add_reader(self._lifeline, self._orphaned)
        while not self._is_ending:
            self._tick()
            await _wait(self._ended.wait(), _SWEEP_EVERY_S)
        await self._drain(servers)

    async def _listen(self, listening: socket.socket) -> asyncio.Server:
        return await self._loop.create_server(self._connection, sock=listening, backlog=self._config.backlog)

    def _connection(self) -> BoundedConnection:
        return BoundedConnection(self._config, self._connections, {}, self._loop)

    def _tick(self) -> None:
        self._connections.default_headers = [(b"date", formatdate(time.time(), usegmt=True).encode())]
        self._connections.sweep(self._loop.time())

    def _orphaned(self) -> None:
        if self._lifeline is not None:
            self._loop.remove_reader(self._lifeline)
        self.end()

    async def _drain(self, servers: Sequence[asyncio.Server]) -> None:
        """Answer what was sent on any connection that exists or waits in the queue, then end them all."""
        until = self._loop.time() + self._grace
        self._application.draining = True
        self._connections.drain()
        self._stop_connecting()
        await asyncio.sleep(_SETTLE_S)
        for server in servers:
            server.close()
        for listening in self._sockets:
            await self._accept_rest(listening)
        await self._end_idle(min(until, self._loop.time() + _LINGER_S))
        await self._close_application(until)
        await self._look_until(lambda: not self._connections.connections, _FLUSH_S)
        for connection in list(self._connections.connections):
            connection.transport.abort()

    async def _accept_rest(self, listening: socket.socket) -> None:
        """Accept whoever has connected already."""
        listening.settimeout(0)
        while True:
            try:
                accepted, _ = listening.accept()
            except (BlockingIOError, ConnectionError):
                return
            except OSError as error:
                say(f"connections that wait cannot be accepted: {error}")
                return
            await self._loop.connect_accepted_socket(self._connection, accepted)

    async def _end_idle(self, until: float) -> None:
        """Let each connection send one more request, then end those that do not."""
        busy = lambda: all(one.is_busy for one in self._connections.connections)  # noqa: E731
        await self._look_until(busy, until - self._loop.time())
        for connection in list(self._connections.connections):
            connection.end_if_idle()

    async def _close_application(self, until: float) -> None:
        """Wait until what runs has ended. The application does that on a thread, as it may wait."""
        closed = asyncio.Event()
        seconds = max(0.0, until - self._loop.time())

        def close() -> None:
            try:
                self._application.close(seconds)
            finally:
                self._loop.call_soon_threadsafe(closed.set)

        threading.Thread(target=close, name="promptkit-close", daemon=True).start()
        await _wait(closed.wait(), seconds + _FLUSH_S)

    async def _look_until(self, holds: Callable[[], bool], seconds: float) -> None:
        until = self._loop.time() + seconds
        while not holds() and self._loop.time() < until:  # noqa: ASYNC110 (connections set no event)
            await asyncio.sleep(_LOOK_EVERY_S)


async def _wait(awaitable: Awaitable[object], seconds: float) -> None:
    """Wait for so long at most."""
    try:
        await asyncio.wait_for(awaitable, seconds)
    except TimeoutError:
        return


def die_of(number: int) -> None:
    """End this process by a signal, as if it had no handler."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    if sys.platform == "win32":  # the signal ends the process there only if it is SIGTERM
        os._exit(1)
