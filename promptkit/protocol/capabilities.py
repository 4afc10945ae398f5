"""What a server says of itself and can do: name, capabilities, methods; and what every result has."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder

from promptkit.protocol import wire
from promptkit.protocol.jsonrpc import MethodNotFound, RequestId, encode
from promptkit.protocol.revisions import Revision

#: How long a client may cache what does not change while the server runs, in milliseconds.
_CACHE_MS: Final = 300_000

#: The extension by which clients read skills: https://modelcontextprotocol.io/extensions/skills.
SKILLS: Final = "io.modelcontextprotocol/skills"

#: What identifies a page of a list: its method, the client's revision, and its cursor.
PageKey: TypeAlias = tuple[str, Revision, str | UnsetType]

#: Whether prompts are offered as tools, too: each as one, or all of them behind two that find and get one.
ToolMode: TypeAlias = bool | Literal["search"]


class ServerInfo(Struct, frozen=True):
    """
    The server's name and version.

    Args:
        instructions:
            What a model should know about the server.
    """

    name: str
    version: str
    instructions: str | None = None


class Capabilities(Struct, frozen=True):
    """
    What a server declares that it can do.

    They do not depend on the recipes, because the handshake does not wait for these to be imported.

    Args:
        changes:
            Whether its lists and resources may change while it runs, and clients are notified.

        tools:
            Whether it offers prompts as tools.
    """

    changes: bool = False
    tools: ToolMode = False

    def declared(self, revision: Revision) -> dict[str, Any]:
        """
        The capabilities as *revision* spells them.
        """
        declared: dict[str, Any] = {
            "prompts": {"listChanged": self.changes},
            "resources": {"subscribe": self.changes, "listChanged": self.changes},
        }
        if self.tools or revision.empty_lists:
            declared["tools"] = {"listChanged": bool(self.tools) and self.changes}
        if revision.completions:
            declared["completions"] = {}
        declared["extensions"] = {SKILLS: {"directoryRead": True}}
        return declared

    def method(self, name: str) -> "Method | None":
        """
        Return a method that exists only if prompts are tools; None if it does not exist.
        """
        return TOOL_METHODS.get(name) if self.tools else None


class Method(Struct, frozen=True, dict=True):
    """
    What is known of a method.

    Args:
        params:
            What its params are.

        handshake:
            Whether sessions opened with a handshake have it.

        modern:
            Whether requests that name their own revision have it.

        opens:
            Whether it may come before the handshake.

        enveloped:
            Whether a request for it may name its own revision.

        served:
            Whether the server answers it, and not the connection itself.

        static:
            The result, if it is always the same.
    """

    params: type[wire.Params]
    handshake: bool = True
    modern: bool = True
    opens: bool = False
    enveloped: bool = True
    served: bool = True
    static: bytes | None = None

    @cached_property
    def decode(self) -> Callable[[bytes | Raw], wire.Params]:
        """
        Decodes its params; made when a client first calls it.
        """
        return Decoder(self.params).decode


#: Every method that there always is. Nothing else checks when one may be called.
#:
#: Some clients ask for every kind of list and give up on an error, so empty lists are answered, too.
METHODS: Final[Mapping[str, Method]] = {
    "initialize": Method(wire.InitializeParams, modern=False, opens=True, enveloped=False, served=False),
    "ping": Method(wire.Params, modern=False, opens=True, served=False, static=b"{}"),
    "server/discover": Method(wire.Params, handshake=False, served=False),
    "prompts/list": Method(wire.PageParams),
    "prompts/get": Method(wire.GetPromptParams),
    "completion/complete": Method(wire.CompleteParams),
    "resources/list": Method(wire.PageParams),
    "resources/templates/list": Method(wire.PageParams),
    "resources/read": Method(wire.ResourceParams),
    "resources/subscribe": Method(wire.ResourceParams, modern=False),
    "resources/unsubscribe": Method(wire.ResourceParams, modern=False),
    "subscriptions/listen": Method(wire.ListenParams, handshake=False),
    "tools/list": Method(wire.PageParams),
    "skills/list": Method(wire.PageParams),
    "skills/get": Method(wire.ResourceParams),
    "resources/directory/read": Method(wire.DirectoryParams),
}

#: The methods that there are if prompts are offered as tools. A call has the params of a prompt.
TOOL_METHODS: Final[Mapping[str, Method]] = {"tools/call": METHODS["prompts/get"]}


def method_not_found(method: str) -> MethodNotFound:
    """
    Return the error for a method that does not exist, or not for this client.
    """
    return MethodNotFound(f"method not found: {method}", method)


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
        Encode a result: one that asks for input, or a complete one.

        Raises:
            UnicodeEncodeError: If a text holds a lone surrogate.

        See Also:
            https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr
        """
        result.result_type = result.result_type or self.type
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
