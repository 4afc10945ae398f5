"""The conversation that a prompt starts: its turns as the page shows them."""

from collections.abc import Callable
from typing import Final

import attrs
from markupsafe import Markup

from promptkit.fragments.invisible import escape_invisible
from promptkit.language.content import Content, human_size
from promptkit.language.documents import EmbeddedResource, ResourceLink
from promptkit.language.media import Media, canonical_type
from promptkit.language.messages import Message, Workflow
from promptkit.language.text import Text
from promptkit.preview.media import MediaKind, MediaStore, kind_of
from promptkit.preview.templating import SHORT, formatted

#: Maximum length of Markdown to format, in characters; formatting longer texts takes too long.
_MAX_MARKDOWN: Final = 50_000

#: Number of messages that are shown unless the user requests all.
_MAX_TURNS: Final = 200

#: Requests all messages, instead of the number of one message.
ALL_TURNS: Final = -1


@attrs.frozen
class Writing:
    """
    The text of a turn.

    Args:
        raw:
            The text, possibly truncated.

        formatted:
            The text as formatted Markdown; None to show it as it is.

        length:
            The number of characters of the whole text.

        address:
            The URL of the text for copying; None if the page shows all its characters.
    """

    raw: str
    formatted: Markup | None
    length: int
    address: str | None = None


@attrs.frozen
class Medium:
    """
    An image, audio, or a file of another kind.

    Args:
        kind:
            How it is shown: ``image``, ``audio`` or ``file``.

        mime_type:
            Its MIME type.

        size:
            Its size, formatted for users.

        address:
            Its URL.
    """

    kind: MediaKind
    mime_type: str
    size: str
    address: str


@attrs.frozen
class Document:
    """
    The content of an embedded resource.

    Args:
        uri:
            Its URI.

        mime_type:
            Its MIME type, if known.

        shown:
            Its text or bytes.
    """

    uri: str
    mime_type: str | None
    shown: Writing | Medium


@attrs.frozen
class TurnView:
    """
    One message as the page shows it.

    Args:
        number:
            Its number, starting at 1.

        message:
            The message.

        kind:
            The kind of its content, in a word.

        shown:
            Its content.

        tokens:
            The approximate number of tokens of its text; 0 if it has none.

        redacted:
            Hides secrets in the text of a link.
    """

    number: int
    message: Message
    kind: str
    shown: Writing | Medium | Document | ResourceLink
    tokens: int
    redacted: Callable[[str], str]

    @property
    def writing(self) -> Writing | None:
        """Its text, or that of its document."""
        shown = self.shown.shown if isinstance(self.shown, Document) else self.shown
        return shown if isinstance(shown, Writing) else None


@attrs.frozen
class Conversation:
    """
    Converts content for the page.

    Args:
        media:
            Stores media until browsers request them.

        redacted:
            Hides secrets in text.
    """

    media: MediaStore
    redacted: Callable[[str], str] = str

    def turns(self, workflow: Workflow, whole: int = 0) -> list[TurnView]:
        """
        Return the turns of a workflow, truncating long conversations and long texts.

        Args:
            workflow:
                The workflow to show.

            whole:
                The number of a turn that is shown in full; 0 for none, `ALL_TURNS` for all turns.
        """
        messages = workflow.shown if whole == ALL_TURNS else workflow.shown[: max(whole, _MAX_TURNS)]
        return [
            self._turn(number, message, None if number == whole else SHORT)
            for number, message in enumerate(messages, 1)
        ]

    def document(self, resource: EmbeddedResource, max_length: int | None = SHORT) -> Document:
        """
        Return the content of an embedded resource.

        Args:
            resource:
                The resource.

            max_length:
                The maximum number of characters; None for all.
        """
        name, mime_type = self.redacted(resource.uri), resource.mime_type
        if resource.text is None:
            return Document(name, mime_type, self._medium(resource.blob or b"", str(mime_type)))
        text, canonical = self.redacted(resource.text), canonical_type(mime_type or "")
        if kind_of(canonical) == "image":  # SVG is text
            return Document(name, mime_type, self._medium(text.encode(errors="replace"), canonical))
        return Document(
            name, mime_type, self._writing(text, max_length, is_markdown=canonical == "text/markdown")
        )

    def _turn(self, number: int, message: Message, max_length: int | None) -> TurnView:
        content = message.content
        kind, view = self._view(content, max_length)
        tokens = sum(map(_estimate_tokens, content.texts))
        return TurnView(number, message, kind, view, tokens, self.redacted)

    def _view(
        self, content: Content, max_length: int | None
    ) -> tuple[str, Writing | Medium | Document | ResourceLink]:
        if isinstance(content, Text):
            return "text", self._writing(self.redacted(content.text), max_length)
        if isinstance(content, EmbeddedResource):
            return "resource", self.document(content, max_length)
        if isinstance(content, ResourceLink):
            return "link", content
        assert isinstance(content, Media)  # noqa: S101 (no other kind of content exists)
        medium = self._medium(content.data, str(content.mime_type))
        return medium.kind, medium

    def _writing(self, text: str, max_length: int | None, *, is_markdown: bool = True) -> Writing:
        raw = text[:max_length]
        is_complete = len(raw) == len(text) and escape_invisible(text) == text
        markdown = formatted(raw) if is_markdown and len(raw) <= _MAX_MARKDOWN else None
        return Writing(raw, markdown, len(text), None if is_complete else self.media.keep_text(text))

    def _medium(self, data: bytes, mime_type: str) -> Medium:
        name = canonical_type(mime_type)
        return Medium(kind_of(name), mime_type, human_size(len(data)), self.media.keep(data, name))


def _estimate_tokens(text: str) -> int:
    """Return the approximate number of tokens: English text has about 4 characters per token."""
    return -(-len(text) // 4)
