"""What clients send: the params of the methods that come first, and the ``_meta`` of all."""

from typing import Any, Final, Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType, field

__all__ = [
    "CLIENT_CAPABILITIES",
    "CLIENT_INFO",
    "LOG_LEVEL",
    "PROTOCOL_VERSION",
    "SERVER_INFO",
    "SUBSCRIPTION_ID",
    "CancelledParams",
    "ClientInfo",
    "GetPromptParams",
    "InitializeParams",
    "LogLevel",
    "Meta",
    "PageParams",
    "Params",
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
