"""
The sweep: what one event loop looks after from time to time, so that no request needs a timer.

Bodies that take too long, clients that go away, and streams on which nothing is said.
"""

import asyncio
from typing import Final

from promptkit.transports.http.channel import Earlier, Posted

__all__ = ["Sweep"]

_LOOK_EVERY_S: Final = 0.1

#: How long a body may take to arrive.
_BODY_WITHIN_S: Final = 10.0

#: How long a reply may take until it is watched whether the client still waits for it.
_WATCH_AFTER_S: Final = 0.05

#: How often something is said on a stream, so that nothing on the way takes it for dead.
_COMMENT_EVERY_S: Final = 15.0


class Sweep:
    """
    Looks after the requests of one event loop.

    Args:
        loop:
            That event loop.

        body_within:
            How long a body may take to arrive, in seconds.

        comment_every:
            How often something is said on a stream, in seconds.

    Attributes:
        loop:
            The event loop.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        body_within: float = _BODY_WITHIN_S,
        comment_every: float = _COMMENT_EVERY_S,
    ) -> None:
        self.loop = loop
        self._body_within = body_within
        self._comment_every = comment_every
        self._open: dict[Posted, None] = {}
        self._stopped: set[Posted] = set()
        self._is_due = False

    def begin(self, posted: Posted) -> None:
        """Look after a request, whose body is not read yet."""
        posted.since = self.loop.time()
        self._open[posted] = None
        if not self._is_due:
            self._is_due = True
            self.loop.call_later(_LOOK_EVERY_S, self._look)

    def end(self, posted: Posted) -> None:
        """Look after a request no longer."""
        del self._open[posted]
        self._stopped.discard(posted)
        if posted.watch is not None:
            posted.watch.cancel()
            posted.watch = None  # how it ends leads back to the request

    def has_stopped(self, posted: Posted) -> bool:
        """Whether the task that reads a body was cancelled here, and by nobody else. It may go on then."""
        return posted in self._stopped and posted.reader is not None and posted.reader.uncancel() == 0

    def _look(self) -> None:
        self._is_due = False
        now = self.loop.time()
        for posted in self._open:
            self._look_at(posted, now - posted.since, now)
        if self._open:
            self._is_due = True
            self.loop.call_later(_LOOK_EVERY_S, self._look)

    def _look_at(self, posted: Posted, seconds: float, now: float) -> None:
        if posted.reader is not None:
            if seconds > self._body_within and posted not in self._stopped:
                self._stopped.add(posted)
                posted.reader.cancel()
            return
        if posted.watch is None and seconds > _WATCH_AFTER_S:
            posted.watch = self.loop.create_task(_watch(posted))
        if posted.is_streamed and seconds > self._comment_every:
            posted.since = now
            posted.take(Earlier(b""))


async def _watch(posted: Posted) -> None:
    """Wait until a client goes away."""
    while (await posted.receive())["type"] != "http.disconnect":
        pass
    posted.leave()
