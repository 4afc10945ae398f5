"""What the server sends: results and notifications."""

from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType, field

from promptkit.protocol.wire.content import PromptMessage, ResourceContents
from promptkit.protocol.wire.requests import SUBSCRIPTION_ID, SubscriptionFilter

__all__ = [
    "ChangeParams",
    "CompleteResult",
    "Completion",
    "DiscoverResult",
    "GetPromptResult",
    "Icon",
    "Implementation",
    "InitializeResult",
    "InputRequiredResult",
    "ListPromptsResult",
    "ListResourceTemplatesResult",
    "ListResourcesResult",
    "ListToolsResult",
    "NotificationMeta",
    "ProgressParams",
    "Prompt",
    "PromptArgument",
    "ReadResourceResult",
    "Resource",
    "ResourceTemplate",
    "Result",
]


class Result(Struct, rename="camel", kw_only=True):
    """
    What every result may say of itself.
    """

    result_type: str | UnsetType = UNSET
    ttl_ms: int | UnsetType = UNSET
    cache_scope: str | UnsetType = UNSET
    meta: Raw | UnsetType = field(default=UNSET, name="_meta")


class GetPromptResult(Result):
    """
    A rendered prompt.
    """

    messages: list[PromptMessage]
    description: str | UnsetType = UNSET


class Icon(Struct, rename="camel"):
    """
    A picture that a client may show.
    """

    src: str
    mime_type: str | UnsetType = UNSET
    sizes: tuple[str, ...] | UnsetType = UNSET
    theme: str | UnsetType = UNSET


class PromptArgument(Struct):
    """
    What a prompt may be asked, as a list shows it.
    """

    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    required: bool | UnsetType = UNSET


class Prompt(Struct):
    """
    A prompt, as a list shows it.
    """

    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    arguments: list[PromptArgument] | UnsetType = UNSET
    icons: list[Icon] | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = field(default=UNSET, name="_meta")


class ListPromptsResult(Result, rename="camel"):
    """
    One page of the prompts, each encoded already.
    """

    prompts: list[Raw]
    next_cursor: str | UnsetType = UNSET


class Resource(Struct, rename="camel"):
    """
    A resource, as a list shows it.
    """

    uri: str
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET


class ResourceTemplate(Struct, rename="camel"):
    """
    A template of resources, as a list shows it.
    """

    uri_template: str
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET


class ListResourcesResult(Result, rename="camel"):
    """
    One page of the resources, each encoded already.
    """

    resources: list[Raw]
    next_cursor: str | UnsetType = UNSET


class ListResourceTemplatesResult(Result, rename="camel"):
    """
    One page of the templates, each encoded already.
    """

    resource_templates: list[Raw]
    next_cursor: str | UnsetType = UNSET


class ListToolsResult(Result, rename="camel"):
    """
    One page of the tools, of which there are none.
    """

    tools: list[Raw]
    next_cursor: str | UnsetType = UNSET


class ReadResourceResult(Result):
    """
    What a resource holds.
    """

    contents: list[ResourceContents]


class Completion(Struct, rename="camel"):
    """
    What to offer while someone types.
    """

    values: tuple[str, ...]
    total: int
    has_more: bool


class CompleteResult(Result):
    """
    The answer to someone who types.
    """

    completion: Completion


class InputRequiredResult(Result, rename="camel"):
    """
    What has to be answered before a request can be.
    """

    input_requests: dict[str, Any]
    request_state: str


class Implementation(Struct):
    """
    How the server calls itself.
    """

    name: str
    version: str


class InitializeResult(Result, rename="camel"):
    """
    The answer to the opening of a handshake.
    """

    protocol_version: str
    capabilities: dict[str, Any]
    server_info: Implementation
    instructions: str | UnsetType = UNSET


class DiscoverResult(Result, rename="camel"):
    """
    What a server can do, for a client that opens no session.
    """

    supported_versions: list[str]
    capabilities: dict[str, Any]
    instructions: str | UnsetType = UNSET


class NotificationMeta(Struct):
    """
    To which subscription a notification belongs.
    """

    subscription_id: int | str = field(name=SUBSCRIPTION_ID)


class ChangeParams(Struct):
    """
    What a notification of a change says.
    """

    uri: str | UnsetType = UNSET
    notifications: SubscriptionFilter | UnsetType = UNSET
    meta: NotificationMeta | UnsetType = field(default=UNSET, name="_meta")


class ProgressParams(Struct, rename="camel"):
    """
    How far the work on a request is.
    """

    progress_token: int | str
    progress: float
    total: float | UnsetType = UNSET
    message: str | UnsetType = UNSET
