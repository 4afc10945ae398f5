"""One request between its arrival and its reply."""

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
    One request that has not been answered.

    Args:
        request:
            The request.

        snapshot:
            The catalog that it is answered from, even if another one is served by now.

        limit:
            How long it may take, in seconds.

        deadline:
            When its time is over, by `time.monotonic`.

        about:
            The compiled prompt or resource, once it has been looked up.

        is_answered:
            Whether its reply is chosen. Only the dispatcher sets it, under its lock.

        is_waiting:
            Whether it waits for the recipes to be imported, or for room to run.

        is_held:
            Whether it waits for its client: a question or a stream.

        stop:
            Called once if the request is answered while its task runs, or its question or stream is open:
            cancels the task, withdraws the question, closes the stream.

        refusal:
            Returns the error to answer with at the deadline, in place of the usual one.

        thread:
            The identifier of the thread that its code runs on; 0 before it runs.

        coroutine:
            The coroutine that runs on an event loop of that thread.

        asks:
            Whether its result asks the client for input.
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
    refusal: Callable[[], PromptkitError] | None = None
    thread: int = 0
    coroutine: Coroutine[Any, Any, Any] | None = None
    asks: bool = False

    @property
    def key(self) -> tuple[str, str | None]:
        """The method and the name of the prompt or resource, by which slow code is remembered."""
        return self.request.method, None if self.about is None else name_of(self.about)

    def error_reply(self, error: PromptkitError) -> Reply:
        """
        Return the reply that answers with an error, which has to be one of `CLIENT_ERRORS`.

        What is wrong with the call of a tool is a result: a model reads it, and corrects its call.
        """
        request = self.request
        if request.method == "tools/call":
            result = self.snapshot.lowerings[request.revision].tool_error(error)
            if result is not None:
                return encode_result(request.id, result, "failed")
        return encode_error(request.id, error)
