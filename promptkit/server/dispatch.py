"""
The dispatcher: which thread runs a request, how long it may take, and that it gets exactly one reply.

One thread leads: it takes events from a queue, answers requests in place, and reads the next events when the
queue is empty. The clock looks every 5 ms. If the leader is still in the same request, another thread starts
to lead, and the former leader ends after its request, which counts against the limit of renders from then on.

Every request is in one table from the moment it is taken up until its reply is chosen, under one lock:

- the leader, or a former leader, returns a result;
- a coroutine on the event loop ends;
- its deadline passes, its client cancels it or leaves, or the server ends.

The first of these wins, and whatever comes later is dropped. No exception is raised in another thread: a
coroutine is cancelled, other code continues until it returns, reports progress, or runs a command.
"""

import sys
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from functools import partial
from math import inf
from operator import attrgetter
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from promptkit.errors.exceptions import PromptkitError
from promptkit.language.cancellation import cancelled_by
from promptkit.protocol.events import Cancelled, ClientResponse, Event, Request
from promptkit.protocol.jsonrpc import (
    CANCELLED,
    InternalError,
    InvalidRequest,
    Reply,
    RequestId,
    TooManyRequests,
    encode_error,
)
from promptkit.protocol.limits import Limits
from promptkit.server.clock import TICK_S, Clock
from promptkit.server.pending import PendingRequest
from promptkit.server.replies import reply_to, timeout_error
from promptkit.server.request_limits import WaitingLine
from promptkit.server.snapshot import Snapshot
from promptkit.server.threads import DaemonThread, Watchdog
from promptkit.standard_error import say

if TYPE_CHECKING:
    from asyncio import Task

    from promptkit.server.event_loop import EventLoopThread

T = TypeVar("T")

#: Returns the result of a request as JSON, or None if it comes later.
Handler: TypeAlias = Callable[[PendingRequest], bytes | None]

#: The methods whose requests wait in the line. Completion calls authors' functions, too, but people who type
#: do not wait for it.
_RENDERS: Final = frozenset({"prompts/get", "tools/call", "resources/read"})

#: How many requests of one client may be held open at once: streams and questions.
_MOST_HELD: Final = 1024

#: A prompt that was slow before, and now takes less than this, is called by the leader again.
_QUICK_S: Final = 0.002

#: How long after its last request the clock looks every 5 ms.
_IDLE_S: Final = 1.0

#: The interval in which Python's lock changes hands, while any thread runs next to the leader.
_SHARED_INTERVAL_S: Final = 0.0005

#: Longer replies are sent at once: a pipe holds no more, and several of them would fill memory.
_SEND_AT_ONCE_BYTES: Final = 1 << 16

#: How often in a row reading may fail before it stops, and how much longer each wait is: memory may be short.
_MOST_FAILURES: Final = 10
_RETRY_DELAY_S: Final = 0.01


class _Turn:
    """
    The time during which one thread leads, or runs requests next to the leader.

    Attributes:
        event:
            The event that the thread handles.

        current:
            The request that the thread is in.

        thread:
            The identifier of the thread.
    """

    __slots__ = ("current", "event", "thread")

    def __init__(self) -> None:
        self.event: Event | None = None
        self.current: PendingRequest | None = None
        self.thread = get_ident()

    def is_cancelled(self) -> bool:
        """Whether the request that the thread is in has been answered."""
        return self.current is not None and self.current.is_answered


class Dispatcher:
    """
    Runs the requests of one client, or of many.

    Args:
        handlers:
            By method: returns the result.

        snapshot_for:
            Returns the catalog that a request is answered from.

        observe:
            Called with each request that is taken up.

        resume:
            Returns the request whose question a response answers, and its handler from then on; None if there
            is none.

        send:
            Sends whole lines. Several threads call it.

        limits:
            How long requests may take, how many may run next to the leader, and how many may wait.

        importing:
            Returns which recipe is being imported, for the error of a request that waited too long.

        many_clients:
            Whether the requests come from many clients, so that several may have the same id.

    Attributes:
        is_loaded:
            Whether the recipes are imported. Until then, requests wait.

        guard:
            Ends the process if no thread can run any more; None if nothing does.

        waiting_changed:
            Called with 1 when a request begins to wait for room to run, and with -1 when it no longer does.
    """

    def __init__(  # noqa: PLR0913, PLR0917 (it is the middle of the server)
        self,
        handlers: Mapping[str, Handler],
        snapshot_for: Callable[[Request], Snapshot],
        observe: Callable[[Request], object],
        resume: Callable[[ClientResponse], tuple[PendingRequest, Handler] | None],
        send: Callable[[bytes], None],
        limits: Limits,
        *,
        importing: Callable[[], str],
        many_clients: bool,
    ) -> None:
        self.is_loaded = True
        self._importing = importing
        self.guard: Watchdog | None = None
        self.waiting_changed: Callable[[int], object] = bool
        self._handlers = handlers
        self._snapshot_for = snapshot_for
        self._observe = observe
        self._resume = resume
        self._send = send
        self._limits = limits
        # Requests of many clients are known by their place in memory.
        self._key: Callable[[Request], RequestId] = id if many_clients else attrgetter("id")
        self._has_many_clients = many_clients
        self._lock = Lock()
        self._open: dict[RequestId, PendingRequest] = {}
        self._held = 0
        self._line = WaitingLine(limits.waiting)
        # What runs next to the leader, and on how many threads and loops: on two while one hands it over.
        self._aside: dict[PendingRequest, int] = {}
        self._interval = sys.getswitchinterval()
        self._sending = 0  # how many replies are chosen by other threads than the leader, and not sent yet
        self._events: deque[Event] = deque()
        self._replies: list[bytes] = []
        self._is_busy = False
        self._turn = _Turn()
        self._leader: DaemonThread | None = None
        self._next_events: Callable[[], Iterable[Event] | None] | None = None
        self._loop: EventLoopThread | None = None
        self._clock = Clock(self._look)
        self._next_deadline = inf
        self._seen: PendingRequest | None = None
        self._active_until = self._rearm_at = 0.0

    # The leader.

    @property
    def is_reading(self) -> bool:
        """Whether a thread reads. It ends at the end of the input, or if reading fails again and again."""
        with self._lock:
            return self._leader is not None and self._leader.is_alive()

    @property
    def is_idle(self) -> bool:
        """Whether no request has come for a second."""
        return self._clock.is_resting

    def start(self, next_events: Callable[[], Iterable[Event] | None]) -> None:
        """
        Start the first leader.

        Args:
            next_events:
                Waits for events and returns them; None at the end. One thread at a time calls it.

        Raises:
            RuntimeError: If no more threads can be started.
        """
        self._next_events = next_events
        with self._lock:
            if not self.is_loaded:
                sys.setswitchinterval(_SHARED_INTERVAL_S)
            self._start_leader()

    def handle_events(self, events: Iterable[Event]) -> None:
        """Handle *events* on the calling thread. No other thread takes the lead from it."""
        self._events.extend(events)
        with cancelled_by(self._turn.is_cancelled):
            self._handle_queue(self._turn)

    def _start_leader(self) -> None:
        """Let another thread lead. The lock is held, and the new thread waits for it."""
        turn = _Turn()
        leader = DaemonThread(self._lead, "leader", turn)
        leader.start()
        self._turn, self._leader = turn, leader

    def _lead(self, turn: _Turn) -> None:
        with self._lock:
            if self._turn is not turn:  # it has started too late
                return
        turn.thread, failures, leads = get_ident(), 0, True
        with cancelled_by(turn.is_cancelled):
            while leads:
                try:
                    self._flush()  # what the leader before has not sent
                    if leads := self._handle_queue(turn):
                        leads, failures = self._read(), 0
                except BaseException as error:  # noqa: BLE001 (memory is short: what is open must be answered)
                    failures += 1
                    leads = self._recover(turn, error) and failures < _MOST_FAILURES
                    time.sleep(failures * _RETRY_DELAY_S)
        self._run_waiting()

    def _read(self) -> bool:
        """Wait for events; return whether there are any, and not the end of the input."""
        events = None if self._next_events is None else self._next_events()
        if events is not None:
            self._events.extend(events)
        return events is not None

    def _recover(self, turn: _Turn, error: BaseException) -> bool:
        """Answer the request that failed, if any; return whether the thread still leads."""
        event, turn.event = turn.event, None
        with self._lock:
            failed, turn.current = turn.current, None
            if failed is None and isinstance(event, Request):
                failed = self._open.get(self._key(event))
        what = (
            "a message of a client could not be read" if event is None else "a message could not be handled"
        )
        say(f"{what}: {error!r}")
        if failed is not None:
            self._end(failed, _failure(failed.request))
            self._leave(failed)
        elif isinstance(event, Request):
            self._send(event.answer(_failure(event)))
        return self._turn is turn

    def _handle_queue(self, turn: _Turn) -> bool:
        """Handle the events in the queue, and send the replies; return whether the thread still leads."""
        self._is_busy = True
        events = self._events
        while events:
            event = turn.event = events.popleft()
            if isinstance(event, Request):
                if not self._take_up(event, turn):
                    return False
            elif isinstance(event, Reply):
                self._add(event.line)
            elif isinstance(event, Cancelled):
                self.cancel(event.request_id)
            elif (resumed := self._resume(event)) is not None and not self._run(*resumed, turn):
                return False
            turn.event = None
        self._flush()
        self._is_busy = False
        return True

    def _take_up(self, request: Request, turn: _Turn) -> bool:
        """Enter a request in the table, and run it or let it wait; return whether the thread still leads."""
        channel = request.channel
        if channel is not None and channel.gone:
            request.discard()
            return True
        self._observe(request)
        limit = self._limits.timeout
        pending = PendingRequest(request, self._snapshot_for(request), limit, time.monotonic() + limit)
        key, refused, waits = self._key(request), None, False
        with self._lock:
            is_new = key not in self._open
            if is_new:
                self._open[key] = pending
                self._next_deadline = min(self._next_deadline, pending.deadline)
                waits = not self.is_loaded or (
                    len(self._aside) >= self._limits.renders and request.method in _RENDERS
                )
                if waits:
                    refused = self._wait(pending)
        if not is_new:
            error = InvalidRequest(f"id {key!r} is in use by a request that still runs")
            self._add(request.answer(encode_error(request.id, error)))
            return True
        if channel is not None and channel.gone:  # since a moment ago, when the table did not have it
            self._end(pending, CANCELLED)
            return True
        if not waits:
            return self._run(pending, self._handlers[request.method], turn)
        if refused is not None:
            self._end(refused, refused.error_reply(_no_room(len(self._line))))
        self._wake_clock()
        return True

    def _run(self, pending: PendingRequest, handler: Handler, turn: _Turn) -> bool:
        """Run a request on the leader's thread; return whether the thread still leads."""
        turn.current = pending  # from now on another thread may start to lead
        if self._clock.is_resting and self._next_events is not None:
            self._wake_clock()
        reply = reply_to(pending, handler, self._limits.reply)
        with self._lock:
            turn.current = None
            leads = self._turn is turn
            wins = reply is not None and not pending.is_answered
            if wins:
                self._close_request(pending)
                self._sending += not leads
        if not leads:
            self._finish_aside(pending, reply if wins else None)
            return False
        if wins and reply is not None:
            self._stop(pending)
            self._add(pending.request.answer(reply))
        return True

    def _finish_aside(self, pending: PendingRequest, reply: Reply | None) -> None:
        """Send the reply to a request whose thread no longer leads."""
        try:
            if reply is not None:
                self._stop(pending)
                self._send_reply(pending, reply)
        finally:
            self._leave(pending)

    def _add(self, line: bytes) -> None:
        """Add a line to those that the leader sends together."""
        if len(line) > _SEND_AT_ONCE_BYTES:
            self._flush()  # so that it is not copied once more
            self._send(line)
        elif line:
            self._replies.append(line)

    def _flush(self) -> None:
        if self._replies:
            try:
                self._send(b"".join(self._replies))
            finally:
                self._replies.clear()  # only now, as `close` waits for them

    # The table.

    def answer(self, pending: PendingRequest, reply: Reply) -> bool:
        """
        Send the reply to a request, unless it has been answered.

        Args:
            pending:
                The request.

            reply:
                The reply.

        Returns:
            Whether this was the answer.
        """
        with self._lock:
            if pending.is_answered:
                return False
            self._close_request(pending)
            self._sending += 1
        self._send_reply(pending, reply)
        return True

    def cancel(self, key: RequestId) -> None:
        """Stop the work on the request with this id, if it is open, and send no reply."""
        if (pending := self._open.get(key)) is not None:
            self._end(pending, CANCELLED)

    def drop(self, request: Request) -> None:
        """Stop the work on a request whose client has left."""
        self.cancel(self._key(request))

    def hold(
        self,
        pending: PendingRequest,
        stop: Callable[[], object],
        refusal: Callable[[], PromptkitError] | None = None,
        deadline: float = inf,
    ) -> bool:
        """
        Hold a request open until its client acts: a question, or a stream.

        Args:
            pending:
                The request.

            stop:
                Called once if something else ends it.

            refusal:
                Returns the error to answer with at the deadline.

            deadline:
                The deadline, by `time.monotonic`.

        Returns:
            False if it has been answered meanwhile.
        """
        with self._lock:
            if pending.is_answered:
                return False
            pending.is_held, pending.stop, pending.refusal = True, stop, refusal
            pending.deadline = deadline
            self._held += 1
            self._next_deadline = min(self._next_deadline, deadline)
        self._wake_clock()
        return True

    def release(self, pending: PendingRequest) -> bool:
        """Let a held request run again, with its limit from now on; return False if it has been answered."""
        with self._lock:
            if pending.is_answered or not pending.is_held:
                return False
            self._held -= 1
            pending.is_held, pending.stop, pending.refusal = False, None, None
        self.set_limit(pending, pending.limit)
        return True

    def check_held(self) -> None:
        """Raise TooManyRequests if no further request may be held open."""
        if self._held >= _MOST_HELD and not self._has_many_clients:
            msg = f"{self._held:,} requests are open, which is the limit: end some of them first"
            raise TooManyRequests(msg)

    def _close_request(self, pending: PendingRequest) -> None:
        """Note that the reply to a request is chosen. The lock is held."""
        pending.is_answered = True
        del self._open[self._key(pending.request)]
        self._held -= pending.is_held

    def _send_reply(self, pending: PendingRequest, reply: Reply) -> None:
        try:
            if line := pending.request.answer(reply):
                self._send(line)
        finally:
            with self._lock:
                self._sending -= 1

    def _end(self, pending: PendingRequest, reply: Reply) -> None:
        """Answer a request that its own code has not answered, and stop that code where this is possible."""
        if self.answer(pending, reply):
            self._stop(pending)

    @staticmethod
    def _stop(pending: PendingRequest) -> None:
        """Stop what still runs, or is open, for an answered request, if anything."""
        stop, pending.stop = pending.stop, None
        if stop is not None:
            stop()

    # Requests next to the leader.

    def set_limit(self, pending: PendingRequest, seconds: float) -> None:
        """Give a request a time limit, from now on."""
        pending.limit = seconds
        pending.deadline = time.monotonic() + seconds
        self._next_deadline = min(self._next_deadline, pending.deadline)
        self._wake_clock()

    def call(self, pending: PendingRequest, work: Callable[[], bytes]) -> bytes:
        """
        Return what *work* returns, which calls an author's function.

        If the same function was slow the last time, another thread takes the lead first.
        """
        slow = pending.snapshot.slow
        if not slow or pending.key not in slow:
            return work()
        with self._lock:
            if self._turn.current is pending:
                self._replace_leader(pending)
        began = time.monotonic()
        result = work()
        if time.monotonic() - began < _QUICK_S:  # the machine was busy, or it was the first call
            slow.discard(pending.key)
        return result

    def check_room(self) -> None:
        """Raise TooManyRequests if no more code may run next to the leader."""
        if len(self._aside) >= self._limits.renders:
            msg = f"{self._limits.renders} requests are being worked on, which is the limit: try again later"
            raise TooManyRequests(msg)

    def call_on_loop(
        self,
        pending: PendingRequest,
        coroutine: Coroutine[Any, Any, T],
        result: Callable[[Callable[[], T]], bytes],
    ) -> None:
        """
        Answer a request on the event loop.

        Args:
            pending:
                The request.

            coroutine:
                The work.

            result:
                Makes the result. Its argument returns what the work returned, or raises what it raised.

        Raises:
            RuntimeError: If no more threads can be started.
        """
        try:
            loop = self._event_loop()
        except BaseException:
            coroutine.close()
            raise

        def ended(task: "Task[T]") -> None:
            try:
                if not pending.is_answered:
                    reply = reply_to(pending, lambda _: result(task.result), self._limits.reply)
                    self.answer(pending, reply or CANCELLED)
                elif not task.cancelled():
                    task.exception()  # otherwise asyncio reports that nothing has retrieved it
            finally:
                leave()

        def leave() -> None:
            pending.stop = pending.coroutine = None  # they lead back to the request
            self._leave(pending)
            self._start_waiting()

        def stop() -> None:
            if not loop.cancel(pending):  # a loop that is blocked never begins it
                leave()

        with self._lock:
            self._enter(pending)
            pending.stop, pending.thread, pending.coroutine = stop, loop.ident, coroutine
        self._wake_clock()
        loop.start(pending, coroutine, ended)

    def _event_loop(self) -> "EventLoopThread":
        from promptkit.server.event_loop import EventLoopThread  # asyncio takes as long to import as we do

        with self._lock:
            if self._loop is None:
                self._loop = EventLoopThread()
            return self._loop

    def _replace_leader(self, pending: PendingRequest) -> None:
        """Let another thread lead; the leader finishes *pending*. The lock is held."""
        if self._next_events is None:  # the thread is the caller's
            return
        before = self._turn
        with suppress(RuntimeError, MemoryError):  # no thread can be started, so everything waits
            self._start_leader()
            pending.thread = before.thread
            self._enter(pending)

    def _enter(self, pending: PendingRequest) -> None:
        """Count code that runs next to the leader. The lock is held."""
        sys.setswitchinterval(_SHARED_INTERVAL_S)
        self._aside[pending] = self._aside.get(pending, 0) + 1
        self._wake_clock()

    def _leave(self, pending: PendingRequest) -> None:
        """Note that code no longer runs next to the leader, if it did."""
        with self._lock:
            count = self._aside.pop(pending, 0)
            if count > 1:
                self._aside[pending] = count - 1
            if not self._aside and self.is_loaded:
                sys.setswitchinterval(self._interval)

    # Requests that wait: for the recipes to be imported, or until fewer requests run next to the leader.

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._line)

    def set_loaded(self) -> None:
        """Let the requests run that wait for the recipes."""
        with self._lock:
            self.is_loaded = True
            if not self._aside:
                sys.setswitchinterval(self._interval)
        self._start_waiting()

    def _wait(self, pending: PendingRequest) -> PendingRequest | None:
        """Let a request wait; return the one that must be refused for it, if any. The lock is held."""
        pending.is_waiting = True
        try:
            evicted = self._line.add(pending)
        except TooManyRequests:
            return pending
        pending.stop = partial(self._stop_waiting, pending)
        self.waiting_changed(1)
        return evicted

    def _stop_waiting(self, pending: PendingRequest) -> None:
        with self._lock:
            self._line.remove(pending)
        self.waiting_changed(-1)

    def _take_waiting(self) -> PendingRequest | None:
        """Take the next request out of the line, if there is room for it."""
        with self._lock:
            while self.is_loaded and len(self._aside) < self._limits.renders:
                if (pending := self._line.pop()) is None:
                    return None
                if not pending.is_answered:  # else its `stop` is being called
                    pending.is_waiting, pending.stop = False, None
                    pending.snapshot = self._snapshot_for(pending.request)
                    self._enter(pending)
                    self.waiting_changed(-1)
                    return pending
        return None

    def _start_waiting(self) -> None:
        """Start a thread for each request that waits and has room."""
        if self.is_loaded:
            for _ in range(min(len(self._line), self._limits.renders - len(self._aside))):
                with suppress(RuntimeError):  # no more threads can be started: the next one that ends runs it
                    DaemonThread(self._run_waiting, "render").start()

    def _run_waiting(self) -> None:
        """Run requests that wait on this thread, while there is room."""
        turn = _Turn()
        with cancelled_by(turn.is_cancelled):
            while (pending := self._take_waiting()) is not None:
                turn.current, pending.thread = pending, turn.thread
                self._wake_clock()
                reply: Reply | None = _failure(pending.request)
                try:
                    reply = reply_to(pending, self._handlers[pending.request.method], self._limits.reply)
                finally:
                    turn.current = None
                    if reply is not None:
                        self._end(pending, reply)
                    self._leave(pending)

    # The clock.

    def _wake_clock(self) -> None:
        if self._clock.is_resting:
            # The request may be over before the clock looks, and the next ones must not wake it again.
            self._active_until = time.monotonic() + _IDLE_S
            if self.guard is not None:  # here, because the code that runs next may keep Python's lock
                self.guard.arm()
            self._clock.wake()

    def _look(self) -> float:
        """Do what is due; return in how many seconds to look again."""
        now = time.monotonic()
        if now >= self._next_deadline:
            self._expire(now)
        current = None if self._next_events is None else self._turn.current
        if current is not None:
            self._active_until = now + _IDLE_S
            if current is self._seen:
                self._replace_stuck(current)
        self._seen = current
        due = TICK_S if now < self._active_until else max(0.0, self._next_deadline - now)
        return due if self.guard is None else min(due, self._look_after(self.guard, now))

    def _replace_stuck(self, pending: PendingRequest) -> None:
        """Let another thread lead if the leader is still in a request, and note that this one is slow."""
        with self._lock:
            if self._turn.current is pending:
                if pending.about is not None:
                    pending.snapshot.slow.add(pending.key)
                self._replace_leader(pending)

    def _look_after(self, guard: Watchdog, now: float) -> float:
        """Re-arm the guard while authors' code may run; return when to do it again."""
        if now < self._active_until or self._aside:
            if now >= self._rearm_at or not guard.is_armed:
                guard.arm()
                self._rearm_at = now + guard.rearm_every
            return max(0.0, self._rearm_at - now)
        guard.disarm()
        return inf

    def _expire(self, now: float) -> None:
        """Answer every request whose deadline has passed."""
        due = [pending for pending in self._open_requests() if pending.deadline <= now]
        for pending in due:
            error = pending.refusal() if pending.refusal else timeout_error(pending, self._importing)
            self._end(pending, pending.error_reply(error))
        with self._lock:
            self._next_deadline = min((one.deadline for one in self._open.values()), default=inf)

    # The end.

    def close(self, grace: float, ended: Callable[[Request], PromptkitError] | None) -> None:
        """
        Answer every request that is open, and end.

        Args:
            grace:
                How long to wait for code that runs, in seconds.

            ended:
                Returns the error for a request that takes longer; None to send nothing.
        """
        deadline = time.monotonic() + grace
        self._end_held()
        while not self._is_settled and time.monotonic() < deadline:
            time.sleep(0.001)
            self._end_held()
        with suppress(IndexError):
            while True:  # no thread is left to handle these
                event = self._events.popleft()
                if isinstance(event, Request):
                    self._send(event.answer(encode_error(event.id, ended(event)) if ended else CANCELLED))
        for pending in self._open_requests():
            self._end(pending, pending.error_reply(ended(pending.request)) if ended else CANCELLED)
        with self._lock:
            loop, self._loop = self._loop, None  # what is still to come starts another
        if loop is not None:
            loop.end()
        self._next_deadline, self._active_until = inf, 0.0
        self._clock.end()

    def _end_held(self) -> None:
        """Answer the requests that wait for their client: it will not act any more."""
        for pending in self._open_requests():
            if pending.is_held:
                self._end(pending, pending.error_reply(pending.refusal()) if pending.refusal else CANCELLED)

    @property
    def _is_settled(self) -> bool:
        """Whether all that was read is answered, and all replies are sent."""
        return not (self._is_busy or self._open or self._events or self._replies or self._sending)

    def _open_requests(self) -> list[PendingRequest]:
        with self._lock:
            return list(self._open.values())


def _failure(request: Request) -> Reply:
    return encode_error(request.id, InternalError(f"{request.method} failed"))


def _no_room(waiting: int) -> TooManyRequests:
    return TooManyRequests(f"{waiting:,} requests wait already, which is the limit: try again later")
