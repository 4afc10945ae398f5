"""
The server: requests meet the catalog, and replies leave.

It does no I/O. A transport gives it what arrives and sends what it is handed.
"""

import os
import sys
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from promptkit.catalog import Catalog, CompiledPrompt
from promptkit.context import Context
from promptkit.errors import ArgumentErrors, UnknownPrompt
from promptkit.messages import Workflow
from promptkit.protocol import wire
from promptkit.protocol.connection import Cancelled, Connection, Identity, Request
from promptkit.protocol.jsonrpc import (
    TOLD,
    InternalError,
    InvalidParams,
    InvalidRequest,
    RequestId,
    encode,
    encode_error,
    encode_result,
)
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.revisions import Revision
from promptkit.version import VERSION

if TYPE_CHECKING:
    from concurrent.futures import Future

    from promptkit.background import Background

__all__ = ["Server"]

T = TypeVar("T")

#: How many replies are kept of prompts that have `cache`.
_CACHED_REPLIES: Final = 256


class Server:
    """
    Answers one client from a catalog.

    Args:
        catalog:
            What is served.

        send:
            Takes whole lines to be sent. It may be called from several threads.

        name:
            What the server calls itself.

        instructions:
            What a model should know of it, if anything.
    """

    def __init__(
        self,
        catalog: Catalog,
        send: Callable[[bytes], None],
        *,
        name: str = "promptkit",
        instructions: str | None = None,
    ) -> None:
        self.catalog = catalog
        self._send = send
        self._connection = Connection(Identity(name, VERSION, instructions))
        self._listings: dict[Revision, bytes] = {}
        self._cache = _ReplyCache()
        self._in_flight: dict[RequestId, Future[Workflow]] = {}
        self._background: Background | None = None
        self._work: dict[str, Callable[[Request, Any], bytes | None]] = {
            "prompts/list": self._list,
            "prompts/get": self._get,
        }

    def receive_data(self, data: bytes) -> None:
        """
        Take bytes as they arrive, and send what they are answered with.

        Args:
            data:
                Any number of bytes, cut anywhere; ``b""`` says that the stream has ended.

        Raises:
            Exception: Whatever *send* raises.
        """
        replies = []
        for event in self._connection.receive_data(data):
            if isinstance(event, bytes):
                replies.append(event)
            elif isinstance(event, Request):
                if (reply := self._serve(event)) is not None:
                    replies.append(event.answer(reply))
            else:
                self._cancel(event)
        if replies:
            self._send(b"".join(replies))

    def close(self, grace: float) -> None:
        """
        Let the prompts that still run finish, for *grace* seconds at most.
        """
        if self._background is not None:
            self._background.close(grace)

    def _serve(self, request: Request) -> bytes | None:
        """
        Return the reply to *request*, or None if it will be sent later.
        """
        if request.id in self._in_flight:
            refused = InvalidRequest(f"id {request.id!r} is in use by a request that still runs")
            return encode_error(request.id, refused)
        return _guarded(request, lambda: self._work[request.method](request, request.params))

    def _list(self, request: Request, params: wire.PageParams) -> bytes:
        """
        Return the reply to ``prompts/list``; its result is encoded once per revision.
        """
        if isinstance(params.cursor, str):
            msg = "unknown cursor: list again from the start"
            raise InvalidParams(msg)
        if request.revision not in self._listings:
            self._listings[request.revision] = lowering_for(request.revision).listing(self.catalog)
        return encode_result(request.id, self._listings[request.revision])

    def _get(self, request: Request, params: wire.GetPromptParams) -> bytes | None:
        """
        Return the reply to ``prompts/get``, or None if it will be sent later.
        """
        prompt = self.catalog[params.name]
        key = self._cache.key(prompt, request, params)
        if key is not None and (result := self._cache.get(key)) is not None:
            return encode_result(request.id, result)
        values = prompt.bind(params.arguments, self._context(prompt, request))
        if prompt.renderer.is_async or prompt.timeout is not None:
            self._start(request, prompt, values, key)
            return None
        return self._finish(request, prompt, lambda: prompt.renderer.render(**values), key)

    def _start(self, request: Request, prompt: CompiledPrompt, values: dict[str, Any], key: Any) -> None:
        """
        Render beside the reading thread; the reply is sent when it is ready.
        """
        from promptkit.background import Background, render_within  # most servers never need a loop

        def done(future: "Future[Workflow]") -> None:
            self._in_flight.pop(request.id, None)
            reply = b""  # what was cancelled is not answered
            if not future.cancelled():
                reply = _guarded(request, lambda: self._finish(request, prompt, future.result, key))
            if line := request.answer(reply):
                self._send(line)

        if self._background is None:
            self._background = Background()
        future = self._background.start(render_within(prompt.renderer, values, prompt.timeout))
        self._in_flight[request.id] = future
        self._background.when_done(future, done)

    def _finish(
        self,
        request: Request,
        prompt: CompiledPrompt,
        rendered: Callable[[], Workflow],
        key: Any,
    ) -> bytes:
        """
        Return the reply to a request for a prompt.
        """
        try:
            workflow = rendered()
        except (ArgumentErrors, UnknownPrompt) as error:
            # Of another prompt, which this one calls: its author's affair, and no client's.
            msg = "a prompt that it calls was refused"
            raise RuntimeError(msg) from error
        result = lowering_for(request.revision).result(prompt, workflow)
        if key is not None:
            self._cache.put(key, result, prompt.cache or 0)
        return encode_result(request.id, result)

    def _cancel(self, event: Cancelled) -> None:
        """
        Stop working on a request, if it is still being worked on.
        """
        future = self._in_flight.get(event.request_id)
        if future is not None:
            future.cancel()

    def _context(self, prompt: CompiledPrompt, request: Request) -> Context | None:
        """
        Return what *prompt* may know of the request, if it asks.
        """
        client = self._connection.client
        if prompt.context is None or client is None:
            return None
        return Context(
            client_name=client.client_info.name if client.client_info else "",
            client_version=client.client_info.version if client.client_info else "",
            revision=request.revision.date,
            request_id=request.id,
            capabilities=client.capabilities,
        )


def _guarded(request: Request, work: Callable[[], T]) -> T | bytes:
    """
    Return what *work* returns, or the reply that says why it could not.
    """
    try:
        return work()
    except TOLD as error:
        return encode_error(request.id, error)
    except BaseException as error:  # noqa: BLE001 (authors raise anything)
        return encode_error(request.id, _internal_error(request, error))


def _internal_error(request: Request, error: BaseException) -> InternalError:
    """
    Return what a client is told of any other exception, and print the rest on stderr.
    """
    correlation = os.urandom(4).hex()
    params = request.params
    subject = f"prompt {params.name!r}" if isinstance(params, wire.GetPromptParams) else request.method
    with suppress(OSError, ValueError):  # nobody may be reading stderr any more
        sys.stderr.write(f"promptkit: error {correlation} in {subject}:\n")
        traceback.print_exception(error)
    return InternalError(f"{subject} failed (error {correlation})")


class _ReplyCache:
    """
    Results of prompts that have `cache`, by what was asked, the oldest dropped first.
    """

    def __init__(self) -> None:
        self._results: OrderedDict[Any, tuple[float, bytes]] = OrderedDict()

    def key(self, prompt: CompiledPrompt, request: Request, params: wire.GetPromptParams) -> Any:
        """
        Return what a reply is kept under; None if it must not be.
        """
        if prompt.cache is None or prompt.context is not None:
            return None
        return prompt.name, request.revision.date, encode(sorted((params.arguments or {}).items()))

    def get(self, key: Any) -> bytes | None:
        """
        Return the result under *key* if it is fresh.
        """
        expires, result = self._results.get(key, (0.0, b""))
        return result if time.monotonic() < expires else None

    def put(self, key: Any, result: bytes, seconds: float) -> None:
        """
        Keep *result* under *key*.
        """
        self._results[key] = (time.monotonic() + seconds, result)
        self._results.move_to_end(key)
        while len(self._results) > _CACHED_REPLIES:
            self._results.popitem(last=False)
