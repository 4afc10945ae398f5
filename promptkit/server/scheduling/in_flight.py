"""Requests in flight: those that are answered later than they were read, each exactly once."""

from collections.abc import Callable, Collection
from threading import Condition, Lock
from typing import Final

from msgspec import Struct

from promptkit.errors.exceptions import PromptkitError
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import RequestId, TooManyRequests, encode_error

__all__ = ["InFlight", "Job"]

#: How many requests may be open at once: streams, questions, and what is worked on.
_MOST: Final = 1024


class Job(Struct, frozen=True, eq=False):
    """
    One request that is answered later.

    Args:
        request:
            What was asked.

        stop:
            Called once if it is answered otherwise than by `InFlight.answer`, so that nobody
            works on it in vain.

        refusal:
            What it is answered with when its time is over; None if it may take any time.

        deadline:
            When that is, by `time.monotonic`.

        works:
            Whether something is being done for it, which the end waits for. If not it waits
            for the client.
    """

    request: Request
    stop: Callable[[], object]
    refusal: PromptkitError | None = None
    deadline: float | None = None
    works: bool = True


class InFlight:
    """
    The requests of one client that are not answered yet.

    Whoever comes first answers a request: the work on it, its client, its deadline, or the end.

    Args:
        send:
            Takes whole lines to be sent. It may be called from several threads.

        timed:
            Called when a request gets a deadline, so that somebody calls `expire` then.

    Attributes:
        ids:
            Those of the requests, at any time.
    """

    def __init__(self, send: Callable[[bytes], None], timed: Callable[[], object] = lambda: None) -> None:
        self._send = send
        self._timed = timed
        self._jobs: dict[RequestId, Job] = {}
        self.ids: Collection[RequestId] = self._jobs.keys()
        self._leaving = 0
        # A condition enters in Python code, where a thread may be told to stop with the lock in hand.
        self._lock = Lock()
        self._changed = Condition(self._lock)

    def check_room(self) -> None:
        """
        Check that one more request may be left open.

        Raises:
            TooManyRequests: If as many wait as may.
        """
        if len(self._jobs) >= _MOST:
            msg = f"{len(self._jobs):,} requests are open, which is the limit: end some of them first"
            raise TooManyRequests(msg)

    def __contains__(self, request_id: object) -> bool:
        """
        Return whether the request with this id is not answered yet.
        """
        return request_id in self._jobs

    def hold(self, job: Job) -> Job:
        """
        Note that a request is answered later. A job that it had before does not count any more.

        If it has been answered, which only a thread that was given up may find, *job* is in vain.
        """
        return self._enter(job, again=True)

    def adopt(self, job: Job) -> Job:
        """
        Note that a request is answered later, unless that has been noted: then *job* is in vain.
        """
        return self._enter(job, again=False)

    def _enter(self, job: Job, *, again: bool) -> Job:
        request = job.request
        with self._lock:
            if request.settled or (request.held and not again):
                return job
            request.held = True
            self._jobs[request.id] = job
        if job.deadline is not None:
            self._timed()
        return job

    def release(self, job: Job) -> bool:
        """
        Return whether it falls to the caller to answer *job*, in whatever way. Nobody else will.
        """
        if not self._settle(job):
            return False
        self._leave()
        job.request.held = job.request.settled = False  # it may be answered later once more
        return True

    def _settle(self, job: Job) -> bool:
        """
        Return whether *job* leaves now, which `_leave` has to be told.
        """
        with self._lock:
            if self._jobs.get(job.request.id) is not job:
                return False
            del self._jobs[job.request.id]
            job.request.settled = True
            self._leaving += 1
            return True

    def _leave(self, job: Job | None = None, reply: bytes = b"") -> None:
        """
        Send *reply*, with which *job* leaves that was settled.
        """
        try:
            if job is not None and (line := job.request.answer(reply)):
                self._send(line)
        finally:
            with self._lock:
                self._leaving -= 1
                self._changed.notify_all()

    def answer(self, job: Job, reply: bytes) -> None:
        """
        Send the reply to *job*, unless it has been answered.

        Args:
            job:
                What `hold` was given.

            reply:
                One line; ``b""`` if the client wants none.
        """
        if self._settle(job):
            self._leave(job, reply)

    def fail(self, request: Request, reply: bytes) -> None:
        """
        Send the reply to a request that failed, perhaps after it was noted that it is answered later.
        """
        job = self._jobs.get(request.id)
        if job is not None and job.request is request:
            self._end(job, reply)
        elif not request.held and (line := request.answer(reply)):
            self._send(line)

    def cancel(self, request_id: RequestId) -> None:
        """
        Stop working on a request, if it is still being worked on: its client wants no answer.
        """
        job = self._jobs.get(request_id)
        if job is not None:
            self._end(job, b"")

    def expire(self, now: float) -> None:
        """
        Answer every request whose time is over at *now*, by `time.monotonic`.
        """
        for job in self._open():
            if job.refusal is not None and job.deadline is not None and job.deadline <= now:
                self._end(job, encode_error(job.request.id, job.refusal))

    @property
    def next_deadline(self) -> float | None:
        """
        When the next request has to be given up, by `time.monotonic`.
        """
        return min((job.deadline for job in self._open() if job.deadline is not None), default=None)

    def close(self, grace: float, ended: Callable[[Request], PromptkitError]) -> None:
        """
        Answer every request: those that are worked on as soon as the work is done.

        Args:
            grace:
                How long that is waited for, in seconds.

            ended:
                Returns what a request is answered with that takes longer.
        """
        for job in self._open():
            if not job.works:
                self._end(job, encode_error(job.request.id, job.refusal) if job.refusal else b"")
        with self._lock:
            self._changed.wait_for(lambda: not self._jobs and not self._leaving, timeout=grace)
        for job in self._open():
            self._end(job, encode_error(job.request.id, ended(job.request)))

    def _open(self) -> list[Job]:
        with self._lock:
            return list(self._jobs.values())

    def _end(self, job: Job, reply: bytes) -> None:
        """
        Answer *job* with *reply*, unless it has been answered, and stop the work on it.
        """
        if self._settle(job):
            self._leave(job, reply)
            job.stop()
