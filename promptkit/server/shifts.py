"""
Shifts: one thread at a time works off what a client sends, and hands over when it is stuck.

What is quick is answered right where it was read. Only when a thread does not come back from an
author's code another one goes on with the rest, and with reading.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterable
from threading import Lock

from promptkit.protocol.events import Event, Request
from promptkit.server.in_flight import InFlight, Job
from promptkit.server.workers import Worker

__all__ = ["Shifts"]


class Shifts:
    """
    What is to be done, and who does it.

    Args:
        work:
            Does what follows from one event. It returns the request that is answered now, if
            any, and the reply, if any. While it may be stuck, `current` is the request that it
            works on.

        send:
            Takes whole lines to be sent.

        in_flight:
            Where a request goes whose thread is relieved.

    Attributes:
        current:
            What the thread whose turn it is works on; None if it may not be stuck.
    """

    def __init__(
        self,
        work: Callable[[Event], tuple[Request | None, bytes | None]],
        send: Callable[[bytes], None],
        in_flight: InFlight,
    ) -> None:
        self.current: Request | None = None
        self._work = work
        self._send = send
        self._in_flight = in_flight
        self._events: deque[Event] = deque()
        self._replies: list[bytes] = []
        self._turn = 0
        self._relieved: dict[int, Job] = {}
        self._read_on: Callable[[int], None] | None = None
        self._worker: Worker | None = None
        self._lock = Lock()
        self._forked = False

    def start(self, read_on: Callable[[int], None]) -> None:
        """
        Start the first thread.

        Args:
            read_on:
                Reads and calls `work_off`, with the turn that it is given, until that returns
                False or there is nothing more to read.
        """
        self._read_on = read_on
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._note_fork)
        self._begin(self._turn, [])

    def work_off(self, events: Iterable[Event], turn: int = 0) -> bool:
        """
        Do what follows from *events*, and send what is answered at once, in one piece.

        Args:
            events:
                What was read.

            turn:
                Whose turn it is.

        Returns:
            Whether it still is. If not, another thread has done the rest, and reads.
        """
        self._events.extend(events)
        while self._events:
            request, reply = self._work(self._events.popleft())
            if self._forked:  # a child that an author's code has not ended: its parent serves
                os._exit(0)
            with self._lock:
                job = self._relieved.pop(turn, None)
                if job is None:
                    self.current = None
            if job is None:
                if reply is not None:
                    self._replies.append(reply if request is None else request.answer(reply))
                continue
            if reply is not None:
                self._in_flight.answer(job, reply)
            return False
        self._flush()
        return True

    def settle(self, deadline: float) -> None:
        """
        Wait until what was read is answered, or answered later.

        Args:
            deadline:
                How long to wait at most, by `time.monotonic`.
        """
        while (self._events or self._replies or self.current) and time.monotonic() < deadline:
            time.sleep(0.001)

    def relieve(self, stuck: Request, late: Callable[[Request, Worker], Job]) -> None:
        """
        Let another thread go on, if the one whose turn it is works on *stuck* still.

        Args:
            stuck:
                What it works on.

            late:
                Makes that request one that is answered later.
        """
        with self._lock:
            if self.current is not stuck or self._worker is None:
                return
            self._relieved[self._turn] = late(stuck, self._worker)
            self._turn += 1
            self.current = None
            replies, self._replies = self._replies, []
            self._begin(self._turn, replies)

    def _begin(self, turn: int, replies: list[bytes]) -> None:
        """
        Start the thread whose turn it is.
        """

        def work() -> None:
            if replies:
                self._send(b"".join(replies))
            if self.work_off((), turn) and self._read_on is not None:
                self._read_on(turn)

        self._worker = Worker(work)
        self._worker.start()

    def _note_fork(self) -> None:
        self._forked = True

    def _flush(self) -> None:
        """
        Send what has been answered.
        """
        if self._replies:
            replies, self._replies = self._replies, []
            self._send(b"".join(replies))
