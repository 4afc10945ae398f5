"""What a prompt may know of the request that it answers, and how its progress is told."""

from collections.abc import Callable

from msgspec import UNSET

from promptkit.context import Context, Progress
from promptkit.protocol import wire
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import encode_notification

__all__ = ["context_of"]


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
    return Context(
        client_name=client.name if client else "",
        client_version=client.version if client else "",
        revision=request.revision.date,
        request_id=request.id,
        capabilities=request.capabilities,
        progress=Progress(_sender(request, send)),
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

    def tell(progress: float, total: float | None, message: str | None) -> None:
        params = wire.ProgressParams(
            meta.progress_token,
            progress,
            UNSET if total is None else total,
            UNSET if message is None or not says else message,
        )
        send(encode_notification("notifications/progress", params))

    return tell
