"""The access log: a line on standard error for each HTTP request, also for one that is refused."""

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
    Serves a catalog over HTTP, and logs each request as ``logfmt`` has it.

    A line holds nothing of a body, of the query of a URL, or of the fields of a head: so neither an argument
    nor a token. The status is 499 where the client was gone before there was any. A request over a limit has
    status 200, and the code of its error.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI wants it, and log it."""
        begun, status, size, code = time.perf_counter(), 499, 0, ""

        async def counted(event: Event) -> None:
            nonlocal status, size, code
            if event.get("status") == HTTPStatus.OK and any(name == RETRY[0] for name, _ in event["headers"]):
                code = f" code={TooManyRequests.code}"
            status = event.get("status", status)
            size += len(event.get("body", b""))
            await send(event)

        try:
            await super().__call__(scope, receive, counted)
        finally:
            address = scope["client"][0] if scope.get("client") else "-"
            path = json.dumps(shortened(scope["path"]))  # ASCII only: no line end, no control sequence
            took = (time.perf_counter() - begun) * 1000
            say(
                f"access address={address} method={scope['method']} path={path} "
                f"status={status}{code} bytes={size} ms={took:.1f}"
            )
