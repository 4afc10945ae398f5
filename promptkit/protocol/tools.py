"""Tools: prompts as entries of ``tools/list``, and the results of calls."""

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from typing import Final

from msgspec import UNSET, UnsetType

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.errors.exceptions import (
    ArgumentErrors,
    PromptError,
    PromptkitError,
    UnknownPrompt,
    UnknownTool,
)
from promptkit.language.messages import Workflow
from promptkit.language.tool import Tool
from promptkit.protocol import wire
from promptkit.protocol.jsonrpc import InternalError, encode, message_of
from promptkit.protocol.lowering import Lowering

__all__ = ["encode_called", "encode_failure", "listed_tool"]

#: What is said of a tool whose author says nothing.
_USUAL: Final = Tool()

#: What a model is told in a result, as it may mend its call. Of all else its client is told.
_TOLD: Final = (ArgumentErrors, PromptError, InternalError, UnknownPrompt)


def listed_tool(lowering: Lowering, prompt: CompiledPrompt) -> wire.ToolEntry:
    """
    Return a prompt as it is listed as a tool.
    """
    has = lowering.revision
    return wire.ToolEntry(
        name=prompt.name,
        input_schema=prompt.schema,
        title=prompt.title if has.titles and prompt.title is not None else UNSET,
        description=UNSET if prompt.description is None else prompt.description,
        annotations=_annotations(prompt) if has.tool_annotations else UNSET,
        icons=lowering.icons(prompt),
        meta=dict(prompt.meta) or UNSET if has.metadata else UNSET,
    )


def encode_called(lowering: Lowering, _prompt: CompiledPrompt, rendered: Workflow | str) -> bytes:
    """
    Encode the result of a call.

    Args:
        lowering:
            Encodes for the client's revision.

        rendered:
            What the prompt rendered to. A plain string stands for a single user message.

    Raises:
        UnicodeEncodeError: If a text holds a lone surrogate.
    """
    if isinstance(rendered, str):
        return _encode(lowering, [wire.TextContent(rendered)])
    return _encode(lowering, _content(lowering, rendered))


def encode_failure(lowering: Lowering, error: PromptkitError) -> bytes | None:
    """
    Encode the result of a call that failed; None if the error is not for a model.
    """
    if not isinstance(error, _TOLD) or isinstance(error, UnknownTool):
        return None
    return _encode(lowering, [wire.TextContent(message_of(error))], is_error=True)


def _encode(lowering: Lowering, content: list[wire.Content], *, is_error: bool | UnsetType = UNSET) -> bytes:
    kind, meta = lowering.results.type, lowering.results.meta
    return encode(wire.CallToolResult(is_error, content, result_type=kind, meta=meta))


def _content(lowering: Lowering, workflow: Workflow) -> list[wire.Content]:
    """All parts. Plain texts are one block: there are clients that read the first one alone."""
    blocks = list(_blocks(lowering, workflow))
    texts = [
        block.text for block in blocks if isinstance(block, wire.TextContent) and block.annotations is UNSET
    ]
    return [wire.TextContent("\n\n".join(texts))] if texts and len(texts) == len(blocks) else blocks


def _blocks(lowering: Lowering, workflow: Workflow) -> Iterator[wire.Content]:
    """Every part in order. Before each turn of several, a block says whose it is: results have no roles."""
    turns = [(role, list(messages)) for role, messages in groupby(workflow.messages, attrgetter("role"))]
    for role, messages in turns:
        if len(turns) > 1:
            yield wire.TextContent(f"[{role}]")
        yield from (lowering.content(message.content) for message in messages)


def _annotations(prompt: CompiledPrompt) -> wire.ToolAnnotations:
    said = prompt.tool if isinstance(prompt.tool, Tool) else _USUAL
    return wire.ToolAnnotations(
        said.read_only,
        said.idempotent,
        said.open_world,
        UNSET if said.read_only else said.destructive,
    )
