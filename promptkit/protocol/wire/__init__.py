"""
What goes over the wire, as structs: one for each object of the published schemas.

A member that a revision lacks, or that nobody set, is `UNSET` and is not sent.

The first answers need neither content nor most methods, so what these have is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from promptkit.protocol.wire.requests import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    LOG_LEVEL,
    PROTOCOL_VERSION,
    SERVER_INFO,
    SUBSCRIPTION_ID,
    CancelledParams,
    ClientInfo,
    GetPromptParams,
    InitializeParams,
    LogLevel,
    Meta,
    PageParams,
    Params,
)
from promptkit.protocol.wire.session import (
    DiscoverResult,
    Implementation,
    InitializeResult,
    Result,
)

if TYPE_CHECKING:
    from promptkit.protocol.wire.completion import (
        ArgumentPrefix,
        CompleteParams,
        CompletionContext,
        PromptReference,
        ResourceReference,
    )
    from promptkit.protocol.wire.content import (
        Annotations,
        AudioContent,
        Content,
        EmbeddedContent,
        GetPromptResult,
        ImageContent,
        PromptMessage,
        ResourceContents,
        ResourceLinkContent,
        TextContent,
    )
    from promptkit.protocol.wire.notifications import (
        ChangeParams,
        ListenParams,
        NotificationMeta,
        ProgressParams,
        ResourceParams,
        SubscriptionFilter,
    )
    from promptkit.protocol.wire.results import (
        CompleteResult,
        Completion,
        Icon,
        InputRequiredResult,
        ListPromptsResult,
        ListResourcesResult,
        ListResourceTemplatesResult,
        ListToolsResult,
        Prompt,
        PromptArgument,
        ReadResourceResult,
        Resource,
        ResourceTemplate,
    )
    from promptkit.protocol.wire.tools import CallToolResult, Tool, ToolAnnotations

__all__ = [
    "CLIENT_CAPABILITIES",
    "CLIENT_INFO",
    "LOG_LEVEL",
    "PROTOCOL_VERSION",
    "SERVER_INFO",
    "SUBSCRIPTION_ID",
    "Annotations",
    "ArgumentPrefix",
    "AudioContent",
    "CallToolResult",
    "CancelledParams",
    "ChangeParams",
    "ClientInfo",
    "CompleteParams",
    "CompleteResult",
    "Completion",
    "CompletionContext",
    "Content",
    "DiscoverResult",
    "EmbeddedContent",
    "GetPromptParams",
    "GetPromptResult",
    "Icon",
    "ImageContent",
    "Implementation",
    "InitializeParams",
    "InitializeResult",
    "InputRequiredResult",
    "ListPromptsResult",
    "ListResourceTemplatesResult",
    "ListResourcesResult",
    "ListToolsResult",
    "ListenParams",
    "LogLevel",
    "Meta",
    "NotificationMeta",
    "PageParams",
    "Params",
    "ProgressParams",
    "Prompt",
    "PromptArgument",
    "PromptMessage",
    "PromptReference",
    "ReadResourceResult",
    "Resource",
    "ResourceContents",
    "ResourceLinkContent",
    "ResourceParams",
    "ResourceReference",
    "ResourceTemplate",
    "Result",
    "SubscriptionFilter",
    "TextContent",
    "Tool",
    "ToolAnnotations",
]

#: In the order in which a client comes to need them.
_LAZY: Final = ("content", "results", "completion", "notifications", "tools")


def __getattr__(name: str) -> Any:
    """Import a struct of a lazy module when it is first used."""
    for module in _LAZY if name in __all__ else ():
        if (struct := vars(import_module(f"{__name__}.{module}")).get(name)) is not None:
            globals()[name] = struct
            return struct
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
