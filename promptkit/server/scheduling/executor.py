"""The executor: authors' code that runs beside the thread that reads, and how much of it may."""

import time
from collections.abc import Callable, Coroutine
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from promptkit.errors.exceptions import PromptkitError
from promptkit.errors.standard_error import say
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import InternalError, TooManyRequests, encode_error
from promptkit.server.scheduling.in_flight import InFlight, Job
from promptkit.server.scheduling.workers import Abandoned, Worker

if TYPE_CHECKING:
    from concurrent.futures import Future

    from promptkit.server.scheduling.event_loop import EventLoopThread
    from promptkit.server.scheduling.loops import EventLoops

__all__ = ["Executor"]

T = TypeVar("T")


class Executor:
    """
    Runs authors' code on threads and on an event loop.

    Args:
        in_flight:
            Where the requests go that it works on.

        limit:
            How many pieces of work may go on at once. What was given up and does not stop counts.

    Attributes:
        full:
            Whether as many go on as may.
    """

    def __init__(self, in_flight: InFlight, limit: int) -> None:
        self._in_flight = in_flight
        self._limit = limit
        self._working = 0
        self.full = False
        self._lock = Lock()
        self._loops: EventLoops | None = None

    def check_room(self) -> None:
        """
        Check that more work may be begun.

        Raises:
            TooManyRequests: If as much goes on as may.
        """
        if self.full:
            msg = f"{self._limit} requests are being worked on, which is the limit: try again later"
            raise TooManyRequests(msg)

    def run_function(
        self, request: Request, work: Callable[[], bytes], seconds: float, refusal: PromptkitError
    ) -> None:
        """
        Work on *request* on a thread of its own.

        Args:
            request:
                What is answered later.

            work:
                Returns the reply, one line.

            seconds:
                How long it may take.

            refusal:
                What the request is answered with if it takes longer.

        Raises:
            TooManyRequests: If as much goes on as may.
        """
        self.check_room()
        worker = Worker(lambda: self._answer(job, work))
        job = self._in_flight.hold(self._job(request, worker, seconds, refusal))
        try:
            worker.start()
        except RuntimeError:  # there can be no more threads
            self._in_flight.release(job)
            self._leave()
            raise

    def start(self, work: Callable[[], object], over: Callable[[], object]) -> Worker:
        """
        Do *work* that no request waits for on a thread of its own; *over* is called once it runs no more.

        Raises:
            TooManyRequests: If as much goes on as may.

            RuntimeError: If there can be no more threads.
        """
        self.check_room()
        worker = Worker(work)
        worker.when_over(over)
        worker.when_over(self._leave)
        self._enter()
        try:
            worker.start()
        except RuntimeError:
            self._leave()
            raise
        return worker

    def adopt(self, request: Request, worker: Worker, seconds: float, refusal: PromptkitError) -> Job:
        """
        Note that *worker* works on *request*, and on nothing else any more.

        If the request is answered later already, or has been answered, that remains as it is.

        `run_function` explains the arguments.
        """
        return self._in_flight.adopt(self._job(request, worker, seconds, refusal))

    def _job(self, request: Request, worker: Worker, seconds: float, refusal: PromptkitError) -> Job:
        """
        Return the job that *worker* does from now on.
        """
        self._enter()
        worker.when_over(self._leave)
        return Job(request, worker.abandon, refusal, time.monotonic() + seconds)

    def run_coroutine(
        self,
        request: Request,
        coroutine: Coroutine[Any, Any, T],
        finish: Callable[[Callable[[], T]], bytes],
        seconds: float,
        refusal: PromptkitError,
    ) -> None:
        """
        Work on *request* on an event loop.

        Args:
            request:
                What is answered later.

            coroutine:
                The work.

            finish:
                Makes the reply out of what the work returned, or raised.

            seconds:
                How long it may take.

            refusal:
                What the request is answered with if it takes longer.

        Raises:
            TooManyRequests: If as much goes on as may.
        """
        try:
            if not request.held:  # else it has its place: a thread was relieved in it
                self.check_room()
            background = self._free_loop()
        except BaseException:
            coroutine.close()
            raise
        self._enter()
        started: list[Future[T]] = []
        deadline = time.monotonic() + seconds
        job = self._in_flight.hold(Job(request, lambda: started and started[0].cancel(), refusal, deadline))
        try:
            started.append(background.start(coroutine, partial(self._done, job, finish), self._leave))
        except RuntimeError:  # an author's code has closed the loop
            self._in_flight.release(job)
            self._leave()
            raise

    @property
    def busy(self) -> bool:
        """
        Whether authors' code goes on, wanted or not, or there are loops that somebody has to look after.
        """
        return self._working > 0 or (self._loops is not None and self._loops.unsettled)

    def look(self, now: float) -> None:
        """
        Look after the event loops. To be called every few milliseconds while anything goes on.
        """
        if self._loops is not None and self.busy:
            self._loops.look(now)

    def end(self) -> None:
        """
        Let go of what nothing runs on any more. More work may be begun all the same.
        """
        if self._loops is not None:
            self._loops.end()

    def _free_loop(self) -> "EventLoopThread":
        """
        Return an event loop that is not stuck, as far as is known.
        """
        from promptkit.server.scheduling.loops import EventLoops  # most servers never need a loop

        with self._lock:
            if self._loops is None:
                self._loops = EventLoops(self._limit)
        return self._loops.free()

    def _done(self, job: Job, finish: Callable[[Callable[[], T]], bytes], future: "Future[T]") -> None:
        """
        Answer *job* with what has come of the coroutine.
        """
        self._answer(job, lambda: finish(future.result))

    def _answer(self, job: Job, work: Callable[[], bytes]) -> None:
        """
        Answer *job* with what *work* returns; if there is not even memory for an error, with another one.
        """
        try:
            reply = work()
        except Abandoned:
            raise
        except BaseException as error:  # noqa: BLE001 (nobody else answers)
            say(f"a request could not be answered: {error!r}")
            reply = encode_error(job.request.id, InternalError(f"{job.request.method} failed"))
        self._in_flight.answer(job, reply)

    def _enter(self) -> None:
        with self._lock:
            self._working += 1
            self.full = self._working >= self._limit

    def _leave(self) -> None:
        with self._lock:
            self._working -= 1
            self.full = self._working >= self._limit
