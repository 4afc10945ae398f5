"""
The body of a Markdown prompt: its turns, the text files that it includes, and the files that it attaches.

A line that consists of ``[user]`` starts a turn, ``{{> file.md}}`` includes a text file, and a line that
consists of ``{{image: file.png}}`` adds the file as a separate part. A backslash before any of these marks,
or before a code fence or a placeholder, turns it into text. Two backslashes before a placeholder become one.
"""

import posixpath
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from promptkit.declarations.markdown_yaml import MarkdownError
from promptkit.errors.diagnostics import Location
from promptkit.errors.exceptions import MediaError, ResultError
from promptkit.errors.rules import Rule
from promptkit.errors.suggestions import is_misspelling_of
from promptkit.language.documents import EmbeddedResource
from promptkit.language.files import confine, decoded_text, read_confined, record_read, split_front_matter
from promptkit.language.media import Audio, Image
from promptkit.language.messages import Workflow
from promptkit.language.placeholders import (
    FOREIGN_WORDS,
    TAG,
    Insertion,
    MarkError,
    TextWithPlaceholders,
    append_indented,
)
from promptkit.language.results import MessageBuilder
from promptkit.language.text import filled_text
from promptkit.language.turns import Part, assistant, system, user

#: Limits of a Markdown prompt: the size of its file and of the included text, and the number and depth of
#: includes.
MAX_BYTES: Final = 4 * 1024 * 1024
_MAX_INCLUDES: Final = 1_000
_MAX_DEPTH: Final = 8

_ROLES: Final[Mapping[str, Callable[..., Workflow]]] = {
    "system": system,
    "user": user,
    "assistant": assistant,
}
_CONTENT: Final[Mapping[str, Any]] = {"image": Image, "audio": Audio, "file": EmbeddedResource}

_TURN: Final = re.compile(r"[ \t]*\[(system|user|assistant)\][ \t]*")
#: A line that resembles the mark of a turn. ``[user]: path`` is a link definition in Markdown, not a mark.
_NEAR_TURN: Final = re.compile(r"[ \t]*(\[(\w+)\]:?)(?P<text>(?<!:)[ \t]+\S.*|[ \t]*)")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_INCLUDE: Final = re.compile(r"\{\{>([^{}\n]+)\}\}")
_FILE_PART: Final = re.compile(r"[ \t]*\{\{[ \t]*(image|audio|file):([^{}\n]+)\}\}[ \t]*")

#: A backslash before the mark of a turn or a fence, or backslashes before braces.
_ESCAPE: Final = re.compile(
    rf"^(?P<indent>[ \t]*)\\(?=\\*(?:{_TURN.pattern}$|```|~~~))|(?<!\\)(?P<slashes>\\+)(?P<braces>\{{\{{)",
    re.MULTILINE,
)

#: Surrogates, which no text file contains. They replace escaped braces and the backslashes that escape marks,
#: so that an escaped mark matches none of the patterns, and its length does not change.
_BRACE, _REMOVED, PLACEHOLDER = "\ud800", "\ud801", "\ud802"
_SURROGATE_TEXTS: Final = {ord(_BRACE): "{", ord(_REMOVED): None}


class BodyError(MarkdownError):
    """An error in the body of a Markdown prompt."""

    rule = Rule.BAD_MARKDOWN


class Line(Struct, frozen=True):
    """
    A line of a body, without its line ending.

    Args:
        marked:
            The text, with surrogates for escaped marks.

        location:
            The location of the line; for an included line, its location in the included file.
    """

    marked: str
    location: Location

    @property
    def text(self) -> str:
        """The text as it is sent."""
        return _replace_surrogates(self.marked)


def _replace_surrogates(text: str) -> str:
    return text.translate(_SURROGATE_TEXTS)


class Turn(Struct, frozen=True):
    """
    One turn of a body.

    Args:
        role:
            The role of the turn.

        parts:
            The turn's parts in order: texts, and functions that read a file.
    """

    role: str
    parts: list[TextWithPlaceholders | Callable[[], Part]]

    def rendered(self, values: Mapping[str, Any], label: str) -> Workflow:
        """
        Return the turn with its placeholders filled.

        Raises:
            ResultError: If a value cannot be inserted.
        """
        try:
            parts = [
                filled_text(part, values, label) if isinstance(part, TextWithPlaceholders) else part()
                for part in self.parts
            ]
        except TypeError as error:  # a value that a placeholder does not accept
            raise ResultError(str(error)) from None
        return _ROLES[self.role](*parts)


class Body(Struct, frozen=True):
    """
    The parsed body of a Markdown prompt.

    Args:
        turns:
            The turns.

        lines:
            All lines of text in the turns, including the lines of included files.

        names:
            The names in placeholders and marks, in order, each with its first location.

        file:
            The Markdown file.

        root:
            The folder that included files must stay in.
    """

    turns: list[Turn]
    lines: list[Line]
    names: Mapping[str, Location]
    file: Path
    root: Path

    def render(self, values: Mapping[str, Any]) -> Workflow:
        """Return the messages with *values* inserted. There must be a value for each name."""
        messages = MessageBuilder(sys.maxsize)  # the caller counts the bytes
        for turn in self.turns:
            messages.add(turn.rendered(values, self.file.name))
        return messages.build()

    def insertions(self) -> Iterator[Insertion]:
        """Yield each occurrence of a placeholder in the turns."""
        for turn in self.turns:
            for part in turn.parts:
                yield from part.insertions() if isinstance(part, TextWithPlaceholders) else ()


def read_text(file: Path, root: Path) -> str:
    """
    Return the text of a Markdown file with LF line endings.

    Raises:
        MediaError: If *file* is not a file below *root*, is too large, or is not UTF-8.
    """
    resolved = file.resolve()
    record_read(resolved)
    if not resolved.is_relative_to(root.resolve()):
        msg = f"{file.name!r} is a link to a file outside {root.name!r}: replace the link with a copy"
        raise MediaError(msg)
    return decoded_text(read_confined(resolved, root, file.name, MAX_BYTES), file.name)


def parse_body(text: str, first_line: int, file: Path, root: Path) -> Body:
    """
    Parse the body of a Markdown prompt.

    Args:
        text:
            The body, with LF line endings.

        first_line:
            The line number in the file at which the body starts.

        file:
            The Markdown file.

        root:
            The folder that included files must stay in.

    Raises:
        BodyError: If the body is invalid. Only the first problem is reported.
    """
    includes = _IncludeExpander(root)
    own = _lines(text, first_line, file)
    turns, lines, names = [Turn("user", [])], list[Line](), dict[str, Location]()
    for mark, section in _split(own):
        if mark is not None and (turn := _TURN.fullmatch(mark.marked)) is not None:
            turns.append(Turn(turn[1], []))
        elif mark is not None:
            turns[-1].parts.append(_file_part(mark, file, root))
        if included := _strip_blank_lines(includes.expanded(section, (file,))):
            turns[-1].parts.append(_parse_text(included, names))
            lines += included
    if turns[0].parts and turns[1:]:
        hint = "write [user] on a line above it, or \\[user] if that line is text"
        msg = "there is text before the first turn"
        raise BodyError(msg, hint, _strip_blank_lines(own)[0].location)
    return Body(turns[1:] or turns, lines, names, file, root)


def _lines(text: str, first_line: int, file: Path) -> list[Line]:
    marked = _ESCAPE.sub(_insert_surrogates, text).split("\n")
    return [Line(line, Location(str(file), number)) for number, line in enumerate(marked, first_line)]


def _insert_surrogates(escape: re.Match[str]) -> str:
    """Replace the escaping backslashes and the escaped braces of a match with surrogates."""
    if escape["slashes"] is None:
        return escape["indent"] + _REMOVED
    count, is_odd = divmod(len(escape["slashes"]), 2)
    return "\\" * count + _REMOVED * (count + is_odd) + (_BRACE * 2 if is_odd else escape["braces"])


def _split(lines: Iterable[Line]) -> list[tuple[Line | None, list[Line]]]:
    """Split lines at the marks of turns and of attached files, except in code fences."""
    sections: list[tuple[Line | None, list[Line]]] = [(None, [])]
    fence = ""
    for line in lines:
        if not fence and (_TURN.fullmatch(line.marked) or _FILE_PART.fullmatch(line.marked)):
            sections.append((line, []))
        else:
            sections[-1][1].append(line)
        fence = _fence_after(fence, line.marked)
    return sections


def _fence_after(fence: str, line: str) -> str:
    """Return the code fence that is open after a line, given the fence before it; ``""`` means none."""
    match = _FENCE.fullmatch(line)
    if match is None:
        return fence
    marks, info = match[1], match[2]
    if fence:
        return "" if marks.startswith(fence) and not info.strip() else fence
    return "" if marks[0] == "`" and "`" in info else marks


def _file_part(line: Line, file: Path, root: Path) -> Callable[[], Part]:
    """
    Return a function that reads the file named in a line. Raises BodyError if the file cannot be read now.
    """
    kind, _, path = line.marked.strip(" \t{}").partition(":")
    below = _path_below(path.strip(), file, root, line.location)
    read: Callable[[], Part] = partial(_CONTENT[kind].from_path, below, root=root)
    try:
        read()
    except (MediaError, OSError) as error:
        raise BodyError.of(error, "correct the path", line.location) from None
    return read


def _path_below(path: str, file: Path, root: Path, location: Location) -> str:
    """Convert a path that is relative to *file* to one that is relative to *root*."""
    below = posixpath.normpath(posixpath.join(file.parent.relative_to(root).as_posix(), path))
    if below.startswith(("/", "../")) or below == ".." or "\\" in path:
        hint = f"write the path of a file below {root.name!r}, relative to this file"
        msg = f"{path!r} is outside {root.name!r}"
        raise BodyError(msg, hint, location)
    return below


def _strip_blank_lines(lines: list[Line]) -> list[Line]:
    filled = [position for position, line in enumerate(lines) if line.marked.strip()]
    return lines[filled[0] : filled[-1] + 1] if filled else []


class _IncludeExpander:
    """
    Replaces the marks of included files with the text of the files.

    Args:
        root:
            The folder that included files must stay in.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._count = self._size = 0

    def expanded(self, lines: Iterable[Line], stack: tuple[Path, ...]) -> list[Line]:
        """
        Return the lines with included files expanded.

        Raises:
            BodyError: If an included file is missing or includes itself, or if there are too many or too
                deeply nested includes, or too much text.
        """
        return [expanded for line in lines for expanded in self._expand_line(line, stack)]

    def _expand_line(self, line: Line, stack: tuple[Path, ...]) -> list[Line]:
        *marks, end = _INCLUDE.split(line.marked)
        lines = [Line("", line.location)]
        for text, path in zip(marks[::2], marks[1::2], strict=True):
            included = self._read(path.strip(), stack, line.location)
            before, location = lines[-1].marked + text, lines[-1].location
            texts = append_indented(before, "\n".join(each.marked for each in included)).split("\n")
            lines[-1:] = [Line(part, each.location) for part, each in zip(texts, included, strict=True)]
            if before.strip():
                lines[-len(included)] = Line(texts[0], location)
        location = line.location if end.strip() else lines[-1].location
        return [*lines[:-1], Line(lines[-1].marked + end, location)]

    def _read(self, path: str, stack: tuple[Path, ...], location: Location) -> list[Line]:
        below = _path_below(path, stack[-1], self._root, location)
        try:
            file = self._root / below
            text = read_text(confine(below, self._root), self._root)
        except MediaError as error:
            raise BodyError.of(error, "correct the path", location) from None
        self._count += 1
        self._size += len(text)
        problems = {
            f"{path!r} includes itself": file in stack,
            f"includes are nested more than {_MAX_DEPTH} deep": len(stack) > _MAX_DEPTH,
            f"it includes more than {_MAX_INCLUDES:,} files": self._count > _MAX_INCLUDES,
            f"the included files have more than {MAX_BYTES:,} characters": self._size > MAX_BYTES,
        }
        for problem in (problem for problem, is_given in problems.items() if is_given):
            raise BodyError(problem, "remove an include", location)
        _, body, first_line = split_front_matter(text)
        return self.expanded(_lines(body, first_line, file), (*stack, file))


def _parse_text(lines: list[Line], names: dict[str, Location]) -> TextWithPlaceholders:
    """
    Parse lines of text. Each name except Handlebars' keywords is a placeholder, and is added to *names*.
    """
    used = dict[str, Location]()
    for line in lines:
        for tag in TAG.finditer(line.marked):
            place = Location(line.location.file, line.location.line, tag.start() + 1, tag.end() + 1)
            if tag[2] not in FOREIGN_WORDS:
                used.setdefault(tag[2], place)
    names |= used | names
    text = "\n".join(line.marked for line in lines)
    try:
        parsed = TextWithPlaceholders.parse(text, used, "")
    except MarkError as error:
        raise BodyError(error.problem, error.hint, lines[error.line - 1].location) from None
    return parsed.map_literals(_replace_surrogates)


def is_turn_mark(line: Line) -> bool:
    """Return whether a line is the mark of a turn."""
    return _TURN.fullmatch(line.marked) is not None


def near_turn_marks(lines: Iterable[Line]) -> Iterator[tuple[Line, str]]:
    """Yield each line outside code fences that resembles the mark of a turn, with the resembling part."""
    fence = ""
    for line in lines:
        match = None if fence or is_turn_mark(line) else _NEAR_TURN.fullmatch(line.marked)
        if match is not None and (
            match[2] in _ROLES
            if match["text"].strip()
            else any(is_misspelling_of(match[2], role) for role in _ROLES)
        ):
            yield line, match[1]
        fence = _fence_after(fence, line.marked)


def escape_text(text: str, placeholders: Iterable[str] = ()) -> str:
    """
    Escape text for the body of a Markdown prompt, so that nothing in it is read as a mark.

    Args:
        text:
            The text, in which each placeholder is represented by `PLACEHOLDER`.

        placeholders:
            The placeholders, in order. Each replaces one `PLACEHOLDER`.
    """
    names, fence = iter(placeholders), ""
    for line in text.split("\n"):
        fence = _fence_after(fence, line)
    # A fence that is never closed would hide the marks of later turns, so all fences are escaped.
    fences = rf"\\{'*' if fence else '+'}(?:```|~~~)"
    text = re.sub(rf"(?m)^([ \t]*)(?=\\*{_TURN.pattern}$|{fences})", r"\1\\", text)

    def escape_braces(match: re.Match[str]) -> str:
        braces = "\\{{" if match[2] == "{{" else match[2].replace(PLACEHOLDER, next(names))
        return match[1] * 2 + braces

    return re.sub(rf"(?<!\\)(\\*+)(\{{\{{|\{{?{PLACEHOLDER})", escape_braces, text)
