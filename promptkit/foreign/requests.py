"""Requests to a server, and their errors."""

from collections.abc import Mapping
from typing import Any, Protocol

from promptkit.errors.exceptions import PromptkitError


class RequestError(PromptkitError):
    """
    A server answered a request with an error.

    Args:
        code:
            The code of JSON-RPC.

        message:
            The server's message.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.message} (code {self.code})"


class InvalidReplyError(PromptkitError):
    """A server's answer violates the protocol. The message is a predicate of the server."""


class NoReplyError(InvalidReplyError):
    """A server did not answer, and will probably not answer other requests either."""


class Requester(Protocol):
    """Sends requests; see `promptkit.foreign.connection.Connection`."""

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """
        Send a request, and return its result as JSON-compatible data.

        Raises:
            RequestError: If the server answers with an error.

            InvalidReplyError: If its answer violates the protocol.

            NoReplyError: If it does not answer in time, or its answer is too large.
        """
