"""The server: each event of one client's connection is handled, and the replies are sent."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from math import inf
from typing import TYPE_CHECKING, ClassVar, Final

from promptkit.catalog.catalog import Catalog
from promptkit.language.annotations import NO_SCOPES
from promptkit.protocol.capabilities import Capabilities, ServerInfo, ToolMode
from promptkit.protocol.connection import Connection
from promptkit.protocol.events import ClientResponse, Event, Request
from promptkit.protocol.jsonrpc import InternalError, Reply
from promptkit.protocol.limits import PAGE_SIZE, Limits
from promptkit.protocol.revisions import MODERN
from promptkit.protocol.session import Observe
from promptkit.server.completion_requests import CompletionMethod
from promptkit.server.dispatch import Dispatcher, Handler
from promptkit.server.elicitation import Elicitation
from promptkit.server.lookup import unmet_scopes
from promptkit.server.notifier import Notifier, Streams
from promptkit.server.pending import PendingRequest
from promptkit.server.prompts import PromptMethods
from promptkit.server.request_limits import TokenBuckets
from promptkit.server.resources import ResourceMethods
from promptkit.server.skills import METHODS as SKILL_HANDLERS
from promptkit.server.snapshot import Snapshot
from promptkit.server.threads import Watchdog
from promptkit.version import VERSION

if TYPE_CHECKING:
    from promptkit.protocol.key_ring import RequestStateSigner
    from promptkit.server.observers import Observer

#: What a server is called unless its author says otherwise.
PROMPTKIT: Final = ServerInfo("promptkit", VERSION)


class Server:
    """
    Answers one client from a catalog.

    Args:
        catalog:
            The catalog to serve; None if it is still being imported. Then requests wait for `load`.

        send:
            Takes whole lines to be sent. Several threads call it.

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

        signer:
            Signs the ``requestState`` of questions; by default one whose key nobody else has.

        scopes:
            What the client may do.

        guard:
            Ends the process if code never returns Python's lock.

        importing:
            Returns which recipe is being imported, for the error of a request that waited too long.

        waiting_changed:
            Called with 1 or -1 whenever the number of requests that wait until fewer prompts run changes.

    Attributes:
        snapshot:
            What is served, with everything that was encoded from it.
    """

    #: Whether requests come from many clients, each of which sends single ones.
    has_many_clients: ClassVar = False

    def __init__(  # noqa: PLR0913 (a server has that many properties)
        self,
        catalog: Catalog | None,
        send: Callable[[bytes], None],
        *,
        identity: ServerInfo = PROMPTKIT,
        page_size: int = PAGE_SIZE,
        changes: bool = False,
        tools: ToolMode = False,
        limits: Limits = Limits(),  # noqa: B008 (it cannot be changed)
        observers: "Sequence[Observer]" = (),
        signer: "RequestStateSigner | None" = None,
        scopes: frozenset[str] = frozenset(),
        guard: Watchdog | None = None,
        importing: Callable[[], str] = str,
        waiting_changed: Callable[[int], object] = bool,
    ) -> None:
        self._scopes = scopes
        self._send = send
        self._observers = observers
        visible = Catalog() if catalog is None else self._visible(catalog)
        self.snapshot = Snapshot(visible, identity, page_size, changes=changes, tools=tools)
        self._connection = Connection(identity, self.snapshot.capabilities, limits)
        if observers:
            self._connection.observe = self._note
        handlers: dict[str, Handler] = {}
        self._dispatcher = Dispatcher(
            handlers,
            self._snapshot_for,
            self._observe,
            self._resume,
            send,
            limits,
            importing=importing,
            many_clients=self.has_many_clients,
        )
        self._dispatcher.is_loaded = catalog is not None
        self._dispatcher.guard = guard
        self._dispatcher.waiting_changed = waiting_changed
        self._notifier = (Streams if self.has_many_clients else Notifier)(self._connection, send)
        self._elicitation = Elicitation(self._connection, self._dispatcher, send, signer=signer)
        self._prompts = PromptMethods(self._dispatcher, self._elicitation, send, limits)
        resources = ResourceMethods(self._dispatcher, self._notifier)
        completion = CompletionMethod(self._dispatcher, limits.completions)
        handlers.update(_limited(_handlers_of(self._prompts, resources, completion), limits.rate))

    @property
    def capabilities(self) -> Capabilities:
        """What the server declares that it can do."""
        return self.snapshot.capabilities

    @property
    def is_reading(self) -> bool:
        """Whether a thread reads. It ends at the end of the input, or if reading fails again and again."""
        return self._dispatcher.is_reading

    @property
    def is_idle(self) -> bool:
        """Whether no request has come for a second."""
        return self._dispatcher.is_idle

    def receive_data(self, data: bytes) -> None:
        """
        Take bytes as they arrive, and send the replies.

        An author's code that takes its time holds up the caller, and no time limit ends it: with `read_from`
        neither is so.

        Args:
            data:
                Any number of bytes, cut anywhere; ``b""`` says that the stream has ended.

        Raises:
            Exception: Whatever *send* raises.
        """
        self._dispatcher.handle_events(self._connection.receive_data(data))

    def read_from(self, read: Callable[[], bytes], ended: Callable[[], object]) -> None:
        """
        Answer what *read* returns, on threads of the server's own. Returns at once.

        Args:
            read:
                Returns what has arrived, ``b""`` at the end. One thread at a time calls it.

            ended:
                Called when there is nothing more to read.

        Raises:
            RuntimeError: If no more threads can be started.
        """
        data = b"-"

        def next_events() -> Iterable[Event] | None:
            nonlocal data
            if not data:
                ended()
                return None
            data = read()
            return self._connection.receive_data(data)

        self._dispatcher.start(next_events)

    def replace(self, catalog: Catalog) -> None:
        """
        Serve another catalog from now on, and notify the client of what has changed for it.

        Requests that are being answered are answered from the catalog that they found. Whether the content
        of a resource has changed is not known: those that were loaded again may have other content.

        Args:
            catalog:
                The catalog to serve.
        """
        old = self.snapshot
        new = self.snapshot = old.replaced_by(self._visible(catalog), old)
        if not new.capabilities.changes:
            return

        changed_lists = cache(Snapshot.changed_lists)  # clients with other scopes often see the same
        for scopes, notifiers in self._notifier.by_scopes.items():
            seen, before = self._view(new, scopes), self._view(old, scopes)
            lists, is_changed = changed_lists(seen, before), seen.changed_resources(before)
            for notifier in notifiers:
                notifier.tell(lists, is_changed)

    def load(self, catalog: Catalog) -> None:
        """
        Serve a catalog that was being imported until now, and answer the requests that waited for it.

        Args:
            catalog:
                The catalog to serve.
        """
        self.snapshot = self.snapshot.replaced_by(self._visible(catalog))
        self._dispatcher.set_loaded()

    def close(self, grace: float, *, answer_rest: bool = True) -> None:
        """
        Answer every request that is not answered yet, and end.

        Args:
            grace:
                How long to wait for prompts that still run, in seconds.

            answer_rest:
                Whether a prompt that takes longer is answered, with an error.
        """
        (modern,) = MODERN.values()
        self._notifier.end(self.snapshot.lowerings[modern].results)
        self._dispatcher.close(grace, _ended_before if answer_rest else None)

    def _visible(self, catalog: Catalog) -> Catalog:
        return catalog.visible_to(self._scopes)

    def _view(self, snapshot: Snapshot, scopes: frozenset[str] | None) -> Snapshot:  # noqa: ARG002
        return snapshot  # it shows what the only client may see

    def _snapshot_for(self, request: Request) -> Snapshot:  # noqa: ARG002
        return self.snapshot

    def _resume(self, response: ClientResponse) -> tuple[PendingRequest, Handler] | None:
        """Return the request whose question a client has answered, and its handler from now on."""
        question = self._elicitation.answered(response.request_id)
        if question is None:  # its deadline passed at the same moment
            return None
        return question.pending, partial(self._prompts.resume, question, response.result)

    def _observe(self, request: Request) -> None:
        for observer in self._observers:
            request.when_answered(observer.begin(request, self._served))

    def _note(self, request: Request, reply: Reply) -> None:
        """Note a request that the connection has answered by itself."""
        for observer in self._observers:
            observer.begin(request, self._served)(reply)

    def _served(self) -> Catalog:
        return self.snapshot.catalog


def _handlers_of(
    prompts: PromptMethods, resources: ResourceMethods, completion: CompletionMethod
) -> dict[str, Handler]:
    """What answers each method."""
    return {
        "prompts/get": prompts.get,
        "prompts/list": _list,
        "resources/list": _list,
        "resources/templates/list": _list,
        "tools/list": _list,
        "skills/list": _list,
        "tools/call": prompts.call,
        "completion/complete": completion.complete,
        "resources/read": resources.read,
        "resources/subscribe": resources.subscribe,
        "resources/unsubscribe": resources.unsubscribe,
        "subscriptions/listen": resources.listen,
        **SKILL_HANDLERS,
    }


def _limited(handlers: dict[str, Handler], rate: float) -> dict[str, Handler]:
    """The same, as often as a rate allows."""
    if rate == inf:
        return handlers
    buckets = TokenBuckets(rate, "requests")

    def limited(pending: PendingRequest) -> bytes | None:
        buckets.take(pending.request.subject)
        return handlers[pending.request.method](pending)

    return dict.fromkeys(handlers, limited)


def _list(pending: PendingRequest) -> bytes:
    request = pending.request
    return pending.snapshot.page(request.method, request.revision, request.params.cursor)


def _ended_before(request: Request) -> InternalError:
    return InternalError(f"the server ended before {request.method} was answered")


class SharedServer(Server):
    """
    Answers many clients from a catalog. Each request has a channel, to which its reply goes.

    Several requests may have the same id. No client has a session in which it could be asked or notified.
    """

    has_many_clients = True

    @property
    def observe(self) -> Observe | None:
        """What has to be called with each request that never reaches the server, and its reply."""
        return self._connection.observe

    def handle_from(self, next_events: Callable[[], Iterable[Event] | None]) -> None:
        """
        Answer the requests that *next_events* returns, on threads of the server's own. Returns at once.

        Args:
            next_events:
                Waits for requests; returns None at the end. One thread at a time calls it.

        Raises:
            RuntimeError: If there can be no more threads.
        """
        self._dispatcher.start(next_events)

    def drop(self, request: Request) -> None:
        """
        Stop the work on a request, and send no reply. Its channel has to be marked as gone before.
        """
        self._dispatcher.drop(request)

    def scopes_lacking(self, request: Request) -> frozenset[str]:
        """
        Return all scopes of what a request is about, if it exists, and its sender does not have them.
        """
        whole = self.snapshot
        if not whole.requirements:
            return NO_SCOPES
        view = self._view(whole, request.scopes)
        return NO_SCOPES if view is whole else unmet_scopes(request, whole, view)

    def _visible(self, catalog: Catalog) -> Catalog:
        return catalog  # each client has a view of it

    def _view(self, snapshot: Snapshot, scopes: frozenset[str] | None) -> Snapshot:
        return snapshot.view(self._scopes if scopes is None else scopes)

    def _snapshot_for(self, request: Request) -> Snapshot:
        snapshot = self.snapshot
        return self._view(snapshot, request.scopes) if snapshot.requirements else snapshot
