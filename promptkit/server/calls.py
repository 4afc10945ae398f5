"""Calls of authors' code: on the calling thread, on a thread of its own, or on an event loop."""

import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, TypeVar, TypeVarTuple

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.errors.exceptions import ArgumentErrors, UnknownPrompt, UnknownResource
from promptkit.errors.interruptions import call_interruptible
from promptkit.protocol import wire
from promptkit.protocol.jsonrpc import InternalError
from promptkit.protocol.limits import Limits
from promptkit.server.exchange import Exchange
from promptkit.server.replies import reply_to
from promptkit.server.scheduling.executor import Executor
from promptkit.server.scheduling.in_flight import Job
from promptkit.server.scheduling.leader import LeaderFollowers
from promptkit.server.scheduling.workers import Worker

__all__ = ["NESTED_REFUSALS", "Calls", "call_author", "nested_refusal"]

Args = TypeVarTuple("Args")
T = TypeVar("T")

#: What an author's code raises if it calls another prompt or resource, which refuses the arguments.
NESTED_REFUSALS: Final = (ArgumentErrors, UnknownPrompt, UnknownResource)

#: A slow prompt that once takes less than this runs on the leader's thread again.
_QUICK_S: Final = 0.002


class Calls:
    """
    Decides where authors' code runs, and calls it there.

    Args:
        executor:
            Runs what does not run on the calling thread.

        leader_followers:
            Whose leader calls this.

        limits:
            How long a request may take, and how long a reply may be.
    """

    def __init__(self, executor: Executor, leader_followers: LeaderFollowers, limits: Limits) -> None:
        self._executor = executor
        self._leader_followers = leader_followers
        self._limits = limits

    def runs_here(self, exchange: Exchange, timeout: float | None = None) -> bool:
        """
        Whether an author's function is called on this thread.

        Args:
            exchange:
                What it is called for.

            timeout:
                The limit that its author has set, in seconds.

        Raises:
            TooManyRequests: If it is, and as much runs on other threads as may.
        """
        if exchange.held:  # this thread was relieved while it read the arguments
            return True
        slow = exchange.snapshot.slow
        if (slow and exchange.key in slow) or (timeout is not None and not self._leader_followers.started):
            return False
        if self._executor.full:
            self._executor.check_room()
        return True

    def call(self, exchange: Exchange, work: Callable[[], bytes]) -> bytes | None:
        """
        Return what *work* returns, or None if another thread calls it.

        Args:
            exchange:
                What is answered.

            work:
                Calls the author's function, and returns the result.
        """
        if self.runs_here(exchange):
            return work()
        self.call_on_thread(exchange, work)
        return None

    def call_on_thread(self, exchange: Exchange, work: Callable[[], bytes]) -> None:
        """Answer a request with what *work* returns, which is called on a thread of its own."""
        slow = exchange.snapshot.slow

        def timed_work(_exchange: Exchange) -> bytes:
            begun = time.monotonic()
            result = work()
            if time.monotonic() - begun < _QUICK_S:  # the machine was busy, or it was the first call
                slow.discard(exchange.key)
            return result

        reply = partial(reply_to, exchange, timed_work, self._limits.reply)
        self._executor.run_function(exchange, lambda: reply() or b"", *self._time_limit(exchange))

    def call_on_loop(
        self,
        exchange: Exchange,
        coroutine: Coroutine[Any, Any, T],
        result: Callable[[Callable[[], T]], bytes],
    ) -> None:
        """Answer a request with the *result* of what *coroutine* returns, on an event loop."""

        def finish(returned: Callable[[], T]) -> bytes:
            return reply_to(exchange, lambda _: result(returned), self._limits.reply) or b""

        self._executor.run_coroutine(exchange, coroutine, finish, *self._time_limit(exchange))

    def detach(self, exchange: Exchange, worker: Worker) -> Job:
        """Put a request in flight in which *worker*, the leader, is stuck. Remember that it is slow."""
        if exchange.about is not None:
            exchange.snapshot.slow.add(exchange.key)
        return self._executor.adopt(exchange, worker, *self._time_limit(exchange))

    def _time_limit(self, exchange: Exchange) -> tuple[float, InternalError]:
        """How long a request may take, in seconds, and the error for one that takes longer."""
        # `relieve` calls this with the lock that every thread needs, so nothing here may depend on what
        # the client has sent, which may take long to look at.
        about, seconds = exchange.about, self._limits.timeout
        if about is None and exchange.snapshot.importing is not None:
            return seconds, _StillImporting(seconds, exchange.snapshot.importing)
        if isinstance(about, CompiledPrompt) and isinstance(exchange.request.params, wire.GetPromptParams):
            seconds = about.timeout or seconds
        return seconds, _TookTooLong(seconds, exchange)


class _TookTooLong(InternalError):
    """A request has had its time. What it is about may have been looked up since it was given that time."""

    def __init__(self, seconds: float, exchange: Exchange) -> None:
        super().__init__("")
        self._seconds, self._exchange = seconds, exchange

    def __str__(self) -> str:
        about, shown = self._exchange.about, self._exchange.request.method
        if isinstance(about, CompiledPrompt):
            shown = f"prompt {about.name!r}"
        elif about is not None:
            shown = f"resource {about.uri_template!r}"
        return f"{shown} took longer than its limit of {self._seconds:g} s"


class _StillImporting(InternalError):
    """What waits for recipes waits too long. Where the import is then, is found out then."""

    def __init__(self, seconds: float, importing: Callable[[], str]) -> None:
        super().__init__("")
        self._seconds, self._importing = seconds, importing

    def __str__(self) -> str:
        return f"the recipes are still being imported after {self._seconds:g} s{self._importing()}"


def call_author(function: Callable[[*Args], T], *args: *Args) -> T:
    """
    Call an author's *function*.

    A prompt that calls another one with wrong arguments has a bug. Its client did nothing wrong, so it
    must not be told that it did.

    Raises:
        RuntimeError: In place of `NESTED_REFUSALS`.

        Exception: Whatever else the function raises.
    """
    try:
        return call_interruptible(function, *args)
    except NESTED_REFUSALS as error:
        raise nested_refusal() from error


def nested_refusal() -> RuntimeError:
    """Return what is raised in place of `NESTED_REFUSALS`."""
    return RuntimeError("what it calls was refused")
