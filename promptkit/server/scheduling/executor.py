"""The executor: where authors' code runs, how long it may take, and how much of it may run at once."""

import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final, TypeVar, TypeVarTuple

from promptkit.errors.diagnostics import Location
from promptkit.errors.exceptions import ArgumentErrors, UnknownPrompt, UnknownResource
from promptkit.errors.interruptions import Abandoned, call_interruptible
from promptkit.errors.standard_error import say
from promptkit.protocol.jsonrpc import InternalError, TooManyRequests, encode_error
from promptkit.protocol.limits import Limits
from promptkit.server.exchange import IN_PLACE, Exchange, State
from promptkit.server.replies import reply_to, took_too_long
from promptkit.server.scheduling.in_flight import InFlight, Job
from promptkit.server.scheduling.worker_thread import WorkerThread

if TYPE_CHECKING:  # most servers never need asyncio
    from asyncio import Task

    from promptkit.server.scheduling.event_loop import EventLoopThread

__all__ = ["NESTED_REFUSALS", "Executor", "call_author"]

Args = TypeVarTuple("Args")
T = TypeVar("T")

#: What an author's code raises if it calls another prompt or resource, which refuses the arguments.
NESTED_REFUSALS: Final = (ArgumentErrors, UnknownPrompt, UnknownResource)

#: A slow prompt that once takes less than this runs on the leader's thread again.
_QUICK_S: Final = 0.002


class Executor:
    """
    Runs authors' code on the calling thread, on threads of its own, and on an event loop.

    Args:
        in_flight:
            Where requests go that are answered later.

        limits:
            How many requests may be worked on at once, how long each may take, and how long a reply may
            be. Requests that were abandoned count until their code ends.

    Attributes:
        full:
            Whether as many run as may.

        relieves:
            Whether a calling thread that is stuck is relieved, so that time limits hold there.
    """

    def __init__(self, in_flight: InFlight, limits: Limits) -> None:
        self.full = self.relieves = False
        self._in_flight = in_flight
        self._limits = limits
        # What is worked on, and on how many threads and loops: on two while one hands it to the other.
        self._working: dict[object, int] = {}
        self._lock = Lock()
        self._loop: EventLoopThread | None = None

    @property
    def busy(self) -> bool:
        """Whether authors' code runs, abandoned or not."""
        return bool(self._working)

    def check_room(self) -> None:
        """
        Check that more work may be started.

        Raises:
            TooManyRequests: If as much runs as may.
        """
        if self.full:
            msg = f"{self._limits.renders} requests are being worked on, which is the limit: try again later"
            raise TooManyRequests(msg)

    def call(
        self, exchange: Exchange, work: Callable[[], bytes], timeout: float | None = None
    ) -> bytes | None:
        """
        Return what *work* returns, or None if another thread calls it.

        Args:
            exchange:
                What is answered.

            work:
                Calls the author's function, and returns the result.

            timeout:
                The limit that its author has set, in seconds.

        Raises:
            TooManyRequests: If as much runs on other threads as may.

            RuntimeError: If there can be no more threads.
        """
        if self.runs_here(exchange, timeout):
            return work()
        self.call_on_thread(exchange, work)
        return None

    def runs_here(self, exchange: Exchange, timeout: float | None = None) -> bool:
        """
        Return whether an author's function is called on this thread.

        Args:
            exchange:
                What it is called for.

            timeout:
                The limit that its author has set, in seconds.

        Raises:
            TooManyRequests: If it is, and as much runs on other threads as may.
        """
        if exchange.state is IN_PLACE:  # else this thread was relieved while it read the arguments
            slow = exchange.snapshot.slow
            if (slow and exchange.key in slow) or (timeout is not None and not self.relieves):
                return False
            if self.full:
                self.check_room()
        return True

    def call_on_thread(self, exchange: Exchange, work: Callable[[], bytes]) -> None:
        """
        Answer a request with what *work* returns, which is called on a thread of its own.

        Raises:
            TooManyRequests: If as much runs as may.

            RuntimeError: If there can be no more threads.
        """

        def timed(_exchange: Exchange) -> bytes:
            begun = time.monotonic()
            result = work()
            if time.monotonic() - begun < _QUICK_S:  # the machine was busy, or it was the first call
                exchange.snapshot.slow.discard(exchange.key)
            return result

        self.check_room()
        worker = WorkerThread(lambda: self._answer(job, timed))
        job = self._enter_flight(exchange, worker)
        try:
            worker.start()  # and end at once, if the client is gone
        except RuntimeError:  # there can be no more threads
            self._in_flight.release(job)
            self._leave(exchange)
            raise

    def call_on_loop(
        self,
        exchange: Exchange,
        coroutine: Coroutine[Any, Any, T],
        result: Callable[[Callable[[], T]], bytes],
    ) -> None:
        """
        Answer a request on an event loop.

        Args:
            exchange:
                The request.

            coroutine:
                The work.

            result:
                Makes the result; what it is given returns what the work returned, or raises what
                the work raised.

        Raises:
            TooManyRequests: If as much runs as may.

            RuntimeError: If there can be no more threads.
        """
        try:
            if exchange.state is State.IN_PLACE:  # else the relieved thread that calls this counts already
                self.check_room()
            loop = self._event_loop()
        except BaseException:
            coroutine.close()
            raise

        counted = [exchange]  # taken out by the first that calls `leave`: it is counted once

        def leave() -> None:
            with suppress(IndexError):  # it has left
                self._leave(counted.pop())

        def ended(task: "Task[T]") -> None:
            try:
                if exchange.state is not State.ANSWERED:
                    self._answer(job, lambda _: result(task.result))
                elif not task.cancelled():
                    task.exception()  # else asyncio says that nobody has looked at it
            finally:
                leave()

        def stop() -> None:
            if not loop.cancel(exchange):  # what has not begun never will, however long the loop is blocked
                leave()

        self._enter(exchange)
        job = self._in_flight.enter(self._job(exchange, stop, partial(_line, loop.thread, coroutine)))
        loop.start(exchange, coroutine, ended)

    def detach(self, exchange: Exchange, worker: WorkerThread) -> Job:
        """Put a request in flight in which *worker*, the leader, is stuck. Remember that it is slow."""
        if exchange.about is not None:
            exchange.snapshot.slow.add(exchange.key)
        return self._enter_flight(exchange, worker, relieves=True)

    def end(self) -> None:
        """End the event loop once nothing runs there. Work that is started later gets a new one."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.end()

    def _event_loop(self) -> "EventLoopThread":
        from promptkit.server.scheduling.event_loop import EventLoopThread

        with self._lock:
            if self._loop is None:
                self._loop = EventLoopThread()
            return self._loop

    def _enter_flight(self, exchange: Exchange, worker: WorkerThread, *, relieves: bool = False) -> Job:
        self._enter(exchange)
        worker.over = partial(self._leave, exchange)
        job = self._job(exchange, worker.abandon, partial(_line, worker, None))
        return self._in_flight.enter(job, relieves=relieves)

    def _job(
        self, exchange: Exchange, stop: Callable[[], object], line_in: Callable[[str], Location | None]
    ) -> Job:
        seconds = exchange.time_limit(self._limits.timeout)
        refusal = partial(took_too_long, exchange, seconds, line_in)
        return Job(exchange, stop, refusal, time.monotonic() + seconds)

    def _answer(self, job: Job, work: Callable[[Exchange], bytes]) -> None:
        request = job.exchange.request
        try:
            reply = reply_to(job.exchange, work, self._limits.reply) or b""
        except Abandoned:
            raise
        # Errors are replies already. If memory is too short even for that, this answers.
        except BaseException as error:  # noqa: BLE001 (nothing else would answer)
            say(f"a request could not be answered: {error!r}")
            reply = encode_error(request.id, InternalError(f"{request.method} failed"))
        self._in_flight.answer(job, reply)

    def _enter(self, work: object) -> None:
        with self._lock:
            self._working[work] = self._working.get(work, 0) + 1
            self.full = len(self._working) >= self._limits.renders

    def _leave(self, work: object) -> None:
        with self._lock:
            self._working[work] -= 1
            if not self._working[work]:
                del self._working[work]
            self.full = len(self._working) >= self._limits.renders


def _line(thread: Thread, coroutine: Coroutine[Any, Any, Any] | None, file: str) -> Location | None:
    """The line of an author that a thread is in, or a coroutine on its event loop, called from *file*."""
    from promptkit.errors.stacks import authors_line  # few requests take too long

    return authors_line(thread.ident, coroutine, file)


def call_author(function: Callable[[*Args], T], *args: *Args) -> T:
    """
    Call an author's *function*.

    A prompt that calls another one with wrong arguments has a bug. Its client did nothing wrong, so it
    must not be told that it did.

    Raises:
        RuntimeError: If what the function calls refuses its arguments.

        Exception: Whatever else the function raises.
    """
    try:
        return call_interruptible(function, *args)
    except NESTED_REFUSALS as error:
        msg = "what it calls was refused"
        raise RuntimeError(msg) from error
