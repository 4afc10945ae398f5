"""The conversation that a prompt starts: its turns, as the page shows them."""

import os
import tempfile
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

import attrs
from markupsafe import Markup

from promptkit.files.reading import read_regular_file
from promptkit.fragments.invisible import escape_invisible
from promptkit.language.content import Content
from promptkit.language.documents import EmbeddedResource, ResourceLink
from promptkit.language.media import Media
from promptkit.language.media_checks import canonical_type, human_size
from promptkit.language.messages import Message, Workflow
from promptkit.language.text import Text
from promptkit.preview.media import MediaKind, MediaStore, kind_of
from promptkit.preview.templating import SHORT, formatted

#: A longer text is shown as it is, since nobody waits for its Markdown.
_MARKDOWN: Final = 50_000

#: So many messages are shown, until somebody asks for all of them.
_MOST_TURNS: Final = 200

#: What asks for all messages, in place of the number of one.
ALL_TURNS: Final = -1

#: A vocabulary, the name under which tiktoken keeps it on disk, and the digest that it must have.
_VOCABULARY: Final = "o200k_base"
_FILE: Final = "fb374d419588a4632f3f557e76b4b70aebbca790"
_MAX_BYTES: Final = 16 << 20
_DIGEST: Final = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"

#: The tokens of a longer text are not counted: people wait for the page.
_LONGEST: Final = 200_000


@attrs.frozen
class Writing:
    """
    Text of a turn.

    Args:
        raw:
            As it is, perhaps only its beginning.

        formatted:
            The same, as Markdown; None if it is shown as it is.

        length:
            How many characters it has, whole.

        address:
            Where the text is to copy; None if a page shows each of its characters.
    """

    raw: str
    formatted: Markup | None
    length: int
    address: str | None = None


@attrs.frozen
class Medium:
    """
    An image, a recording, or a file of another kind.

    Args:
        kind:
            ``image``, ``audio`` or ``file``: how it is shown.

        mime_type:
            What it is.

        size:
            How large, for people.

        address:
            Where the browser finds it.
    """

    kind: MediaKind
    mime_type: str
    size: str
    address: str


@attrs.frozen
class Document:
    """
    An embedded resource, unfolded.

    Args:
        uri:
            Its name.

        mime_type:
            What it is, if that is known.

        shown:
            Its text, or its bytes.
    """

    uri: str
    mime_type: str | None
    shown: Writing | Medium


@attrs.frozen
class TurnView:
    """
    One message.

    Args:
        number:
            Counts from 1.

        message:
            The message.

        kind:
            What it holds, in a word.

        shown:
            What it holds.

        tokens:
            About how many tokens its text takes; 0 if it has none.

        redacted:
            Hides what is secret in the text of a link.
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
    Makes what the page shows of content.

    Args:
        media:
            Keeps what browsers will ask for.

        redacted:
            Hides what is secret in text.
    """

    media: MediaStore
    redacted: Callable[[str], str] = str

    def turns(self, workflow: Workflow, whole: int = 0) -> list[TurnView]:
        """
        Return the turns of a workflow; of a great many the first, and at least up to the one shown whole.

        Args:
            workflow:
                What a prompt says.

            whole:
                The number of a turn that is shown whole, however long; 0 for none, `ALL_TURNS` for all turns.
        """
        shown = workflow.shown if whole == ALL_TURNS else workflow.shown[: max(whole, _MOST_TURNS)]
        return [
            self._turn(number, message, None if number == whole else SHORT)
            for number, message in enumerate(shown, 1)
        ]

    def document(self, resource: EmbeddedResource, most: int | None = SHORT) -> Document:
        """
        Return a resource, unfolded.

        Args:
            resource:
                The resource.

            most:
                How many characters are shown at most; None for all.
        """
        name, mime_type = self.redacted(resource.uri), resource.mime_type
        if resource.text is None:
            return Document(name, mime_type, self._medium(resource.blob or b"", str(mime_type)))
        text, canonical = self.redacted(resource.text), canonical_type(mime_type or "")
        if kind_of(canonical) == "image":  # SVG is text
            return Document(name, mime_type, self._medium(text.encode(errors="replace"), canonical))
        return Document(name, mime_type, self._writing(text, most, is_markdown=canonical == "text/markdown"))

    def _turn(self, number: int, message: Message, most: int | None) -> TurnView:
        content = message.content
        kind, shown = self._view(content, most)
        tokens = sum(map(_tokens, content.texts))
        return TurnView(number, message, kind, shown, tokens, self.redacted)

    def _view(
        self, content: Content, most: int | None
    ) -> tuple[str, Writing | Medium | Document | ResourceLink]:
        if isinstance(content, Text):
            return "text", self._writing(self.redacted(content.text), most)
        if isinstance(content, EmbeddedResource):
            return "resource", self.document(content, most)
        if isinstance(content, ResourceLink):
            return "link", content
        assert isinstance(content, Media)  # noqa: S101 (there is no other content)
        medium = self._medium(content.data, str(content.mime_type))
        return medium.kind, medium

    def _writing(self, text: str, most: int | None, *, is_markdown: bool = True) -> Writing:
        raw = text[:most]
        is_shown = len(raw) == len(text) and escape_invisible(text) == text
        markdown = formatted(raw) if is_markdown and len(raw) <= _MARKDOWN else None
        return Writing(raw, markdown, len(text), None if is_shown else self.media.keep_text(text))

    def _medium(self, data: bytes, mime_type: str) -> Medium:
        name = canonical_type(mime_type)
        return Medium(kind_of(name), mime_type, human_size(len(data)), self.media.keep(data, name))


def _tokens(text: str) -> int:
    """About how many tokens a text takes: counted where tiktoken and its vocabulary are, else guessed."""
    count = _counter()
    if count is None or len(text) > _LONGEST:
        return -(-len(text) // 4)  # English text has about so many characters a token
    return count(text)


@cache
def _counter() -> Callable[[str], int] | None:
    usual = Path(tempfile.gettempdir()) / "data-gym-cache"
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR", usual))
    try:
        data = read_regular_file(Path(folder, _FILE), _MAX_BYTES)  # others may write to the folder
        import tiktoken  # type: ignore[import-not-found,unused-ignore]  # users may have it
    except (OSError, ModuleNotFoundError):
        return None
    if sha256(data).hexdigest() != _DIGEST:  # tiktoken would fetch another
        return None
    encoding = tiktoken.get_encoding(_VOCABULARY)
    return lambda text: len(encoding.encode_ordinary(text))
