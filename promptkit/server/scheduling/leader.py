"""
LeaderFollowers: one thread at a time works off what a client sends, and hands over when it is stuck.

What is quick is answered right where it was read. Only when a thread does not come back from an
author's code another one goes on with the rest, and with reading.
"""

import os
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from threading import Event as Flag
from threading import Lock
from typing import Final

from promptkit.errors.standard_error import say
from promptkit.protocol.events import Event, Request
from promptkit.protocol.jsonrpc import InternalError, encode_error
from promptkit.server.scheduling.in_flight import InFlight, Job
from promptkit.server.scheduling.workers import Worker

__all__ = ["LeaderFollowers", "Leadership"]

#: How long a late reply waits for those before it at most, in seconds.
_PATIENCE: Final = 1.0

#: How often reading may fail in a row before it is given up, and how much longer is waited each time
#: until it is tried again, in seconds: memory may be short for a moment.
_FAILURES: Final = 10
_PAUSE: Final = 0.01

#: What is longer leaves at once, in bytes: a pipe holds no more, and several of them would fill memory.
_LARGE: Final = 1 << 16


class Leadership:
    """
    The time during which one thread works off what is read, and reads.

    Attributes:
        current:
            What the thread works on now; None if it may not be stuck.

        ends:
            Whether its turn is over, or just being ended.

        job:
            What the thread works on still if its turn is over; None before.

        caught_up:
            Set when the thread whose turn is next has sent what was answered before.

        event:
            What the thread works off; it may be the first of those that are left still.

        failures:
            How often working off, or reading, has failed since something was last read.
    """

    def __init__(self) -> None:
        self.current: Request | None = None
        self.ends = False
        self.job: Job | None = None
        self.caught_up = Flag()
        self.event: Event | None = None
        self.failures = 0


class LeaderFollowers:
    """
    What is to be done, and who does it.

    Args:
        work:
            Does what follows from one event. It returns the request that is answered now, if
            any, and the reply, if any. While it may be stuck, the `current` of the `turn` is the
            request that it works on.

        send:
            Takes whole lines to be sent.

        in_flight:
            Where a request goes whose thread is relieved.

    Attributes:
        turn:
            The one that is not over.

        forked:
            Whether this is a child process, in which none of the threads goes on.
    """

    def __init__(
        self,
        work: Callable[[Event], tuple[Request | None, bytes | None]],
        send: Callable[[bytes], None],
        in_flight: InFlight,
    ) -> None:
        self._work = work
        self._send = send
        self._in_flight = in_flight
        self._events: deque[Event] = deque()
        self._replies: list[bytes] = []
        self.turn = Leadership()
        self._read_on: Callable[[Leadership], None] | None = None
        self._worker: Worker | None = None
        self._lock = Lock()
        self.forked = False
        self._busy = False

    @property
    def current(self) -> Request | None:
        """
        What the thread whose turn it is works on; None if it may not be stuck.
        """
        return self.turn.current

    @property
    def staffed(self) -> bool:
        """
        Whether the thread whose turn it is lives.
        """
        with self._lock:
            return self._worker is not None and self._worker.is_alive()

    @property
    def _deserted(self) -> bool:
        """
        Whether there are threads, but none goes on with what is left.
        """
        return self._read_on is not None and not self.staffed

    def start(self, read_on: Callable[[Leadership], None], before: Iterable[Event] = ()) -> None:
        """
        Start the first thread.

        Args:
            read_on:
                Reads and calls `work_off`, with the turn that it is given, until that returns
                False or there is nothing more to read.

            before:
                What is to be done before that.
        """
        self._events.extend(before)
        self._read_on = read_on
        _STARTED.add(self)
        self._worker = self._begin(self.turn)

    def work_off(self, events: Iterable[Event], turn: Leadership | None = None) -> bool:
        """
        Do what follows from *events*, and send what is answered at once, in one piece unless that is large.

        Args:
            events:
                What was read.

            turn:
                Whose turn it is; None if nobody is ever relieved.

        Returns:
            Whether it still is. If not, another thread has done the rest, and reads.
        """
        mine = turn or self.turn
        self._busy = True
        self._events.extend(events)
        while self._events:
            event = mine.event = self._events[0]
            self._events.popleft()
            try:
                request, reply = self._work(event)
            except Exception as error:
                if turn is None:
                    raise
                request, reply = self._refused(mine, event, error)
            if self.forked:  # a child that an author's code has not ended: its parent serves
                os._exit(0)
            mine.current = None
            if mine.ends and (job := self._relieved(mine)) is not None:
                if reply is not None:
                    mine.caught_up.wait(_PATIENCE)  # what was answered before leaves before
                    # The request may have been given away in between, and come back.
                    self._in_flight.answer(self._in_flight.adopt(job), reply)
                return False
            if request is not None and request.held and reply is not None:
                self._in_flight.fail(request, reply)
            elif reply is not None:
                line = reply if request is None else request.answer(reply)
                mine.event = None
                if len(line) > _LARGE:  # on its own it is not copied once more
                    self._flush()
                    self._replies.append(line)
                    self._flush()
                else:
                    self._replies.append(line)
            mine.event = None
        self._flush()
        self._busy = False
        return True

    def settle(self, deadline: float) -> list[Request]:
        """
        Wait until what was read is answered, or answered later.

        Args:
            deadline:
                How long to wait at most, by `time.monotonic`.

        Returns:
            The requests that were read, and that no thread is left to answer.
        """
        while self._busy and not self._deserted and time.monotonic() < deadline:
            time.sleep(0.001)
        if not self._deserted:
            return []
        left = list(self._events)
        self._events.clear()
        return [event for event in left if isinstance(event, Request)]

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
            before = self.turn
            # The thread first clears `current` and then reads `ends`; here it is the other way
            # round. Whoever is late sees what the other has done.
            before.ends = True
            try:
                if before.current is stuck and self._worker is not None:
                    turn = Leadership()
                    # It waits for the lock; if it cannot be started all stays as it was.
                    worker = self._begin(turn, before)
                    before.job = late(stuck, self._worker)
                    self.turn, self._worker = turn, worker
            finally:
                before.ends = before.job is not None

    def _relieved(self, turn: Leadership) -> Job | None:
        """
        Return what a thread works on still if its *turn* is over, once that is settled.
        """
        with self._lock:
            return turn.job

    def _begin(self, turn: Leadership, before: Leadership | None = None) -> Worker:
        """
        Start a thread that works while it is its *turn*, which follows the one *before*.
        """

        def work() -> None:
            with self._lock:
                begun = self.turn is turn
            while begun:
                try:
                    self._flush()
                    if before is not None:
                        before.caught_up.set()
                    if self.work_off((), turn) and self._read_on is not None:
                        self._read_on(turn)
                    break
                except BaseException as error:  # noqa: BLE001 (memory is short, or an author ends our threads)
                    begun = self._goes_on(turn, error)

        worker = Worker(work)
        worker.start()
        return worker

    def _goes_on(self, turn: Leadership, error: BaseException) -> bool:
        """
        Return whether a thread goes on after an *error*, and answer what it was working off.
        """
        if (job := self._relieved(turn)) is not None:
            request = job.request
            self._in_flight.answer(job, encode_error(request.id, InternalError(f"{request.method} failed")))
            return False
        turn.failures += 1
        event, turn.event = turn.event, None
        if event is not None and not (self._events and self._events[0] is event):
            wanting, reply = self._refused(turn, event, error)
            turn.current = None
            if wanting is not None and reply is not None:
                self._in_flight.fail(wanting, reply)
        else:
            say(f"what a client sends could not be read: {error!r}")
        if turn.failures >= _FAILURES:
            say("reading cannot go on")
            self._flush()
            return False
        time.sleep(turn.failures * _PAUSE)
        return True

    def _refused(
        self, turn: Leadership, event: Event, error: BaseException
    ) -> tuple[Request | None, bytes | None]:
        """
        Return what is answered if there is a fault in what works off *event*; reading goes on.
        """
        say(f"a message could not be worked off: {error!r}")
        request = turn.current or event  # the answer to a question is worked off for its request
        if not isinstance(request, Request):
            return None, None
        return request, encode_error(request.id, InternalError(f"{request.method} failed"))

    def _flush(self) -> None:
        """
        Send what has been answered.
        """
        if self._replies:
            try:
                self._send(b"".join(self._replies))
            finally:
                self._replies.clear()  # only now: the end waits for them


#: What was started in this process. Python never forgets what it calls after a fork.
_STARTED: Final[weakref.WeakSet[LeaderFollowers]] = weakref.WeakSet()


def _note_fork() -> None:
    for shifts in _STARTED:
        shifts.forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)
