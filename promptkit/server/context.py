"""What a prompt may know of the request that it answers, and how its progress is told."""

import time
from collections.abc import Callable
from typing import Final

from msgspec import UNSET

from promptkit.language.context import Context, Progress
from promptkit.protocol import wire
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import encode_notification

__all__ = ["context_of"]

#: How many reports of progress a client is told at once, and how many a second from then on.
#: People can read no more; of what is left out they see the next one, or the reply.
_REPORTS: Final = 20


def context_of(request: Request, send: Callable[[bytes], None]) -> Context:
    """
    Return the context for a prompt that *request* asks for.

    Args:
        request:
            What is answered.

        send:
            Takes whole lines to be sent.
    """
    client = request.client
    progress = Progress(_sender(request, send))
    request.when_answered(lambda _: progress.end())
    return Context(
        client_name=client.name if client else "",
        client_version=client.version if client else "",
        revision=request.revision.date,
        request_id=request.id,
        capabilities=request.capabilities,
        progress=progress,
    )


def _sender(
    request: Request, send: Callable[[bytes], None]
) -> Callable[[float, float | None, str | None], None] | None:
    """
    Return what tells the client of progress; None if it does not want to know.
    """
    meta = request.params.meta
    if not meta or meta.progress_token is UNSET:
        return None
    says = request.revision.progress_messages
    pace = _Pace()

    def tell(progress: float, total: float | None, message: str | None) -> None:
        if not pace.allows():
            return
        params = wire.ProgressParams(
            meta.progress_token,
            progress,
            UNSET if total is None else total,
            UNSET if message is None or not says else message,
        )
        send(encode_notification("notifications/progress", params))

    return tell


class _Pace:
    """
    How often a client is told of the progress of one request.
    """

    def __init__(self) -> None:
        self._left = float(_REPORTS)
        self._noted = time.monotonic()

    def allows(self) -> bool:
        """
        Return whether it is told once more.
        """
        now = time.monotonic()
        self._left = min(_REPORTS, self._left + (now - self._noted) * _REPORTS)
        self._noted = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
