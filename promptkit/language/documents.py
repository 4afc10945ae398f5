"""Embedded documents and links to documents."""

import re
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path, PurePath
from typing import Final, Self, Unpack, final

import attrs

from promptkit.language.content import Annotations, Content
from promptkit.language.files import (
    MAX_FILE_BYTES,
    package_folder,
    read_authors_file,
    read_below,
    recipe_uri,
    source_folder,
)
from promptkit.language.media import canonical_type, sniff, summary
from promptkit.language.validation import (
    check_optional_text,
    checked_name,
    checked_size,
    checked_uri,
    optional_text,
)

#: MIME types of text documents.
_TEXT_TYPE: Final = (
    r"text/.+|.+\+(?:json|xml|yaml)|application/(?:javascript|json|sql|toml|x-sh|x-tex|x-yaml|xml|yaml)"
)

#: File extensions that some Python versions do not know, or map to a different type.
_EXTENSIONS: Final = {
    ".js": "text/javascript",
    ".md": "text/markdown",
    ".toml": "application/toml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}


@final
@attrs.frozen(repr=False, eq=False)
class EmbeddedResource(Content):
    """
    A document whose content is part of the message. It also accepts the keyword arguments of `Content`.

    Args:
        uri:
            The document's URI. It is only a name: nothing is read from it. To read a file, use `from_path`.

        text:
            The content of a text document.

        blob:
            The content of a binary document. Exactly one of *text* and *blob* must be given.

        mime_type:
            The MIME type. For a *blob*, it defaults to the type detected from the bytes.

    Raises:
        TypeError: If both *text* and *blob* are given, or neither, or if an argument has the wrong type.

        ValueError: If *uri* is not an absolute URI, *blob* is empty, or an annotation is invalid.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#embedded-resources
    """

    uri: str = attrs.field(converter=checked_uri)
    text: str | None = attrs.field(default=None, kw_only=True)
    blob: bytes | None = attrs.field(default=None, kw_only=True)
    mime_type: str | None = attrs.field(default=None, kw_only=True, validator=optional_text)

    def __attrs_post_init__(self) -> None:
        if (self.text is None) == (self.blob is None):
            msg = f"EmbeddedResource {self.uri!r} needs exactly one of text= and blob="
            raise TypeError(msg)
        if self.text is not None and not isinstance(self.text, str):
            msg = f"text= of {self.uri!r} must be a str, not {type(self.text).__name__}: use blob= for bytes"
            raise TypeError(msg)
        if self.blob is not None:
            self._check_blob(self.blob)

    def _check_blob(self, blob: bytes) -> None:
        if not isinstance(blob, bytes):
            msg = f"blob= of {self.uri!r} must be bytes, not {type(blob).__name__}: use text= for text"
            raise TypeError(msg)
        if not blob:
            msg = f"blob= of {self.uri!r} is empty: pass the bytes of the whole document"
            raise ValueError(msg)
        if self.mime_type is None:
            # Clients reject a blob without a type.
            object.__setattr__(self, "mime_type", sniff(blob) or "application/octet-stream")

    @property
    def texts(self) -> tuple[str, ...]:
        """The URI, followed by the content if it is text."""
        return (self.uri,) if self.text is None else (self.uri, self.text)

    def __str__(self) -> str:
        if self.blob is not None:
            return f"[{self.uri}] {summary(str(self.mime_type), self.blob)}"
        return f"[{self.uri}]\n{self.text}"

    @classmethod
    def from_path(
        cls,
        path: str | Path,
        uri: str | None = None,
        *,
        mime_type: str | None = None,
        root: str | Path | None = None,
        **annotations: Unpack[Annotations],
    ) -> Self:
        """
        Create a document from a file.

        Args:
            path:
                The path of the file, relative to the folder of the calling recipe. If any part of it comes
                from an argument, *root* is required for safety.

            uri:
                The document's URI. The default is ``recipe:///`` followed by the path within the served
                folder or *root*, or only by the file's name if the file is outside both. It does not reveal
                any other paths on the machine.

            mime_type:
                The MIME type. By default, it is detected from the bytes and the file extension.

            root:
                The folder that *path* must stay in, relative to the recipe's folder. If it is given, *path*
                is relative to it. Always give it if any part of *path* comes from a client.

            **annotations:
                The ``audience``, ``priority`` and ``last_modified`` of `Content`.

        Returns:
            A text document if the file is UTF-8 and has a text type, otherwise a binary document.

        Raises:
            OSError: If the file cannot be read, and *root* is not given.

            MediaError: If *path* leaves *root* or is not a readable file there, or if the file is larger
                than 20 MiB. It is a `PromptError`: the client sees its message.

            TypeError: If an argument or annotation has the wrong type.

            ValueError: If *uri* is not an absolute URI, the file is empty and does not have a text type, or
                an annotation is invalid.
        """
        check_optional_text("mime_type", mime_type)
        folder = source_folder(1) / (root or "")
        file = folder / path
        data = read_authors_file(file, MAX_FILE_BYTES) if root is None else read_below(path, folder)
        detected_type, text = document_type_and_text(file.name, data, mime_type)
        blob = data if text is None else None
        if uri is None:
            uri = recipe_uri(file, package_folder(1), folder)
        return cls(uri, text=text, blob=blob, mime_type=detected_type, **annotations)

    @cached_property
    def base64(self) -> str:
        """The *blob* in base64, encoded on first use; ``""`` for a text document."""
        from pybase64 import b64encode_as_string

        return b64encode_as_string(self.blob or b"")


@final
@attrs.frozen(repr=False, eq=False)
class ResourceLink(Content):
    """
    A link to a document that the client can fetch. It also accepts the keyword arguments of `Content`.

    Args:
        uri:
            The document's URI.

        name:
            The document's name, for use by programs.

        title:
            The document's display name.

        description:
            A description of the document, for the model.

        mime_type:
            The MIME type; None if unknown.

        size:
            The size in bytes; None if unknown.

    Raises:
        TypeError: If an argument has the wrong type.

        ValueError: If *uri* is not an absolute URI, *name* is blank, *size* is negative, or an
            annotation is invalid.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/tools#resource-links
    """

    uri: str = attrs.field(converter=checked_uri)
    name: str = attrs.field(kw_only=True, converter=checked_name)
    title: str | None = attrs.field(default=None, kw_only=True, validator=optional_text)
    description: str | None = attrs.field(default=None, kw_only=True, validator=optional_text)
    mime_type: str | None = attrs.field(default=None, kw_only=True, validator=optional_text)
    size: int | None = attrs.field(default=None, kw_only=True, converter=checked_size)

    @property
    def texts(self) -> tuple[str, ...]:
        """The title, name, description and URI, except those that are missing."""
        return tuple(filter(None, (self.title, self.name, self.description, self.uri)))

    def __str__(self) -> str:
        details = [
            self.name if self.title not in (None, self.name) else None,
            self.mime_type,
            None if self.size is None else f"{self.size} B",
        ]
        suffix = ", ".join(filter(None, details))
        link = f"[{self.title or self.name}]({self.uri})" + (f" ({suffix})" if suffix else "")
        return f"{link}: {self.description}" if self.description else link


def document_type_and_text(name: str, data: bytes, declared: str | None) -> tuple[str, str | None]:
    """
    Return the MIME type of a file, and its text, which is None unless the file is a UTF-8 text document.

    Args:
        name:
            The file's name. Its extension determines the type of a text file, which cannot be detected from
            the bytes.

        data:
            The content of the file.

        declared:
            The MIME type that the author has declared; None to detect it.
    """
    text, declared_or_named = _decode_text(data), declared or _type_of_name(name)
    if text is not None and declared_or_named and re.fullmatch(_TEXT_TYPE, canonical_type(declared_or_named)):
        return declared_or_named, text
    detected = declared or sniff(data)
    if text is not None and detected is None:
        return "text/plain", text
    return detected or declared_or_named or "application/octet-stream", None


def _decode_text(data: bytes) -> str | None:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _type_of_name(name: str) -> str | None:
    return _types_by_extension().get(PurePath(name).suffix.lower())


@cache
def _types_by_extension() -> Mapping[str, str]:
    from mimetypes import MimeTypes  # imported on first use

    # Only Python's built-in types are used, because the operating system's types differ between machines.
    return {**MimeTypes().types_map[1], **_EXTENSIONS}
