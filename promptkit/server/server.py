"""The server: each event of one client's connection is handled, and the replies are sent."""

import sys
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, partial
from math import inf
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

from promptkit.catalog.catalog import Catalog
from promptkit.protocol.capabilities import Capabilities, ServerInfo, ToolMode
from promptkit.protocol.connection import Connection
from promptkit.protocol.events import ClientResponse, Event, Request
from promptkit.protocol.jsonrpc import InternalError, InvalidRequest, encode_error
from promptkit.protocol.limits import PAGE_SIZE, Limits
from promptkit.protocol.revisions import MODERN
from promptkit.server.completion import CompletionMethod
from promptkit.server.elicitation import Elicitation
from promptkit.server.exchange import Exchange
from promptkit.server.notifier import Notifier, Streams
from promptkit.server.prompts import PromptMethods
from promptkit.server.rate_limit import TokenBuckets
from promptkit.server.replies import reply_to
from promptkit.server.resources import ResourceMethods
from promptkit.server.scheduling.executor import Executor
from promptkit.server.scheduling.in_flight import InFlight
from promptkit.server.scheduling.leader import LeaderFollowers, Leadership
from promptkit.server.scheduling.watchdog import KernelTimer, Watchdog
from promptkit.server.snapshot import Snapshot
from promptkit.version import VERSION

if TYPE_CHECKING:
    from promptkit.protocol.key_ring import RequestStateSigner
    from promptkit.server.observers import Observer

__all__ = ["Server"]

#: What a server is called unless its author says otherwise.
PROMPTKIT: Final = ServerInfo("promptkit", VERSION)

#: Takes a request; returns the result as JSON, or None if it comes later.
Handler: TypeAlias = Callable[[Exchange], bytes | None]


class Server:
    """
    Answers one client from a catalog.

    Args:
        catalog:
            What is served. As a snapshot, it may be one that is not whole yet: then `complete` follows.

        send:
            Takes whole lines to be sent. It may be called from several threads.

        identity:
            The server's name and version.

        page_size:
            How many items a page of a list holds.

        changes:
            Whether clients are notified of what `replace` changes. If not, it should not be called:
            they may keep what they were sent for a while.

        tools:
            Whether prompts are offered as tools.

        limits:
            How much a client may ask for.

        observers:
            What is notified of every request, such as an audit, in this order.

        connection:
            The client, if some of its messages were handled before; a new one otherwise.

        signer:
            Signs the ``requestState`` of questions; by default one whose key nobody else has.

        scopes:
            What the client may do. A snapshot shows it no more than that already.

    Attributes:
        snapshot:
            What is served, with everything that was encoded from it.
    """

    #: Whether requests come from many clients, each of which sends single ones.
    has_many_clients: ClassVar = False

    def __init__(  # noqa: PLR0913 (a server has that many properties)
        self,
        catalog: Catalog | Snapshot,
        send: Callable[[bytes], None],
        *,
        identity: ServerInfo = PROMPTKIT,
        page_size: int = PAGE_SIZE,
        changes: bool = False,
        tools: ToolMode = False,
        limits: Limits = Limits(),  # noqa: B008 (it cannot be changed)
        observers: "Sequence[Observer]" = (),
        connection: Connection | None = None,
        signer: "RequestStateSigner | None" = None,
        scopes: frozenset[str] = frozenset(),
    ) -> None:
        self._scopes = scopes
        self._send = send
        self._observers = observers
        self._longest_reply = limits.reply
        if isinstance(catalog, Catalog):
            catalog = Snapshot(self._visible(catalog), identity, page_size, changes=changes, tools=tools)
        self.snapshot = catalog
        self._connection = connection or Connection(identity, limits=limits)
        self._connection.capabilities = self.snapshot.capabilities
        if observers:
            self._connection.observe = self._note
        self._in_flight = InFlight(send, many_clients=self.has_many_clients)
        self._executor = Executor(self._in_flight, limits)
        self._leader_followers = LeaderFollowers(self._handle, send, self._in_flight, self._executor)
        self._watchdog = Watchdog(self._leader_followers, self._in_flight, self._executor)
        self._in_flight.timed = self._watchdog.wake
        self._notifier = (Streams if self.has_many_clients else Notifier)(self._connection, send)
        self._elicitation = Elicitation(self._connection, self._in_flight, send, signer=signer)
        self._prompts = PromptMethods(self._executor, self._elicitation, send, limits)
        resources = ResourceMethods(self._executor, self._notifier, self._in_flight)
        self._handlers = _handlers_of(self._executor, self._prompts, resources, limits)

    @property
    def capabilities(self) -> Capabilities:
        """What the server declares that it can do."""
        return self.snapshot.capabilities

    @property
    def reads(self) -> bool:
        """Whether a thread reads. It ends at the end of the input, or if reading fails again and again."""
        return self._leader_followers.is_led

    def receive_data(self, data: bytes) -> None:
        """
        Take bytes as they arrive, and send the replies.

        An author's code that takes its time holds up the caller; with `read_from` it does not.

        Args:
            data:
                Any number of bytes, cut anywhere; ``b""`` says that the stream has ended.

        Raises:
            Exception: Whatever *send* raises.
        """
        self._leader_followers.handle_events(self._connection.receive_data(data))

    def read_from(
        self,
        read: Callable[[], bytes],
        ended: Callable[[], object],
        events: Iterable[Event] = (),
        *,
        ends_process: bool = False,
    ) -> None:
        """
        Answer what *read* returns, on threads of the server's own. Returns at once.

        Args:
            read:
                Returns what has arrived, ``b""`` at the end. It is called by one thread at a
                time.

            ended:
                Called when there is nothing more to read.

            events:
                What the connection has received already, and nobody has answered.

            ends_process:
                Whether the kernel ends the process if Python's lock is never given back, as nothing but
                this server is lost then. Windows cannot.

        Raises:
            RuntimeError: If there can be no more threads.
        """
        receive, handle = self._connection.receive_data, self._leader_followers.handle_events

        def read_on(leadership: Leadership) -> None:
            data = b"-"
            while data:
                data = read()
                received = receive(data)
                leadership.failures = 0
                if not handle(received, leadership):
                    return
            ended()

        if ends_process and sys.platform != "win32":
            self._watchdog.kernel_timer = KernelTimer()
        self._leader_followers.start(read_on, events)

    def replace(self, catalog: Catalog) -> None:
        """
        Serve another catalog from now on, and tell the client what has changed for it.

        Requests that are being answered are answered from the catalog that they found. Whether a
        resource holds something else is not known: those may have that were loaded anew.

        Args:
            catalog:
                What is served.
        """
        old = self.snapshot
        new = self._serve(catalog, old)
        if not new.capabilities.changes:
            return

        changed_lists = cache(Snapshot.changed_lists)  # clients with other scopes often see the same
        for scopes, notifiers in self._notifier.by_scopes.items():
            seen, before = self._view(new, scopes), self._view(old, scopes)
            lists, is_changed = changed_lists(seen, before), seen.changed_resources(before)
            for notifier in notifiers:
                notifier.tell(lists, is_changed)

    def complete(self, catalog: Catalog) -> None:
        """
        Serve the whole catalog from now on, of which a snapshot was served before. No client is notified.

        Args:
            catalog:
                What is served.
        """
        self._serve(catalog)

    def correct(self, lists: Collection[str]) -> None:
        """Tell the client of *lists*, by their methods, that were wrong when it was sent them."""
        self._notifier.correct(lists)

    def close(self, grace: float, *, answer_rest: bool = True) -> None:
        """
        Answer every request that is not answered yet, and end.

        Args:
            grace:
                How long to wait for prompts that still run, in seconds.

            answer_rest:
                Whether a prompt that takes longer is answered, with an error.
        """
        deadline = time.monotonic() + grace
        for request in self._leader_followers.drain(deadline):
            self._send(request.answer(encode_error(request.id, _ended_before(request))))
        (modern,) = MODERN.values()
        self._notifier.end(self.snapshot.lowerings[modern].results)
        self._in_flight.close(max(0.0, deadline - time.monotonic()), _ended_before if answer_rest else None)
        self._executor.end()
        self._watchdog.end()

    def _serve(self, catalog: Catalog, before: Snapshot | None = None) -> Snapshot:
        self.snapshot = self.snapshot.replaced_by(self._visible(catalog), before)
        self._connection.capabilities = self.snapshot.capabilities
        return self.snapshot

    def _visible(self, catalog: Catalog) -> Catalog:
        return catalog.visible_to(self._scopes)

    def _view(self, snapshot: Snapshot, scopes: frozenset[str] | None) -> Snapshot:  # noqa: ARG002
        return snapshot  # it shows what the only client may see

    def _handle(self, event: Event, view: Snapshot | None = None) -> tuple[Exchange | None, bytes | None]:
        """Handle one event, as `LeaderFollowers` wants it. A request may be about a *view*."""
        if isinstance(event, Request):
            exchange = Exchange(event, view or self.snapshot)
            for observer in self._observers:
                event.when_answered(observer.begin(event, self.snapshot.catalog))
            # Once the thread may be relieved, its own request may be in this table.
            if event.id in self._in_flight.ids:
                refused = InvalidRequest(f"id {event.id!r} is in use by a request that still runs")
                return exchange, encode_error(event.id, refused)
            handler = self._handlers[event.method]
        elif isinstance(event, bytes):
            return None, event
        elif isinstance(event, ClientResponse):
            question = self._elicitation.answered(event.request_id)
            if question is None:  # its deadline passed at the same moment
                return None, None
            exchange, handler = question.exchange, partial(self._prompts.resume, question, event.result)
        else:
            self._in_flight.cancel(event.request_id)
            return None, None
        self._leader_followers.leadership.current = exchange  # from now on this thread may be relieved
        if self._watchdog.asleep and self._executor.relieves:
            self._watchdog.wake()
        return exchange, reply_to(exchange, handler, self._longest_reply)

    def _note(self, request: Request, reply: bytes) -> None:
        """Note a request that the connection has answered by itself."""
        for observer in self._observers:
            observer.begin(request, self.snapshot.catalog)(reply)


def _handlers_of(
    executor: Executor, prompts: PromptMethods, resources: ResourceMethods, limits: Limits
) -> dict[str, Handler]:
    """What answers each method, as often as the limits allow."""
    handlers: dict[str, Handler] = {
        "prompts/get": prompts.get,
        "prompts/list": _list,
        "resources/list": _list,
        "resources/templates/list": _list,
        "tools/list": _list,
        "skills/list": _list,
        "tools/call": prompts.call,
        "completion/complete": CompletionMethod(executor, limits.completions).complete,
        "resources/read": resources.read,
        "resources/subscribe": resources.subscribe,
        "resources/unsubscribe": resources.unsubscribe,
        "subscriptions/listen": resources.listen,
        "skills/get": _ask_of_skills,
        "resources/directory/read": _ask_of_skills,
    }
    if limits.rate == inf:
        return handlers
    buckets = TokenBuckets(limits.rate, "requests")

    def limited(exchange: Exchange) -> bytes | None:
        buckets.take(exchange.request.subject)
        return handlers[exchange.request.method](exchange)

    return dict.fromkeys(handlers, limited)


def _list(exchange: Exchange) -> bytes:
    request = exchange.request
    return exchange.snapshot.page(request.method, request.revision, request.params.cursor)


def _ask_of_skills(exchange: Exchange) -> bytes:
    from promptkit.server.skills import METHODS  # most servers have none

    return METHODS[exchange.request.method](exchange)


def _ended_before(request: Request) -> InternalError:
    return InternalError(f"the server ended before {request.method} was answered")
