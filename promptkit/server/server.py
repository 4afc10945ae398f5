"""The server: handles the events of clients' connections, and sends the replies."""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import ClassVar, Final, Protocol

from msgspec.json import Decoder

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.skill_access import SkillForm
from promptkit.language.annotations import NO_SCOPES
from promptkit.protocol.capabilities import Capabilities, ServerInfo, ToolMode
from promptkit.protocol.events import ClientResponse, Event, Request
from promptkit.protocol.jsonrpc import InternalError, Reply, encode
from promptkit.protocol.key_ring import RequestStateSigner
from promptkit.protocol.limits import Limits
from promptkit.protocol.pagination import PAGE_SIZE
from promptkit.protocol.revisions import MODERN
from promptkit.protocol.session import Session
from promptkit.server.dispatch import Dispatcher, Handler
from promptkit.server.elicitation import Elicitation
from promptkit.server.identity import UNKNOWN
from promptkit.server.lookup import find_missing_scopes
from promptkit.server.methods import Methods
from promptkit.server.notifier import Notifier, ResourceWatch, Streams, SubscriptionChange
from promptkit.server.pending import PendingRequest
from promptkit.server.snapshot import Snapshot
from promptkit.server.threads import Watchdog
from promptkit.standard_error import say

#: Matches the id of a question that one of several workers has asked.
_QUESTION_ID: Final = re.compile(r"promptkit-(?P<number>\d{1,4})-[0-9a-f]{8}-\d+", re.ASCII)

_decode_from_worker: Final = Decoder(ClientResponse | SubscriptionChange).decode


class Observer(Protocol):
    """An object that is notified of every request, such as `promptkit.server.audit.Audit`."""

    def begin(self, request: Request, catalog: Callable[[], Catalog]) -> Callable[[Reply], object]:
        """
        Record *request*. Return a function that is called once, with the reply, before the reply is sent.

        While recipes are being imported, *catalog* returns an empty catalog.
        """

    def close(self) -> None:
        """Flush all records. This is called after the server has answered every request."""


class Server:
    """
    Answers the requests of one client from a catalog.

    Args:
        catalog:
            The catalog to serve. It is None while the recipes are being imported; requests then wait for
            `load`.

        send:
            A function that sends whole lines. Several threads call it.

        identity:
            The server's identity, which clients show.

        page_size:
            The number of items per page of a list.

        changes:
            Whether clients are notified of the changes that `replace` makes. If not, `replace` should not be
            called, because clients may cache results for a while.

        tools:
            Whether prompts are offered as tools.

        skills_as:
            How skills are offered to clients without the skills extension.

        limits:
            The limits on requests and replies.

        observers:
            The observers of every request, such as an audit log, in this order.

        signer:
            The signer of the ``requestState`` of questions. The default signer has a random key.

        scopes:
            The scopes that are granted to the client.

        watchdog:
            The watchdog, which terminates the process if code never releases the GIL.

        describe_import:
            A function that returns a suffix for error messages, which names the recipe that is being
            imported; ``""`` if no recipe is being imported.

        count_waiting:
            A callback that receives 1 or -1 whenever the number of requests that wait for a free slot
            changes.

    Attributes:
        snapshot:
            The served catalog, with everything that was encoded from it.

        observe:
            A callback that gets each request that is answered before it reaches the server, and the reply.
    """

    #: Whether requests come from many clients.
    has_many_clients: ClassVar = False

    def __init__(  # noqa: PLR0913 (a server has that many properties)
        self,
        catalog: Catalog | None,
        send: Callable[[bytes], None],
        *,
        identity: ServerInfo = UNKNOWN,
        page_size: int = PAGE_SIZE,
        changes: bool = False,
        tools: ToolMode = False,
        skills_as: frozenset[SkillForm] = frozenset(),
        limits: Limits = Limits(),  # noqa: B008 (it is immutable)
        observers: Sequence[Observer] = (),
        signer: RequestStateSigner | None = None,
        scopes: frozenset[str] = frozenset(),
        watchdog: Watchdog | None = None,
        describe_import: Callable[[], str] = str,
        count_waiting: Callable[[int], object] = bool,
    ) -> None:
        self._scopes = scopes
        self._send = send
        self._observers = observers
        visible = Catalog() if catalog is None else self._visible(catalog)
        self.snapshot = Snapshot(visible, identity, page_size, Capabilities(changes, tools, skills_as))
        self._session = Session(identity, self.snapshot.capabilities, limits)
        self.observe = self._session.observe = self._observe_answered if observers else None
        handlers: dict[str, Handler] = {}
        self._dispatcher = Dispatcher(
            handlers,
            self._snapshot_for,
            self._observe,
            self._resume,
            send,
            limits,
            describe_import=describe_import,
            many_clients=self.has_many_clients,
        )
        self._dispatcher.is_loaded = catalog is not None
        self._dispatcher.set_watchdog(watchdog)
        self._dispatcher.count_waiting = count_waiting
        self._notifier = self._make_notifier(send)
        self._elicitation = Elicitation(self._session, self._dispatcher, send, signer=signer)
        self._watch = ResourceWatch(self._catalog_for, self._notifier)
        self._methods = Methods(
            self._dispatcher, self._elicitation, self._notifier, self._watch, send, limits
        )
        handlers.update(self._methods.handlers())

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities that the server declares."""
        return self.snapshot.capabilities

    @property
    def is_reading(self) -> bool:
        """Whether a thread is reading. Reading stops at the end of the input and after too many failures."""
        return self._dispatcher.is_reading

    @property
    def is_idle(self) -> bool:
        """Whether no request has arrived for a second."""
        return self._dispatcher.is_idle

    def receive_data(self, data: bytes) -> None:
        """
        Handle the next bytes of the stream, and send the replies.

        Authors' code blocks the caller while it runs. Time limits only apply with `read_from`.

        Args:
            data:
                Any number of bytes, split anywhere; ``b""`` at the end of the stream.

        Raises:
            Exception: Any exception that *send* raises.
        """
        self._dispatcher.handle_events(self._session.receive_data(data))

    def read_from(self, read: Callable[[], bytes], ended: Callable[[], object]) -> None:
        """
        Start answering the messages that *read* returns, on the server's threads, and return immediately.

        Args:
            read:
                A function that waits for the next bytes and returns them, or returns ``b""`` at the end of
                the input. Only one thread at a time calls it.

            ended:
                A callback for the end of the input.

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
            return self._session.receive_data(data)

        self._dispatcher.start(next_events)

    def replace(self, catalog: Catalog) -> None:
        """
        Serve another catalog from now on, and notify clients of the changes that they can see.

        Pending requests are answered from the old catalog. Resources that were loaded again count as changed,
        because their content is not compared.
        """
        old = self.snapshot
        new = self.snapshot = old.with_catalog(self._visible(catalog))
        if not new.capabilities.changes:
            return

        changed_lists = cache(Snapshot.changed_lists)  # views for different scopes often have the same lists
        for scopes, notifiers in self._notifier.by_scopes.items():
            new_view, old_view = self._view(new, scopes), self._view(old, scopes)
            lists, has_changed = changed_lists(new_view, old_view), new_view.changed_resources(old_view)
            for notifier in notifiers:
                notifier.notify(lists, has_changed)

    def load(self, catalog: Catalog) -> None:
        """Serve the imported catalog, and answer the requests that have waited for it."""
        self.snapshot = self.snapshot.with_catalog(self._visible(catalog))
        self._dispatcher.set_loaded()

    def close(self, grace: float, *, answer_unfinished: bool = True) -> None:
        """
        Answer every pending request, and stop.

        Args:
            grace:
                How long to wait for running prompts, in seconds.

            answer_unfinished:
                Whether to send an error for prompts that take longer than *grace*.
        """
        (modern,) = MODERN.values()
        self._watch.end()
        self._notifier.end(self.snapshot.lowerings[modern].results)
        self._dispatcher.close(grace, _shutdown_error if answer_unfinished else None)

    def _make_notifier(self, send: Callable[[bytes], None]) -> Notifier:
        return Notifier(self._session, send)

    def _visible(self, catalog: Catalog) -> Catalog:
        return catalog.visible_to(self._scopes)

    def _catalog_for(self, scopes: frozenset[str] | None) -> Catalog:
        """Return the catalog that callers with these scopes can see."""
        return (self.snapshot if scopes is None else self._view(self.snapshot, scopes)).catalog

    def _view(self, snapshot: Snapshot, scopes: frozenset[str] | None) -> Snapshot:  # noqa: ARG002
        return snapshot  # it already contains only what the single client can see

    def _snapshot_for(self, request: Request) -> Snapshot:
        snapshot = self.snapshot
        return self._view(snapshot, request.scopes) if snapshot.requirements else snapshot

    def _resume(self, response: ClientResponse) -> tuple[PendingRequest, Handler] | None:
        """
        Return the request whose question a client has answered, and the handler that resumes the request.
        """
        question = self._elicitation.close_question(response)
        if question is None:  # it is not open any more, for example because the deadline has passed
            return None
        return question.pending, partial(self._methods.resume, question, response.result)

    def _observe(self, request: Request) -> None:
        for observer in self._observers:
            request.when_answered(observer.begin(request, lambda: self.snapshot.catalog))

    def _observe_answered(self, request: Request, reply: Reply) -> None:
        """Report a request that the session has answered itself."""
        for observer in self._observers:
            observer.begin(request, lambda: self.snapshot.catalog)(reply)


def _shutdown_error(request: Request) -> InternalError:
    return InternalError(f"the server was shut down before {request.method} was answered")


class SharedServer(Server):
    """
    Answers the requests of many clients. Each request has a channel for its reply.

    Several requests can have the same id. A client's next message, such as the answer to a question, can
    reach another worker, which must pass it on.
    """

    has_many_clients = True

    def join(
        self, number: int = 0, count: int = 1, send: Callable[[int, bytes], object] = lambda *_: None
    ) -> None:
        """
        Make this server one of several workers, which forward messages to each other.

        Call this method before the first request.

        Args:
            number:
                The number of this worker, counting from 0.

            count:
                The number of workers.

            send:
                A function that sends a message to the worker with the given number. That worker must pass it
                to `receive_from_worker`.
        """
        self._number, self._count, self._send_to = number, count, send
        self._question_prefix = f"promptkit-{number}-{os.urandom(4).hex()}-"
        self._elicitation.prefix = self._question_prefix

    def receive_from_worker(self, message: bytes) -> ClientResponse | None:
        """
        Handle a message from another worker. If it answers a question from this worker, return the answer.

        The function that was passed to `handle_from` must then return this answer as an event.
        """
        received = _decode_from_worker(message)
        if isinstance(received, ClientResponse):
            return received
        self._streams.apply(received)
        self._watch.start()
        return None

    def _pass_on(self, change: SubscriptionChange) -> None:
        for number in range(self._count):
            if number != self._number:
                self._send_to(number, encode(change))

    def _resume(self, response: ClientResponse) -> tuple[PendingRequest, Handler] | None:
        asked_by = _QUESTION_ID.fullmatch(str(response.request_id))
        if asked_by is None or str(response.request_id).startswith(self._question_prefix):
            return super()._resume(response)
        number = int(asked_by["number"])
        if number != self._number and number < self._count:
            self._send_to(number, encode(response))
        else:
            say(
                "the answer to a question was dropped, because another process had asked the question: route "
                "all requests of a session to one replica"
            )
        return None

    def _make_notifier(self, send: Callable[[bytes], None]) -> Notifier:
        self._streams = Streams(self._session, send, self._pass_on)
        return self._streams

    def handle_from(self, next_events: Callable[[], Iterable[Event] | None]) -> None:
        """
        Start answering the requests that *next_events* returns, on the server's threads.

        Args:
            next_events:
                A function that waits for requests and returns them, or returns None at the end of the input.
                Only one thread at a time calls it.

        Raises:
            RuntimeError: If no more threads can be started.
        """
        self._dispatcher.start(next_events)

    def drop(self, request: Request) -> None:
        """Cancel a request without a reply. The caller must have marked its channel as gone."""
        self._dispatcher.drop(request)

    def missing_scopes(self, request: Request) -> frozenset[str]:
        """
        Return all scopes that the requested item requires, if the caller lacks some of them.

        The result is empty if the caller has all of them, or if the item does not exist.
        """
        snapshot = self.snapshot
        if not snapshot.requirements:
            return NO_SCOPES
        view = self._view(snapshot, request.scopes)
        return NO_SCOPES if view is snapshot else find_missing_scopes(request, snapshot, view)

    def _visible(self, catalog: Catalog) -> Catalog:
        return catalog  # each client gets its own view

    def _view(self, snapshot: Snapshot, scopes: frozenset[str] | None) -> Snapshot:
        return snapshot.view(self._scopes if scopes is None else scopes)
