"""Requests between their arrival and their reply."""

from collections.abc import Callable, Coroutine
from typing import Any

from msgspec import Struct

from promptkit.errors.exceptions import PromptkitError
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import Reply, encode_error, encode_result
from promptkit.server.lookup import name_of
from promptkit.server.snapshot import Snapshot


class PendingRequest(Struct, eq=False):
    """
    A request that has not been answered.

    Args:
        request:
            The request.

        snapshot:
            The snapshot that answers the request, even if the server has replaced it since.

        limit:
            The time limit, in seconds.

        deadline:
            The deadline, by `time.monotonic`.

        about:
            The compiled prompt or resource, once it has been looked up.

        is_answered:
            Whether the reply has been sent, or is being sent. Only the dispatcher sets it, under its lock.

        is_waiting:
            Whether the request waits for the recipes to be imported, or for a free slot.

        is_held:
            Whether the request waits for its client, with a question or a stream.

        stop:
            A function that is called once if the request is answered while its task runs, or while its
            question or stream is open: it cancels the task, withdraws the question, or closes the stream.

        on_deadline:
            A function that returns the error for a passed deadline; by default, it is a timeout error.

        thread:
            The identifier of the thread that runs the author's code; 0 before.

        coroutine:
            The coroutine that runs on an event loop of that thread.

        asks:
            Whether the result asks the client for input.
    """

    request: Request
    snapshot: Snapshot
    limit: float
    deadline: float
    about: Any = None
    is_answered: bool = False
    is_waiting: bool = False
    is_held: bool = False
    stop: Callable[[], object] | None = None
    on_deadline: Callable[[], PromptkitError] | None = None
    thread: int = 0
    coroutine: Coroutine[Any, Any, Any] | None = None
    asks: bool = False

    @property
    def key(self) -> tuple[str, str | None]:
        """The method and the name of the prompt or resource: the key of slow code."""
        return self.request.method, None if self.about is None else name_of(self.about)

    def error_reply(self, error: PromptkitError) -> Reply:
        """
        Return the reply with *error*, which must be one of `CLIENT_ERRORS`.

        An invalid tool call is answered with a result, so that the model can correct the call.
        """
        request = self.request
        if request.method == "tools/call":
            result = self.snapshot.lowerings[request.revision].tool_error(error)
            if result is not None:
                return encode_result(request.id, result, "failed")
        return encode_error(request.id, error)
