"""Results, encoded with the members that a revision requires in every result."""

from typing import Any, Final

from msgspec import UNSET, Raw

from promptkit.protocol import wire
from promptkit.protocol.capabilities import ServerInfo
from promptkit.protocol.jsonrpc import RequestId, encode
from promptkit.protocol.revisions import Revision

__all__ = ["ResultEncoder"]

#: How long a client may cache what does not change while the server runs, in milliseconds.
_CACHE_MS: Final = 300_000


class ResultEncoder:
    """
    Encodes results for one revision.

    Args:
        server_info:
            Sent with every result, if the revision requires it.

    Attributes:
        type:
            The ``resultType`` of a complete result.

        meta:
            The ``_meta`` of every result.

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
        Encode a complete result.

        Raises:
            UnicodeEncodeError: If a text holds a lone surrogate.
        """
        result.result_type = self.type
        result.meta = self.meta
        return encode(result)

    def encode_question(self, result: "wire.InputRequiredResult") -> bytes:
        """
        Encode a result that asks the client for input.

        See Also:
            https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr
        """
        result.result_type = "input_required"
        result.meta = self.meta
        return encode(result)

    def encode_end(self, stream: RequestId) -> bytes:
        """
        Encode the result that ends a stream of notifications.

        Args:
            stream:
                The id of the request that opened the stream.
        """
        meta = {wire.SUBSCRIPTION_ID: stream, **self._server}
        return encode(wire.Result(result_type=self.type, meta=Raw(encode(meta))))

    def encode_kept(self, result: wire.Result, *, changes: bool) -> bytes:
        """
        Encode a result that clients may cache, unless it *changes* while the server runs.

        See Also:
            https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching
        """
        if self._stateless:
            result.ttl_ms = 0 if changes else _CACHE_MS
            result.cache_scope = "private"  # prompts come from one person's files
        return self.encode(result)
