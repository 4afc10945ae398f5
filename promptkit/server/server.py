"""Dispatch: what a client sends is answered, in order where that is quick, and else later."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final

from promptkit.catalog.catalog import Catalog
from promptkit.protocol.connection import Connection
from promptkit.protocol.events import Cancelled, Event, Request
from promptkit.protocol.jsonrpc import InternalError, InvalidRequest, encode_error
from promptkit.protocol.limits import PAGE_SIZE, Limits
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.methods import PageKey
from promptkit.protocol.pages import LISTS
from promptkit.protocol.results import Capabilities, Identity
from promptkit.protocol.revisions import MODERN
from promptkit.server.handlers import Handlers
from promptkit.server.scheduling.executor import Executor
from promptkit.server.scheduling.in_flight import InFlight
from promptkit.server.scheduling.kernel_timer import Watchdog
from promptkit.server.scheduling.leader import Shifts, Turn
from promptkit.server.scheduling.switch_interval import Switching
from promptkit.server.scheduling.watchdog import Supervisor
from promptkit.server.snapshot import Snapshot
from promptkit.server.updates import Updates
from promptkit.version import VERSION

if TYPE_CHECKING:
    from promptkit.server.audit import Audit

__all__ = ["Server"]

#: What a server says of itself unless somebody says otherwise.
PROMPTKIT: Final = Identity("promptkit", VERSION)

#: How often to look after a thread that works, in seconds. It is relieved once it has been at
#: one request for that long.
_ROUND: Final = 0.01

#: How often to look while nothing happens but that authors' code goes on, in seconds.
_CALM: Final = 1.0

#: How many rounds to look on when nothing happens any more.
_PATIENCE: Final = 100


class Server:
    """
    Answers one client from a catalog.

    Args:
        catalog:
            What is served.

        send:
            Takes whole lines to be sent. It may be called from several threads.

        identity:
            What the server says of itself.

        page_size:
            How many items a page of a list holds.

        changes:
            Whether clients are told of what `replace` changes. If not, it should not be called:
            they may keep what they were sent for a while.

        limits:
            How much a client may ask for.

        audit:
            Notes every request, if anybody wants to know.

        connection:
            The client, if another server has begun to answer it; a new one otherwise.
    """

    def __init__(  # noqa: PLR0913 (a server has that many properties)
        self,
        catalog: Catalog,
        send: Callable[[bytes], None],
        *,
        identity: Identity = PROMPTKIT,
        page_size: int = PAGE_SIZE,
        changes: bool = False,
        limits: Limits = Limits(),  # noqa: B008 (it cannot be changed)
        audit: "Audit | None" = None,
        connection: Connection | None = None,
    ) -> None:
        self._send = send
        self._audit = audit
        self._identity = identity
        self._page_size = page_size
        snapshot = Snapshot(catalog, identity, page_size, changes=changes)
        self._connection = connection or Connection(identity, limits=limits)
        self._connection.capabilities = snapshot.capabilities
        if audit is not None:
            self._connection.observe = self._note
        self._supervisor = Supervisor(self._look)
        self._in_flight = InFlight(send, self._wake)
        self._executor = Executor(self._in_flight, limits.renders)
        self._handlers = Handlers(
            snapshot,
            self._connection,
            in_flight=self._in_flight,
            executor=self._executor,
            send=send,
            limits=limits,
        )
        self._updates = Updates(
            self._handlers.readings, self._executor, limits.timeout, partial(self._tell, ())
        )
        self._shifts = Shifts(self._follow, send, self._in_flight)
        self._switching: Switching | None = None
        self._seen: Request | None = None
        self._seen_since = 0.0
        self._idle = 0

    @property
    def catalog(self) -> Catalog:
        """
        What is served.
        """
        return self._handlers.snapshot.catalog

    @property
    def capabilities(self) -> Capabilities:
        """
        What it declares that it can do.
        """
        return self._handlers.snapshot.capabilities

    def receive_data(self, data: bytes) -> None:
        """
        Take bytes as they arrive, and send what they are answered with.

        An author's code that takes its time holds up the caller; `read_from` does without.

        Args:
            data:
                Any number of bytes, cut anywhere; ``b""`` says that the stream has ended.

        Raises:
            Exception: Whatever *send* raises.
        """
        self._shifts.work_off(self._connection.receive_data(data))

    def read_from(
        self,
        read: Callable[[], bytes],
        ended: Callable[[], object],
        before: Iterable[Event] = (),
        *,
        owns_process: bool = False,
    ) -> None:
        """
        Answer what *read* returns, on threads of the server's own. Returns at once.

        Args:
            read:
                Returns what has arrived, ``b""`` at the end. It is called by one thread at a
                time.

            ended:
                Called when there is nothing more to read.

            before:
                What is to be done first of all, as it was read already.

            owns_process:
                Whether the process does nothing but serve. Then how often its threads give way is
                adapted to what goes on, and the kernel ends it if Python's lock is held for good.

        Raises:
            RuntimeError: If there can be no more threads.
        """

        def read_on(turn: Turn) -> None:
            data = b"-"
            while data:
                data = read()
                events = self._connection.receive_data(data)
                turn.failures = 0
                if not self._shifts.work_off(events, turn):
                    return
            ended()

        self._handlers.relieved = True
        if owns_process:
            self._supervisor.watchdog = Watchdog()
            self._switching = Switching()
        self._shifts.start(read_on, before)

    @property
    def reads(self) -> bool:
        """
        Whether a thread reads, or is going to. It ends at the end, or if reading fails again and again.
        """
        return self._shifts.staffed

    def replace(self, catalog: Catalog) -> None:
        """
        Serve another catalog from now on, and tell the client what has changed for it.

        Requests that are being answered are answered from the catalog that they found. Resources
        that the client has read are read anew beside the caller, if threads of the server's own read.

        Args:
            catalog:
                What is served.
        """
        handlers, old = self._handlers, self._handlers.snapshot
        changes = old.capabilities.changes
        new = Snapshot(catalog, self._identity, self._page_size, changes=changes, before=old)
        handlers.snapshot = new
        self._connection.capabilities = new.capabilities
        if not new.capabilities.changes:
            return
        lists = {method for method in LISTS if new.differs(old, method)}
        uris, readings = sorted(self._connection.subscriptions.uris), handlers.readings
        if not handlers.relieved:
            self._tell(lists, [uri for uri in uris if readings.is_stale(uri, catalog)])
            return
        self._tell(lists, [uri for uri in uris if uri not in readings])
        self._updates.find(catalog, [uri for uri in uris if uri in readings])
        self._wake()

    def confirm(self, told: Mapping[PageKey, bytes], wrong: Iterable[str] = ()) -> bool:
        """
        Look whether a client was told the truth by whoever answered it before; tell it if not.

        Args:
            told:
                What it was told of lists.

            wrong:
                Lists that are known to be others, by their methods.

        Returns:
            Whether it was.
        """
        snapshot = self._handlers.snapshot
        changed = {question[0] for question, result in told.items() if not snapshot.says(question, result)}
        changed.update(wrong)
        if changed:
            prompts, resources = "prompts/list" in changed, changed != {"prompts/list"}
            with self._handlers.telling:
                told_now = self._connection.subscriptions.correct(prompts=prompts, resources=resources)
                if told_now:
                    self._send(told_now)
        return not changed

    def pages(self) -> Iterator[tuple[PageKey, bytes]]:
        """
        Return every page of every list, as clients of every revision are told.
        """
        return self._handlers.snapshot.pages()

    def _tell(self, lists: Collection[str], stale: Iterable[str] = ()) -> None:
        """
        Tell the client what is no longer as it was: lists, by their methods, and resources.
        """
        subscriptions = self._connection.subscriptions
        changes = []
        if "prompts/list" in lists:
            changes.append(subscriptions.prompts_changed)
        if "resources/list" in lists or "resources/templates/list" in lists:
            changes.append(subscriptions.resources_changed)
        changes += [partial(subscriptions.updated, uri) for uri in stale]
        with self._handlers.telling:
            if told := b"".join(change() for change in changes):
                self._send(told)

    def close(self, grace: float) -> None:
        """
        Say goodbye, and answer every request that is not answered yet.

        Args:
            grace:
                How long the prompts that still run are waited for at most, in seconds.
        """
        deadline = time.monotonic() + grace
        for request in self._shifts.settle(deadline):
            self._send(request.answer(encode_error(request.id, _unfinished(request))))
        (revision,) = MODERN.values()
        with self._handlers.telling:
            results = lowering_for(revision, self._identity).results
            if told := self._connection.subscriptions.end(results):
                self._send(told)
        self._in_flight.close(max(0.0, deadline - time.monotonic()), _unfinished)
        self._executor.end()
        self._supervisor.end()

    def _follow(self, event: Event) -> tuple[Request | None, bytes | None]:
        """
        Do what follows from one event.

        Returns:
            The request that is answered now, if any, and what is sent, if anything.
        """
        question, answer = None, None
        if isinstance(event, Request):
            request = event
            if self._audit is not None:
                request.when_answered(self._audit.begin(request, self.catalog))
            if request.id in self._in_flight.ids:  # later it could be its own: this thread may be relieved
                refused = InvalidRequest(f"id {request.id!r} is in use by a request that still runs")
                return request, encode_error(request.id, refused)
        elif isinstance(event, bytes):
            return None, event
        elif isinstance(event, Cancelled):
            self._in_flight.cancel(event.request_id)
            return None, None
        elif (question := self._handlers.question(event)) is None:  # it was given up at the same moment
            return None, None
        else:
            request, answer = question.request, event.result
        self._shifts.turn.current = request  # from now on somebody looks after this thread
        if self._supervisor.asleep and self._handlers.relieved:
            self._wake()
        if question is None:
            return request, self._handlers.serve(request)
        return request, self._handlers.resume(question, answer)

    def _note(self, request: Request, reply: bytes) -> None:
        """
        Note a request that the connection has answered by itself.
        """
        if self._audit is not None:
            self._audit.begin(request, self.catalog)(reply)

    def _wake(self) -> None:
        """
        Have somebody look, again and again for a while.
        """
        self._idle = 0
        self._supervisor.wake()

    def _look(self) -> float | None:
        """
        Relieve a thread that is stuck, and answer what takes too long.

        Returns:
            In how many seconds to look again; None if there is no reason to.
        """
        now = time.monotonic()
        self._in_flight.expire(now)
        self._executor.look(now)
        self._updates.look(now)
        busy = self._executor.busy
        current = None
        if self._handlers.relieved:
            current = self._shifts.current
        if self._switching is not None:
            self._switching.adapt(busy=busy)
        self._idle = 0 if current is not None else self._idle + 1
        if current is not self._seen:
            self._seen, self._seen_since = current, now
        elif current is not None and now - self._seen_since >= _ROUND * 0.9:
            self._shifts.relieve(current, self._handlers.detach)
        if self._idle < _PATIENCE and self._handlers.relieved:
            return _ROUND
        deadline = self._in_flight.next_deadline
        due = inf if deadline is None else max(0.0, deadline - now)
        if busy:  # authors' code may block an event loop, or come to hold Python's lock, at any time
            watchdog = self._supervisor.watchdog
            due = min(due, _CALM if watchdog is None else watchdog.round)
        return None if due == inf else due


def _unfinished(request: Request) -> InternalError:
    """
    Return what a request is answered with that the end has overtaken.
    """
    return InternalError(f"the server ended before {request.method} was answered")
