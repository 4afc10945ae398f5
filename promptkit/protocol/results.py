"""Results: what a server says of itself, and of each of its results."""

from typing import Any, Final

from msgspec import UNSET, Raw, Struct

from promptkit.protocol import wire
from promptkit.protocol.jsonrpc import RequestId, encode
from promptkit.protocol.revisions import Revision

__all__ = ["Capabilities", "ResultEncoder", "ServerInfo"]

#: How long a client may keep what does not change while the server runs, in milliseconds.
_LIFETIME: Final = 300_000


class ServerInfo(Struct, frozen=True):
    """
    What a server says of itself.

    Args:
        name:
            What it is called.

        version:
            Its version.

        instructions:
            What a model should know of it, if anything.
    """

    name: str
    version: str
    instructions: str | None = None


class Capabilities(Struct, frozen=True):
    """
    What a server declares that it can do.

    Args:
        resources:
            Whether it has any.

        changes:
            Whether what it serves may change, and clients are told.
    """

    resources: bool = False
    changes: bool = False

    def declared(self, revision: Revision) -> dict[str, Any]:
        """
        Return the capabilities as *revision* spells them.
        """
        declared: dict[str, Any] = {"prompts": {"listChanged": self.changes}}
        if self.resources or revision.empty_lists:
            declared["resources"] = {"subscribe": self.changes, "listChanged": self.changes}
        if revision.empty_lists:
            declared["tools"] = {"listChanged": False}
        if revision.completions:
            declared["completions"] = {}
        return declared


class ResultEncoder:
    """
    Encodes results, with what a revision wants said of each.

    Args:
        revision:
            The revision.

        server_info:
            What the server says of itself.

    Attributes:
        type:
            What each result says of what it is.

        meta:
            What each says of the server.

    See Also:
        https://modelcontextprotocol.io/specification/2026-07-28/basic#responses
    """

    def __init__(self, revision: Revision, server_info: ServerInfo | None = None) -> None:
        self._stateless = revision.stateless
        self.type = "complete" if self._stateless else UNSET
        self._server: dict[str, Any] = {}
        if self._stateless and server_info is not None:
            self._server = {wire.SERVER_INFO: wire.Implementation(server_info.name, server_info.version)}
        self.meta = Raw(encode(self._server)) if self._server else UNSET

    def encode(self, result: wire.Result) -> bytes:
        """
        Return *result*, complete, as JSON.

        Raises:
            UnicodeEncodeError: If a text holds half of a surrogate pair.
        """
        result.result_type = self.type
        result.meta = self.meta
        return encode(result)

    def encode_question(self, result: wire.InputRequiredResult) -> bytes:
        """
        Return *result*, which asks for something first, as JSON.

        See Also:
            https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr
        """
        result.result_type = "input_required"
        result.meta = self.meta
        return encode(result)

    def encode_end(self, stream: RequestId) -> bytes:
        """
        Return the result that ends a stream of notifications, as JSON.

        Args:
            stream:
                The id of the request that opened it.
        """
        meta = {wire.SUBSCRIPTION_ID: stream, **self._server}
        return encode(wire.Result(result_type=self.type, meta=Raw(encode(meta))))

    def encode_kept(self, result: wire.Result, *, changes: bool) -> bytes:
        """
        Return *result*, which clients may keep for a while, as JSON.

        Args:
            result:
                A list, a description of the server, or what a resource holds.

            changes:
                Whether it may change while the server runs.

        See Also:
            https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching
        """
        if self._stateless:
            result.ttl_ms = 0 if changes else _LIFETIME
            result.cache_scope = "private"  # recipes are what one person has on disk
        return self.encode(result)
