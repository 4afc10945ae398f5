"""The conversation that a prompt starts: its turns, as the page shows them."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Final
from urllib.parse import urlsplit

import attrs
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup

from promptkit.fragments.invisible import escape_invisible
from promptkit.language.content import Content, Text
from promptkit.language.documents import EmbeddedResource, ResourceLink
from promptkit.language.media import Media as MediaContent
from promptkit.language.messages import Message, Workflow
from promptkit.language.mime import canonical_type, human_size
from promptkit.preview.media import Media, is_audio, is_image
from promptkit.preview.tokens import estimated

__all__ = ["ALL_TURNS", "SHORT", "Document", "Link", "Medium", "Turn", "Writing", "document_of", "turns_of"]

#: A longer text is cut, until somebody asks for all of it; in characters.
SHORT: Final = 20_000

#: A longer text is shown as it is, since nobody waits for its Markdown.
_MARKDOWN: Final = 50_000

#: So many messages are shown, until somebody asks for all of them.
_MOST_TURNS: Final = 200

#: What asks for all messages, in place of the number of one.
ALL_TURNS: Final = -1

#: The schemes of links that may be followed.
_SCHEMES: Final = frozenset({"http", "https", "mailto"})


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

    @property
    def is_cut(self) -> bool:
        """Whether only its beginning is shown."""
        return len(self.raw) < self.length


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

    kind: str
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
class Link:
    """
    A link to a resource, which a client may fetch.

    Args:
        uri:
            Where the resource is.

        title:
            How it is called.

        details:
            What else is said of it.

        is_web:
            Whether a browser may follow it.
    """

    uri: str
    title: str
    details: tuple[str, ...]
    is_web: bool


@attrs.frozen
class Turn:
    """
    One message.

    Args:
        number:
            Counts from 1.

        role:
            Who says it.

        kind:
            What it holds, in a word.

        shown:
            What it holds.

        tokens:
            About how many tokens its text takes; 0 if it has none.

        notes:
            Whom it is for, how important it is, how old.
    """

    number: int
    role: str
    kind: str
    shown: Writing | Medium | Document | Link
    tokens: int
    notes: tuple[str, ...]

    @property
    def writing(self) -> Writing | None:
        """Its text, or that of its document."""
        shown = self.shown.shown if isinstance(self.shown, Document) else self.shown
        return shown if isinstance(shown, Writing) else None


def turns_of(
    workflow: Workflow, media: Media, redacted: Callable[[str], str] = str, whole: int = 0
) -> list[Turn]:
    """
    Return the turns of a workflow.

    Args:
        workflow:
            What a prompt says.

        media:
            Keeps what browsers will ask for.

        redacted:
            Hides what is secret in text.

        whole:
            The number of a turn that is shown whole, however long; 0 for none, `ALL_TURNS` for all turns.

    Returns:
        Its turns; of a great many, the first.
    """
    shown = workflow.messages if whole == ALL_TURNS else workflow.messages[:_MOST_TURNS]
    return [
        _turn(number, message, media, redacted, is_whole=number == whole)
        for number, message in enumerate(shown, 1)
    ]


def document_of(
    resource: EmbeddedResource,
    media: Media,
    redacted: Callable[[str], str] = str,
    *,
    is_whole: bool = False,
) -> Document:
    """
    Return a resource, unfolded.

    Args:
        resource:
            The resource.

        media:
            Keeps what browsers will ask for.

        redacted:
            Hides what is secret in text.

        is_whole:
            Whether all of it is shown, however long.
    """
    name, mime_type = redacted(resource.uri), resource.mime_type
    if resource.text is None:
        return Document(name, mime_type, _medium(resource.blob or b"", str(mime_type), media))
    text = redacted(resource.text)
    if is_image(kind := canonical_type(mime_type or "")):  # SVG is text
        return Document(name, mime_type, _medium(text.encode(errors="replace"), kind, media))
    is_markdown = canonical_type(mime_type or "") == "text/markdown"
    return Document(name, mime_type, _writing(text, media, is_whole=is_whole, is_markdown=is_markdown))


def _turn(
    number: int, message: Message, media: Media, redacted: Callable[[str], str], *, is_whole: bool
) -> Turn:
    content = message.content
    kind, shown = _shown(content, media, redacted, is_whole=is_whole)
    tokens = sum(map(estimated, content.texts))
    return Turn(number, message.role, kind, shown, tokens, tuple(_notes(content)))


def _shown(
    content: Content, media: Media, redacted: Callable[[str], str], *, is_whole: bool
) -> tuple[str, Writing | Medium | Document | Link]:
    if isinstance(content, Text):
        return "text", _writing(redacted(content.text), media, is_whole=is_whole)
    if isinstance(content, EmbeddedResource):
        return "resource", document_of(content, media, redacted, is_whole=is_whole)
    if isinstance(content, ResourceLink):
        return "link", _link(content, redacted)
    assert isinstance(content, MediaContent)  # noqa: S101 (there is no other content)
    medium = _medium(content.data, str(content.mime_type), media)
    return medium.kind, medium


def _writing(text: str, media: Media, *, is_whole: bool, is_markdown: bool = True) -> Writing:
    raw = text if is_whole else text[:SHORT]
    is_shown = len(raw) == len(text) and escape_invisible(text) == text
    formatted = _formatted(raw) if is_markdown and len(raw) <= _MARKDOWN else None
    return Writing(raw, formatted, len(text), None if is_shown else media.keep_text(text))


@lru_cache(maxsize=64)  # while people type, most turns stay as they are
def _formatted(text: str) -> Markup:
    return Markup(_markdown().render(escape_invisible(text)))  # noqa: S704 (made by a renderer that escapes)


def _medium(data: bytes, mime_type: str, media: Media) -> Medium:
    name = canonical_type(mime_type)
    kind = "image" if is_image(name) else "audio" if is_audio(name) else "file"
    return Medium(kind, mime_type, human_size(len(data)), media.keep(data, name))


def _link(link: ResourceLink, redacted: Callable[[str], str]) -> Link:
    size = None if link.size is None else human_size(link.size)
    name = link.name if link.title not in (None, link.name) else None
    details = tuple(map(redacted, filter(None, (name, link.mime_type, size, link.description))))
    uri = redacted(link.uri)
    return Link(uri, redacted(link.title or link.name), details, _may_be_followed(uri))


def _notes(content: Content) -> Iterator[str]:
    if content.audience:
        yield f"for the {' and the '.join(content.audience)}"
    if content.priority is not None:
        yield f"priority {content.priority:g}"
    if content.last_modified is not None:
        yield f"changed {content.last_modified:%Y-%m-%d}"


@cache
def _markdown() -> MarkdownIt:
    """Return what formats text: it takes no HTML, and shows the source of images and of unsafe links."""
    made = MarkdownIt("commonmark", {"html": False, "breaks": True}, renderer_cls=_Renderer).enable(
        ["table", "strikethrough"]
    )
    made.disable(["image", "html_block", "html_inline"])
    made.validateLink = _may_be_followed  # type: ignore[method-assign]
    return made


class _Renderer(RendererHTML):
    """Writes the headings of a prompt as paragraphs: they are no headings of the page."""

    def heading_open(self, tokens: Sequence[Token], idx: int, _options: OptionsDict, _env: EnvType) -> str:
        return f'<p class="level level-{tokens[idx].tag[1:]}">'

    def heading_close(self, *_: object) -> str:
        return "</p>\n"

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        tokens[idx].attrSet("rel", "noreferrer noopener")
        tokens[idx].attrSet("target", "_blank")
        return self.renderToken(tokens, idx, options, env)


def _may_be_followed(url: str) -> bool:
    try:
        return urlsplit(url).scheme.lower() in _SCHEMES
    except ValueError:
        return False
