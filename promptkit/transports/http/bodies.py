"""Bodies: read whole, within a limit and a time."""

import asyncio
from typing import Final

from promptkit.protocol.http.messages import CLOSE, Response, refuse
from promptkit.protocol.http.statuses import RETRY
from promptkit.protocol.jsonrpc import InvalidRequest, TooManyRequests
from promptkit.transports.http.asgi_types import Receive
from promptkit.transports.http.sweep import Sweep

__all__ = ["Held", "Room", "read_body"]

#: How much is read of a body that is too long, and dropped. If the server hung up at once, most clients
#: would see a broken connection instead of the reply.
_READ_ON_BYTES: Final = 16 * 1024 * 1024


class Room:
    """
    How many bytes the bodies of all requests of one event loop take, whole or not.

    Args:
        limit:
            How many they may take. A single body may take more.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.taken = 0


class Held:
    """
    How many bytes one body takes, until it is given up.

    Args:
        room:
            Where it takes them.
    """

    def __init__(self, room: Room) -> None:
        self._room = room
        self._size = 0

    def take(self, size: int) -> bool:
        """Take more bytes; return whether there is room for them."""
        self._size += size
        self._room.taken += size
        return self._room.taken <= self._room.limit or self._room.taken == self._size

    def give_up(self) -> None:
        """Give all bytes back."""
        self._room.taken -= self._size
        self._size = 0


async def read_body(receive: Receive, sweep: Sweep, limit: int, held: Held) -> bytes | Response | None:
    """
    Return the body of a request, or the response that refuses it; None if the client is gone.

    Args:
        receive:
            Returns the next piece.

        sweep:
            Stops a body that takes too long.

        limit:
            The longest body, in bytes.

        held:
            What the body takes. The caller gives it up once the request is answered.
    """
    task = sweep.begin_reading()
    try:
        return await _read(receive, limit, held)
    except asyncio.CancelledError:
        if not sweep.has_stopped(task):
            raise
        msg = "the body of the request did not arrive in time"
        return refuse(408, InvalidRequest(msg), headers=(CLOSE,))
    finally:
        sweep.end_reading(task)


async def _read(receive: Receive, limit: int, held: Held) -> bytes | Response | None:
    pieces: list[bytes] = []
    size, more, fits = 0, True, True
    while more and size <= limit + _READ_ON_BYTES:
        event = await receive()
        if event["type"] != "http.request":
            return None
        piece: bytes = event.get("body", b"")
        more = event.get("more_body", False)
        size += len(piece)
        fits = fits and size <= limit and held.take(len(piece))
        if fits:
            pieces.append(piece)
        else:
            pieces.clear()
            held.give_up()
    if size > limit:
        msg = f"the body of a request has at most {limit:,} bytes"
        return refuse(413, InvalidRequest(msg), headers=(CLOSE,) if more else ())
    if not fits:
        msg = "the bodies of other requests take all the memory there is for them: try again later"
        return refuse(429, TooManyRequests(msg), headers=(RETRY,))
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
