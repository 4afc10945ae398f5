"""The baseline for HTTP: an ASGI application that reads each body and returns a constant number of bytes."""

import os
from collections.abc import Awaitable, Callable
from typing import Any

BODY = b"x" * int(os.environ["BENCHMARK_BYTES"])
START = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(BODY))],
}


async def application(
    _scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Reply to one request."""
    while (await receive()).get("more_body"):
        pass
    await send(START)
    await send({"type": "http.response.body", "body": BODY})
