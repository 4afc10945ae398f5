"""The inbox: messages that have arrived, until the threads of the server take the requests in them."""

from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

from promptkit.protocol.events import Event, Request
from promptkit.protocol.http.endpoint import Endpoint
from promptkit.protocol.http.messages import CLOSE, Response, refuse
from promptkit.protocol.jsonrpc import InternalError
from promptkit.standard_error import say
from promptkit.transports.http.channel import Posted

if TYPE_CHECKING:
    from promptkit.transports.authorization.step_up import StepUp

__all__ = ["Inbox"]

_ENDED: Final = refuse(503, InternalError("the server has ended"), headers=(CLOSE,))


class Inbox:
    """
    Messages of many clients, in the order in which they have arrived.

    Args:
        endpoint:
            Reads them.

    Attributes:
        step_up:
            Refuses requests whose clients can get the scopes that they lack; None if none can.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._posted: SimpleQueue[Posted | None] = SimpleQueue()
        self._is_closed = False
        self.step_up: StepUp | None = None

    def put(self, posted: Posted) -> None:
        """Add a message. It is answered in any case."""
        self._posted.put(posted)
        if self._is_closed:  # nobody may be left to take it
            self.refuse_rest()

    def close(self) -> None:
        """Have nobody wait for messages any more."""
        self._is_closed = True
        self._posted.put(None)

    def refuse_rest(self) -> None:
        """Answer what is posted after the end, or at the same moment. Whoever takes a message answers it."""
        with suppress(Empty):
            while True:
                if (posted := self._posted.get_nowait()) is not None:
                    posted.respond(_ENDED)
        self._posted.put(None)

    def next_events(self) -> list[Event] | None:
        """Wait for messages, and return the requests in them. The leader of the server calls this."""
        events: list[Event] = []
        posted = self._posted.get()
        while posted is not None:
            events += self._receive(posted)
            if self._posted.empty():
                return events
            posted = self._posted.get()
        self._posted.put(None)  # it is still the end, for the next one who waits
        return events or None

    def _receive(self, posted: Posted) -> list[Request]:
        if posted.gone:
            return []
        try:
            found = self._endpoint.receive(posted.head, posted.body, posted)
            if self.step_up is not None and not isinstance(found, Response):
                found = self.step_up.refusal(found) or found
        except Exception as error:  # noqa: BLE001 (the next message may be read)
            say(f"a message of {len(posted.body):,} bytes could not be read: {error!r}")
            found = refuse(500, InternalError("this message could not be read"))
        posted.body = b""
        if isinstance(found, Response):
            posted.respond(found)
            return []
        posted.requests, posted.modern = found, found[0].revision.stateless
        return found
