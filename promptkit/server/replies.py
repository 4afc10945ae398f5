"""Replies: what a request is answered with, whatever the work on it comes to."""

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from promptkit.errors import ArgumentErrors, UnknownPrompt, UnknownResource
from promptkit.protocol import wire
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import TOLD, InternalError, encode_error, encode_result

__all__ = ["authors_code", "reply_to"]


def reply_to(request: Request, work: Callable[[], bytes | None]) -> bytes | None:
    """
    Return the line that answers *request*.

    Args:
        request:
            What was asked.

        work:
            Returns the result, as JSON, or None if the request is answered later.

    Returns:
        The result or the error that *work* came to; None if it comes to one later.
    """
    try:
        result = work()
    except TOLD as error:
        return encode_error(request.id, error)
    except BaseException as error:  # noqa: BLE001 (authors raise anything)
        return encode_error(request.id, _internal_error(request, error))
    return None if result is None else encode_result(request.id, result)


@contextmanager
def authors_code() -> Iterator[None]:
    """
    Keep what authors' code raises for its own author from the client.

    A prompt that calls another one, and is refused by it, has a bug; its client did nothing wrong.

    Raises:
        RuntimeError: Instead of what promptkit raises for arguments and names.
    """
    try:
        yield
    except (ArgumentErrors, UnknownPrompt, UnknownResource) as error:
        msg = "what it calls was refused"
        raise RuntimeError(msg) from error


def _internal_error(request: Request, error: BaseException) -> InternalError:
    """
    Return what a client is told of any other exception, and print the rest on stderr.
    """
    correlation = os.urandom(4).hex()
    params = request.params
    subject = request.method
    if isinstance(params, wire.GetPromptParams):
        subject = f"prompt {params.name!r}"
    elif isinstance(params, wire.ResourceParams):
        subject = f"resource {params.uri!r}"
    with suppress(OSError, ValueError):  # nobody may be reading stderr any more
        sys.stderr.write(f"promptkit: error {correlation} in {subject}:\n")
        traceback.print_exception(error)
    return InternalError(f"{subject} failed (error {correlation})")
