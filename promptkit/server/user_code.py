"""Calls of authors' functions, whose errors must not be taken for errors of the client."""

from collections.abc import Callable
from typing import Final, TypeVar, TypeVarTuple

from promptkit.errors.exceptions import ArgumentsError, UnknownPromptError, UnknownResourceError

__all__ = ["call_author"]

Args = TypeVarTuple("Args")
T = TypeVar("T")

#: What an author's function raises if it calls another prompt or resource, which refuses the arguments.
_NESTED_ERRORS: Final = (ArgumentsError, UnknownPromptError, UnknownResourceError)


def call_author(function: Callable[[*Args], T], *args: *Args) -> T:
    """
    Call an author's *function*.

    A prompt that calls another one with wrong arguments has a bug. Its client did nothing wrong, so the
    client must not get the error about these arguments.

    Raises:
        RuntimeError: If something that the function calls refuses its arguments.

        Exception: Whatever else the function raises.
    """
    try:
        return function(*args)
    except _NESTED_ERRORS as error:
        msg = "what it calls was refused"
        raise RuntimeError(msg) from error
