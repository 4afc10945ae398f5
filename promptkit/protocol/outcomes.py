"""What a reply says, found in its beginning: the rest may be long, and is not looked at."""

import re
from typing import Final

__all__ = ["error_code", "is_failure", "is_question", "retry_after"]

# The repetitions are possessive: an id may be long, and backtracking takes memory.
_BEGIN: Final = rb'\{"jsonrpc":"2\.0",(?:"id":(?:-?\d++|"[^"\\]*+(?:\\.[^"\\]*+)*+"),)?'
_ERROR: Final = re.compile(_BEGIN + rb'"error":\{"code":(-?\d+)')
_RETRY: Final = re.compile(rb'"data":\{"retryAfter":(\d+)\}\}\}\s*+$')
_QUESTION: Final = re.compile(_BEGIN + rb'"result":\{"inputRequests":')
_FAILURE: Final = re.compile(_BEGIN + rb'"result":\{"isError":true')


def error_code(reply: bytes) -> int | None:
    """
    Return the code of a reply that is an error; None if it is a result.

    Args:
        reply:
            One line that `promptkit.protocol.jsonrpc` has encoded.
    """
    found = _ERROR.match(reply)
    return None if found is None else int(found[1])


def is_question(reply: bytes) -> bool:
    """
    Return whether a reply asks the client for input.
    """
    return _QUESTION.match(reply) is not None


def is_failure(reply: bytes) -> bool:
    """
    Return whether a reply is the result of a tool that says what was wrong.
    """
    return _FAILURE.match(reply) is not None


def retry_after(reply: bytes) -> int | None:
    """
    Return in how many seconds the client may try again; None if the reply, an error, does not say it.
    """
    found = _RETRY.search(reply[-64:])
    return None if found is None else int(found[1])
