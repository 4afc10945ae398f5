"""The encoding of requests in the two eras of the protocol, and the parsing of replies."""

from typing import Any

import attrs
import msgspec

PREFIX = "io.modelcontextprotocol/"
CLIENT = {"name": "benchmark", "version": "1"}


class Reply(msgspec.Struct):
    """
    A message from a server. Notifications have no id.
    """

    id: int | None = None
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: msgspec.Raw = msgspec.Raw(b"")


read_reply = msgspec.json.Decoder(Reply).decode


@attrs.frozen
class Era:
    """
    An era of the protocol.

    Args:
        name:
            The name of the era.

        opening:
            The method of the first request.

        hello:
            The parameters of the first request.

        meta:
            Additional parameters of every request.
    """

    name: str
    opening: str
    hello: dict[str, Any]
    meta: dict[str, Any]

    def request(self, number: int | None, method: str, params: dict[str, Any]) -> bytes:
        """
        Return a request, or a notification if *number* is None, as a line of JSON.
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
