"""
The objects of the published schemas, as structs: params, results and content.

A member that a revision does not have, or that has no value, is None and is not sent. `UNSET` means that a
client has not sent a member for which null is not valid.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, field

from promptkit.language.media import Icon

#: Keys of ``_meta`` that the specification reserves.
PROTOCOL_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"

#: Text that a user types, or a URI.
Typed: TypeAlias = Annotated[str, msgspec.Meta(max_length=65_536)]

LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


class ClientInfo(Struct, gc=False):
    """The client's name and version."""

    name: str
    version: str | None = ""


class Meta(Struct, kw_only=True, gc=False, omit_defaults=True):
    """
    The ``_meta`` of a request. In the modern era it names the revision and the client.

    `promptkit.protocol.session.read_envelope` checks the types of the members, because only the modern era
    defines them.
    """

    protocol_version: Any = field(default=UNSET, name=PROTOCOL_VERSION)
    client_capabilities: Any = field(default=UNSET, name=CLIENT_CAPABILITIES)
    client_info: Any = field(default=None, name=CLIENT_INFO)
    log_level: Any = field(default=None, name=LOG_LEVEL)
    progress_token: int | str | None = field(default=None, name="progressToken")
    # The trace context. An invalid value does not make the request fail.
    traceparent: Any = None
    tracestate: Any = None
    baggage: Any = None

    @property
    def has_revision(self) -> bool:
        """Whether the request belongs to the modern era."""
        return self.protocol_version is not UNSET


class Params(Struct, kw_only=True, gc=False, omit_defaults=True):
    """
    The params that all methods have in common. Any object is valid.

    Optional members can be null, because many clients send null instead of omitting a member.
    """

    meta: Meta | None = field(default=None, name="_meta")


class InitializeParams(Params, rename="camel"):
    """The params of ``initialize``."""

    protocol_version: str
    capabilities: dict[str, Any] | None = None
    client_info: ClientInfo | None = None


class PageParams(Params):
    """The params of list methods: the page to return."""

    cursor: str | None = None


class GetPromptParams(Params, rename="camel"):
    """
    The prompt to render or the tool to call, and its arguments.

    In the schema, the arguments of a prompt are strings. Some clients send other JSON values, which some
    arguments accept. The arguments of a tool can be any JSON.
    """

    name: str
    arguments: dict[str, Any] | None = None
    input_responses: dict[str, Any] | None = None
    request_state: str | None = None


class CancelledParams(Params, rename="camel"):
    """The params of ``notifications/cancelled``."""

    request_id: int | str


class PromptReference(Struct, tag_field="type", tag="ref/prompt"):
    """The prompt that has the argument to complete."""

    name: str


class ResourceReference(Struct, tag_field="type", tag="ref/resource"):
    """The resource template that has the variable to complete."""

    uri: str


class ArgumentPrefix(Struct):
    """The argument to complete, and the text typed so far."""

    name: Typed
    value: Typed


class CompletionContext(Struct):
    """The values already chosen for other arguments."""

    arguments: dict[str, str | None] | None = None


class CompleteParams(Params):
    """The params of ``completion/complete``."""

    ref: PromptReference | ResourceReference
    argument: ArgumentPrefix
    context: CompletionContext | None = None

    @property
    def chosen(self) -> dict[str, str]:
        """The values already chosen for other arguments."""
        arguments = self.context.arguments if self.context else None
        return {name: value for name, value in (arguments or {}).items() if value is not None}


class ResourceParams(Params):
    """The params of methods that take the URI of a resource or a skill."""

    uri: Typed


class DirectoryParams(ResourceParams):
    """The params of ``resources/directory/read``: a folder, and the page of its contents to return."""

    cursor: str | None = None


class SubscriptionFilter(Struct, rename="camel", omit_defaults=True):
    """The changes to notify the client of. Unknown members are ignored."""

    prompts_list_changed: bool | None = None
    resources_list_changed: bool | None = None
    resource_subscriptions: list[str] | None = None
    tools_list_changed: bool | None = None


class ListenParams(Params):
    """The params of ``subscriptions/listen``."""

    notifications: SubscriptionFilter


class NotificationMeta(Struct):
    """The subscription that a notification belongs to."""

    subscription_id: int | str = field(name=SUBSCRIPTION_ID)


class ChangeParams(Struct, omit_defaults=True):
    """The params of a change notification."""

    uri: str | None = None
    notifications: SubscriptionFilter | None = None
    meta: NotificationMeta | None = field(default=None, name="_meta")


class ProgressParams(Struct, rename="camel", omit_defaults=True):
    """The params of ``notifications/progress``."""

    progress_token: int | str
    progress: float
    total: float | None = None
    message: str | None = None


class Result(Struct, rename="camel", kw_only=True, omit_defaults=True):
    """The members that every result can have."""

    result_type: str | None = None
    ttl_ms: int | None = None
    cache_scope: str | None = None
    meta: Raw | None = field(default=None, name="_meta")


class Implementation(Struct, rename="camel", omit_defaults=True):
    """The server's name and version, with its title, description, website and icons."""

    name: str
    version: str
    title: str | None = None
    description: str | None = None
    website_url: str | None = None
    icons: "list[IconEntry]" = []


class InitializeResult(Result):
    """The result of ``initialize``."""

    protocol_version: str
    capabilities: dict[str, Any]
    server_info: Implementation
    instructions: str | None = None


class DiscoverResult(Result):
    """The result of ``server/discover``, for clients without a session."""

    supported_versions: list[str]
    capabilities: dict[str, Any]
    instructions: str | None = None


class ContentAnnotations(Struct, rename="camel", omit_defaults=True):
    """The audience of a content block, its priority, and its date."""

    audience: tuple[str, ...] | None = None
    priority: float | None = None
    last_modified: str | None = None


class TextContent(Struct, tag_field="type", tag="text", gc=False, omit_defaults=True):
    """A block of text."""

    text: str
    annotations: ContentAnnotations | None = None


class ImageContent(Struct, tag_field="type", tag="image", rename="camel", omit_defaults=True):
    """Image data, encoded in base64."""

    data: Raw
    mime_type: str
    annotations: ContentAnnotations | None = None


class AudioContent(Struct, tag_field="type", tag="audio", rename="camel", omit_defaults=True):
    """Audio data, encoded in base64."""

    data: Raw
    mime_type: str
    annotations: ContentAnnotations | None = None


class ResourceContents(Struct, rename="camel", omit_defaults=True):
    """The contents of a resource: text, or bytes encoded in base64."""

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: Raw | None = None


class EmbeddedContent(Struct, tag_field="type", tag="resource", omit_defaults=True):
    """A resource inside a message."""

    resource: ResourceContents
    annotations: ContentAnnotations | None = None


class ResourceLinkContent(Struct, tag_field="type", tag="resource_link", rename="camel", omit_defaults=True):
    """A link to a resource that the client can read."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: ContentAnnotations | None = None


Content = TextContent | ImageContent | AudioContent | EmbeddedContent | ResourceLinkContent


class PromptMessage(Struct, gc=False):
    """A content block and its role."""

    role: str
    content: Content


class GetPromptResult(Result):
    """A rendered prompt."""

    messages: list[PromptMessage]
    description: str | None = None


class ReadResourceResult(Result):
    """The contents of a resource."""

    contents: list[ResourceContents]


class CallToolResult(Result):
    """The result of ``tools/call``. The error flag comes first, where log parsers look for it."""

    is_error: bool | None = None
    content: list[Content] | None = None  # always given; it needs a default because the flag has one


class Entry(Struct, rename="camel", omit_defaults=True):
    """
    An entry of a list, such as a prompt, or a part of such an entry.

    The test client returns these entries to authors. A member that the server did not send is None or empty.
    """


class IconEntry(Entry):
    """An icon that a client can show."""

    src: str
    mime_type: str | None = None
    sizes: tuple[str, ...] = ()
    theme: str | None = None


def icon_entries(icons: Iterable[Icon]) -> list[IconEntry]:
    """Convert icons to the entries of the protocol."""
    return [IconEntry(icon.src, icon.mime_type, icon.sizes, icon.theme) for icon in icons]


class PromptArgument(Entry, kw_only=True):
    """An argument in an entry of ``prompts/list``."""

    name: str
    title: str | None = None
    description: str | None = None
    required: bool


class PromptEntry(Entry):
    """An entry of ``prompts/list``."""

    name: str
    title: str | None = None
    description: str | None = None
    arguments: list[PromptArgument] = []
    icons: list[IconEntry] = []
    meta: dict[str, Any] = field(default_factory=dict, name="_meta")


class ListPromptsResult(Result):
    """One page of prompts, each already encoded."""

    prompts: list[Raw]
    next_cursor: str | None = None


class ResourceEntry(Entry):
    """An entry of ``resources/list``."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    icons: list[IconEntry] = []
    annotations: ContentAnnotations | None = None
    size: int | None = None


class ResourceTemplate(Entry):
    """An entry of ``resources/templates/list``."""

    uri_template: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    icons: list[IconEntry] = []
    annotations: ContentAnnotations | None = None


class ListResourcesResult(Result):
    """One page of resources, each already encoded."""

    resources: list[Raw]
    next_cursor: str | None = None


class ListResourceTemplatesResult(Result):
    """One page of resource templates, each already encoded."""

    resource_templates: list[Raw]
    next_cursor: str | None = None


class ListToolsResult(Result):
    """One page of tools, each already encoded."""

    tools: list[Raw]
    next_cursor: str | None = None


class SkillFileEntry(Struct):
    """A file of a skill, with its digest and its size."""

    uri: str
    digest: str
    size: int


class SkillEntry(Struct):
    """An entry of ``skills/list``: the frontmatter and the files of a skill."""

    uri: str
    frontmatter: Mapping[str, Any]
    resources: list[SkillFileEntry]

    @property
    def name(self) -> str:
        """The skill's name."""
        return str(self.frontmatter["name"])


class ListSkillsResult(Result):
    """One page of skills, each already encoded."""

    skills: list[Raw]
    next_cursor: str | None = None


class GetSkillResult(Result):
    """The result of ``skills/get``."""

    skill: SkillEntry


class CompletionValues(Struct, rename="camel"):
    """The completions to offer."""

    values: tuple[str, ...]
    total: int
    has_more: bool


class CompleteResult(Result):
    """The result of ``completion/complete``."""

    completion: CompletionValues


class InputRequiredResult(Result):
    """The input that the client must provide before its request can be answered."""

    input_requests: dict[str, Any]
    request_state: str


class ToolAnnotations(Entry):
    """Hints about the behavior of a tool, which clients should not rely on."""

    read_only_hint: bool
    idempotent_hint: bool
    open_world_hint: bool
    destructive_hint: bool | None = None


class ToolEntry(Entry):
    """An entry of ``tools/list``."""

    name: str
    input_schema: dict[str, Any]
    title: str | None = None
    description: str | None = None
    annotations: ToolAnnotations | None = None
    icons: list[IconEntry] = []
    meta: dict[str, Any] = field(default_factory=dict, name="_meta")
