"""What clients send: the params of every method, and what stands beside them."""

from typing import Any, Final, Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType, field

__all__ = [
    "CLIENT_CAPABILITIES",
    "CLIENT_INFO",
    "LOG_LEVEL",
    "PROTOCOL_VERSION",
    "SERVER_INFO",
    "SUBSCRIPTION_ID",
    "ArgumentPrefix",
    "CancelledParams",
    "ClientInfo",
    "CompleteParams",
    "CompletionContext",
    "GetPromptParams",
    "InitializeParams",
    "ListenParams",
    "LogLevel",
    "Meta",
    "PageParams",
    "Params",
    "PromptReference",
    "ResourceParams",
    "ResourceReference",
    "SubscriptionFilter",
]

#: Keys of ``_meta`` that the specification reserves.
PROTOCOL_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"

LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


class ClientInfo(Struct, gc=False):
    """
    How a client calls itself.
    """

    name: str
    version: str = ""


class Meta(Struct, kw_only=True, gc=False):
    """
    What a request says beside its params. In the modern era it says who asks, and how.
    """

    protocol_version: str | UnsetType = field(default=UNSET, name=PROTOCOL_VERSION)
    client_capabilities: dict[str, Any] | UnsetType = field(default=UNSET, name=CLIENT_CAPABILITIES)
    client_info: ClientInfo | UnsetType = field(default=UNSET, name=CLIENT_INFO)
    log_level: LogLevel | UnsetType = field(default=UNSET, name=LOG_LEVEL)
    progress_token: int | str | UnsetType = field(default=UNSET, name="progressToken")


class Params(Struct, kw_only=True, gc=False):
    """
    Params of which nothing is asked but that they are an object.
    """

    meta: Meta | UnsetType | None = field(default=UNSET, name="_meta")


class InitializeParams(Params, rename="camel"):
    """
    The opening of a handshake.
    """

    protocol_version: str
    capabilities: dict[str, Any] = field(default_factory=dict)
    client_info: ClientInfo | None = None


class PageParams(Params):
    """
    Which page of a list is wanted.
    """

    cursor: str | UnsetType = UNSET


class GetPromptParams(Params, rename="camel"):
    """
    Which prompt is wanted, and for what.

    By the schema the arguments are strings. Some clients send other JSON values; whether
    one fits is for the argument to say.
    """

    name: str
    arguments: dict[str, Any] | None = None
    input_responses: dict[str, Any] | UnsetType = UNSET
    request_state: str | UnsetType = UNSET


class PromptReference(Struct, tag_field="type", tag="ref/prompt"):
    """
    The prompt whose argument is completed.
    """

    name: str


class ResourceReference(Struct, tag_field="type", tag="ref/resource"):
    """
    The template whose variable is completed.
    """

    uri: str


class ArgumentPrefix(Struct):
    """
    What was typed so far, and for what.
    """

    name: str
    value: str


class CompletionContext(Struct):
    """
    What was chosen already.
    """

    arguments: dict[str, str] = field(default_factory=dict)


class CompleteParams(Params):
    """
    What is to be completed.
    """

    ref: PromptReference | ResourceReference
    argument: ArgumentPrefix
    context: CompletionContext | None = None


class ResourceParams(Params):
    """
    Which resource is meant.
    """

    uri: str


class SubscriptionFilter(Struct, rename="camel"):
    """
    Which changes are told. What is not a kind of ours is not read.
    """

    prompts_list_changed: bool | UnsetType = UNSET
    resources_list_changed: bool | UnsetType = UNSET
    resource_subscriptions: list[str] | UnsetType = UNSET


class ListenParams(Params):
    """
    What a client wants to hear of.
    """

    notifications: SubscriptionFilter


class CancelledParams(Params, rename="camel"):
    """
    Which request need not be answered.
    """

    request_id: int | str
