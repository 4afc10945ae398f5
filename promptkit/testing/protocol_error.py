"""The error with which a server answers a client."""

from typing import Any

from promptkit.errors.exceptions import PromptkitError

__all__ = ["ProtocolError"]


class ProtocolError(PromptkitError):
    """
    A request was answered with an error.

    Args:
        code:
            What kind of error it is: -32602 for a name or for arguments that do not fit, and for what
            the prompt's author tells people; -32603 where the prompt failed.

        message:
            What the person at the client reads.

        data:
            The same for machines; None if there is nothing more to say.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(code, message, data)
        self.code = code
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return self.message
