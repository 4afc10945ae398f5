"""The server's name, capabilities and methods, and the members that all results have."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias

from msgspec import Raw, Struct
from msgspec.json import Decoder

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.skill_access import SkillForm, skill_tools
from promptkit.catalog.tools import Tools
from promptkit.language.media import Icon
from promptkit.protocol import wire
from promptkit.protocol.jsonrpc import MethodNotFound, RequestId, encode
from promptkit.protocol.revisions import Revision

#: How long a client may cache a result that does not change while the server is running, in milliseconds.
_CACHE_MS: Final = 300_000

#: The extension through which clients read skills: https://modelcontextprotocol.io/extensions/skills.
SKILLS: Final = "io.modelcontextprotocol/skills"

#: Whether prompts are also offered as tools: True for one tool per prompt, ``"search"`` for two tools, one
#: that finds prompts and one that renders them.
ToolMode: TypeAlias = bool | Literal["search"]


class ServerInfo(Struct, frozen=True):
    """
    The identity of a server, which clients show.

    Args:
        name:
            The server's name.

        version:
            The version of the recipes.

        instructions:
            Instructions for the model that uses the server.

        title:
            The server's display name.

        description:
            One sentence about what the server offers.

        website:
            The URL of a website about the server.

        icons:
            The server's icons.
    """

    name: str
    version: str
    instructions: str | None = None
    title: str | None = None
    description: str | None = None
    website: str | None = None
    icons: tuple[Icon, ...] = ()

    def implementation(self, revision: Revision) -> wire.Implementation:
        """
        Return the server's identity with only the members that *revision* defines, without the instructions.
        """
        identity = wire.Implementation(self.name, self.version, self.title if revision.titles else None)
        if revision.icons:  # the same revision added the other members
            identity.description, identity.website_url = self.description, self.website
            identity.icons = wire.icon_entries(self.icons)
        return identity


class Capabilities(Struct, frozen=True):
    """
    The capabilities that a server declares.

    They do not depend on the recipes, because the handshake does not wait for the recipes to be imported.

    Args:
        changes:
            Whether lists and resources can change while the server is running. If so, clients are notified.

        tools:
            Whether the server offers prompts as tools.

        skills_as:
            How the server offers skills to clients without the skills extension.
    """

    changes: bool = False
    tools: ToolMode = False
    skills_as: frozenset[SkillForm] = frozenset()

    @property
    def has_tools(self) -> bool:
        """Whether the server offers prompts or skills as tools."""
        return bool(self.tools) or "tools" in self.skills_as

    def tools_for(self, catalog: Catalog) -> Tools:
        """Return the tools through which the server offers the prompts and skills in a catalog."""
        others = skill_tools(catalog) if "tools" in self.skills_as else {}
        return Tools(catalog, prompts=bool(self.tools), search=self.tools == "search", extra_tools=others)

    def as_data(self, revision: Revision) -> dict[str, Any]:
        """Return the capabilities in the form that *revision* defines."""
        declared: dict[str, Any] = {
            "prompts": {"listChanged": self.changes},
            "resources": {"subscribe": self.changes, "listChanged": self.changes},
        }
        if self.has_tools or revision.empty_lists:
            declared["tools"] = {"listChanged": self.has_tools and self.changes}
        if revision.completions:
            declared["completions"] = {}
        declared["extensions"] = {SKILLS: {"directoryRead": True}}
        return declared


class Method(Struct, frozen=True, dict=True):
    """
    A method of the protocol.

    Args:
        params:
            The type of its params.

        handshake:
            Whether the method exists in sessions that were opened with a handshake.

        modern:
            Whether the method exists for requests that name their revision.

        before_handshake:
            Whether clients can call the method before the handshake.

        enveloped:
            Whether requests for the method can name a revision.
    """

    params: type[wire.Params]
    handshake: bool = True
    modern: bool = True
    before_handshake: bool = False
    enveloped: bool = True

    @cached_property
    def decode(self) -> Callable[[bytes | Raw], wire.Params]:
        """The decoder of the params, created when a client first calls the method."""
        return Decoder(self.params).decode


#: The methods. This table alone decides when a method can be called, except that ``tools/call`` exists only
#: if prompts or skills are offered as tools.
#:
#: Empty lists are served as well, because some clients request every kind of list and abort on an error.
METHODS: Final[Mapping[str, Method]] = {
    "initialize": Method(wire.InitializeParams, modern=False, before_handshake=True, enveloped=False),
    "ping": Method(wire.Params, modern=False, before_handshake=True),
    "server/discover": Method(wire.Params, handshake=False),
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
    "tools/call": Method(wire.GetPromptParams),
    "skills/list": Method(wire.PageParams),
    "skills/get": Method(wire.ResourceParams),
    "resources/directory/read": Method(wire.DirectoryParams),
}


def method_not_found(method: str) -> MethodNotFound:
    """Return the error for a method that does not exist, or is not available to this client."""
    return MethodNotFound(f"method not found: {method}", method)


class ResultEncoder:
    """
    Encodes results for one revision.

    Args:
        revision:
            The revision.

        server_info:
            The server's identity, of which the name and version are sent with every result, if the revision
            requires them.

        full_identity:
            Whether to send the whole identity instead. It can include icons, which are too large to send with
            every result.

    Attributes:
        type:
            The ``resultType`` of a complete result.

        meta:
            The ``_meta`` of every result.

    See Also:
        https://modelcontextprotocol.io/specification/2026-07-28/basic#responses
    """

    def __init__(
        self, revision: Revision, server_info: ServerInfo | None = None, *, full_identity: bool = False
    ) -> None:
        self._stateless = revision.stateless
        self.type = "complete" if self._stateless else None
        self._server: dict[str, Any] = {}
        if self._stateless and server_info is not None:
            short = wire.Implementation(server_info.name, server_info.version)
            sent = server_info.implementation(revision) if full_identity else short
            self._server = {wire.SERVER_INFO: sent}
        self.meta = Raw(encode(self._server)) if self._server else None

    def encode(self, result: wire.Result) -> bytes:
        """
        Encode a complete result, or a result that requests input.

        Raises:
            UnicodeEncodeError: If a string contains a lone surrogate.

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

    def encode_cacheable(self, result: wire.Result, *, can_change: bool) -> bytes:
        """
        Encode a result. Clients may cache it, unless *can_change* is true.

        See Also:
            https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching
        """
        if self._stateless:
            result.ttl_ms = 0 if can_change else _CACHE_MS
            result.cache_scope = "private"  # prompts come from one user's files
        return self.encode(result)
