"""
The body of a Markdown prompt: turns, included files, and parts that are files.

A line that consists of ``[user]`` starts a turn, ``{{> file.md}}`` includes a text, and a line
``{{image: file.png}}`` is a separate part. A backslash before any of these, or before a code fence or a
placeholder, makes it text.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from promptkit.errors.diagnostics import Location
from promptkit.errors.exceptions import MediaError
from promptkit.language.documents import EmbeddedResource
from promptkit.language.files import confine, note_read, read_confined
from promptkit.language.front_matter import split_front_matter
from promptkit.language.media import Audio, Image
from promptkit.language.messages import Workflow
from promptkit.language.placeholders import (
    LINE_END,
    MarkError,
    TextWithPlaceholders,
    append_indented,
    placeholders_in,
)
from promptkit.language.template_syntax import FOREIGN_WORDS
from promptkit.language.text import filled_text
from promptkit.language.turns import assistant, system, user

#: Limit of a Markdown prompt with everything that it includes, in bytes, and of the depth of its includes.
MAX_BYTES: Final = 4 * 1024 * 1024
_MAX_DEPTH: Final = 8

_ROLES: Final[Mapping[str, Callable[..., Workflow]]] = {
    "system": system,
    "user": user,
    "assistant": assistant,
}

_TURN: Final = re.compile(r"[ \t]*\[(system|user|assistant)\][ \t]*")
_ESCAPED_LINE: Final = re.compile(r"([ \t]*)\\(\\*(?:\[(?:system|user|assistant)\][ \t]*|(?:```|~~~).*))")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")

_INCLUDE: Final = re.compile(r"(?<!\\)\{\{>[ \t]*([^{}\n]+?)[ \t]*\}\}")
_FILE_PART: Final = re.compile(r"[ \t]*\{\{[ \t]*(image|audio|file):[ \t]*([^{}\n]+?)[ \t]*\}\}[ \t]*")

#: Characters that are never in text, one of which represents an escaped ``{{`` while a text is parsed.
_NONCHARACTERS: Final = tuple(map(chr, range(0xFDD0, 0xFDF0)))


class BodyError(Exception):
    """
    An error in the body of a Markdown prompt.

    Args:
        message:
            The problem.

        hint:
            How to fix it.

        location:
            Where.
    """

    def __init__(self, message: str, hint: str, location: Location) -> None:
        super().__init__(message)
        self.hint, self.location = hint, location


class Line(Struct, frozen=True):
    """
    A line of a body, without its line ending.

    Args:
        text:
            The text.

        location:
            Its location; for an included line, that in the included file.
    """

    text: str
    location: Location


class _FilePart(Struct, frozen=True):
    """
    A file that is a separate part of a turn.

    Args:
        kind:
            ``image``, ``audio`` or ``file``.

        path:
            Its path below the root.

        root:
            The folder that it must stay in.
    """

    kind: str
    path: str
    root: Path

    def content(self) -> Image | Audio | EmbeddedResource:
        """Read the file."""
        kinds: Mapping[str, Any] = {"image": Image, "audio": Audio, "file": EmbeddedResource}
        content: Image | Audio | EmbeddedResource = kinds[self.kind].from_path(self.path, root=self.root)
        return content


class Turn(Struct):
    """
    One turn of a body.

    Args:
        role:
            Its role.

        parts:
            Its texts and files, in order.

        lines:
            The lines of the text that is read, until it is parsed.
    """

    role: str
    parts: list[TextWithPlaceholders | _FilePart] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)

    @property
    def texts(self) -> list[TextWithPlaceholders]:
        """Its texts."""
        return [part for part in self.parts if isinstance(part, TextWithPlaceholders)]

    def rendered(self, values: Mapping[str, Any], label: str) -> Workflow:
        """Return the turn with its placeholders filled."""
        parts = [
            part.content() if isinstance(part, _FilePart) else filled_text(part, values, label)
            for part in self.parts
        ]
        return _ROLES[self.role](*parts)


class Body(Struct, frozen=True):
    """
    The parsed body of a Markdown prompt.

    Args:
        turns:
            The turns.

        lines:
            All lines of its texts, with those of included files.

        names:
            The names of its placeholders and marks, in order.

        label:
            The name of the file in error messages.
    """

    turns: tuple[Turn, ...]
    lines: tuple[Line, ...]
    names: tuple[str, ...]
    label: str

    def render(self, values: Mapping[str, Any]) -> Workflow:
        """Return the messages for the values of all names."""
        workflow = Workflow()
        for turn in self.turns:
            workflow += turn.rendered(values, self.label)
        return workflow


def read_text(path: Path, root: Path) -> str:
    """
    Return the text of a Markdown file with LF line endings.

    Raises:
        MediaError: If it is not a file below *root*, is too large, or is not UTF-8.
    """
    note_read(path.resolve())
    data = read_confined(confine(path.relative_to(root), root), root, path.name, MAX_BYTES)
    try:
        return LINE_END.sub("\n", data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        msg = f"{path.name!r} is not UTF-8 at byte {error.start + 1:,}: save it as UTF-8"
        raise MediaError(msg) from None


def parse_body(text: str, first_line: int, file: Path, root: Path) -> Body:
    """
    Parse the body of a Markdown prompt.

    Args:
        text:
            The body, with LF line endings.

        first_line:
            The number of its first line in the file.

        file:
            The file.

        root:
            The folder that included files must stay in.

    Raises:
        BodyError: For the first error.
    """
    turns = list(_split_turns(_lines(text, first_line, file)))
    reader = _Includes(root)
    lines = list[Line]()
    names = dict[str, None]()
    for turn in turns:
        for chunk in _split_parts(turn.lines):
            if isinstance(chunk, Line):
                turn.parts.append(_file_part(chunk, file, root))
                continue
            included = [line for each in chunk for line in reader.expanded(each, (file,))]
            if included := _without_blank_ends(included):
                parsed, used = _parse_text(included)
                turn.parts.append(parsed)
                names |= dict.fromkeys(used)
                lines += included
        turn.lines.clear()
    return Body(tuple(turns), tuple(lines), tuple(names), file.name)


def _lines(text: str, first_line: int, file: Path) -> list[Line]:
    return [
        Line(line, Location(str(file), number)) for number, line in enumerate(text.split("\n"), first_line)
    ]


def _split_turns(lines: Iterable[Line]) -> Iterator[Turn]:
    """Split lines at the marks of turns, except in code fences; without marks they are a turn of the user."""
    turn: Turn | None = None
    early = list[Line]()
    fence = ""
    for line in lines:
        mark = None if fence else _TURN.fullmatch(line.text)
        fence = _fence_after(fence, line.text)
        if mark is not None:
            if turn is not None:
                yield turn
            turn = Turn(mark[1])
        elif turn is not None:
            turn.lines.append(line)
        else:
            early.append(line)
    if turn is None:
        turn = Turn("user", lines=early)
    elif (first := next((line for line in early if line.text.strip()), None)) is not None:
        hint = "write [user] on a line above it, or \\[user] if that line is text"
        msg = "there is text before the first turn"
        raise BodyError(msg, hint, first.location)
    yield turn


def _fence_after(fence: str, line: str) -> str:
    """Return the fence that is open after a line, given the one that is open before it."""
    match = _FENCE.fullmatch(line)
    if match is None:
        return fence
    marks, info = match[1], match[2]
    if fence:
        return "" if marks.startswith(fence) and not info.strip() else fence
    return "" if marks[0] == "`" and "`" in info else marks


def _split_parts(lines: Iterable[Line]) -> Iterator[list[Line] | Line]:
    """Split the lines of a turn into texts, and lines that are files."""
    text, fence = list[Line](), ""
    for line in lines:
        if not fence and _FILE_PART.fullmatch(line.text):
            yield text
            yield line
            text = []
        else:
            text.append(line)
        fence = _fence_after(fence, line.text)
    yield text


def _file_part(line: Line, file: Path, root: Path) -> _FilePart:
    """Return the part for a line that names a file, which must exist."""
    match = _FILE_PART.fullmatch(line.text)
    kind, path = (match[1], match[2]) if match else ("", "")
    part = _FilePart(kind, _path_below(path, file, root, line.location), root)
    try:
        part.content()
    except (MediaError, OSError) as error:
        message, _, hint = str(error).partition(": ")
        raise BodyError(message, hint or "correct the path", line.location) from None
    return part


def _path_below(path: str, file: Path, root: Path, location: Location) -> str:
    """Return the path below *root* of a path that is relative to *file*."""
    below = Path(path.lstrip("/") if Path(path).is_absolute() else path)
    parts = [*file.parent.relative_to(root).parts]
    for part in below.parts:
        if part != "..":
            parts.append(part)
        elif parts:
            parts.pop()
        else:
            parts = [".."]
            break
    if Path(path).is_absolute() or ".." in parts or "\\" in path:
        hint = f"write a path relative to the file, to a file below {root.name!r}"
        msg = f"{path!r} is outside {root.name!r}"
        raise BodyError(msg, hint, location)
    return "/".join(parts)


def _without_blank_ends(lines: list[Line]) -> list[Line]:
    filled = [position for position, line in enumerate(lines) if line.text.strip()]
    return lines[filled[0] : filled[-1] + 1] if filled else []


class _Includes:
    """
    Replaces the marks of included files by their texts.

    Args:
        root:
            The folder that they must stay in.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._size = 0

    def expanded(self, line: Line, stack: tuple[Path, ...]) -> list[Line]:
        """
        Return the lines for one line.

        Raises:
            BodyError: If an included file is missing, includes itself, or is too deep or too large.
        """
        lines = [line]
        while match := _INCLUDE.search(lines[-1].text):
            *_, last = lines
            before, after = last.text[: match.start()], last.text[match.end() :]
            included = self._read(match[1], stack, line.location)
            texts = append_indented(before, "\n".join(each.text for each in included)).split("\n")
            lines[-1:] = [Line(text, each.location) for text, each in zip(texts, included, strict=True)]
            if before.strip():
                lines[-len(included)] = Line(texts[0], last.location)
            if after:
                location = last.location if after.strip() else lines[-1].location
                lines[-1] = Line(lines[-1].text + after, location)
        return lines

    def _read(self, path: str, stack: tuple[Path, ...], location: Location) -> list[Line]:
        file = self._root / _path_below(path, stack[-1], self._root, location)
        if file in stack:
            msg = f"{path!r} includes itself"
            raise BodyError(msg, "remove one of the includes", location)
        if len(stack) > _MAX_DEPTH:
            msg = f"includes are more than {_MAX_DEPTH} deep"
            raise BodyError(msg, "include the texts directly", location)
        try:
            text = read_text(file, self._root)
        except MediaError as error:
            message, _, hint = str(error).partition(": ")
            raise BodyError(message, hint or "correct the path", location) from None
        self._size += len(text) + 1
        if self._size > MAX_BYTES:
            msg = f"the included texts have more than {MAX_BYTES:,} characters"
            raise BodyError(msg, "include less", location)
        _, body, first_line = split_front_matter(text)
        lines = _lines(body, first_line, file)
        return [inner for each in lines for inner in self.expanded(each, (*stack, file))]


def _parse_text(lines: list[Line]) -> tuple[TextWithPlaceholders, list[str]]:
    """Parse a text in which all names but words of Handlebars are placeholders. Return it and the names."""
    text = "\n".join(_unescaped_line(line.text) for line in lines)
    escape = next(character for character in _NONCHARACTERS if character not in text)
    text = text.replace("\\{{", escape)
    names = [name for name in placeholders_in(text) if name not in FOREIGN_WORDS]
    try:
        parsed = TextWithPlaceholders.parse(text, names, "")
    except MarkError as error:
        raise BodyError(error.problem, error.hint, lines[error.line - 1].location) from None
    return parsed.with_literals(lambda literal: literal.replace(escape, "{{")), names


def _unescaped_line(line: str) -> str:
    match = _ESCAPED_LINE.fullmatch(line)
    return match[1] + match[2] if match else line


def is_turn_mark(line: str) -> bool:
    """Return whether a line is the mark of a turn."""
    return _TURN.fullmatch(line) is not None


def escaped(text: str) -> str:
    """Return text as it is written in the body of a Markdown prompt, so that nothing in it is a mark."""
    fence, lines = "", text.split("\n")
    for line in lines:
        fence = _fence_after(fence, line)
    written = list[str]()
    for line in lines:
        body = line.lstrip(" \t")
        is_mark = _ESCAPED_LINE.fullmatch(line) or _TURN.fullmatch(line)
        is_escaped = is_mark or (fence and _FENCE.fullmatch(line))
        written.append(line[: len(line) - len(body)] + "\\" + body if is_escaped else line)
    return "\n".join(written).replace("{{", "\\{{")
