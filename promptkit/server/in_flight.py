"""Requests in flight: those that are answered later than they were read."""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import RequestId
from promptkit.server.replies import reply_to

if TYPE_CHECKING:
    from concurrent.futures import Future

    from promptkit.server.background import Background

__all__ = ["InFlight"]

T = TypeVar("T")


class InFlight:
    """
    The requests of one client that are not answered yet, and how to stop working on each.

    Args:
        send:
            Takes whole lines to be sent. It may be called from several threads.
    """

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._cancels: dict[RequestId, Callable[[], object]] = {}
        self._background: Background | None = None

    def __contains__(self, request_id: object) -> bool:
        """
        Return whether the request with this id is not answered yet.
        """
        return request_id in self._cancels

    def hold(self, request: Request, cancel: Callable[[], object]) -> None:
        """
        Note that *request* is answered later.

        Args:
            request:
                What is answered later.

            cancel:
                Called if its client wants no answer any more; the request is released then.
        """

        def release() -> None:
            self.release(request)
            cancel()

        self._cancels[request.id] = release

    def release(self, request: Request) -> None:
        """
        Note that *request* is answered, or never will be. Its id is free.
        """
        self._cancels.pop(request.id, None)

    def start(
        self,
        request: Request,
        coroutine: Coroutine[Any, Any, T],
        finish: Callable[[Callable[[], T]], bytes],
        end: Callable[[], None] = lambda: None,
    ) -> None:
        """
        Work beside the reading thread; the reply is sent when it is ready.

        Args:
            request:
                What is answered.

            coroutine:
                The work.

            finish:
                Makes the result out of what the work returned, or raised.

            end:
                Called first thing when the request is cancelled.
        """
        from promptkit.server.background import Background  # most servers never need a loop

        def done(future: "Future[T]") -> None:
            self.release(request)
            reply = b""  # what was cancelled is not answered
            if not future.cancelled():
                reply = reply_to(request, lambda: finish(future.result)) or b""
            if line := request.answer(reply):
                self._send(line)

        def cancel() -> None:
            end()
            future.cancel()

        if self._background is None:
            self._background = Background()
        future = self._background.start(coroutine)
        self._cancels[request.id] = cancel
        self._background.when_done(future, done)

    def cancel(self, request_id: RequestId) -> None:
        """
        Stop working on a request, if it is still being worked on.
        """
        if cancel := self._cancels.get(request_id):
            cancel()

    def close(self, grace: float) -> None:
        """
        Wait for the work that still goes on, *grace* seconds at most.
        """
        if self._background is not None:
            self._background.close(grace)
