"""The params of requests and notifications, the ``_meta`` of requests, and the results of the handshake."""

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

__all__ = [
    "CLIENT_CAPABILITIES",
    "CLIENT_INFO",
    "LOG_LEVEL",
    "PROTOCOL_VERSION",
    "SERVER_INFO",
    "SUBSCRIPTION_ID",
    "ArgumentPrefix",
    "CancelledParams",
    "ChangeParams",
    "ClientInfo",
    "CompleteParams",
    "CompletionContext",
    "DirectoryParams",
    "DiscoverResult",
    "GetPromptParams",
    "Implementation",
    "InitializeParams",
    "InitializeResult",
    "ListenParams",
    "LogLevel",
    "Meta",
    "NotificationMeta",
    "PageParams",
    "Params",
    "ProgressParams",
    "PromptReference",
    "ResourceParams",
    "ResourceReference",
    "Result",
    "SubscriptionFilter",
]

#: Keys of ``_meta`` that the specification reserves.
PROTOCOL_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"

#: What a person types. A URI has as many characters at most.
Typed: TypeAlias = Annotated[str, msgspec.Meta(max_length=65_536)]

LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


class ClientInfo(Struct, gc=False):
    """
    The client's name and version.
    """

    name: str
    version: str = ""


class Meta(Struct, kw_only=True, gc=False):
    """
    The ``_meta`` of a request. In the modern era it names the revision and the client.
    """

    protocol_version: str | UnsetType = field(default=UNSET, name=PROTOCOL_VERSION)
    client_capabilities: dict[str, Any] | UnsetType = field(default=UNSET, name=CLIENT_CAPABILITIES)
    client_info: ClientInfo | UnsetType = field(default=UNSET, name=CLIENT_INFO)
    log_level: LogLevel | UnsetType = field(default=UNSET, name=LOG_LEVEL)
    progress_token: int | str | UnsetType = field(default=UNSET, name="progressToken")
    # Of the tracing of others: whatever stands there, the request is served.
    traceparent: Any = UNSET
    tracestate: Any = UNSET
    baggage: Any = UNSET


class Params(Struct, kw_only=True, gc=False):
    """
    Params that may be any object.
    """

    meta: Meta | UnsetType | None = field(default=UNSET, name="_meta")


class InitializeParams(Params, rename="camel"):
    """
    The params of ``initialize``.
    """

    protocol_version: str
    capabilities: dict[str, Any] = field(default_factory=dict)
    client_info: ClientInfo | None = None


class PageParams(Params):
    """
    Which page of a list to return.
    """

    cursor: str | UnsetType = UNSET


class GetPromptParams(Params, rename="camel"):
    """
    Which prompt to render, or which tool to call.

    By the schema, the arguments of a prompt are strings. Some clients send other JSON values, which an
    argument may accept. Those of a tool are JSON.
    """

    name: str
    arguments: dict[str, Any] | None = None
    input_responses: dict[str, Any] | UnsetType = UNSET
    request_state: str | UnsetType = UNSET


class CancelledParams(Params, rename="camel"):
    """
    The request that needs no answer any more.
    """

    request_id: int | str


class PromptReference(Struct, tag_field="type", tag="ref/prompt"):
    """
    The prompt that an argument to complete belongs to.
    """

    name: str


class ResourceReference(Struct, tag_field="type", tag="ref/resource"):
    """
    The resource template that a variable to complete belongs to.
    """

    uri: str


class ArgumentPrefix(Struct):
    """
    The argument to complete, and what was typed so far.
    """

    name: Typed
    value: Typed


class CompletionContext(Struct):
    """
    The arguments that have been chosen already.
    """

    arguments: dict[str, str] = field(default_factory=dict)


class CompleteParams(Params):
    """
    The params of ``completion/complete``.
    """

    ref: PromptReference | ResourceReference
    argument: ArgumentPrefix
    context: CompletionContext | None = None


class ResourceParams(Params):
    """
    The params of the methods about one resource.
    """

    uri: Typed


class DirectoryParams(ResourceParams):
    """
    The params of ``resources/directory/read``: a folder, and which page of what is in it.
    """

    cursor: str | UnsetType = UNSET


class SubscriptionFilter(Struct, rename="camel"):
    """
    Which changes to notify the client of. Unknown kinds are ignored.
    """

    prompts_list_changed: bool | UnsetType = UNSET
    resources_list_changed: bool | UnsetType = UNSET
    resource_subscriptions: list[str] | UnsetType = UNSET
    tools_list_changed: bool | UnsetType = UNSET


class ListenParams(Params):
    """
    The params of ``subscriptions/listen``.
    """

    notifications: SubscriptionFilter


class NotificationMeta(Struct):
    """
    The subscription that a notification belongs to.
    """

    subscription_id: int | str = field(name=SUBSCRIPTION_ID)


class ChangeParams(Struct):
    """
    The params of a notification that something changed.
    """

    uri: str | UnsetType = UNSET
    notifications: SubscriptionFilter | UnsetType = UNSET
    meta: NotificationMeta | UnsetType = field(default=UNSET, name="_meta")


class ProgressParams(Struct, rename="camel"):
    """
    The params of ``notifications/progress``: how far the work on a request has come.
    """

    progress_token: int | str
    progress: float
    total: float | UnsetType = UNSET
    message: str | UnsetType = UNSET


class Result(Struct, rename="camel", kw_only=True):
    """
    The members that every result may have.
    """

    result_type: str | UnsetType = UNSET
    ttl_ms: int | UnsetType = UNSET
    cache_scope: str | UnsetType = UNSET
    meta: Raw | UnsetType = field(default=UNSET, name="_meta")


class Implementation(Struct):
    """
    The server's name and version.
    """

    name: str
    version: str


class InitializeResult(Result, rename="camel"):
    """
    The answer to ``initialize``.
    """

    protocol_version: str
    capabilities: dict[str, Any]
    server_info: Implementation
    instructions: str | UnsetType = UNSET


class DiscoverResult(Result, rename="camel"):
    """
    The answer to ``server/discover``, for clients without a session.
    """

    supported_versions: list[str]
    capabilities: dict[str, Any]
    instructions: str | UnsetType = UNSET
