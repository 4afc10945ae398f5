"""
Conversion of other libraries' messages, for `Workflow.from_messages`.

Messages are dictionaries or pydantic models in the formats of OpenAI, Anthropic, LangChain and MCP. These
formats differ in their content parts; a single table lists the types of parts from all formats. Anything that
promptkit cannot represent is an error, so that no content is lost.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

from promptkit.errors.exceptions import MediaError
from promptkit.language.content import Content
from promptkit.language.documents import EmbeddedResource, ResourceLink, document_type_and_text
from promptkit.language.files import recipe_uri
from promptkit.language.media import Audio, Image
from promptkit.language.text import Text
from promptkit.language.validation import Role, checked_uri, describe

#: The fields of a message, or of one of its parts, that have not been processed yet.
Members: TypeAlias = dict[str, Any]

#: A content block, and whether a cache point follows it.
ConvertedPart: TypeAlias = tuple[Content, bool]

#: Roles, keyed by their names in the libraries. LangChain calls roles types.
_ROLES: Final[Mapping[object, Role | Literal["system"]]] = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "AIMessageChunk"), "assistant"),
    **dict.fromkeys(("system", "developer"), "system"),
}

#: Fields of a message that models do not see.
_IGNORED_MESSAGE_FIELDS: Final = frozenset(
    (
        *("type", "id", "status", "model", "usage", "stop_reason", "stop_sequence", "stop_details"),
        *("container", "annotations", "example", "response_metadata", "usage_metadata", "chunk_position"),
    )
)

#: Fields that mark a part as the end of the prefix that a vendor caches.
_CACHE_MARKS: Final = frozenset(("cache_control", "prompt_cache_breakpoint"))

#: Fields of a part that models do not see, or that only change how the vendor processes the part.
_IGNORED_PART_FIELDS: Final = _CACHE_MARKS | {
    *("id", "index", "detail", "annotations", "citations", "logprobs", "source_type", "_meta", "icons"),
}

_DATA_URL: Final = re.compile(r"data:([^,;]*)[^,]*;base64,", re.IGNORECASE)

_NO_COUNTERPART: Final = "which a workflow cannot represent: remove it, or write it as text"

_URL_HINT: Final = (
    "download it and pass it as a data: URI or an Image(...), or link to a document with ResourceLink(...)"
)


def convert_message(message: object, label: str) -> tuple[Role | Literal["system"], list[ConvertedPart]]:
    """
    Return the role and the parts of a message. Blank text is omitted.

    Args:
        message:
            A dictionary or a pydantic model.

        label:
            The position of the message, for use in errors.

    Raises:
        TypeError: If *message* is neither a dictionary nor a pydantic model.

        ValueError: If a workflow cannot represent the role or a part of *message*; the error contains
            *label*.

        MediaError: If an image or audio cannot be sent.
    """
    members = _members(message)
    if members is None or not {"role", "type"} & members.keys():
        msg = f"{label} is {describe(message)}: pass a dictionary with role and content, or a message object"
        raise TypeError(msg)
    role, content = members.pop("role", members.get("type")), members.pop("content", None)
    if not isinstance(role, str) or role not in _ROLES:
        msg = f"{label} has the role {role!r}: a workflow can have only user, assistant and system messages"
        raise ValueError(msg)
    _check_remaining(members, _IGNORED_MESSAGE_FIELDS, label)
    parts: list[ConvertedPart] = []
    if isinstance(content, str):
        parts = [(Text(content), False)]
    elif isinstance(content, list | tuple):
        parts = [_convert_part(part, f"{label}, part {number}") for number, part in enumerate(content, 1)]
    elif content is not None:
        parts = [_convert_part(content, label)]
    return _ROLES[role], [part for part in parts if not isinstance(part[0], Text) or part[0]]


def _members(value: object) -> Members | None:
    """
    Return the fields of a dictionary or a pydantic model, except those that are None.

    For any other value, return None.
    """
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        value = dump(by_alias=True)
    if not isinstance(value, Mapping):
        return None
    return {name: member for name, member in value.items() if member is not None}


def _check_remaining(members: Members, ignored: frozenset[str], label: str) -> None:
    """Raise ValueError if any remaining field has a value, unless it is in *ignored*."""
    for name, value in members.items():
        if value and name not in ignored:
            msg = f"{label} has {name!r}, {_NO_COUNTERPART}"
            raise ValueError(msg)


def _convert_part(part: object, label: str) -> ConvertedPart:
    if isinstance(part, str):
        return Text(part), False
    members = _members(part)
    if members is None:
        msg = f"{label} is {describe(part)}: pass text or a dictionary with a type"
        raise TypeError(msg)
    kind = members.pop("type", None)
    if not isinstance(kind, str) or kind not in _CONVERTERS:
        msg = f"{label} has the type {kind!r}, {_NO_COUNTERPART}"
        raise ValueError(msg)
    try:
        content = _CONVERTERS[kind](members)
    except MediaError as error:
        msg = f"{label}: {error}"
        raise type(error)(msg) from None
    except (TypeError, ValueError) as error:
        msg = f"{label} is an invalid {kind!r}: {error}"
        raise ValueError(msg) from None
    _check_remaining(members, _IGNORED_PART_FIELDS, label)
    return content, not _CACHE_MARKS.isdisjoint(members)


def _pop_field(members: Members, *names: str) -> Any:
    """
    Remove the fields called *names*, which are alternatives, and return the first one's value.

    Raises ValueError if none of them exists.
    """
    values = [members.pop(name) for name in names if name in members]
    if not values:
        msg = f"it has no {' or '.join(map(repr, names))}"
        raise ValueError(msg)
    return values[0]


def _pop_object(members: Members, name: str) -> Members:
    """Remove the field *name* and return its value. Raises ValueError unless the value is an object."""
    nested = _members(_pop_field(members, name))
    if nested is None:
        msg = f"its {name!r} is not an object"
        raise ValueError(msg)
    return nested


def _convert_text(members: Members) -> Content:
    return Text(_pop_field(members, "text"), **_pop_annotations(members))


def _convert_image(members: Members) -> Content:
    data, mime_type = _pop_file(members)
    return Image(data, mime_type, **_pop_annotations(members))


def _convert_image_url(members: Members) -> Content:
    url = _pop_field(members, "image_url")
    return Image(*_decode_url(url if isinstance(url, str) else _pop_field(dict(url), "url")))


def _convert_audio(members: Members) -> Content:
    data, mime_type = _pop_file(members)
    return Audio(data, mime_type, **_pop_annotations(members))


def _convert_input_audio(members: Members) -> Content:
    return Audio(_decode(_pop_field(_pop_object(members, "input_audio"), "data")))


def _convert_document(members: Members) -> Content:
    title, source = members.pop("title", "document"), _pop_object(members, "source")
    if source.get("type") == "text":
        uri = _uri_of(title)
        return EmbeddedResource(uri, text=_pop_field(source, "data"), mime_type=_pop_mime_type(source))
    return _named_document(title, *_pop_file({"source": source}))


def _convert_file_part(members: Members) -> Content:
    if "file" not in members:  # LangChain's format
        return _named_document(members.pop("filename", "document"), *_pop_file(members))
    return _convert_input_file(_pop_object(members, "file"))


def _convert_input_file(members: Members) -> Content:
    name, url = members.pop("filename", "document"), _pop_field(members, "file_data")
    return _named_document(name, *_decode_url(url))


def _convert_resource(members: Members) -> Content:
    resource = _pop_object(members, "resource")
    blob = resource.get("blob")
    return EmbeddedResource(
        str(_pop_field(resource, "uri")),
        text=resource.get("text"),
        blob=None if blob is None else _decode(blob),
        mime_type=_pop_mime_type(resource),
        **_pop_annotations(members),
    )


def _convert_resource_link(members: Members) -> Content:
    optional = {name: members.pop(name, None) for name in ("title", "description", "size")}
    uri, name, mime_type = (
        str(_pop_field(members, "uri")),
        _pop_field(members, "name"),
        _pop_mime_type(members),
    )
    return ResourceLink(uri, name=name, mime_type=mime_type, **optional, **_pop_annotations(members))


def _pop_annotations(members: Members) -> dict[str, Any]:
    """Remove MCP's annotations and return them as keyword arguments for `Content`."""
    if not isinstance(members.get("annotations"), Mapping):  # OpenAI and LangChain use the name for citations
        return {}
    sent = members.pop("annotations")
    names = {"audience": "audience", "priority": "priority", "lastModified": "last_modified"}
    return {name: sent[key] for key, name in names.items() if sent.get(key) is not None}


def _pop_mime_type(members: Members) -> str | None:
    """Remove and return the MIME type, whose field differs between libraries; None if there is none."""
    names = [name for name in ("mimeType", "mime_type", "media_type") if name in members]
    mime_type: str | None = _pop_field(members, *names) if names else None
    return mime_type


def _pop_file(members: Members) -> tuple[bytes, str | None]:
    """Remove and return the bytes of a file, and its MIME type; None if the MIME type is not given."""
    file = _pop_object(members, "source") if "source" in members else members  # Anthropic nests the file
    mime_type = _pop_mime_type(file)
    if "url" in file:
        return _decode_url(file.pop("url"))
    return _decode(_pop_field(file, "data", "base64")), mime_type


def _decode_url(url: str) -> tuple[bytes, str | None]:
    """Return the bytes in a ``data:`` URI, and their MIME type; None if the URI has no MIME type."""
    if (match := _DATA_URL.match(url)) is None:
        msg = f"the content at {url[:40]!r} is not part of the message: {_URL_HINT}"
        raise ValueError(msg)
    return _decode(url[match.end() :]), match[1] or None


def _decode(text: str) -> bytes:
    from pybase64 import b64decode

    return b64decode(text, validate=True)


def _named_document(name: str, data: bytes, declared: str | None) -> EmbeddedResource:
    mime_type, text = document_type_and_text(name, data, declared)
    blob = data if text is None else None
    return EmbeddedResource(_uri_of(name), text=text, blob=blob, mime_type=mime_type)


def _uri_of(name: str) -> str:
    """
    Return *name*, the title or file name of a document, if it is a URI; otherwise a ``recipe:`` URI with it.
    """
    try:
        return checked_uri(name)
    except ValueError:
        return recipe_uri(name or "document")


#: Functions that convert a part and remove the fields that they use, keyed by the part's type.
_CONVERTERS: Final[Mapping[object, Callable[[Members], Content]]] = {
    **dict.fromkeys(("text", "input_text", "output_text"), _convert_text),
    **dict.fromkeys(("image_url", "input_image"), _convert_image_url),
    "image": _convert_image,
    "audio": _convert_audio,
    "input_audio": _convert_input_audio,
    "document": _convert_document,
    "file": _convert_file_part,
    "input_file": _convert_input_file,
    "resource": _convert_resource,
    "resource_link": _convert_resource_link,
}
