"""The requests of the two eras, as lines, and what a benchmark has to know of a reply."""

from typing import Any

import attrs
import msgspec

PREFIX = "io.modelcontextprotocol/"
CLIENT = {"name": "benchmark", "version": "1"}


class Reply(msgspec.Struct):
    """
    One line from a server. Notifications have no id.
    """

    id: int | None = None
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: msgspec.Raw = msgspec.Raw(b"")


read_reply = msgspec.json.Decoder(Reply).decode


@attrs.frozen
class Era:
    """
    One way to speak.

    Args:
        name:
            What the era is called.

        opening:
            The method of the first request.

        hello:
            Its parameters.

        meta:
            What every request carries.
    """

    name: str
    opening: str
    hello: dict[str, Any]
    meta: dict[str, Any]

    def request(self, number: int | None, method: str, params: dict[str, Any]) -> bytes:
        """
        Return a request as a line; without a number it is a notification.
        """
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": {**params, **self.meta}}
        if number is not None:
            message["id"] = number
        return msgspec.json.encode(message) + b"\n"


HANDSHAKE = Era(
    "handshake",
    "initialize",
    hello={"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT},
    meta={},
)
MODERN = Era(
    "modern",
    "server/discover",
    hello={},
    meta={
        "_meta": {
            f"{PREFIX}protocolVersion": "2026-07-28",
            f"{PREFIX}clientInfo": CLIENT,
            f"{PREFIX}clientCapabilities": {},
        }
    },
)
ERAS = (HANDSHAKE, MODERN)
