"""A worker: one process that answers what arrives at its listening sockets, until it is told to end."""

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
from promptkit.transports.http.connection import HttpConnection
from promptkit.transports.http.connection_limits import ConnectionLimits, Connections
from promptkit.transports.http.settings import Receive, Scope, Send
from promptkit.transports.http.sockets import Balance, keep_little_unsent, within_descriptors
from promptkit.transports.stdio import exit_after
from promptkit.workspace.execution import end_all

#: How often deadlines are looked at, in seconds.
_SWEEP_EVERY_S: Final = 1.0

#: How long a process may be unable to accept connections, in seconds, before it ends so that another can.
_DEAF_S: Final = 5.0

#: How long connections that are being made take to get into the queue, in seconds.
_QUEUE_S: Final = 0.05

#: How long clients with an open connection have for one more request once the end has begun, in seconds, and
#: requests that wait behind others to be begun. Closing at once would lose them, or those on their way.
_LINGER_S: Final = 1.0

#: How often it is looked whether connections have ended, in seconds.
_LOOK_EVERY_S: Final = 0.02

#: How long what is written at last may take to be read, in seconds.
_FLUSH_S: Final = 0.5

#: How much later than the grace the process ends in any case, in seconds.
_EXIT_MARGIN_S: Final = 2.0

_OF_TERMINALS: Final = [name for name in ("SIGINT", "SIGHUP") if hasattr(signal, name)]
_ENDING_SIGNALS: Final = ["SIGTERM", *_OF_TERMINALS]


class Served(Protocol):
    """
    What answers the requests: a raw ASGI callable that can be ended.

    Attributes:
        draining:
            Set when the end has begun: the application tells balancers that it is no longer ready.
    """

    draining: bool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

    def close(self, grace: float) -> None:
        """End streams with their results, answer what is open within *grace* seconds, and end all threads."""


class HttpWorker:
    """
    Serves one application in this process.

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

        balance:
            What several workers share; None if this is the only one.

        number:
            Which of them this is.

    Attributes:
        is_deaf:
            Whether it ends because it cannot accept connections any more.

        signal:
            The first signal that has told it to end.
    """

    def __init__(  # noqa: PLR0913 (a process is told that much)
        self,
        application: Served,
        sockets: Sequence[socket.socket],
        *,
        limits: ConnectionLimits,
        grace: float,
        stop_connecting: Callable[[], object] = bool,
        lifeline: int | None = None,
        balance: Balance | None = None,
        number: int = 0,
    ) -> None:
        self._application = application
        self._sockets = sockets
        self._grace = grace
        self._stop_connecting = stop_connecting
        self._lifeline = lifeline
        self._balance = balance or Balance(1)
        self._number = number
        self._connections = Connections(within_descriptors(limits), self._left)
        self._opening: set[asyncio.Task[None]] = set()
        self._count = 0  # connections that were accepted, and have not ended
        self._is_ending = self.is_deaf = False
        self.signal: int | None = None
        self._refused_since: float | None = None
        self._note()

    def run(self, ready: Callable[[], object] = bool) -> None:
        """
        Serve until the process is told to end, and what was asked is answered. To be called once.

        Args:
            ready:
                Called once a signal ends this, before the first request is answered.
        """
        self._loop = self._new_loop()
        asyncio.set_event_loop(self._loop)
        self._ended = asyncio.Event()
        for name in _ENDING_SIGNALS:
            signal.signal(getattr(signal, name), self._on_signal)
        if self._lifeline is not None:  # Ctrl-C reaches all processes of a terminal, but the parent decides
            for name in _OF_TERMINALS:
                signal.signal(getattr(signal, name), signal.SIG_IGN)
        if sys.platform != "win32":  # the parent has blocked them until now
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [getattr(signal, name) for name in _ENDING_SIGNALS])
        ready()
        # The loop is never closed: it would wait for threads that authors' code has left.
        self._loop.run_until_complete(self._serve())

    def _new_loop(self) -> asyncio.AbstractEventLoop:
        if sys.platform == "win32":  # the usual loop there cannot wait for a socket to be readable
            return asyncio.SelectorEventLoop()
        try:
            from uvloop import new_event_loop
        except ModuleNotFoundError:
            return asyncio.new_event_loop()
        return new_event_loop()

    def end(self) -> None:
        """Begin to end. May be called in a signal handler."""
        if not self._is_ending:
            self._is_ending = True
            exit_after(self._grace + _EXIT_MARGIN_S, int(self.is_deaf))
            self._loop.call_soon_threadsafe(self._ended.set)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self._is_ending and self._lifeline is None:  # who sends another does not want to wait
            die_of(number)
        self.signal = self.signal or number
        self.end()

    async def _serve(self) -> None:
        for listening in self._sockets:
            listening.settimeout(0)
            self._read_from(listening, self._accept, listening)
        self._read_from(self._balance.channel(self._number), self._take)
        if self._lifeline is not None:
            self._loop.add_reader(self._lifeline, self.end)
        while not self._is_ending:
            self._connections.sweep(self._loop.time())
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), _SWEEP_EVERY_S)
        await self._drain()

    def _accept(self, listening: socket.socket) -> None:
        """Accept all that have connected, and hand some over to workers that have fewer."""
        while True:
            try:
                accepted, _ = listening.accept()
            except BlockingIOError:
                self._refused_since = None
                return
            except ConnectionError:  # this one has left already
                continue
            except OSError as error:
                self._try_later(error, listening, self._accept, listening)
                return
            if self._is_ending or not self._balance.hand_over(self._number, accepted):
                self._open(accepted)

    def _try_later(
        self, error: OSError, source: socket.socket, callback: Callable[..., None], *args: object
    ) -> None:
        """Have connections wait, and others take them, unless that was so for too long."""
        if self._is_ending:
            return
        now, why = self._loop.time(), error.strerror or str(error)
        if self._refused_since is None:
            self._refused_since = now
            say(f"connections wait, as they cannot be accepted: {why}")
        elif self._count >= self._connections.limits.connections:  # clients have taken all there is
            self._refused_since = now
        elif now - self._refused_since > _DEAF_S:
            say(f"this process ends, as it cannot accept connections any more: {why}")
            self.is_deaf = True
            self.end()
        self._balance.end(self._number)
        self._loop.remove_reader(source)
        self._loop.call_later(_SWEEP_EVERY_S, self._read_from, source, callback, *args)

    def _read_from(self, source: socket.socket, callback: Callable[..., None], *args: object) -> None:
        if not self._is_ending:
            self._loop.add_reader(source, callback, *args)
            callback(*args)  # if others have taken all that waited, nothing else would call it

    def _take(self) -> None:
        """Take what other workers hand over."""
        try:
            for accepted in self._balance.take(self._number):
                self._open(accepted)
        except OSError as error:
            self._try_later(error, self._balance.channel(self._number), self._take)
        else:
            self._refused_since = None

    def _open(self, accepted: socket.socket) -> None:
        accepted.settimeout(0)
        keep_little_unsent(accepted)
        task = self._loop.create_task(self._connect(accepted))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)
        self._count += 1
        self._note()

    async def _connect(self, accepted: socket.socket) -> None:
        connection = partial(HttpConnection, self._application, self._connections, self._loop)
        try:
            await self._loop.connect_accepted_socket(connection, accepted)
        except OSError:  # the client has left
            self._left()

    def _left(self) -> None:
        self._count -= 1
        self._note()

    def _note(self) -> None:
        if not self._is_ending:
            self._balance.note(self._number, self._count)

    async def _drain(self) -> None:
        """Answer what was sent on any connection that exists or waits in the queue, then end them all."""
        until = self._loop.time() + self._grace
        if self._lifeline is not None:
            self._loop.remove_reader(self._lifeline)
        self._application.draining = True
        self._connections.drain()
        self._stop_connecting()
        self._balance.end(self._number)
        await asyncio.sleep(_QUEUE_S)
        for listening in self._sockets:
            self._loop.remove_reader(listening)
            self._accept(listening)
        self._loop.remove_reader(self._balance.channel(self._number))
        self._take()
        await asyncio.gather(*self._opening, return_exceptions=True)
        # Each connection may send one more request, and what was sent is begun.
        linger = min(until - self._loop.time(), _LINGER_S)
        await self._look_until(lambda: self._connections.are_at_last, linger)
        self._connections.end_idle()
        await self._close_application(until)
        self._connections.end_idle()
        await self._look_until(lambda: not len(self._connections), _FLUSH_S)
        self._connections.abort()

    async def _close_application(self, until: float) -> None:
        """Wait until what runs has ended. The application does that on a thread, as it may wait."""
        seconds = max(0.0, until - self._loop.time())
        closing = asyncio.to_thread(self._application.close, seconds)
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(closing, return_exceptions=True), seconds + _FLUSH_S)

    async def _look_until(self, holds: Callable[[], bool], seconds: float) -> None:
        until = self._loop.time() + seconds
        while not holds() and self._loop.time() < until:  # noqa: ASYNC110 (connections set no event)
            await asyncio.sleep(_LOOK_EVERY_S)


def die_of(number: int) -> None:
    """End this process by a signal, as if it had no handler."""
    finish()
    end_all()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    if sys.platform == "win32":  # the signal ends the process there only if it is SIGTERM
        os._exit(1)
