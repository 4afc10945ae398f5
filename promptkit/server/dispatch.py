"""
The dispatcher: runs requests on threads, enforces their time limits, and sends exactly one reply to each one.

One thread is the leader. It takes events from a queue, answers requests itself, and reads the next events
when the queue is empty. The clock checks the leader every 5 ms. If the leader is still running the same
request, another thread takes over as the leader. The former leader finishes its request, which from then on
counts towards the limit on renders, and then exits.

Open requests are kept in a table, which a lock protects. A request stays there until the first of these
events determines its reply:

- the leader or a former leader returns a result;
- a coroutine on the event loop finishes;
- the deadline passes, the client cancels the request or disconnects, or the server shuts down.

Later events are ignored. Exceptions are never raised in other threads. Instead, coroutines are cancelled, and
other code continues until it returns, reports progress, or runs a command.
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
from promptkit.language.context import cancelled_by
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
from promptkit.server.pending import PendingRequest, reply_to
from promptkit.server.snapshot import Snapshot
from promptkit.server.threads import Clock, DaemonThread, Watchdog
from promptkit.server.timeouts import timeout_error
from promptkit.server.waiting_queue import WaitingQueue, queue_full_error
from promptkit.standard_error import say

if TYPE_CHECKING:
    from asyncio import Task

    from promptkit.server.event_loop import EventLoopThread

T = TypeVar("T")

#: A function that returns the result of a request as JSON, or None if the reply is sent later.
Handler: TypeAlias = Callable[[PendingRequest], bytes | None]

#: The methods whose requests wait for a free slot. Completion requests do not wait, although they call
#: authors' functions, because late completions are useless.
_RENDERS: Final = frozenset({"prompts/get", "tools/call", "resources/read"})

#: The maximum total number of streams and forms that can be open at the same time.
_MAX_HELD: Final = 1024

#: If a call that was slow the last time takes less than this, in seconds, it no longer counts as slow.
_FAST_S: Final = 0.002

#: The switch interval of the GIL while other threads run alongside the leader, in seconds.
_SHARED_INTERVAL_S: Final = 0.0005

#: Replies that are longer than this, in bytes, are sent immediately. They exceed a pipe's buffer, and several
#: of them would take too much memory.
_UNBUFFERED_BYTES: Final = 1 << 16

#: The maximum number of consecutive read failures, and the delay that each failure adds, in seconds. Reads
#: can fail because memory is short.
_MAX_FAILURES: Final = 10
_RETRY_DELAY_S: Final = 0.01


#: The reply to requests that are still open when the server stops, if the client has disconnected.
_UNANSWERED: Final = Reply(b"", "unanswered")


class _ThreadState:
    """
    The state of one dispatcher thread: the leader, or a thread that runs requests alongside it.

    Attributes:
        event:
            The event that the thread is handling.

        current:
            The request that the thread is running.

        thread:
            The identifier of the thread.
    """

    __slots__ = ("current", "event", "thread")

    def __init__(self) -> None:
        self.event: Event | None = None
        self.current: PendingRequest | None = None
        self.thread = get_ident()

    def is_cancelled(self) -> bool:
        """Return whether the request that the thread is running has already been answered."""
        return self.current is not None and self.current.is_answered


class Dispatcher:
    """
    Dispatches the requests of one client, or of many clients.

    Args:
        handlers:
            The handler of each method.

        snapshot_for:
            A function that returns the snapshot that answers a request.

        observe:
            A callback for each accepted request.

        resume:
            A function that takes a client's response to a question. It returns the request that the question
            was asked for, and a handler that resumes this request; None if the question is no longer open.

        send:
            A function that sends whole lines. Several threads call it.

        limits:
            The limits on how long requests can take, and on the numbers of running and waiting requests.

        describe_import:
            A function that returns a suffix for error messages, which names the recipe that is being
            imported; ``""`` if no recipe is being imported.

        many_clients:
            Whether the requests come from many clients, so that several can have the same id.

    Attributes:
        is_loaded:
            Whether the recipes have been imported. Until then, requests wait.

        count_waiting:
            A callback that receives 1 when a request starts to wait for a free slot, and -1 when it stops
            waiting.
    """

    def __init__(  # noqa: PLR0913, PLR0917 (they are independent)
        self,
        handlers: Mapping[str, Handler],
        snapshot_for: Callable[[Request], Snapshot],
        observe: Callable[[Request], object],
        resume: Callable[[ClientResponse], tuple[PendingRequest, Handler] | None],
        send: Callable[[bytes], None],
        limits: Limits,
        *,
        describe_import: Callable[[], str],
        many_clients: bool,
    ) -> None:
        self.is_loaded = True
        self._describe_import = describe_import
        self.count_waiting: Callable[[int], object] = bool
        self._handlers = handlers
        self._snapshot_for = snapshot_for
        self._observe = observe
        self._resume = resume
        self._send = send
        self._limits = limits
        # Requests of many clients are keyed by object identity, because their ids are not unique.
        self._key: Callable[[Request], RequestId] = id if many_clients else attrgetter("id")
        self._lock = Lock()
        self._open: dict[RequestId, PendingRequest] = {}
        self._held = 0
        self._waiting = WaitingQueue(limits.waiting)
        # The requests that run alongside the leader, each with the number of threads and event loops that run
        # it. That number is two while a thread hands the request over to the event loop.
        self._alongside: dict[PendingRequest, int] = {}
        self._interval = sys.getswitchinterval()
        self._sending = 0  # the number of replies that threads other than the leader are about to send
        self._events: deque[Event] = deque()
        self._replies: list[bytes] = []
        self._is_busy = False
        self._leader_state = _ThreadState()
        self._leader: DaemonThread | None = None
        self._next_events: Callable[[], Iterable[Event] | None] | None = None
        self._loop: EventLoopThread | None = None
        self._clock = Clock(
            self._expire_requests,
            self._find_current_request,
            self._replace_stuck_leader,
            lambda: bool(self._alongside),
        )

    # The leader.

    @property
    def is_reading(self) -> bool:
        """Whether a thread is reading. Reading stops at the end of the input and after too many failures."""
        with self._lock:
            return self._leader is not None and self._leader.is_alive()

    @property
    def is_idle(self) -> bool:
        """Whether no request has arrived for a second."""
        return self._clock.is_resting

    def start(self, next_events: Callable[[], Iterable[Event] | None]) -> None:
        """
        Start the first leader.

        Args:
            next_events:
                A function that waits for events and returns them, or returns None at the end of the input.
                Only one thread at a time calls it.

        Raises:
            RuntimeError: If no more threads can be started.
        """
        self._next_events = next_events
        with self._lock:
            if not self.is_loaded:
                sys.setswitchinterval(_SHARED_INTERVAL_S)
            self._start_leader()

    def handle_events(self, events: Iterable[Event]) -> None:
        """Handle *events* on the calling thread. No other thread takes over as the leader."""
        self._events.extend(events)
        with cancelled_by(self._leader_state.is_cancelled):
            self._handle_queue(self._leader_state)

    def _start_leader(self) -> None:
        """Start a new leader. The caller must hold the lock, which the new thread waits for."""
        state = _ThreadState()
        leader = DaemonThread(self._lead, "leader", state)
        leader.start()
        self._leader_state, self._leader = state, leader

    def _lead(self, state: _ThreadState) -> None:
        with self._lock:
            if self._leader_state is not state:  # another leader has been started since
                return
        state.thread, failures, is_leading = get_ident(), 0, True
        with cancelled_by(state.is_cancelled):
            while is_leading:
                try:
                    self._flush()  # lines that the previous leader has not sent
                    if is_leading := self._handle_queue(state):
                        is_leading, failures = self._read(), 0
                except BaseException as error:  # noqa: BLE001 (such as MemoryError; requests need a reply)
                    failures += 1
                    is_leading = self._recover(state, error) and failures < _MAX_FAILURES
                    time.sleep(failures * _RETRY_DELAY_S)
        self._run_waiting_requests()

    def _read(self) -> bool:
        """Wait for events, and queue them; return False at the end of the input."""
        events = None if self._next_events is None else self._next_events()
        if events is not None:
            self._events.extend(events)
        return events is not None

    def _recover(self, state: _ThreadState, error: BaseException) -> bool:
        """
        Report *error* and answer the failed request, if any. Return whether the thread is still the leader.
        """
        event, state.event = state.event, None
        with self._lock:
            failed, state.current = state.current, None
            if failed is None and isinstance(event, Request):
                failed = self._open.get(self._key(event))
        cause = (
            "a client's message could not be read"
            if event is None
            else "a client's message could not be handled"
        )
        say(f"{cause}: {error!r}")
        if failed is not None:
            self._end(failed, _failure_reply(failed.request))
            self._remove_running_request(failed)
        elif isinstance(event, Request):
            self._send(event.answer(_failure_reply(event)))
        return self._leader_state is state

    def _handle_queue(self, state: _ThreadState) -> bool:
        """Handle the queued events and send the replies. Return whether the thread is still the leader."""
        self._is_busy = True
        events = self._events
        while events:
            event = state.event = events.popleft()
            if isinstance(event, Request):
                if not self._accept(event, state):
                    return False
            elif isinstance(event, Reply):
                self._buffer_or_send(event.line)
            elif isinstance(event, Cancelled):
                self.cancel(event.request_id)
            elif (resumed := self._resume(event)) is not None and not self._run(*resumed, state):
                return False
            state.event = None
        self._flush()
        self._is_busy = False
        return True

    def _accept(self, request: Request, state: _ThreadState) -> bool:
        """Register a request, and run it or let it wait; return whether the thread is still the leader."""
        channel = request.channel
        if channel is not None and channel.gone:
            request.discard()
            return True
        self._observe(request)
        limit = self._limits.timeout
        key, rejected, must_wait = self._key(request), None, False
        with self._lock:
            # Create it under the lock, so that a request that does not wait for the recipes gets a snapshot
            # that contains them.
            pending = PendingRequest(request, self._snapshot_for(request), limit, time.monotonic() + limit)
            is_new = key not in self._open
            if is_new:
                self._open[key] = pending
                if pending.deadline < self._clock.next_deadline:  # noqa: PLR1730 (a call takes longer)
                    self._clock.next_deadline = pending.deadline
                must_wait = not self.is_loaded or (
                    len(self._alongside) >= self._limits.renders and request.method in _RENDERS
                )
                if must_wait:
                    rejected = self._add_waiting_request(pending)
        if not is_new:
            error = InvalidRequest(f"the id {key!r} is already in use by a pending request")
            self._buffer_or_send(request.answer(encode_error(request.id, error)))
            return True
        if channel is not None and channel.gone:  # the client disconnected before the request was registered
            self._end(pending, CANCELLED)
            return True
        if not must_wait:
            return self._run(pending, self._handlers[request.method], state)
        if rejected is not None:
            self._end(rejected, rejected.error_reply(queue_full_error(len(self._waiting))))
        self._clock.wake()
        return True

    def _run(self, pending: PendingRequest, handler: Handler, state: _ThreadState) -> bool:
        """Run a request on the leader's thread; return whether the thread is still the leader."""
        state.current = pending  # from now on, another thread may become the leader
        if self._clock.is_resting and self._next_events is not None:
            self._clock.wake()
        reply = reply_to(pending, handler, self._limits.reply)
        with self._lock:
            state.current = None
            is_leading = self._leader_state is state
            if pending.is_answered:
                reply = None
            elif reply is not None:
                self._close_request(pending)
                self._sending += not is_leading
        if not is_leading:
            self._finish_alongside(pending, reply)
            return False
        if reply is not None:
            if pending.stop is not None:
                self._stop(pending)
            self._buffer_or_send(pending.request.answer(reply))
        return True

    def _finish_alongside(self, pending: PendingRequest, reply: Reply | None) -> None:
        """Send the reply, if any, to a request whose thread is no longer the leader."""
        started = pending.slow_call_started
        if started is not None and time.monotonic() - started < _FAST_S:
            pending.snapshot.slow.discard(pending.key)  # only its first call is slow, or the machine was busy
        try:
            if reply is not None:
                self._stop(pending)
                self._send_reply(pending, reply)
        finally:
            self._remove_running_request(pending)

    def _buffer_or_send(self, line: bytes) -> None:
        """Buffer a line, to send it together with other lines; send a long line immediately."""
        if len(line) > _UNBUFFERED_BYTES:
            self._flush()  # send the line separately, so that it is not copied again
            self._send(line)
        elif line:
            self._replies.append(line)

    def _flush(self) -> None:
        if self._replies:
            try:
                self._send(b"".join(self._replies))
            finally:
                self._replies.clear()  # only now, because `close` waits until the list is empty

    # The table.

    def answer(self, pending: PendingRequest, reply: Reply) -> bool:
        """Send the reply, unless the request has already been answered. Return whether it was sent."""
        with self._lock:
            if pending.is_answered:
                return False
            self._close_request(pending)
            self._sending += 1
        self._send_reply(pending, reply)
        return True

    def cancel(self, key: RequestId) -> None:
        """Cancel the request with this id, if it is open, without a reply."""
        if (pending := self._open.get(key)) is not None:
            self._end(pending, CANCELLED)

    def drop(self, request: Request) -> None:
        """Cancel a request whose client has disconnected."""
        self.cancel(self._key(request))

    def hold(
        self,
        pending: PendingRequest,
        stop: Callable[[], object],
        on_deadline: Callable[[], PromptkitError] | None = None,
        deadline: float = inf,
    ) -> bool:
        """
        Hold a request open for a question or a stream, until its client acts.

        Args:
            pending:
                The request.

            stop:
                A function that is called once if the request is answered before its client acts.

            on_deadline:
                A function that returns the error to send once the deadline has passed.

            deadline:
                The deadline, as a timestamp of `time.monotonic`.

        Returns:
            True, or False if the request has been answered in the meantime.
        """
        with self._lock:
            if pending.is_answered:
                return False
            pending.is_held, pending.stop, pending.on_deadline = True, stop, on_deadline
            pending.deadline = deadline
            self._held += 1
            self._clock.next_deadline = min(self._clock.next_deadline, deadline)
        self._clock.wake()
        return True

    def release(self, pending: PendingRequest) -> bool:
        """Resume a held request with a new deadline; return False if it has been answered."""
        with self._lock:
            if pending.is_answered or not pending.is_held:
                return False
            self._held -= 1
            pending.is_held, pending.stop, pending.on_deadline = False, None, None
        self.set_time_limit(pending, pending.limit)
        return True

    def check_held_limit(self) -> None:
        """Raise TooManyRequests if no more requests can be held open."""
        if self._held >= _MAX_HELD:
            msg = f"{_MAX_HELD:,} streams and forms are open, which is the limit: try again later"
            raise TooManyRequests(msg)

    def _close_request(self, pending: PendingRequest) -> None:
        """Mark a request as answered, and remove it from the table. The caller must hold the lock."""
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
        """Answer a request whose code may still be running, and stop that code if possible."""
        if self.answer(pending, reply):
            self._stop(pending)

    @staticmethod
    def _stop(pending: PendingRequest) -> None:
        """Stop the task, question or stream of an answered request, if any."""
        stop, pending.stop = pending.stop, None
        if stop is not None:
            stop()

    # Requests that run alongside the leader.

    def set_time_limit(self, pending: PendingRequest, seconds: float) -> None:
        """Set the time limit of a request. The time is counted from now on."""
        pending.limit = seconds
        pending.deadline = time.monotonic() + seconds
        self._clock.next_deadline = min(self._clock.next_deadline, pending.deadline)
        self._clock.wake()

    def replace_leader_if_slow(self, pending: PendingRequest) -> None:
        """
        Let another thread become the leader if the function that *pending* calls next was slow the last time.
        """
        slow = pending.snapshot.slow
        if slow and pending.key in slow:
            with self._lock:
                if self._leader_state.current is pending:
                    self._replace_leader(pending)
            pending.slow_call_started = time.monotonic()

    def check_capacity(self) -> None:
        """Raise TooManyRequests if no more requests can run alongside the leader."""
        if len(self._alongside) >= self._limits.renders:
            msg = f"{self._limits.renders} requests are running, which is the limit: try again later"
            raise TooManyRequests(msg)

    def call_on_loop(
        self,
        pending: PendingRequest,
        coroutine: Coroutine[Any, Any, T],
        encode_result: Callable[[Callable[[], T]], bytes],
    ) -> None:
        """
        Answer a request on the event loop.

        Args:
            pending:
                The request.

            coroutine:
                The coroutine to run.

            encode_result:
                A function that encodes the result. It is passed a function that returns what the coroutine
                has returned, or raises the exception that the coroutine has raised.

        Raises:
            RuntimeError: If no more threads can be started.
        """
        try:
            loop = self._event_loop()
        except BaseException:
            coroutine.close()
            raise

        def on_done(task: "Task[T]") -> None:
            try:
                if not pending.is_answered:
                    reply = reply_to(pending, lambda _: encode_result(task.result), self._limits.reply)
                    self.answer(pending, reply or CANCELLED)
                elif not task.cancelled():
                    task.exception()  # otherwise asyncio reports that the exception was never retrieved
            finally:
                finish()

        def finish() -> None:
            pending.stop = pending.coroutine = None  # both reference the request
            self._remove_running_request(pending)
            self._start_waiting_requests()

        def stop() -> None:
            if not loop.cancel(pending):  # the task has not started, and a blocked loop never starts it
                finish()

        with self._lock:
            self._add_running_request(pending)
            pending.stop, pending.thread, pending.coroutine = stop, loop.ident, coroutine
        self._clock.wake()
        loop.start(pending, coroutine, on_done)

    def _event_loop(self) -> "EventLoopThread":
        from promptkit.server.event_loop import EventLoopThread  # importing asyncio is slow

        with self._lock:
            if self._loop is None:
                self._loop = EventLoopThread()
            return self._loop

    def _replace_leader(self, pending: PendingRequest) -> None:
        """Start a new leader; the current one finishes *pending*. The caller must hold the lock."""
        if self._next_events is None:  # `handle_events` runs on the caller's thread
            return
        previous = self._leader_state
        with suppress(RuntimeError, MemoryError):  # if no thread can be started, other requests must wait
            self._start_leader()
            pending.thread = previous.thread
            self._add_running_request(pending)

    def _add_running_request(self, pending: PendingRequest) -> None:
        """Count a request as running alongside the leader. The caller must hold the lock."""
        sys.setswitchinterval(_SHARED_INTERVAL_S)
        self._alongside[pending] = self._alongside.get(pending, 0) + 1
        self._clock.wake()

    def _remove_running_request(self, pending: PendingRequest) -> None:
        """Stop counting a request as running alongside the leader, if it was counted."""
        with self._lock:
            count = self._alongside.pop(pending, 0)
            if count > 1:
                self._alongside[pending] = count - 1
            if not self._alongside and self.is_loaded:
                sys.setswitchinterval(self._interval)

    # Requests that wait for the recipes to be imported, or for a free slot alongside the leader.

    @property
    def waiting_count(self) -> int:
        """The number of waiting requests."""
        return len(self._waiting)

    def set_loaded(self) -> None:
        """Record that the recipes have been imported, and run the requests that waited for them."""
        with self._lock:
            self.is_loaded = True
            if not self._alongside:
                sys.setswitchinterval(self._interval)
        self._start_waiting_requests()

    def _add_waiting_request(self, pending: PendingRequest) -> PendingRequest | None:
        """
        Queue a request. If the queue is full, return the request to reject, which may be the same one.

        The caller must hold the lock.
        """
        pending.is_waiting = True
        try:
            evicted = self._waiting.add(pending)
        except TooManyRequests:
            return pending
        pending.stop = partial(self._remove_waiting_request, pending)
        self.count_waiting(1)
        return evicted

    def _remove_waiting_request(self, pending: PendingRequest) -> None:
        with self._lock:
            self._waiting.remove(pending)
        self.count_waiting(-1)

    def _pop_waiting_request(self) -> PendingRequest | None:
        """Remove the next waiting request, if there is a free slot, and count it as running."""
        with self._lock:
            while self.is_loaded and len(self._alongside) < self._limits.renders:
                if (pending := self._waiting.pop()) is None:
                    return None
                if not pending.is_answered:  # otherwise another thread is calling its `stop`
                    pending.is_waiting, pending.stop = False, None
                    pending.snapshot = self._snapshot_for(pending.request)
                    self._add_running_request(pending)
                    self.count_waiting(-1)
                    return pending
        return None

    def _start_waiting_requests(self) -> None:
        """Start a thread for each waiting request for which there is a free slot."""
        if self.is_loaded:
            for _ in range(min(len(self._waiting), self._limits.renders - len(self._alongside))):
                with suppress(RuntimeError):  # the next thread that finishes runs the request
                    DaemonThread(self._run_waiting_requests, "render").start()

    def _run_waiting_requests(self) -> None:
        """Run waiting requests on this thread as long as there are free slots."""
        state = _ThreadState()
        with cancelled_by(state.is_cancelled):
            while (pending := self._pop_waiting_request()) is not None:
                state.current, pending.thread = pending, state.thread
                self._clock.wake()
                reply: Reply | None = _failure_reply(pending.request)
                try:
                    reply = reply_to(pending, self._handlers[pending.request.method], self._limits.reply)
                finally:
                    state.current = None
                    if reply is not None:
                        self._end(pending, reply)
                    self._remove_running_request(pending)

    # The clock.

    def set_watchdog(self, watchdog: Watchdog | None) -> None:
        """Keep re-arming *watchdog* as long as threads can run. None means that there is no watchdog."""
        self._clock.watchdog = watchdog

    def _find_current_request(self) -> PendingRequest | None:
        """
        Return the request that the leader is running; None if there is none, or if no thread can take over.
        """
        return None if self._next_events is None else self._leader_state.current

    def _replace_stuck_leader(self, pending: PendingRequest) -> None:
        """If the leader is still running the request, replace the leader, and record the call as slow."""
        with self._lock:
            if self._leader_state.current is pending:
                if pending.item is not None:
                    pending.snapshot.slow.add(pending.key)
                self._replace_leader(pending)

    def _expire_requests(self, now: float) -> None:
        """Answer every request whose deadline has passed."""
        due = [pending for pending in self._open_requests() if pending.deadline <= now]
        for pending in due:
            error = (
                pending.on_deadline()
                if pending.on_deadline
                else timeout_error(pending, self._describe_import)
            )
            self._end(pending, pending.error_reply(error))
        with self._lock:
            deadlines = (pending.deadline for pending in self._open.values())
            self._clock.next_deadline = min(deadlines, default=inf)

    # Shutdown.

    def close(self, grace: float, shutdown_error: Callable[[Request], PromptkitError] | None) -> None:
        """
        Answer every open request, and stop all threads.

        Args:
            grace:
                How long to wait for running code, in seconds.

            shutdown_error:
                A function that returns the error for a request that takes longer than *grace*. If it is None,
                such requests do not get a reply.
        """
        deadline = time.monotonic() + grace
        self._end_held_requests()
        while not self._is_drained and time.monotonic() < deadline:
            time.sleep(0.001)
            self._end_held_requests()
        with suppress(IndexError):
            while True:  # there is no thread left that could handle these events
                event = self._events.popleft()
                if isinstance(event, Request):
                    reply = encode_error(event.id, shutdown_error(event)) if shutdown_error else _UNANSWERED
                    self._send(event.answer(reply))
        unanswered = self._open_requests()
        if unanswered and not self.is_loaded and shutdown_error is None:
            progress = self._describe_import()
            say(f"the input ended while recipes were being imported{progress}; to wait longer, raise --grace")
        for pending in unanswered:
            reply = pending.error_reply(shutdown_error(pending.request)) if shutdown_error else _UNANSWERED
            self._end(pending, reply)
        with self._lock:
            loop, self._loop = self._loop, None  # later requests start a new loop
        if loop is not None:
            loop.end()
        self._clock.end()

    def _end_held_requests(self) -> None:
        """Answer the held requests, because their clients can no longer act."""
        for pending in self._open_requests():
            if pending.is_held:
                on_deadline = pending.on_deadline
                self._end(pending, pending.error_reply(on_deadline()) if on_deadline else CANCELLED)

    @property
    def _is_drained(self) -> bool:
        """Whether all events are handled, all requests are answered, and all replies are sent."""
        return not (self._is_busy or self._open or self._events or self._replies or self._sending)

    def _open_requests(self) -> list[PendingRequest]:
        with self._lock:
            return list(self._open.values())


def _failure_reply(request: Request) -> Reply:
    return encode_error(request.id, InternalError(f"{request.method} failed"))
