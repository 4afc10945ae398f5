"""What clients see of tools: entries of their list, and the results of calls."""

from typing import Any

from msgspec import UNSET, Struct, UnsetType, field

from promptkit.protocol.wire.content import Content
from promptkit.protocol.wire.results import Icon
from promptkit.protocol.wire.session import Result

__all__ = ["CallToolResult", "Tool", "ToolAnnotations"]


class ToolAnnotations(Struct, rename="camel"):
    """
    What a client may expect of a call, without trusting it.
    """

    read_only_hint: bool
    idempotent_hint: bool
    open_world_hint: bool
    destructive_hint: bool | UnsetType = UNSET


class Tool(Struct, rename="camel"):
    """
    An entry of ``tools/list``.
    """

    name: str
    input_schema: dict[str, Any]
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    annotations: ToolAnnotations | UnsetType = UNSET
    icons: list[Icon] | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = field(default=UNSET, name="_meta")


class CallToolResult(Result, rename="camel"):
    """
    What a call gives: content, or what was wrong. That it is an error comes first, where a log looks for it.
    """

    is_error: bool | UnsetType = UNSET
    content: list[Content] = field(default_factory=list)
