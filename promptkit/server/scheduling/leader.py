"""
The leader/followers pattern: one thread, the leader, reads and answers in place.

When it is stuck in an author's code, another thread takes over the rest of the events, and reading.
The former leader finishes the one request that it is in, and ends.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Final

from promptkit.errors.standard_error import say
from promptkit.protocol.events import Event, Request
from promptkit.protocol.jsonrpc import InternalError, encode_error
from promptkit.server.exchange import IN_PLACE, Exchange
from promptkit.server.scheduling.executor import Executor
from promptkit.server.scheduling.in_flight import InFlight, Job
from promptkit.server.scheduling.worker_thread import WorkerThread

__all__ = ["LeaderFollowers", "Leadership"]

#: How often in a row reading may fail before it is given up, and how much longer the leader waits after each
#: failure: memory may be short for a moment.
_MAX_FAILURES: Final = 10
_RETRY_DELAY_S: Final = 0.01

#: Longer replies are sent at once: a pipe holds no more, and several of them would fill memory.
_SEND_AT_ONCE_BYTES: Final = 1 << 16


class Leadership:
    """
    The time during which one thread leads.

    Attributes:
        event:
            The event that is being handled, and is not answered yet; else None.

        current:
            The request that the thread is in, if it may get stuck there; else None.

        ends:
            Whether another thread has taken over, or is about to.

        job:
            What the thread still works on once another has taken over; None before.

        failures:
            How often in a row reading has failed.
    """

    def __init__(self) -> None:
        self.event: Event | None = None
        self.current: Exchange | None = None
        self.ends = False
        self.job: Job | None = None
        self.failures = 0


class LeaderFollowers:
    """
    The events to be handled, and the thread that handles them.

    Args:
        handle:
            Handles one event. It returns the request to which the reply belongs, if any, and the
            reply, if any. While it may get stuck, it sets `current` of the `leadership`.

        send:
            Takes whole lines to be sent.

        in_flight:
            Where a request goes when its thread is relieved.

        executor:
            Puts it there, and counts the thread.

    Attributes:
        leadership:
            That of the present leader.
    """

    def __init__(
        self,
        handle: Callable[[Event], tuple[Exchange | None, bytes | None]],
        send: Callable[[bytes], None],
        in_flight: InFlight,
        executor: Executor,
    ) -> None:
        self.leadership = Leadership()
        self._handle = handle
        self._send = send
        self._in_flight = in_flight
        self._executor = executor
        self._events: deque[Event] = deque()
        self._replies: list[bytes] = []
        self._read_on: Callable[[Leadership], None] | None = None
        self._worker: WorkerThread | None = None
        self._lock = Lock()
        self._busy = False

    @property
    def is_led(self) -> bool:
        """Whether the leader's thread is alive."""
        with self._lock:
            return self._worker is not None and self._worker.is_alive()

    @property
    def current(self) -> Exchange | None:
        """The request that the leader is in, if it may be relieved there; else None."""
        return self.leadership.current if self._read_on is not None else None

    def start(self, read_on: Callable[[Leadership], None], events: Iterable[Event] = ()) -> None:
        """
        Start the first leader.

        Args:
            read_on:
                Reads and calls `handle_events`, with the leadership that it is given, until that
                returns False or there is nothing more to read.

            events:
                What is handled before that.
        """
        self._events.extend(events)
        self._read_on = read_on
        self._executor.relieves = True
        self._worker = self._start_leader(self.leadership)

    def handle_events(self, events: Iterable[Event], leadership: Leadership | None = None) -> bool:
        """
        Handle *events*, and send the replies in one piece, unless they are large.

        Args:
            events:
                What was read.

            leadership:
                That of the calling thread; None if it is never relieved.

        Returns:
            Whether the thread still leads. If not, another one handles the rest, and reads.
        """
        mine = leadership or self.leadership
        self._busy = True
        self._events.extend(events)
        while self._events:
            event = mine.event = self._events.popleft()
            exchange, reply = self._handle(event)
            mine.current = None
            if mine.ends and (job := self._job_if_relieved(mine)) is not None:
                self._answer_late(job, reply)
                return False
            if exchange is not None and exchange.state is not IN_PLACE and reply is not None:
                self._in_flight.fail(exchange, reply)  # it was put in flight before it failed
            elif reply is not None:
                line = reply if exchange is None else exchange.request.answer(reply)
                mine.event = None  # from here on it counts as answered
                if len(line) > _SEND_AT_ONCE_BYTES:
                    self._flush()  # so that it is not copied once more
                    self._send(line)
                else:
                    self._replies.append(line)
            mine.event = None
        self._flush()
        self._busy = False
        return True

    def drain(self, deadline: float) -> list[Request]:
        """
        Wait until every event is handled; return the requests that no thread is left to handle.

        Args:
            deadline:
                How long to wait, by `time.monotonic`.
        """
        while self._busy and not self._has_lost_leader() and time.monotonic() < deadline:
            time.sleep(0.001)
        if not self._has_lost_leader():
            return []
        left = list(self._events)
        self._events.clear()
        return [event for event in left if isinstance(event, Request)]

    def relieve(self, stuck: Exchange) -> None:
        """
        Start a new leader, if the present one is still in *stuck*. That request goes in flight.
        """
        with self._lock:
            before = self.leadership
            # The leader first clears `current` and then reads `ends`; here it is the other way round.
            # Whichever comes second sees what the other has done.
            before.ends = True
            try:
                if before.current is stuck and self._worker is not None:
                    leadership = Leadership()
                    # The new thread waits for the lock. If it cannot be started, all stays as it was.
                    worker = self._start_leader(leadership)
                    before.job = self._executor.detach(stuck, self._worker)
                    self.leadership, self._worker = leadership, worker
            finally:
                before.ends = before.job is not None

    def _has_lost_leader(self) -> bool:
        return self._read_on is not None and not self.is_led

    def _job_if_relieved(self, leadership: Leadership) -> Job | None:
        with self._lock:  # `relieve` may be at work
            return leadership.job

    def _answer_late(self, job: Job, reply: bytes | None) -> None:
        """Answer the request in which this thread was relieved."""
        # It may have been put in flight under another job since, before it failed.
        if reply is not None and not self._in_flight.answer(job, reply):
            self._in_flight.fail(job.exchange, reply)

    def _start_leader(self, leadership: Leadership) -> WorkerThread:
        def lead() -> None:
            with self._lock:
                leads = self.leadership is leadership
            while leads:
                try:
                    self._flush()
                    if self.handle_events((), leadership) and self._read_on is not None:
                        self._read_on(leadership)
                    break
                except BaseException as error:  # noqa: BLE001 (memory is short: what is open must be answered)
                    leads = self._goes_on(leadership, error)

        worker = WorkerThread(lead)
        worker.start()
        return worker

    def _goes_on(self, mine: Leadership, error: BaseException) -> bool:
        """Answer what failed with *error*; return whether the thread goes on leading."""
        event, exchange = mine.event, mine.current
        mine.event = mine.current = None
        if (job := self._job_if_relieved(mine)) is not None:
            self._answer_late(job, _failed(job.exchange.request))
            return False
        if event is None:
            say(f"what a client sends could not be read: {error!r}")
            mine.failures += 1
        else:
            say(f"a message could not be handled: {error!r}")
        if exchange is not None:
            self._in_flight.fail(exchange, _failed(exchange.request))
        elif isinstance(event, Request) and (line := event.answer(_failed(event))):
            self._send(line)
        if mine.failures >= _MAX_FAILURES:
            say("reading cannot go on")
            self._flush()
            return False
        time.sleep(mine.failures * _RETRY_DELAY_S)
        return True

    def _flush(self) -> None:
        if self._replies:
            try:
                self._send(b"".join(self._replies))
            finally:
                self._replies.clear()  # only now, as `drain` waits for them


def _failed(request: Request) -> bytes:
    return encode_error(request.id, InternalError(f"{request.method} failed"))
