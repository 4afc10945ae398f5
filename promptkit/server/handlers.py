"""The table of methods: what answers each request of one client."""

from collections.abc import Callable
from math import inf
from threading import Lock
from typing import TYPE_CHECKING, Any

from promptkit.protocol.connection import Connection
from promptkit.protocol.events import ClientResponse
from promptkit.protocol.limits import Limits
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.revisions import REVISIONS
from promptkit.server.calls import Calls
from promptkit.server.exchange import Exchange
from promptkit.server.methods.prompts import PromptMethods
from promptkit.server.notifier import Notifier
from promptkit.server.scheduling.in_flight import InFlight

if TYPE_CHECKING:
    from promptkit.protocol.key_ring import RequestStateSigner
    from promptkit.server.elicitation.elicitation import Elicitation, Question
    from promptkit.server.methods.tools import ToolMethods
    from promptkit.server.read_history import ReadHistories

__all__ = ["Handlers"]

#: Takes a request; returns the result as JSON, or None if it comes later.
Handler = Callable[[Exchange], bytes | None]


class Handlers:
    """
    Finds what answers a request.

    Args:
        connection:
            The client.

        calls:
            Calls authors' functions.

        notifier:
            Tells the client of changes.

        in_flight:
            Where requests go that are answered later.

        send:
            Takes whole lines to be sent. It may be called from several threads.

        limits:
            How much is done, and how often.

        signer:
            Signs the ``requestState`` of questions.

    Attributes:
        by_method:
            What answers each method.
    """

    def __init__(  # noqa: PLR0913 (these are what a request is answered with)
        self,
        connection: Connection,
        calls: Calls,
        notifier: Notifier,
        *,
        in_flight: InFlight,
        send: Callable[[bytes], None],
        limits: Limits,
        signer: "RequestStateSigner | None" = None,
    ) -> None:
        self._signer = signer
        self._connection = connection
        self._calls = calls
        self._notifier = notifier
        self._in_flight = in_flight
        self._send = send
        self._limits = limits
        self._lowerings = {
            revision: lowering_for(revision, connection.server_info) for revision in REVISIONS.values()
        }
        self._prompts = PromptMethods(calls, self._elicitation, self._lowerings, send, limits)
        self._made_tools: ToolMethods | None = None
        self._made_elicitation: Elicitation | None = None
        self._made_read_histories: ReadHistories | None = None
        self._is_loaded = False
        self._lock = Lock()
        self._methods: dict[str, Handler] = {
            "prompts/get": self._prompts.get,
            "prompts/list": _list,
            "resources/list": _list,
            "resources/templates/list": _list,
            "tools/list": _list,
            "tools/call": self._call_tool,
            "completion/complete": self._load,
            "resources/read": self._load,
            "resources/subscribe": self._load,
            "resources/unsubscribe": self._load,
            "subscriptions/listen": self._load,
        }
        self.by_method = self._methods if limits.rate == inf else self._limited(limits.rate)

    @property
    def read_histories(self) -> "ReadHistories":
        """What clients have read of resources."""
        from promptkit.server.read_history import ReadHistories  # many clients read none

        with self._lock:
            if self._made_read_histories is None:
                self._made_read_histories = ReadHistories()
            return self._made_read_histories

    def answered_question(self, response: ClientResponse) -> "Question | None":
        """Return the question that *response* answers; None if it is not open any more."""
        return self._elicitation().answered(response.request_id)

    def resumed(self, question: "Question", answer: Any) -> Handler:
        """Return what goes on with the request for which *question* was asked."""
        is_call = question.exchange.request.method == "tools/call"
        methods = self._tools if is_call else self._prompts
        return lambda exchange: methods.resume(question, answer, exchange)

    @property
    def _tools(self) -> "ToolMethods":
        from promptkit.server.methods.tools import ToolMethods  # few servers offer tools

        with self._lock:
            if self._made_tools is None:
                parts = (self._calls, self._elicitation, self._lowerings, self._send, self._limits)
                self._made_tools = ToolMethods(*parts)
            return self._made_tools

    def _elicitation(self) -> "Elicitation":
        from promptkit.server.elicitation.elicitation import Elicitation  # most prompts never ask

        with self._lock:
            if self._made_elicitation is None:
                self._made_elicitation = Elicitation(
                    self._connection, self._in_flight, self._send, signer=self._signer
                )
            return self._made_elicitation

    def _load(self, exchange: Exchange) -> bytes | None:
        """Load the methods that the first requests of a client hardly ever are for, and answer."""
        from promptkit.server.methods.completion import CompletionMethod
        from promptkit.server.methods.resources import ResourceMethods

        histories = self.read_histories
        with self._lock:
            if not self._is_loaded:
                completion = CompletionMethod(self._calls, self._lowerings, self._limits.completions)
                resources = ResourceMethods(
                    self._calls, self._lowerings, histories, self._notifier, self._in_flight
                )
                self._methods |= {
                    "completion/complete": completion.complete,
                    "resources/read": resources.read,
                    "resources/subscribe": resources.subscribe,
                    "resources/unsubscribe": resources.unsubscribe,
                    "subscriptions/listen": resources.listen,
                }
                self._is_loaded = True
        return self._methods[exchange.request.method](exchange)

    def _call_tool(self, exchange: Exchange) -> bytes | None:
        call = self._methods["tools/call"] = self._tools.call
        return call(exchange)

    def _limited(self, rate: float) -> dict[str, Handler]:
        from promptkit.server.rate_limit import TokenBuckets  # few servers limit all requests

        buckets = TokenBuckets(rate, "requests")

        def limited(exchange: Exchange) -> bytes | None:
            buckets.take(exchange.request.subject)
            return self._methods[exchange.request.method](exchange)

        return dict.fromkeys(self._methods, limited)


def _list(exchange: Exchange) -> bytes:
    request = exchange.request
    return exchange.snapshot.page(request.method, request.revision, request.params.cursor)
