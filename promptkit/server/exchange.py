"""One request on its way to its reply."""

from enum import Enum, auto
from typing import Any, Final

from msgspec import Struct

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.errors.exceptions import PromptkitError
from promptkit.protocol import wire
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import encode_error, encode_result
from promptkit.server.lookup import name_of
from promptkit.server.snapshot import Snapshot

__all__ = ["IN_PLACE", "Exchange", "State"]


class State(Enum):
    """
    Who answers a request. Only `InFlight` changes this; a request that is answered in place stays there.

    Attributes:
        IN_PLACE:
            The thread that has read it.

        IN_FLIGHT:
            The first to take it out of the table of requests in flight.

        ANSWERED:
            Nobody: its reply is chosen.
    """

    IN_PLACE = auto()
    IN_FLIGHT = auto()
    ANSWERED = auto()


#: Every request asks for it, and Python 3.11 takes 70 ns to find a member of an enumeration.
IN_PLACE: Final = State.IN_PLACE


class Exchange(Struct, gc=False, eq=False):
    """
    One request, what it is answered from, and what the scheduler knows of it.

    Args:
        request:
            What the client has asked.

        snapshot:
            What it is answered from, even if another catalog is served by now.

        about:
            The compiled prompt or resource, once it is found.

        state:
            Who answers it.
    """

    request: Request
    snapshot: Snapshot
    about: Any = None
    state: State = State.IN_PLACE

    @property
    def key(self) -> tuple[str, str | None]:
        """The method and the prompt, or resource, by which slow code is remembered."""
        return self.request.method, None if self.about is None else name_of(self.about)

    def time_limit(self, usual: float) -> float:
        """How long the request may take, in seconds: as its prompt's author says, else as is *usual*."""
        # A thread that relieves another one calls this under a lock that all need, so nothing here depends on
        # what the client has sent, which may take long to look at.
        if isinstance(self.about, CompiledPrompt) and isinstance(self.request.params, wire.GetPromptParams):
            return self.about.timeout or usual
        return usual

    def refuse(self, error: PromptkitError) -> bytes:
        """
        Return the line that answers with an error, which has to be one of `CLIENT_ERRORS`.

        What a tool finds wrong is a result: a model reads it, and mends its call.
        """
        request = self.request
        if request.method == "tools/call":
            result = self.snapshot.lowerings[request.revision].failure(error)
            if result is not None:
                return encode_result(request.id, result)
        return encode_error(request.id, error)
