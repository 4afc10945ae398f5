"""
The sweep: what one event loop looks after from time to time, so that no request needs a timer.

Bodies that take too long, clients that go away, and streams on which nothing is said.
"""

import asyncio
from typing import Final

from msgspec import Struct

from promptkit.transports.http.asgi_types import Receive
from promptkit.transports.http.channel import Posted, Said

__all__ = ["Sweep"]

_LOOK_EVERY_S: Final = 0.1

#: How long a body may take to arrive.
_BODY_WITHIN_S: Final = 10.0

#: How long a reply may take until it is watched whether the client still waits for it.
_WATCH_AFTER_S: Final = 0.05

#: How often something is said on a stream, so that nothing on the way takes it for dead.
_COMMENT_EVERY_S: Final = 15.0

_COMMENT: Final = Said(b"", ends=False)


class _Waiting(Struct, eq=False):
    """A client that waits for a reply."""

    receive: Receive
    since: float
    last_said: float
    watch: asyncio.Task[None] | None = None


class Sweep:
    """
    Looks after the requests of one event loop.

    Args:
        loop:
            The event loop.

        body_within:
            How long a body may take to arrive, in seconds.

        comment_every:
            How often something is said on a stream, in seconds.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        body_within: float = _BODY_WITHIN_S,
        comment_every: float = _COMMENT_EVERY_S,
    ) -> None:
        self._loop = loop
        self._body_within = body_within
        self._comment_every = comment_every
        self._reading: dict[asyncio.Task[object], float] = {}
        self._stopped: set[asyncio.Task[object]] = set()
        self._waiting: dict[Posted, _Waiting] = {}
        self._is_due = False

    def begin_reading(self) -> asyncio.Task[object]:
        """Note that the current task reads a body. It is cancelled if that takes too long."""
        task = asyncio.current_task(self._loop)
        assert task is not None  # noqa: S101 (this is called on the event loop)
        self._reading[task] = self._loop.time()
        self._look_soon()
        return task

    def end_reading(self, task: asyncio.Task[object]) -> None:
        """Note that a task has read a body."""
        del self._reading[task]

    def has_stopped(self, task: asyncio.Task[object]) -> bool:
        """Whether a task was cancelled here, and nobody else has cancelled it. It may go on then."""
        if task not in self._stopped:
            return False
        self._stopped.discard(task)
        return task.uncancel() == 0

    def begin_waiting(self, posted: Posted, receive: Receive) -> None:
        """Note that a client waits for a reply. Should it go away, the message is told."""
        now = self._loop.time()
        self._waiting[posted] = _Waiting(receive, now, now)
        self._look_soon()

    def end_waiting(self, posted: Posted) -> None:
        """Note that a client waits no longer."""
        watch = self._waiting.pop(posted).watch
        if watch is not None:
            watch.cancel()

    def _look_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._loop.call_later(_LOOK_EVERY_S, self._look)

    def _look(self) -> None:
        self._is_due = False
        now = self._loop.time()
        for task, since in self._reading.items():
            if now - since > self._body_within and task not in self._stopped:
                self._stopped.add(task)
                task.cancel()
        for posted, waiting in self._waiting.items():
            if waiting.watch is None and now - waiting.since > _WATCH_AFTER_S:
                waiting.watch = self._loop.create_task(_watch(posted, waiting.receive))
            if posted.is_streamed and now - waiting.last_said > self._comment_every:
                waiting.last_said = now
                posted.take(_COMMENT)
        if self._reading or self._waiting:
            self._look_soon()


async def _watch(posted: Posted, receive: Receive) -> None:
    """Wait until a client goes away."""
    while (await receive())["type"] != "http.disconnect":
        pass
    posted.leave()
