"""
What all exports share: a workflow becomes turns, whose parts are written as a vendor wants them.

A vendor says which files it takes, and how it writes them. What it does not take is an error, or text.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

import attrs
from msgspec import Struct

from promptkit.errors.exceptions import PromptkitError
from promptkit.language.content import Content
from promptkit.language.documents import EmbeddedResource, ResourceLink
from promptkit.language.media import Media
from promptkit.language.media_checks import canonical_type
from promptkit.language.messages import Message, Workflow
from promptkit.language.text import Text
from promptkit.language.validation import Role

#: One part of a turn, as a vendor writes it.
Part: TypeAlias = dict[str, Any]

#: How many types a hint names at most.
_MAX_NAMED: Final = 4

#: How many marks of a stable prefix OpenAI and Anthropic take in a request.
_MAX_MARKS: Final = 4


class UnsupportedPart(Struct, frozen=True):
    """
    A message that a vendor cannot take.

    Args:
        message:
            Its number in the workflow, from 1 on; 0 for the system part.

        role:
            Who speaks: ``"user"``, ``"assistant"`` or ``"system"``.

        kind:
            What it holds, as a MIME type.

        hint:
            What to do about it.
    """

    message: int
    role: str
    kind: str
    hint: str

    def __str__(self) -> str:
        if self.role == "system":
            return f"it has a system part: {self.hint}"
        return f"message {self.message} holds {self.kind} of the {self.role}: {self.hint}"


class ExportError(PromptkitError, ValueError):
    """
    A workflow holds what a vendor cannot take.

    Args:
        vendor:
            Whose form was wanted.

        parts:
            Each message that cannot be taken, and what to do about it.
    """

    def __init__(self, vendor: str, parts: tuple[UnsupportedPart, ...]) -> None:
        super().__init__(vendor, parts)
        self.vendor = vendor
        self.parts = parts

    def __str__(self) -> str:
        return f"{self.reason} (lossy=True sends text in place of what cannot be taken)"

    @property
    def reason(self) -> str:
        """What cannot be taken, and what to do about each."""
        return f"{self.vendor} cannot take it: {'; '.join(map(str, self.parts))}"


@attrs.frozen
class File:
    """
    An image, a recording or another file that a message holds.

    Args:
        mime_type:
            Its MIME type.

        data:
            Its bytes.

        base64:
            Its bytes in base64.

        uri:
            Its URI; None if it has none.
    """

    mime_type: str
    data: bytes = attrs.field(repr=False)
    base64: str = attrs.field(repr=False)
    uri: str | None = None

    @property
    def data_url(self) -> str:
        """Its type and its bytes as a ``data:`` URL."""
        return f"data:{self.mime_type};base64,{self.base64}"


@attrs.frozen
class Turn:
    """
    Messages of one role that follow each other.

    Args:
        role:
            Who speaks; ``"system"`` for the system part.

        parts:
            What is said, as the vendor writes it.
    """

    role: Role | Literal["system"]
    parts: list[Part]

    @property
    def content(self) -> str | list[Part]:
        """The text if nothing else is said, without marks; else the parts."""
        if len(self.parts) == 1 and self.parts[0].keys() == {"type", "text"}:
            return str(self.parts[0]["text"])
        return self.parts


@attrs.frozen
class Vendor:
    """
    What one vendor takes in a turn of the user, and how it is written. Turns of the assistant are text.

    Args:
        name:
            How errors call it.

        text:
            Writes text.

        files:
            What writes files, by the MIME types that the vendor takes.

        links:
            What writes the URI of a file that the vendor fetches by itself, by the MIME types of such files.

        schemes:
            What the URIs of such files begin with.

        document:
            Writes an embedded resource that is text; None if the vendor has no form of its own for that.

        request:
            The function that makes a whole request, with the system part.

        mark:
            Marks a part as the end of a stable prefix; None if the vendor has no marks.

        marks_assistant:
            Whether parts of the assistant can have a mark.

        joins_assistant:
            Whether texts of the assistant that follow each other are one text, with a blank line between.
    """

    name: str
    text: Callable[[str], Part]
    files: Mapping[str, Callable[[File], Part]]
    request: str
    links: Mapping[str, Callable[[str], Part]] = MappingProxyType({})
    schemes: tuple[str, ...] = ("https",)
    document: Callable[[EmbeddedResource], Part] | None = None
    mark: Callable[[Part], object] | None = None
    marks_assistant: bool = True
    joins_assistant: bool = False


def turns_of(workflow: Workflow, vendor: Vendor, *, lossy: bool, has_system: bool = False) -> list[Turn]:
    """
    Return what *workflow* says, turn by turn.

    Args:
        workflow:
            What a prompt rendered to.

        vendor:
            Whose form is wanted.

        lossy:
            Whether what the vendor does not take becomes text that says what it was, and the system part a
            turn of the user.

        has_system:
            Whether the system part is the first turn, of the role ``"system"``.

    Raises:
        ExportError: If there is anything that the vendor does not take, unless *lossy*.
    """
    turns: list[Turn] = []
    unfit: list[UnsupportedPart] = []
    if workflow.system is not None and not has_system:
        hint = f"make the whole request, with {vendor.request}(...)"
        unfit.append(UnsupportedPart(0, "system", "text", hint))
    marks = None
    if workflow.cache_points and vendor.mark is not None:
        marks = _Marks(workflow, vendor, vendor.mark)
    messages = workflow.shown if has_system else workflow.sent
    for number, message in enumerate(messages, len(workflow) - len(messages)):  # the system part is -1
        parts = _parts(message, vendor)
        if parts is None:
            unfit.append(_unfit(number + 1, message, vendor))
            parts = [vendor.text(str(message.content))]
        if marks is not None:
            parts = marks.split(number, message, parts)
        if turns and turns[-1].role == message.role:
            _extend(turns[-1], parts, vendor)
        else:
            turns.append(Turn(message.role, parts))
    if unfit and not lossy:
        raise ExportError(vendor.name, tuple(unfit))
    if marks is not None:
        marks.write()
    return turns


def _extend(turn: Turn, parts: list[Part], vendor: Vendor) -> None:
    """Add what the next message says."""
    if turn.role == "assistant" and vendor.joins_assistant:
        turn.parts[-1]["text"] += "\n\n"
    turn.parts.extend(parts)


class _Marks:
    """The marks of a request: one on the last part before each cache point that can have one."""

    def __init__(self, workflow: Workflow, vendor: Vendor, mark: Callable[[Part], object]) -> None:
        self._points = workflow.cache_points
        self._end = len(workflow)
        self._vendor = vendor
        self._mark = mark
        self._places: list[Part] = []  # the parts that can have a mark
        self._counts: set[int] = set()  # how many of them stand before each point

    def split(self, number: int, message: Message, parts: list[Part]) -> list[Part]:
        """Return the parts of a message, with its text split at the points in it."""
        cuts = [offset for at, offset in self._points if at == number]
        before = len(self._places)
        if message.role == "assistant" and not self._vendor.marks_assistant:
            self._counts.update([before] if cuts else ())
            return parts
        begins = sorted({0, *cuts})
        if len(begins) > 1:
            text = str(message.content)
            pieces = pairwise([*begins, len(text)])
            parts = [self._vendor.text(text[begin:end]) for begin, end in pieces if begin < end]
        self._places += parts
        self._counts |= {before + begins.index(cut) for cut in cuts}
        return parts

    def write(self) -> None:
        """Write the last ones, as the longest prefix is worth most."""
        if any(at == self._end for at, _ in self._points):
            self._counts.add(len(self._places))
        for count in sorted(self._counts - {0})[-_MAX_MARKS:]:
            self._mark(self._places[count - 1])


def _parts(message: Message, vendor: Vendor) -> list[Part] | None:
    """What a message says; None if the vendor does not take it."""
    content, is_user = message.content, message.role == "user"
    if isinstance(content, Text):
        return [vendor.text(content.text)]
    if isinstance(content, ResourceLink):
        return [vendor.text(str(content)), *(_fetched(content, vendor) if is_user else ())]
    file = _file(content)
    if file is None:
        assert isinstance(content, EmbeddedResource)  # noqa: S101 (no other kind of content has no bytes)
        return [vendor.document(content) if is_user and vendor.document else vendor.text(str(content))]
    write = vendor.files.get(file.mime_type) if is_user else None
    return None if write is None else [write(file)]


def _fetched(link: ResourceLink, vendor: Vendor) -> list[Part]:
    """What a link leads to, if the vendor can fetch it."""
    write = vendor.links.get(canonical_type(link.mime_type or ""))
    if write is None or urlsplit(link.uri).scheme.lower() not in vendor.schemes:
        return []
    return [write(link.uri)]


def _file(content: Content) -> File | None:
    """The file that is in *content*; None if that is text."""
    if isinstance(content, Media):
        return File(str(content.mime_type), content.data, content.base64)
    if isinstance(content, EmbeddedResource) and content.blob is not None:
        mime_type = canonical_type(str(content.mime_type))
        return File(mime_type, content.blob, content.base64, content.uri)
    return None


def _unfit(number: int, message: Message, vendor: Vendor) -> UnsupportedPart:
    """Say what to do about a message that the vendor does not take."""
    file = _file(message.content)
    kind = file.mime_type if file else type(message.content).__name__
    family = kind.partition("/")[0]
    alike = sorted(known for known in vendor.files if known.partition("/")[0] == family)
    if message.role == "assistant":
        hint = "put it into a turn of the user, as the assistant's turns are text"
    elif family == "text":
        hint = "embed it with text= in place of blob="
    else:
        hint = f"convert it to {' or '.join(alike[:_MAX_NAMED])}" if alike else "say in text what it says"
    return UnsupportedPart(number, message.role, kind, hint)
