"""Arguments that contain content: conversations, messages, images and audio."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final, Literal, get_args

from msgspec import Struct, convert, field, structs, to_builtins

from promptkit.errors.exceptions import MediaError
from promptkit.errors.suggestions import nearest
from promptkit.language.blocks import to_block
from promptkit.language.content import Content
from promptkit.language.documents import EmbeddedResource, ResourceLink
from promptkit.language.media import Audio, Image
from promptkit.language.messages import Message, Workflow, make_message, make_workflow, system_text
from promptkit.language.text import Text, plain_text
from promptkit.language.turns import system
from promptkit.language.validation import Role, checked_role
from promptkit.types.errors import ABSENT, ConversionError, collect
from promptkit.types.scalar_parsers import BASE64


class Surrogate(Struct, frozen=True):
    """
    A type that is parsed in place of another type, and the conversions between the two.

    Args:
        model:
            The type to parse first.

        build:
            Converts a value of *model* to the original type. Raises `ConversionError` for invalid values.

        dump:
            Converts a value of the original type to JSON-compatible data.

        schema:
            The JSON Schema of the values that *build* accepts, with its own ``$defs``.

        expected:
            A short description of the values that *build* accepts, to be used at the end of a sentence.

        example:
            An example as JSON-compatible data; None if there is none.

        values:
            All valid strings, if there are only a few; otherwise empty.
    """

    model: Any
    build: Callable[[Any], Any]
    dump: Callable[[Any], Any]
    schema: Mapping[str, Any]
    expected: str
    example: Any = None
    values: tuple[str, ...] = ()


# The wire format. These classes have no docstrings. Their fields are in the specification's order:
# https://modelcontextprotocol.io/specification/2025-11-25/schema#contentblock


class _WireStruct(Struct, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    pass


class _WireAnnotations(_WireStruct, kw_only=True):
    audience: list[Role] = []
    priority: float | None = None
    last_modified: str | None = None


class _WireResource(_WireStruct, kw_only=True):
    uri: str | None = None
    mime_type: str | None = None
    text: str | None = None
    blob: bytes | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class _WireBlock(_WireStruct, kw_only=True):
    type: Literal["text", "image", "audio", "resource", "resource_link"]
    text: str | None = None
    data: bytes | None = None
    mime_type: str | None = None
    uri: str | None = None
    name: str | None = None
    title: str | None = None
    description: str | None = None
    size: int | None = None
    icons: list[Any] | None = None
    resource: _WireResource | None = None
    annotations: _WireAnnotations | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class _WireTurn(_WireStruct):
    role: str
    content: str | _WireBlock | list[_WireBlock]


class _BlockKind(Struct, frozen=True):
    """
    A kind of content: its class, and the names of the fields that the class shares with a `_WireBlock`.
    """

    make: Callable[..., Content]
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()


_KINDS: Final[Mapping[str, _BlockKind]] = {
    "text": _BlockKind(Text, ("text",)),
    "image": _BlockKind(Image, ("data",), ("mime_type",)),
    "audio": _BlockKind(Audio, ("data",), ("mime_type",)),
    "resource": _BlockKind(EmbeddedResource, ("uri",), ("mime_type", "text", "blob")),
    "resource_link": _BlockKind(ResourceLink, ("uri", "name"), ("title", "description", "mime_type", "size")),
}


def _build_workflow(turns: list[_WireTurn]) -> Workflow:
    workflows = collect(enumerate(turns), _build_turn)
    try:
        system = system_text(*(workflow.system for workflow in workflows))
    except ValueError as error:
        raise ConversionError(reason=f"is invalid: {error}") from None
    return make_workflow(tuple(message for workflow in workflows for message in workflow), system)


def _build_turn(turn: _WireTurn) -> Workflow:
    """Convert a turn to a workflow. A turn with the role ``"system"`` becomes a system part."""
    if turn.role != "system":
        return make_workflow(tuple(_build_messages(turn)))
    blocks = [block for block in _build_blocks(turn.content) if to_block(block) is not None]
    texts = [block for block in blocks if isinstance(block, Text)]
    if len(texts) < len(blocks):
        raise ConversionError(
            path=".content", reason="has content other than text, but system parts must be text"
        )
    try:
        return system(*texts)
    except ValueError as error:
        raise ConversionError(path=".content", reason=f"is invalid: {error}") from None


def _build_message(turn: _WireTurn) -> Message:
    messages = _build_messages(turn)
    if len(messages) != 1:
        reason = "has no content" if not messages else "has several blocks, but a message can have only one"
        raise ConversionError(path=".content", reason=reason)
    return messages[0]


def _build_messages(turn: _WireTurn) -> list[Message]:
    """Return one message for each block of a turn, omitting blank text as `user` does."""
    role = _parse_role(turn.role)
    return [make_message(role, block) for block in _build_blocks(turn.content) if to_block(block) is not None]


def _parse_role(text: str) -> Role:
    try:
        return checked_role(text)  # type: ignore[arg-type]  # this validates it
    except ValueError as error:
        suggestion = partial(nearest, text, get_args(Role))
        raise ConversionError(
            got=text, path=".role", reason=f"is invalid: {error}", nearest=suggestion
        ) from None


def _build_blocks(content: str | _WireBlock | list[_WireBlock]) -> Iterator[Content]:
    if isinstance(content, str):
        yield plain_text(content)
    elif isinstance(content, _WireBlock):
        yield _build_content(content, ".content")
    else:
        for index, block in enumerate(content):
            yield _build_content(block, f".content[{index}]")


def content_of(block: Mapping[str, Any]) -> Content:
    """Convert a content block in wire format to content."""
    return _build_content(convert(block, _WireBlock), "")


def _build_content(block: _WireBlock, path: str) -> Content:
    kind, annotations = _KINDS[block.type], block.annotations
    is_resource = block.type == "resource"
    source, source_path = (block.resource, f"{path}.resource") if is_resource else (block, path)
    for name in kind.required:
        if getattr(source, name, None) is None:
            raise ConversionError(
                "base64" if name == "data" else "text", got=ABSENT, path=f"{source_path}.{name}"
            )
    fields = {name: getattr(source, name) for name in (*kind.required, *kind.optional)}
    try:
        return kind.make(**fields, **(structs.asdict(annotations) if annotations else {}))
    except (TypeError, ValueError, MediaError) as error:
        raise ConversionError(path=path, reason=f"is invalid: {error}") from None


def _dump_message(message: Message) -> dict[str, Any]:
    content = message.content
    if isinstance(content, Text) and not content.annotated:
        return {"role": message.role, "content": content.text}
    return {"role": message.role, "content": to_builtins(_dump_content(content))}


def _dump_content(content: Content) -> _WireBlock:
    name: Any
    name, kind = next(item for item in _KINDS.items() if item[1].make is type(content))
    fields = {field: getattr(content, field) for field in (*kind.required, *kind.optional)}
    annotations = _dump_annotations(content) if content.annotated else None
    if name == "resource":
        return _WireBlock(type=name, resource=_WireResource(**fields), annotations=annotations)
    return _WireBlock(type=name, **fields, annotations=annotations)


def _dump_annotations(content: Content) -> _WireAnnotations:
    modified = content.last_modified
    text = modified.isoformat() if isinstance(modified, datetime) else None
    return _WireAnnotations(audience=[*content.audience], priority=content.priority, last_modified=text)


def _media_surrogate(media_type: type[Image | Audio]) -> Surrogate:
    """Return the surrogate for `Image` or `Audio`, which is bytes."""

    def build(data: bytes) -> Image | Audio:
        try:
            return media_type(data)
        except MediaError as error:
            raise ConversionError(reason=f"is invalid: {error}") from None

    schema = {**_BASE64, "minLength": 1, "pattern": BASE64}
    expected, example = "base64 or a data: URI", "iVBORw0KGgo="
    return Surrogate(bytes, build, lambda media: media.base64, schema, expected, example)


_TEXT: Final = {"type": "string"}
_BASE64: Final = {"type": "string", "contentEncoding": "base64"}

#: Less important fields of a block are omitted, because models read this schema and every word costs tokens.
_BLOCK_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "enum": list(_KINDS)},
        **dict.fromkeys(("text", "mimeType", "uri", "name"), _TEXT),
        "data": _BASE64,
        "resource": {
            "type": "object",
            "properties": {**dict.fromkeys(("uri", "mimeType", "text"), _TEXT), "blob": _BASE64},
            "required": ["uri"],
        },
    },
    "required": ["type"],
}


def _turn_schema(*roles: str) -> dict[str, Any]:
    contents = [_TEXT, _BLOCK_SCHEMA, {"type": "array", "items": _BLOCK_SCHEMA}]
    role = {"type": "string", "enum": list(roles)}
    return {
        "type": "object",
        "properties": {"role": role, "content": {"anyOf": contents}},
        "required": ["role", "content"],
    }


_TURN_SCHEMA: Final = _turn_schema(*get_args(Role))
_TURN_EXAMPLE: Final = {"role": "user", "content": "text"}

#: Surrogates for promptkit's classes that can be the types of arguments.
SURROGATES: Final[Mapping[type, Surrogate]] = {
    Workflow: Surrogate(
        list[_WireTurn],
        _build_workflow,
        lambda workflow: [_dump_message(message) for message in workflow.shown],
        {"type": "array", "items": _turn_schema(*get_args(Role), "system")},
        "a list of messages, each with role and content",
        [_TURN_EXAMPLE],
    ),
    Message: Surrogate(
        _WireTurn,
        _build_message,
        _dump_message,
        _TURN_SCHEMA,
        "a message with role and content",
        _TURN_EXAMPLE,
    ),
    Image: _media_surrogate(Image),
    Audio: _media_surrogate(Audio),
}
