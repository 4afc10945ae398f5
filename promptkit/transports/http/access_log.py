"""The access log: one line on standard error for each HTTP request, including rejected ones."""

import json
import time
from http import HTTPStatus

from promptkit.errors.exceptions import shortened
from promptkit.protocol.http.messages import RETRY
from promptkit.protocol.jsonrpc import TooManyRequests
from promptkit.standard_error import say
from promptkit.transports.http.application import Application
from promptkit.transports.http.settings import Event, Receive, Scope, Send


class LoggedApplication(Application):
    """
    Serves a catalog over HTTP and logs each request in the ``logfmt`` format.

    A line contains neither the body, nor the query of the URL, nor header fields, and so neither arguments
    nor tokens. The status is 499 if the client disconnected before the response. A request over a limit has
    status 200 and the code of its error.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one ASGI request and log it."""
        started, status, size, code = time.perf_counter(), 499, 0, ""

        async def send_and_count(event: Event) -> None:
            nonlocal status, size, code
            if event.get("status") == HTTPStatus.OK and any(name == RETRY[0] for name, _ in event["headers"]):
                code = f" code={TooManyRequests.code}"
            status = event.get("status", status)
            size += len(event.get("body", b""))
            await send(event)

        try:
            await super().__call__(scope, receive, send_and_count)
        finally:
            address = scope["client"][0] if scope.get("client") else "-"
            path = json.dumps(shortened(scope["path"]))  # ASCII only: no line end, no control sequence
            elapsed = (time.perf_counter() - started) * 1000
            say(
                f"access address={address} method={scope['method']} path={path} "
                f"status={status}{code} bytes={size} ms={elapsed:.1f}"
            )
