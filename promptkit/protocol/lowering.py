"""
Lowering: the conversion of promptkit's values to the objects of a protocol revision.

Content that an older revision does not have is converted to content that it has. No content is rejected.
"""

from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC
from functools import cache
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

from msgspec import Raw

from promptkit.catalog.arguments import DIALECT, Argument
from promptkit.catalog.completion import Completion
from promptkit.catalog.prompts import ANSWER, SCHEMA, CompiledPrompt
from promptkit.catalog.resources import CompiledResource
from promptkit.catalog.skills import CompiledSkill
from promptkit.errors.exceptions import (
    ArgumentsError,
    PromptError,
    PromptkitError,
    UnknownPromptError,
    UnknownToolError,
)
from promptkit.language.annotations import Tool
from promptkit.language.content import Content
from promptkit.language.documents import EmbeddedResource, ResourceLink
from promptkit.language.media import Audio, Image
from promptkit.language.messages import Workflow
from promptkit.language.text import Text
from promptkit.protocol import wire
from promptkit.protocol.capabilities import ResultEncoder, ServerInfo
from promptkit.protocol.jsonrpc import InternalError, encode, format_message
from promptkit.protocol.revisions import Revision

#: The largest encoding that is cached, in bytes, and the cache of recent encodings. Large bytes are mostly
#: constants in recipes. Lookups compare identity, because hashing or comparing the bytes would take longer
#: than encoding them.
_MAX_CACHED: Final = 3 * 1024 * 1024
_BASE64_CACHE: Final[deque[tuple[bytes, bytes]]] = deque(maxlen=4)

#: Errors that the model can fix. They are sent as results of tool calls; all other errors are sent as
#: JSON-RPC errors.
_TOOL_ERRORS: Final = (ArgumentsError, PromptError, InternalError, UnknownPromptError)


class Lowering:
    """An encoder for prompts, resources, completions and tool results under one revision."""

    def __init__(
        self, revision: Revision, server_info: ServerInfo | None = None, *, forms: bool = False
    ) -> None:
        self.revision = revision
        self._forms = forms
        self.results = ResultEncoder(revision, server_info)

    def result(self, prompt: CompiledPrompt, rendered: Workflow | str) -> bytes:
        """
        Encode the result of ``prompts/get``. A plain string means a single user message.

        Raises:
            UnicodeEncodeError: If a string contains a lone surrogate.
        """
        if isinstance(rendered, str):
            messages = [wire.PromptMessage("user", wire.TextContent(rendered))]
        else:
            sent = rendered.messages if rendered.system is None else rendered.sent
            messages = [wire.PromptMessage(m.role, self.content(m.content)) for m in sent]
        kind, meta = self.results.type, self.results.meta
        return encode(wire.GetPromptResult(messages, prompt.description, result_type=kind, meta=meta))

    def content(self, content: Content) -> wire.Content:
        """Convert a content block."""
        if type(content) is Text and not content.annotated:
            return wire.TextContent(content.text)
        return _LOWERED[type(content)](self, content)

    def completion(self, completion: Completion) -> bytes:
        """Encode the result of ``completion/complete``."""
        values = wire.CompletionValues(completion.values, completion.total, completion.has_more)
        return self.results.encode(wire.CompleteResult(values))

    def contents(self, resource: EmbeddedResource, *, can_change: bool = True) -> bytes:
        """
        Encode the result of ``resources/read``.

        Args:
            resource:
                The contents.

            can_change:
                Whether the contents can change, for example because a function returns them.

        Raises:
            UnicodeEncodeError: If a string contains a lone surrogate.
        """
        result = wire.ReadResourceResult([_contents(resource)])
        return self.results.encode_cacheable(result, can_change=can_change)

    def prompt(self, prompt: CompiledPrompt) -> wire.PromptEntry:
        """Convert a prompt to its entry in ``prompts/list``."""
        revision = self.revision
        return wire.PromptEntry(
            name=prompt.name,
            title=prompt.title if revision.titles else None,
            description=prompt.description,
            arguments=[
                self._argument(argument, is_asked=self._forms and prompt.elicit is not False)
                for argument in prompt.arguments.ordered
            ],
            icons=self.icons(prompt),
            meta=_meta(prompt) if revision.metadata else {},
        )

    def tool(self, prompt: CompiledPrompt) -> wire.ToolEntry:
        """Convert a prompt to its entry in ``tools/list``."""
        revision = self.revision
        return wire.ToolEntry(
            name=prompt.name,
            input_schema=prompt.schema,
            title=prompt.title if revision.titles else None,
            description=prompt.description,
            annotations=_tool_annotations(prompt) if revision.tool_annotations else None,
            icons=self.icons(prompt),
            meta=dict(prompt.meta) if revision.metadata else {},
        )

    def tool_result(self, rendered: Workflow | str) -> bytes:
        """
        Encode the result of ``tools/call``. A plain string means a single user message.

        Raises:
            UnicodeEncodeError: If a string contains a lone surrogate.
        """
        if isinstance(rendered, str):
            return self._call_result([wire.TextContent(rendered)])
        blocks = list(self._blocks(rendered))
        texts = [b.text for b in blocks if isinstance(b, wire.TextContent) and b.annotations is None]
        if texts and len(texts) == len(blocks):  # some clients only read the first block
            blocks = [wire.TextContent("\n\n".join(texts))]
        return self._call_result(blocks)

    def tool_error(self, error: PromptkitError) -> bytes | None:
        """Encode the result of a failed tool call, or return None if the model cannot fix the error."""
        if not isinstance(error, _TOOL_ERRORS) or isinstance(error, UnknownToolError):
            return None
        return self._call_result([wire.TextContent(format_message(error))], is_error=True)

    def icons(self, item: CompiledPrompt | CompiledResource | CompiledSkill) -> list[wire.IconEntry]:
        """Convert an item's icons. The result is empty if the revision has no icons."""
        return wire.icon_entries(item.icons) if self.revision.icons else []

    def resource(self, resource: CompiledResource | CompiledSkill) -> wire.ResourceEntry:
        """Convert a resource without variables, or the ``SKILL.md`` of a skill, to its list entry."""
        return wire.ResourceEntry(resource.uri_template, size=resource.size, **self._common_members(resource))

    def template(self, resource: CompiledResource) -> wire.ResourceTemplate:
        """Convert a resource with variables to its entry in ``resources/templates/list``."""
        return wire.ResourceTemplate(resource.uri_template, **self._common_members(resource))

    def skill(self, skill: CompiledSkill) -> wire.SkillEntry:
        """Convert a skill to its entry in ``skills/list``."""
        files = [
            wire.SkillFileEntry(skill.uri_of(file.path), f"sha256:{file.content.digest}", file.content.size)
            for file in skill.files
        ]
        return wire.SkillEntry(skill.uri_template, skill.frontmatter, files)

    def directory(self, skill: CompiledSkill, uri: str) -> list[wire.ResourceEntry]:
        """Return the list entries for the files and folders in one of a skill's folders."""
        from urllib.parse import unquote  # imported here because few clients read folders

        return [
            self.resource(skill.resources[inner])
            if inner in skill.resources
            else wire.ResourceEntry(inner, unquote(inner.rpartition("/")[2]), mime_type="inode/directory")
            for inner in skill.children[uri]
        ]

    def annotations(self, content: Content) -> wire.ContentAnnotations | None:
        """Convert the annotations of *content*, except for those that the revision does not have."""
        if not content.annotated:
            return None
        moment = content.last_modified if self.revision.dates else None
        if not content.audience and content.priority is None and moment is None:
            return None
        return wire.ContentAnnotations(
            content.audience or None,
            content.priority,
            moment.astimezone(UTC).isoformat().replace("+00:00", "Z") if moment else None,
        )

    def _blocks(self, workflow: Workflow) -> Iterator[wire.Content]:
        """
        Yield every content block in order.

        Tool results have no roles. If there are several turns, a text block with the role precedes each one.
        """
        turns = [(role, list(messages)) for role, messages in groupby(workflow.shown, attrgetter("role"))]
        for role, messages in turns:
            if len(turns) > 1:
                yield wire.TextContent(f"[{role}]")
            yield from (self.content(message.content) for message in messages)

    def _call_result(self, content: list[wire.Content], *, is_error: bool | None = None) -> bytes:
        return self.results.encode(wire.CallToolResult(is_error, content))

    def _common_members(self, resource: CompiledResource | CompiledSkill) -> dict[str, Any]:
        """Return the members that the list entries for resources, templates and skills have in common."""
        return {
            "name": resource.name,
            "title": resource.title if self.revision.titles else None,
            "description": resource.description,
            "mime_type": resource.mime_type,
            "icons": self.icons(resource),
            "annotations": self.annotations(resource.annotations) if resource.annotations else None,
        }

    def _argument(self, argument: Argument, *, is_asked: bool) -> wire.PromptArgument:
        return wire.PromptArgument(
            name=argument.name,
            title=argument.title if self.revision.titles else None,
            description=argument.description,
            required=argument.required and not (is_asked and not argument.arg.secret),
        )


def _meta(prompt: CompiledPrompt) -> dict[str, Any]:
    """Return the schemas of the arguments and of the answer, and the author's own metadata."""
    own = {SCHEMA: {"$schema": DIALECT, **prompt.schema}} if prompt.arguments.ordered else {}
    if (answer := prompt.answer_schema) is not None:
        own[ANSWER] = answer
    return {**own, **prompt.meta}


def _tool_annotations(prompt: CompiledPrompt) -> wire.ToolAnnotations:
    tool = Tool() if isinstance(prompt.tool, bool | None) else prompt.tool
    return wire.ToolAnnotations(
        tool.read_only,
        tool.idempotent,
        tool.open_world,
        None if tool.read_only else tool.destructive,
    )


def _base64(data: bytes) -> Raw:
    from pybase64 import b64encode  # not needed before the first image

    encoded = next((text for key, text in tuple(_BASE64_CACHE) if key is data), None)
    if encoded is None:
        encoded = b'"%b"' % b64encode(data)
        if len(encoded) <= _MAX_CACHED:
            _BASE64_CACHE.append((data, encoded))
    return Raw(encoded)


def _image(lowering: Lowering, content: Image) -> wire.Content:
    return wire.ImageContent(_base64(content.data), str(content.mime_type), lowering.annotations(content))


def _audio(lowering: Lowering, content: Audio) -> wire.Content:
    annotations = lowering.annotations(content)
    if lowering.revision.audio:
        return wire.AudioContent(_base64(content.data), str(content.mime_type), annotations)
    from hashlib import sha256

    uri = f"urn:sha256:{sha256(content.data).hexdigest()}"
    contents = wire.ResourceContents(uri, str(content.mime_type), blob=_base64(content.data))
    return wire.EmbeddedContent(contents, annotations)


def _contents(content: EmbeddedResource) -> wire.ResourceContents:
    # The specification requires a MIME type. For content without a type, send the most general type.
    if content.text is None:
        mime_type = content.mime_type or "application/octet-stream"
        return wire.ResourceContents(content.uri, mime_type, blob=_base64(content.blob or b""))
    return wire.ResourceContents(content.uri, content.mime_type or "text/plain", text=content.text)


def _link(lowering: Lowering, content: ResourceLink) -> wire.Content:
    annotations = lowering.annotations(content)
    if not lowering.revision.resource_links:
        return wire.TextContent(str(content), annotations)
    return wire.ResourceLinkContent(
        content.uri,
        content.name,
        content.title,
        content.description,
        content.mime_type,
        content.size,
        annotations,
    )


#: The converter for each kind of content.
_LOWERED: Final[dict[type[Content], Callable[[Lowering, Any], wire.Content]]] = {
    Text: lambda lowering, text: wire.TextContent(text.text, lowering.annotations(text)),
    Image: _image,
    Audio: _audio,
    EmbeddedResource: lambda lowering, item: wire.EmbeddedContent(
        _contents(item), lowering.annotations(item)
    ),
    ResourceLink: _link,
}


@cache
def lowering_for(
    revision: Revision, server_info: ServerInfo | None = None, *, forms: bool = False
) -> Lowering:
    """Return the cached `Lowering` for *revision* and a server."""
    return Lowering(revision, server_info, forms=forms)
