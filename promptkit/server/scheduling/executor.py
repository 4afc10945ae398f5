"""The executor: authors' code that runs beside the leader, and how much of it may run at once."""

import time
from collections.abc import Callable, Coroutine
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from promptkit.errors.exceptions import PromptkitError
from promptkit.errors.standard_error import say
from promptkit.protocol.jsonrpc import InternalError, TooManyRequests, encode_error
from promptkit.server.exchange import Exchange
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
            How many requests may be worked on at once. Abandoned ones count until they stop.

    Attributes:
        full:
            Whether as many run as may.

        owns_process:
            Whether the process does nothing but serve. Then its threads share their memory.
    """

    def __init__(self, in_flight: InFlight, limit: int) -> None:
        self._in_flight = in_flight
        self._limit = limit
        # What is worked on, and on how many threads and loops: on two while one hands it to the other.
        self._working: dict[object, int] = {}
        self.full = False
        self.owns_process = False
        self._lock = Lock()
        self._loops: EventLoops | None = None

    @property
    def busy(self) -> bool:
        """Whether authors' code runs, abandoned or not, or an event loop has to be looked after."""
        return bool(self._working) or (self._loops is not None and self._loops.unsettled)

    def check_room(self) -> None:
        """
        Check that more work may be started.

        Raises:
            TooManyRequests: If as much runs as may.
        """
        if self.full:
            msg = f"{self._limit} requests are being worked on, which is the limit: try again later"
            raise TooManyRequests(msg)

    def run_function(
        self, exchange: Exchange, work: Callable[[], bytes], seconds: float, refusal: PromptkitError
    ) -> None:
        """
        Answer a request on a thread of its own.

        Args:
            exchange:
                The request, which goes in flight.

            work:
                Returns the reply, one line.

            seconds:
                How long it may take.

            refusal:
                What the request is answered with if it takes longer.

        Raises:
            TooManyRequests: If as much runs as may.

            RuntimeError: If there can be no more threads.
        """
        self.check_room()
        worker = Worker(lambda: self._answer(job, work))
        job = self._in_flight.hold(self._job(exchange, worker, seconds, refusal))
        if exchange.settled:  # its client is gone
            self._leave(exchange)
            return
        try:
            worker.start()
        except RuntimeError:  # there can be no more threads
            self._in_flight.release(job)
            self._leave(exchange)
            raise

    def run_unanswered(self, work: Callable[[], object], over: Callable[[], object]) -> Worker:
        """
        Run *work* that no request waits for on a thread of its own; *over* is called once it has ended.

        Raises:
            TooManyRequests: If as much runs as may.

            RuntimeError: If there can be no more threads.
        """
        self.check_room()
        worker = Worker(work)
        worker.when_over(over)
        worker.when_over(partial(self._leave, worker))
        self._enter(worker)
        try:
            worker.start()
        except RuntimeError:
            self._leave(worker)
            raise
        return worker

    def adopt(self, exchange: Exchange, worker: Worker, seconds: float, refusal: PromptkitError) -> Job:
        """
        Put a request in flight in which *worker* is stuck, unless it is in flight or answered already.

        `run_function` explains the arguments.
        """
        return self._in_flight.adopt(self._job(exchange, worker, seconds, refusal))

    def run_coroutine(
        self,
        exchange: Exchange,
        coroutine: Coroutine[Any, Any, T],
        finish: Callable[[Callable[[], T]], bytes],
        seconds: float,
        refusal: PromptkitError,
    ) -> None:
        """
        Answer a request on an event loop.

        Args:
            exchange:
                The request, which goes in flight.

            coroutine:
                The work.

            finish:
                Makes the reply; what it is given returns what the work returned, or raises what
                the work raised.

            seconds:
                How long it may take.

            refusal:
                What the request is answered with if it takes longer.

        Raises:
            TooManyRequests: If as much runs as may.
        """
        try:
            if not exchange.held:  # else the relieved thread that calls this counts already
                self.check_room()
            loop = self._free_loop()
        except BaseException:
            coroutine.close()
            raise
        self._enter(exchange)
        future = loop.future()
        job = self._in_flight.hold(Job(exchange, future.cancel, refusal, time.monotonic() + seconds))
        if exchange.settled:  # its client is gone, or its deadline has passed
            coroutine.close()
            self._leave(exchange)
            return
        try:
            loop.start(coroutine, partial(self._done, job, finish), partial(self._leave, exchange), future)
        except RuntimeError:  # an author's code has closed the loop
            self._in_flight.release(job)
            self._leave(exchange)
            raise

    def look(self, now: float) -> None:
        """Look after the event loops. To be called every few milliseconds while `busy`."""
        if self._loops is not None and self.busy:
            self._loops.look(now)

    def end(self) -> None:
        """End the event loops once nothing runs there. Work that is started later gets a new one."""
        if self._loops is not None:
            self._loops.end()

    def _job(self, exchange: Exchange, worker: Worker, seconds: float, refusal: PromptkitError) -> Job:
        self._enter(exchange)
        worker.when_over(partial(self._leave, exchange))
        return Job(exchange, worker.abandon, refusal, time.monotonic() + seconds)

    def _free_loop(self) -> "EventLoopThread":
        # Most servers never need a loop.
        from promptkit.server.scheduling.loops import EventLoops, limit_arenas

        with self._lock:
            if self._loops is None:
                self._loops = EventLoops(self._limit)
                if self.owns_process:
                    limit_arenas()
        return self._loops.free()

    def _done(self, job: Job, finish: Callable[[Callable[[], T]], bytes], future: "Future[T]") -> None:
        self._answer(job, lambda: finish(future.result))

    def _answer(self, job: Job, work: Callable[[], bytes]) -> None:
        try:
            reply = work()
        except Abandoned:
            raise
        # `work` makes replies of errors itself. If memory is too short even for that, this answers.
        except BaseException as error:  # noqa: BLE001 (nothing else would answer)
            request = job.exchange.request
            say(f"a request could not be answered: {error!r}")
            reply = encode_error(request.id, InternalError(f"{request.method} failed"))
        self._in_flight.answer(job, reply)

    def _enter(self, work: object) -> None:
        with self._lock:
            self._working[work] = self._working.get(work, 0) + 1
            self.full = len(self._working) >= self._limit

    def _leave(self, work: object) -> None:
        with self._lock:
            self._working[work] -= 1
            if not self._working[work]:
                del self._working[work]
            self.full = len(self._working) >= self._limit
