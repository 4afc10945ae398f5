"""A worker: one process that serves connections on its listening sockets until it must exit."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Final, Protocol

from promptkit.standard_error import finish, say
from promptkit.transports.http.connection import ConnectionLimits, Connections, HttpConnection
from promptkit.transports.http.settings import Receive, Scope, Send
from promptkit.transports.http.sockets import fit_to_descriptor_limit, limit_unsent
from promptkit.transports.stdio import exit_after
from promptkit.workspace.execution import terminate_commands

#: Interval between checks for connections that have timed out, in seconds.
_SWEEP_EVERY_S: Final = 1.0

#: How long a process can fail to accept connections before it exits and is replaced, in seconds.
_ACCEPT_TIMEOUT_S: Final = 5.0

#: Time during shutdown in which clients with an open connection can still send a request, in seconds. If
#: connections were closed immediately, such requests would be lost.
_LINGER_S: Final = 1.0

#: Interval between checks of whether connections are busy or closed, in seconds.
_POLL_EVERY_S: Final = 0.02

#: Time for clients to read the last replies, in seconds.
_FLUSH_S: Final = 0.5

#: Time after the grace period until the process exits in any case, in seconds.
_EXIT_MARGIN_S: Final = 2.0

_TERMINAL_SIGNALS: Final = [name for name in ("SIGINT", "SIGHUP") if hasattr(signal, name)]
_EXIT_SIGNALS: Final = ["SIGTERM", *_TERMINAL_SIGNALS]


class ServedApplication(Protocol):
    """
    An ASGI application that can be closed.

    Attributes:
        draining:
            Set to True at shutdown. The application then reports to load balancers that it is not ready.
    """

    draining: bool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

    def close(self, grace: float) -> None:
        """
        End streams with a final result, answer pending requests within *grace* seconds, and stop all threads.
        """


class HttpWorker:
    """
    Serves one application in this process.

    Args:
        application:
            The application that answers the requests.

        sockets:
            The listening sockets. At shutdown, they are closed once their queues are empty.

        limits:
            Limits on connections.

        grace:
            Time for pending requests to finish at shutdown, in seconds.

        lifeline:
            A descriptor that becomes readable when the parent process exits.

    Attributes:
        cannot_accept:
            Whether the process is exiting because it can no longer accept connections.

        signal:
            The first signal that asked the process to exit.
    """

    def __init__(
        self,
        application: ServedApplication,
        sockets: Sequence[socket.socket],
        *,
        limits: ConnectionLimits,
        grace: float,
        lifeline: int | None = None,
    ) -> None:
        self._application = application
        self._sockets = sockets
        self._grace = grace
        self._lifeline = lifeline
        self._connections = Connections(fit_to_descriptor_limit(limits))
        self._opening: set[asyncio.Task[None]] = set()
        self._is_ending = self.cannot_accept = False
        self.signal: int | None = None
        self._failing_since: float | None = None

    def run(self, ready: Callable[[], object] = bool) -> None:
        """
        Serve until the process must exit, and then answer pending requests. Call this method only once.

        Args:
            ready:
                Called once signal handlers are installed, before the first request is answered.
        """
        self._loop = self._create_loop()
        asyncio.set_event_loop(self._loop)
        self._end_event = asyncio.Event()
        for name in _EXIT_SIGNALS:
            signal.signal(getattr(signal, name), self._on_signal)
        if self._lifeline is not None:  # Ctrl-C reaches all processes in a terminal, but the parent decides
            for name in _TERMINAL_SIGNALS:
                signal.signal(getattr(signal, name), signal.SIG_IGN)
        if sys.platform != "win32":  # the parent process has blocked these signals
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [getattr(signal, name) for name in _EXIT_SIGNALS])
        ready()
        # Do not close the loop: that would wait for threads that recipes have started.
        self._loop.run_until_complete(self._serve())

    def _create_loop(self) -> asyncio.AbstractEventLoop:
        if sys.platform == "win32":  # the default loop has no `add_reader` there
            return asyncio.SelectorEventLoop()
        try:
            from uvloop import new_event_loop
        except ModuleNotFoundError:
            return asyncio.new_event_loop()
        return new_event_loop()

    def end(self) -> None:
        """Start the shutdown. Signal handlers can call this method."""
        if not self._is_ending:
            self._is_ending = True
            exit_after(self._grace + _EXIT_MARGIN_S, int(self.cannot_accept))
            self._loop.call_soon_threadsafe(self._end_event.set)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self._is_ending and self._lifeline is None:  # a second signal terminates the process immediately
            die_by_signal(number)
        self.signal = self.signal or number
        self.end()

    async def _serve(self) -> None:
        for listening in self._sockets:
            listening.settimeout(0)
            self._accept_from(listening)
        if self._lifeline is not None:
            self._loop.add_reader(self._lifeline, self.end)
        while not self._is_ending:
            self._connections.sweep(self._loop.time())
            with suppress(TimeoutError):
                await asyncio.wait_for(self._end_event.wait(), _SWEEP_EVERY_S)
        await self._drain()

    def _accept_from(self, listening: socket.socket) -> None:
        """Start accepting connections on a socket."""
        if not self._is_ending:
            self._loop.add_reader(listening, self._accept, listening)
            self._accept(listening)  # notice that accepting works again even if no client connects

    def _accept(self, listening: socket.socket) -> bool:
        """
        Accept one connection. Return whether there may be more connections in the queue.

        Workers can share a socket. If one worker accepted all connections in the queue, the other workers
        would get none.
        """
        try:
            accepted, _ = listening.accept()
        except BlockingIOError:
            self._failing_since = None
            return False
        except ConnectionError:  # the client is gone already
            return True
        except OSError as error:
            self._pause_accepting(error, listening)
            return False
        self._failing_since = None
        accepted.settimeout(0)
        limit_unsent(accepted)
        task = self._loop.create_task(self._connect(accepted))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)
        return True

    def _pause_accepting(self, error: OSError, listening: socket.socket) -> None:
        """Pause accepting connections, or shut down if accepting has been failing for too long."""
        if self._is_ending:
            return
        now, why = self._loop.time(), error.strerror or str(error)
        if self._failing_since is None:
            self._failing_since = now
            say(f"new connections are waiting because they cannot be accepted: {why}")
        elif now - self._failing_since > _ACCEPT_TIMEOUT_S:
            say(f"this process will exit because it can no longer accept connections: {why}")
            self.cannot_accept = True
            self.end()
        self._loop.remove_reader(listening)
        self._loop.call_later(_SWEEP_EVERY_S, self._accept_from, listening)

    async def _connect(self, accepted: socket.socket) -> None:
        connection = partial(HttpConnection, self._application, self._connections, self._loop)
        with suppress(OSError):  # the client is gone
            await self._loop.connect_accepted_socket(connection, accepted)

    async def _drain(self) -> None:
        """Answer the requests on all open and queued connections, and then close the connections."""
        until = self._loop.time() + self._grace
        if self._lifeline is not None:
            self._loop.remove_reader(self._lifeline)
        self._application.draining = True
        self._connections.drain()
        for listening in self._sockets:
            self._loop.remove_reader(listening)
            while self._accept(listening):
                pass
            listening.close()
        await asyncio.gather(*self._opening, return_exceptions=True)
        # Each client can send one more request on its connection.
        linger = min(until - self._loop.time(), _LINGER_S)
        await self._wait_until(lambda: self._connections.all_busy, linger)
        self._connections.close_idle()
        await self._close_application(until)
        self._connections.close_idle()
        await self._wait_until(lambda: not len(self._connections), _FLUSH_S)
        self._connections.abort()

    async def _close_application(self, until: float) -> None:
        """Close the application in a separate thread, because closing can block. Wait until it is closed."""
        seconds = max(0.0, until - self._loop.time())
        closing = asyncio.to_thread(self._application.close, seconds)
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(closing, return_exceptions=True), seconds + _FLUSH_S)

    async def _wait_until(self, condition: Callable[[], bool], seconds: float) -> None:
        until = self._loop.time() + seconds
        while not condition() and self._loop.time() < until:  # noqa: ASYNC110 (connections set no event)
            await asyncio.sleep(_POLL_EVERY_S)


def die_by_signal(number: int) -> None:
    """Terminate this process by sending it a signal, as if the signal had no handler."""
    finish()
    terminate_commands()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    if sys.platform == "win32":  # on Windows, only SIGTERM terminates the process
        os._exit(1)
