"""Requests in flight: read, but not answered yet. Each is answered exactly once."""

from collections.abc import Callable, Collection
from math import inf
from operator import attrgetter
from threading import Condition, Lock
from typing import Final

from msgspec import Struct

from promptkit.errors.exceptions import PromptkitError
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import RequestId, TooManyRequests
from promptkit.server.exchange import Exchange, State

__all__ = ["InFlight", "Job"]

#: How many requests of one client may be open at once: streams, questions, and running work.
_MAX_OPEN: Final = 1024


class Job(Struct, frozen=True, eq=False):
    """
    One request in flight, and how to end it.

    Args:
        exchange:
            The request.

        stop:
            Stops the work on the request; called once, if anything but `InFlight.answer` answers
            the request.

        refusal:
            Returns the error to answer with at the deadline; None if there is no deadline. What the request
            is about may be found only after it is in flight.

        deadline:
            The deadline, by `time.monotonic`.

        works:
            Whether a thread or an event loop works on it. If so, `InFlight.close` waits for it. If
            not, the request waits for the client.
    """

    exchange: Exchange
    stop: Callable[[], object]
    refusal: Callable[[], PromptkitError] | None = None
    deadline: float = inf
    works: bool = True


class InFlight:
    """
    The requests that are not answered yet.

    The first to take a job out of the table answers it: the work itself, a cancellation, the
    deadline, or the end of the server. Whatever comes too late changes nothing.

    Args:
        send:
            Sends whole lines. It may be called from several threads.

        many_clients:
            Whether the requests come from many clients, so that several may have the same id.

    Attributes:
        ids:
            A live view of the ids that no other request may have now.

        timed:
            Called when a request gets a deadline, so that `expire` is called in time.
    """

    def __init__(self, send: Callable[[bytes], None], *, many_clients: bool = False) -> None:
        self.timed: Callable[[], object] = bool
        self._send = send
        self._jobs: dict[RequestId, Job] = {}
        # Of many clients, each request is known by its place in memory.
        self._key: Callable[[Request], RequestId] = id if many_clients else attrgetter("id")
        self._most = inf if many_clients else _MAX_OPEN
        self.ids: Collection[RequestId] = () if many_clients else self._jobs.keys()
        self._leaving = 0  # how many replies are chosen, and not sent yet
        self._lock = Lock()
        self._changed = Condition(self._lock)

    def check_room(self) -> None:
        """
        Check that one more request may be left open.

        Raises:
            TooManyRequests: If the limit is reached.
        """
        if len(self._jobs) >= self._most:
            msg = f"{len(self._jobs):,} requests are open, which is the limit: end some of them first"
            raise TooManyRequests(msg)

    def enter(self, job: Job, *, relieves: bool = False) -> Job:
        """
        Put a request in flight, unless it is answered.

        Args:
            job:
                What ends it. It takes the place of another job of the same request.

            relieves:
                Whether the thread of the request is stuck in it. If it has put it in flight itself meanwhile,
                that stands.

        Returns:
            The same job, with which `answer` is called.
        """
        exchange = job.exchange
        with self._lock:
            if exchange.state is State.ANSWERED or (relieves and exchange.state is State.IN_FLIGHT):
                return job
            exchange.state = State.IN_FLIGHT
            self._jobs[self._key(exchange.request)] = job
        if job.deadline < inf:
            self.timed()
        # Its client may have gone a moment ago, when it was not in flight. `drop` looks in the other order.
        if exchange.request.unwanted:
            self._end(job, b"")
        return job

    def release(self, job: Job) -> bool:
        """Take *job* out of flight. After True, the caller must answer the request."""
        return self._remove(job, State.IN_PLACE)

    def answer(self, job: Job, reply: bytes) -> bool:
        """
        Send the reply to *job*, unless the request has been answered, or another job has it.

        Args:
            job:
                The job that `enter` returned.

            reply:
                One line; ``b""`` if the client wants none.

        Returns:
            Whether this was the answer.
        """
        if not self._remove(job, State.ANSWERED):
            return False
        try:
            if line := job.exchange.request.answer(reply):
                self._send(line)
        finally:
            with self._lock:
                self._leaving -= 1
                self._changed.notify_all()
        return True

    def fail(self, exchange: Exchange, reply: bytes) -> None:
        """Send the reply to a request that failed, whatever job it has, unless it has been answered."""
        job = self._jobs.get(self._key(exchange.request))
        if job is not None and job.exchange is exchange:
            self._end(job, reply)
            return
        with self._lock:
            is_due = exchange.state is State.IN_PLACE
            exchange.state = State.ANSWERED if is_due else exchange.state
        if is_due and (line := exchange.request.answer(reply)):
            self._send(line)

    def cancel(self, request_id: RequestId) -> None:
        """Stop the work on the request with this id, if it is in flight, and send no reply."""
        job = self._jobs.get(request_id)
        if job is not None:
            self._end(job, b"")

    def drop(self, request: Request) -> None:
        """Stop the work on a request that is unwanted, if it is in flight, and send no reply."""
        self.cancel(self._key(request))

    def expire(self, now: float) -> None:
        """Answer every request whose deadline is at or before *now*, by `time.monotonic`."""
        for job in self._open():
            if job.refusal is not None and job.deadline <= now:
                self._end(job, job.exchange.refuse(job.refusal()))

    @property
    def next_deadline(self) -> float:
        """The earliest deadline, by `time.monotonic`; infinite if there is none."""
        return min((job.deadline for job in self._open()), default=inf)

    def close(self, grace: float, ended: Callable[[Request], PromptkitError] | None) -> None:
        """
        End every request; running work gets some time to finish.

        Args:
            grace:
                How long to wait for it, in seconds.

            ended:
                Returns the error for a request that takes longer; None if none is sent.
        """
        for job in self._open():
            if not job.works:
                self._end(job, job.exchange.refuse(job.refusal()) if job.refusal else b"")
        with self._lock:
            self._changed.wait_for(lambda: not self._jobs and not self._leaving, timeout=grace)
        for job in self._open():
            self._end(job, job.exchange.refuse(ended(job.exchange.request)) if ended else b"")

    def _open(self) -> list[Job]:
        with self._lock:
            return list(self._jobs.values())

    def _remove(self, job: Job, state: State) -> bool:
        """Take *job* out of the table; after True, its request has another state."""
        with self._lock:
            key = self._key(job.exchange.request)
            if self._jobs.get(key) is not job:
                return False
            del self._jobs[key]
            job.exchange.state = state
            self._leaving += state is State.ANSWERED
            self._changed.notify_all()
            return True

    def _end(self, job: Job, reply: bytes) -> None:
        if self.answer(job, reply):
            job.stop()
