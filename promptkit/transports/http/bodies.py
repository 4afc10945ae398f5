"""Bodies: read whole, within a limit and a time."""

import asyncio
from typing import Final

from promptkit.protocol.http.messages import CLOSE, Response, refuse
from promptkit.protocol.http.statuses import RETRY
from promptkit.protocol.jsonrpc import InvalidRequest, TooManyRequests
from promptkit.transports.http.channel import Posted
from promptkit.transports.http.sweep import Sweep

__all__ = ["Room", "read_body"]

#: How much is read of a body that is too long, and dropped. If the server hung up at once, most clients
#: would see a broken connection instead of the reply.
_READ_ON_BYTES: Final = 16 * 1024 * 1024


class Room:
    """
    How many bytes the bodies of all requests of one event loop take, whole or not.

    Args:
        limit:
            How many they may take together. A single body may take more.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.taken = 0

    def take(self, posted: Posted, size: int) -> bool:
        """Take bytes for a request; return whether there is room for them."""
        posted.held += size
        self.taken += size
        return self.taken <= self.limit or self.taken == posted.held

    def give_back(self, posted: Posted) -> None:
        """Give back all that a request has taken."""
        self.taken -= posted.held
        posted.held = 0


async def read_body(posted: Posted, sweep: Sweep, room: Room, limit: int) -> bytes | Response | None:
    """
    Return the body of a request, or the response that refuses it; None if the client is gone.

    Args:
        posted:
            The request.

        sweep:
            Stops a body that takes too long.

        room:
            Where the body takes its bytes. The caller gives them back once the request is answered.

        limit:
            The longest body, in bytes.
    """
    pieces: list[bytes] = []
    size, more, fits = 0, True, True
    posted.reader = asyncio.current_task(sweep.loop)
    try:
        while more and size <= limit + _READ_ON_BYTES:
            event = await posted.receive()
            if event["type"] != "http.request":
                return None
            piece: bytes = event.get("body", b"")
            more = event.get("more_body", False)
            size += len(piece)
            fits = fits and size <= limit and room.take(posted, len(piece))
            if fits:
                pieces.append(piece)
            else:
                pieces.clear()
                room.give_back(posted)
    except asyncio.CancelledError:
        if not sweep.has_stopped(posted):
            raise
        msg = "the body of the request did not arrive in time"
        return refuse(408, InvalidRequest(msg), headers=(CLOSE,))
    finally:
        posted.reader = None
    if size > limit:
        msg = f"the body of a request has at most {limit:,} bytes"
        return refuse(413, InvalidRequest(msg), headers=(CLOSE,) if more else ())
    if not fits:
        msg = "the bodies of other requests take all the memory there is for them: try again later"
        return refuse(429, TooManyRequests(msg), headers=(RETRY,))
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
