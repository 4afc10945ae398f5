"""What a prompt may know of the request that it answers, and how it reports progress."""

from collections.abc import Callable
from typing import Final

from msgspec import UNSET

from promptkit.language.context import Context, Progress
from promptkit.protocol import wire
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import encode_notification
from promptkit.server.rate_limit import TokenBucket

__all__ = ["context_of"]

#: How many reports of progress of one request are sent at once, and how many a second from then on. People
#: can read no more. Of what is left out they see the next one, or the reply.
_REPORTS_PER_S: Final = 20.0


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
    """What sends reports of progress; None if the client does not want them."""
    meta = request.params.meta
    if not meta or meta.progress_token is UNSET:
        return None
    has_messages = request.revision.progress_messages
    bucket = TokenBucket(_REPORTS_PER_S, "reports of progress")

    def report(progress: float, total: float | None, message: str | None) -> None:
        if not bucket.allows():
            return
        params = wire.ProgressParams(
            meta.progress_token,
            progress,
            UNSET if total is None else total,
            UNSET if message is None or not has_messages else message,
        )
        send(encode_notification("notifications/progress", params))

    return report
