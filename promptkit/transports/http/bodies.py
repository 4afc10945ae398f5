"""Bodies: read whole, within a limit and a time."""

import asyncio
from typing import Final

from promptkit.protocol.http.messages import CLOSE, Response, refuse
from promptkit.protocol.jsonrpc import InvalidRequest
from promptkit.transports.http.asgi_types import Receive
from promptkit.transports.http.channel import Posted
from promptkit.transports.http.sweep import Sweep

__all__ = ["read_body"]

#: How much is read of a body that is too long, and dropped. If the server hung up at once, most clients
#: would see a broken connection instead of the reply.
_READ_ON_BYTES: Final = 16 * 1024 * 1024


async def read_body(posted: Posted, sweep: Sweep, limit: int) -> bytes | Response | None:
    """
    Return the body of a request, or the response that refuses it; None if the client is gone.

    Args:
        posted:
            The request.

        sweep:
            Stops a body that takes too long.

        limit:
            The longest body, in bytes.
    """
    posted.reader = asyncio.current_task()
    try:
        return await _read(posted.receive, limit)
    except asyncio.CancelledError:
        if not sweep.has_stopped(posted):
            raise
        msg = "the body of the request did not arrive in time"
        return refuse(408, InvalidRequest(msg), headers=(CLOSE,))
    finally:
        posted.reader = None


async def _read(receive: Receive, limit: int) -> bytes | Response | None:
    pieces: list[bytes] = []
    size, more = 0, True
    while more and size <= limit + _READ_ON_BYTES:
        event = await receive()
        if event["type"] != "http.request":
            return None
        piece: bytes = event.get("body", b"")
        more = event.get("more_body", False)
        size += len(piece)
        if size <= limit:
            pieces.append(piece)
        else:
            pieces.clear()
    if size > limit:
        msg = f"the body of a request has at most {limit:,} bytes"
        return refuse(413, InvalidRequest(msg), headers=(CLOSE,) if more else ())
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
