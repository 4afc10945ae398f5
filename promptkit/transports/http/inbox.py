"""The inbox: messages that have arrived, until the threads of the server take the requests in them."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final

from promptkit.protocol.events import Event, Request
from promptkit.protocol.http.endpoint import Endpoint
from promptkit.protocol.http.messages import CLOSE, HttpResponse, refuse
from promptkit.protocol.jsonrpc import InternalError
from promptkit.standard_error import say
from promptkit.transports.http.channel import HttpChannel

_ENDED: Final = refuse(503, InternalError("the server has ended"), headers=(CLOSE,))


class Inbox:
    """
    Messages of many clients, in the order in which they have arrived.

    Args:
        endpoint:
            Reads them.

    Attributes:
        challenge:
            Returns the response to requests whose clients can get the scopes that they lack; else None.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._messages: SimpleQueue[HttpChannel | None] = SimpleQueue()
        self._is_closed = False
        self.challenge: Callable[[Sequence[Request]], HttpResponse | None] | None = None

    def put(self, channel: HttpChannel) -> None:
        """Add a message. It is answered in any case."""
        self._messages.put(channel)
        if self._is_closed:  # nobody may be left to take it
            self.refuse_rest()

    def close(self) -> None:
        """Have nobody wait for messages any more."""
        self._is_closed = True
        self._messages.put(None)

    def refuse_rest(self) -> None:
        """Answer what is posted after the end, or at the same moment. Who takes a message answers it."""
        with suppress(Empty):
            while True:
                if (channel := self._messages.get_nowait()) is not None:
                    channel.respond(_ENDED)
        self._messages.put(None)

    def next_events(self) -> list[Event] | None:
        """Wait for messages, and return the requests in them. The leader of the server calls this."""
        events: list[Event] = []
        channel = self._messages.get()
        while channel is not None:
            events += self._receive(channel)
            if self._messages.empty():
                return events
            channel = self._messages.get()
        self._messages.put(None)  # it is still the end, for the next one who waits
        return events or None

    def _receive(self, channel: HttpChannel) -> list[Request]:
        if channel.gone:
            return []
        try:
            found = self._endpoint.receive(channel.head, channel.body, channel)
            if self.challenge is not None and not isinstance(found, HttpResponse):
                found = self.challenge(found) or found
        except Exception as error:  # noqa: BLE001 (the next message may be read)
            say(f"a message of {len(channel.body):,} bytes could not be read: {error!r}")
            found = refuse(500, InternalError("this message could not be read"))
        channel.body = b""
        if isinstance(found, HttpResponse):
            channel.respond(found)
            return []
        channel.requests, channel.modern = found, found[0].revision.stateless
        return found
