"""The conversation that a prompt starts: its turns in the form that the page shows."""

from collections.abc import Callable
from typing import Final

import attrs
from markupsafe import Markup

from promptkit.fragments.budget import estimate_tokens
from promptkit.fragments.invisible import escape_invisible
from promptkit.language.content import Content, human_size
from promptkit.language.documents import EmbeddedResource, ResourceLink
from promptkit.language.media import Media, canonical_type
from promptkit.language.messages import Message, Workflow
from promptkit.language.text import Text
from promptkit.preview.media import MediaKind, MediaStore, classify_media
from promptkit.preview.templating import SHORT, format_markdown

#: Maximum length of Markdown to format, in characters. Formatting longer Markdown takes too long.
_MAX_MARKDOWN: Final = 50_000


@attrs.frozen
class TextView:
    """
    The text of a turn.

    Args:
        raw:
            The text, possibly truncated.

        formatted:
            The text as formatted Markdown, or None to show the text as it is.

        length:
            The number of characters in the whole text.

        url:
            The URL of the whole text, for copying, or None if the page shows the whole text.
    """

    raw: str
    formatted: Markup | None
    length: int
    url: str | None = None


@attrs.frozen
class MediaView:
    """
    An image, an audio file, or any other file.

    Args:
        kind:
            How the page shows the file: as ``image``, ``audio`` or ``file``.

        mime_type:
            The MIME type.

        size:
            The size, formatted for users.

        url:
            The URL of the content.
    """

    kind: MediaKind
    mime_type: str
    size: str
    url: str


@attrs.frozen
class DocumentView:
    """
    The content of an embedded resource.

    Args:
        uri:
            The URI of the resource.

        mime_type:
            The MIME type, if known.

        content:
            The text or the bytes.
    """

    uri: str
    mime_type: str | None
    content: TextView | MediaView


@attrs.frozen
class TurnView:
    """
    A message in the form that the page shows.

    Args:
        number:
            The number of the message, starting at 1.

        message:
            The message.

        kind:
            The kind of content: ``text``, ``resource``, ``link``, ``image``, ``audio`` or ``file``.

        content:
            The content.

        tokens:
            The approximate number of tokens in the text, or 0 if there is no text.

        redact:
            A function that hides secrets in the text of a link.
    """

    number: int
    message: Message
    kind: str
    content: TextView | MediaView | DocumentView | ResourceLink
    tokens: int
    redact: Callable[[str], str]

    @property
    def text(self) -> TextView | None:
        """The text of the message or of its document, or None for other content."""
        content = self.content.content if isinstance(self.content, DocumentView) else self.content
        return content if isinstance(content, TextView) else None


@attrs.frozen
class ConversationBuilder:
    """
    Converts a workflow or a document to the views that a page shows.

    Args:
        media:
            Stores media until browsers request them.

        redact:
            A function that hides secrets in text.
    """

    media: MediaStore
    redact: Callable[[str], str] = str

    def build_turns(self, workflow: Workflow, full_turn: int = 0) -> list[TurnView]:
        """
        Return the turns of a workflow, truncating long text.

        Args:
            workflow:
                The workflow to show.

            full_turn:
                The number of a turn to show in full, or 0 to truncate all turns.
        """
        turns = []
        for number, message in enumerate(workflow.shown, 1):
            kind, view = self._build_view(message.content, None if number == full_turn else SHORT)
            tokens = sum(map(estimate_tokens, message.content.texts))
            turns.append(TurnView(number, message, kind, view, tokens, self.redact))
        return turns

    def build_document(self, resource: EmbeddedResource, max_length: int | None = SHORT) -> DocumentView:
        """
        Return the content of an embedded resource.

        Args:
            resource:
                The resource.

            max_length:
                The maximum number of characters, or None to show all of them.
        """
        name, mime_type = self.redact(resource.uri), resource.mime_type
        if resource.text is None:
            return DocumentView(name, mime_type, self._build_media(resource.blob or b"", str(mime_type)))
        text, canonical = self.redact(resource.text), canonical_type(mime_type or "")
        if classify_media(canonical) == "image":  # SVG is text
            return DocumentView(name, mime_type, self._build_media(text.encode(errors="replace"), canonical))
        text_view = self._build_text(text, max_length, is_markdown=canonical == "text/markdown")
        return DocumentView(name, mime_type, text_view)

    def _build_view(
        self, content: Content, max_length: int | None
    ) -> tuple[str, TextView | MediaView | DocumentView | ResourceLink]:
        if isinstance(content, Text):
            return "text", self._build_text(self.redact(content.text), max_length)
        if isinstance(content, EmbeddedResource):
            return "resource", self.build_document(content, max_length)
        if isinstance(content, ResourceLink):
            return "link", content
        assert isinstance(content, Media)  # noqa: S101 (no other kind of content exists)
        media = self._build_media(content.data, str(content.mime_type))
        return media.kind, media

    def _build_text(self, text: str, max_length: int | None, *, is_markdown: bool = True) -> TextView:
        raw = text[:max_length]
        is_complete = len(raw) == len(text) and escape_invisible(text) == text
        markdown = format_markdown(raw) if is_markdown and len(raw) <= _MAX_MARKDOWN else None
        return TextView(raw, markdown, len(text), None if is_complete else self.media.store_text(text))

    def _build_media(self, data: bytes, mime_type: str) -> MediaView:
        name = canonical_type(mime_type)
        return MediaView(classify_media(name), mime_type, human_size(len(data)), self.media.store(data, name))
