"""
Lowering: converts promptkit's values to what a protocol revision can carry.

Content that an older revision lacks is sent as content that it has. Nothing is lost or refused.
"""

from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC
from functools import cache, cached_property
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import UNSET, Raw, UnsetType

from promptkit.catalog.arguments import Argument
from promptkit.catalog.prompts import ANSWER, SCHEMA, CompiledPrompt
from promptkit.errors.exceptions import (
    ArgumentsError,
    PromptError,
    PromptkitError,
    UnknownPromptError,
    UnknownToolError,
)
from promptkit.language.content import Content
from promptkit.language.messages import Message, Workflow
from promptkit.language.text import Text
from promptkit.language.tools import Tool
from promptkit.protocol import wire
from promptkit.protocol.capabilities import ResultEncoder, ServerInfo
from promptkit.protocol.jsonrpc import InternalError, encode, message_of
from promptkit.protocol.revisions import Revision

if TYPE_CHECKING:  # most prompts hold nothing but text
    from promptkit.catalog.completion import Completion
    from promptkit.catalog.resources import CompiledResource
    from promptkit.catalog.skills import CompiledSkill
    from promptkit.language.documents import EmbeddedResource, ResourceLink
    from promptkit.language.media import Audio, Icon, Image

T = TypeVar("T")

#: The bytes that were encoded last, and what came of them: so large ones, in bytes, and so many at most. They
#: are known by their object, as to hash or to compare them takes longer than to encode them.
_LEAST_KEPT: Final = 64 * 1024
_MOST_KEPT: Final = 2 * 1024 * 1024
_KEPT: Final[deque[tuple[bytes, bytes]]] = deque(maxlen=4)

#: What a model is told in the result of a call, as it may mend that. Of all else its client is told.
_TOLD: Final = (ArgumentsError, PromptError, InternalError, UnknownPromptError)


#: Stands for a text in a result, to find what is around it.
_GAP: Final = "gap"
_WITH_GAP: Final = Workflow([Message("user", Text(_GAP))])


def _set(value: T | None) -> T | UnsetType:
    return UNSET if value is None else value


class Lowering:
    """
    Encodes prompts, resources, completions and calls of tools for one revision.
    """

    def __init__(self, revision: Revision, server_info: ServerInfo | None = None) -> None:
        self.revision = revision
        self.results = ResultEncoder(revision, server_info)
        self._around_text: dict[str | None, list[bytes]] = {}

    def result(self, prompt: CompiledPrompt, rendered: Workflow | str) -> bytes:
        """
        Encode the result of ``prompts/get``.

        Args:
            prompt:
                The prompt.

            rendered:
                What it rendered to. A plain string stands for a single user message.

        Raises:
            UnicodeEncodeError: If a text holds a lone surrogate.
        """
        description = prompt.description
        if isinstance(rendered, str):  # most prompts say one text: what is around it is encoded once
            try:
                before, after = self._around_text[description]
            except KeyError:
                before, after = self._around_text[description] = _around(self.result(prompt, _WITH_GAP))
            return before + encode(rendered) + after
        sent = rendered.messages if rendered.system is None else rendered.sent
        messages = [wire.PromptMessage(m.role, self.content(m.content)) for m in sent]
        kind, meta = self.results.type, self.results.meta
        described = UNSET if description is None else description
        return encode(wire.GetPromptResult(messages, described, result_type=kind, meta=meta))

    def forget_texts(self) -> None:
        """Drop what is kept of the prompts that were served until now."""
        self._around_text.clear()

    def content(self, content: Content) -> wire.Content:
        """One content block."""
        if type(content) is Text and not content.annotated:
            return wire.TextContent(content.text)
        return _LOWERED[type(content).__name__](self, content)

    def completion(self, completion: "Completion") -> bytes:
        """Encode the result of ``completion/complete``."""
        offered = wire.CompletionValues(completion.values, completion.total, completion.has_more)
        return self.results.encode(wire.CompleteResult(offered))

    def contents(self, resource: "EmbeddedResource", *, changes: bool = True) -> bytes:
        """
        Encode the result of ``resources/read``.

        Args:
            resource:
                What was read.

            changes:
                Whether it may be something else the next time, as what comes from a function may.

        Raises:
            UnicodeEncodeError: If a text holds a lone surrogate.
        """
        return self.results.encode_kept(wire.ReadResourceResult([_contents(resource)]), changes=changes)

    def prompt(self, prompt: CompiledPrompt) -> "wire.PromptEntry":
        """A prompt, as listed."""
        has = self.revision
        return wire.PromptEntry(
            name=prompt.name,
            title=_set(prompt.title) if has.titles else UNSET,
            description=_set(prompt.description),
            arguments=[self._argument(argument) for argument in prompt.arguments.ordered] or UNSET,
            icons=self.icons(prompt),
            meta=_meta(prompt) or UNSET if has.metadata else UNSET,
        )

    def tool(self, prompt: CompiledPrompt) -> "wire.ToolEntry":
        """A prompt, as listed as a tool."""
        has = self.revision
        return wire.ToolEntry(
            name=prompt.name,
            input_schema=prompt.schema,
            title=_set(prompt.title) if has.titles else UNSET,
            description=_set(prompt.description),
            annotations=_tool_annotations(prompt) if has.tool_annotations else UNSET,
            icons=self.icons(prompt),
            meta=dict(prompt.meta) or UNSET if has.metadata else UNSET,
        )

    def called(self, rendered: Workflow | str) -> bytes:
        """
        Encode the result of ``tools/call``.

        Args:
            rendered:
                What the prompt rendered to. A plain string stands for a single user message.

        Raises:
            UnicodeEncodeError: If a text holds a lone surrogate.
        """
        if isinstance(rendered, str):
            before, after = self._around_call
            return before + encode(rendered) + after
        blocks = list(self._blocks(rendered))
        texts = [b.text for b in blocks if isinstance(b, wire.TextContent) and b.annotations is UNSET]
        if texts and len(texts) == len(blocks):  # there are clients that read the first block alone
            blocks = [wire.TextContent("\n\n".join(texts))]
        return self._call_result(blocks)

    def failure(self, error: PromptkitError) -> bytes | None:
        """Encode the result of a call that failed; None if the error is not for a model."""
        if not isinstance(error, _TOLD) or isinstance(error, UnknownToolError):
            return None
        return self._call_result([wire.TextContent(message_of(error))], is_error=True)

    def icons(self, prompt: CompiledPrompt) -> "list[wire.IconEntry] | UnsetType":
        """The icons of a prompt, if the revision has them."""
        return [_icon(icon) for icon in prompt.icons if self.revision.icons] or UNSET

    def resource(self, resource: "CompiledResource | CompiledSkill") -> "wire.ResourceEntry":
        """A resource without variables, as listed; of a skill, its ``SKILL.md``."""
        return wire.ResourceEntry(resource.uri_template, *self._described(resource))

    def template(self, resource: "CompiledResource") -> "wire.ResourceTemplate":
        """A resource with variables, as listed."""
        return wire.ResourceTemplate(resource.uri_template, *self._described(resource))

    def skill(self, skill: "CompiledSkill") -> "wire.SkillEntry":
        """A skill, as listed."""
        files = [
            wire.SkillFileEntry(skill.uri_of(file.path), f"sha256:{file.content.digest}", file.content.size)
            for file in skill.files
        ]
        return wire.SkillEntry(skill.uri_template, skill.frontmatter, files)

    def directory(self, skill: "CompiledSkill", uri: str) -> "list[wire.ResourceEntry]":
        """What a folder of a skill holds, as listed."""
        from urllib.parse import unquote  # few clients ask for folders

        return [
            self.resource(skill.resources[inner])
            if inner in skill.resources
            else wire.ResourceEntry(inner, unquote(inner.rpartition("/")[2]), mime_type="inode/directory")
            for inner in skill.children[uri]
        ]

    def annotations(self, content: Content) -> wire.ContentAnnotations | UnsetType:
        """The annotations of *content*, if it has any that the revision knows."""
        if not content.annotated:
            return UNSET
        moment = content.last_modified if self.revision.dates else None
        if not content.audience and content.priority is None and moment is None:
            return UNSET
        return wire.ContentAnnotations(
            content.audience or UNSET,
            _set(content.priority),
            moment.astimezone(UTC).isoformat().replace("+00:00", "Z") if moment else UNSET,
        )

    @cached_property
    def _around_call(self) -> list[bytes]:
        """What is around the only text of a call's result."""
        return _around(self.called(_WITH_GAP))

    def _blocks(self, workflow: Workflow) -> Iterator[wire.Content]:
        """Every part in order. A block says whose each turn of several is: results have no roles."""
        turns = [(role, list(messages)) for role, messages in groupby(workflow.shown, attrgetter("role"))]
        for role, messages in turns:
            if len(turns) > 1:
                yield wire.TextContent(f"[{role}]")
            yield from (self.content(message.content) for message in messages)

    def _call_result(self, content: list[wire.Content], *, is_error: bool | UnsetType = UNSET) -> bytes:
        return self.results.encode(wire.CallToolResult(is_error, content))

    def _described(self, resource: "CompiledResource | CompiledSkill") -> tuple[str, Any, Any, Any]:
        """The listed members of a resource or a template, except its URI."""
        title = _set(resource.title) if self.revision.titles else UNSET
        return resource.name, title, _set(resource.description), _set(resource.mime_type)

    def _argument(self, argument: Argument) -> "wire.PromptArgument":
        return wire.PromptArgument(
            name=argument.name,
            title=_set(argument.title) if self.revision.titles else UNSET,
            description=_set(argument.description),
            required=argument.required,
        )


def _around(result: bytes) -> list[bytes]:
    """What is around the only text of a result."""
    return result.split(encode(_GAP), 1)


def _meta(prompt: CompiledPrompt) -> dict[str, Any]:
    """The schemas of the arguments and of the answer, and what the author set."""
    own = {SCHEMA: prompt.schema} if prompt.arguments.ordered else {}
    if (answer := prompt.answer_schema) is not None:
        own[ANSWER] = answer
    return {**own, **prompt.meta}


def _tool_annotations(prompt: CompiledPrompt) -> "wire.ToolAnnotations":
    said = Tool() if isinstance(prompt.tool, bool | None) else prompt.tool
    return wire.ToolAnnotations(
        said.read_only,
        said.idempotent,
        said.open_world,
        UNSET if said.read_only else said.destructive,
    )


def _icon(icon: "Icon") -> "wire.IconEntry":
    return wire.IconEntry(icon.src, _set(icon.mime_type), icon.sizes or UNSET, _set(icon.theme))


def _base64(data: bytes) -> Raw:
    """Encode bytes. Large ones are mostly an author's constants, so those that were sent last are kept."""
    from pybase64 import b64encode  # not needed before the first image

    is_kept = _LEAST_KEPT <= len(data) <= _MOST_KEPT
    encoded = next((known for of, known in tuple(_KEPT) if of is data), None) if is_kept else None
    if encoded is None:
        encoded = b'"%b"' % b64encode(data)
        if is_kept:
            _KEPT.append((data, encoded))
    return Raw(encoded)


def _image(lowering: Lowering, content: "Image") -> wire.Content:
    return wire.ImageContent(_base64(content.data), str(content.mime_type), lowering.annotations(content))


def _audio(lowering: Lowering, content: "Audio") -> wire.Content:
    annotations = lowering.annotations(content)
    if lowering.revision.audio:
        return wire.AudioContent(_base64(content.data), str(content.mime_type), annotations)
    from hashlib import sha256

    uri = f"urn:sha256:{sha256(content.data).hexdigest()}"
    contents = wire.ResourceContents(uri, str(content.mime_type), blob=_base64(content.data))
    return wire.EmbeddedContent(contents, annotations)


def _contents(content: "EmbeddedResource") -> wire.ResourceContents:
    # The specification asks for a MIME type. If none was given, send the most general one.
    if content.text is None:
        mime_type = content.mime_type or "application/octet-stream"
        return wire.ResourceContents(content.uri, mime_type, blob=_base64(content.blob or b""))
    return wire.ResourceContents(content.uri, content.mime_type or "text/plain", text=content.text)


def _link(lowering: Lowering, content: "ResourceLink") -> wire.Content:
    annotations = lowering.annotations(content)
    if not lowering.revision.resource_links:
        return wire.TextContent(str(content), annotations)
    return wire.ResourceLinkContent(
        content.uri,
        content.name,
        _set(content.title),
        _set(content.description),
        _set(content.mime_type),
        _set(content.size),
        annotations,
    )


#: What lowers each kind of content, by its class's name: most prompts hold nothing but text.
_LOWERED: Final[dict[str, Callable[[Lowering, Any], wire.Content]]] = {
    "Text": lambda lowering, text: wire.TextContent(text.text, lowering.annotations(text)),
    "Image": _image,
    "Audio": _audio,
    "EmbeddedResource": lambda lowering, one: wire.EmbeddedContent(_contents(one), lowering.annotations(one)),
    "ResourceLink": _link,
}


@cache
def lowering_for(revision: Revision, server_info: ServerInfo | None = None) -> Lowering:
    """Return the `Lowering` of *revision* for a server, made once."""
    return Lowering(revision, server_info)
