"""Text with holes: read once, filled many times, and never read again."""

import re
from collections.abc import Collection, Mapping
from typing import Final

from msgspec import Struct

from promptkit.language.lines import put_behind

#: A hole, if there is a value of its name.
_HOLE: Final = re.compile(r"\{\{[ \t]*([^\W\d]\w*)[ \t]*\}\}")

_LINES: Final = re.compile(r"[^\n]*\n|[^\n]+")


class _Line(Struct, frozen=True):
    """A line with holes: the text before each, and their names; the text behind the last, with its end."""

    before: tuple[str, ...]
    names: tuple[str, ...]
    rest: str

    def filled(self, texts: Mapping[str, str | None]) -> str | None:
        """Return the line; None if nothing is put into any of its holes."""
        if all(texts[name] is None for name in self.names):
            return None
        line = ""
        for before, name in zip(self.before, self.names, strict=True):
            line += before
            line = put_behind(line, texts[name] or "")
        return line + self.rest


class TextWithPlaceholders(Struct, frozen=True):
    """
    A text, and where its holes are.

    Args:
        pieces:
            Its lines with holes, and the text between them.
    """

    pieces: tuple["str | _Line", ...]

    @classmethod
    def read(cls, text: str, names: Collection[str], place: str) -> "TextWithPlaceholders":
        """
        Find the holes of a text.

        Args:
            text:
                The text.

            names:
                The names of the values: other braces are no holes.

            place:
                What errors call it.

        Raises:
            ValueError: If one of *names* has no hole; it lists the holes that the text has.
        """
        found = placeholders_in(text)
        if unknown := [name for name in names if name not in found]:
            there = ", ".join(f"{{{{{name}}}}}" for name in found) or "none"
            msg = f"{place}: the text has no hole {{{{{unknown[0]}}}}}; its holes: {there}"
            raise ValueError(msg)
        pieces: list[str | _Line] = []
        for line in _LINES.findall(text):
            read = _read_line(line, names)
            if isinstance(read, str) and pieces and isinstance(pieces[-1], str):
                pieces[-1] += read
            else:
                pieces.append(read)
        return cls(tuple(pieces))

    def filled(self, texts: Mapping[str, str | None]) -> str:
        """
        Fill the holes.

        Args:
            texts:
                What is put into each; None if nothing is. A line goes, whole, if nothing is put into any of
                its holes; of the blank lines around it, those before it stay. The further lines of a text are
                indented as the line of its hole is.
        """
        text, is_gone = "", False
        for piece in self.pieces:
            if isinstance(piece, str):
                has_blank = is_gone and (not text or text.endswith("\n\n"))
                text += piece.lstrip("\n") if has_blank else piece
                is_gone = has_blank and not piece.strip("\n")
            elif (line := piece.filled(texts)) is not None:
                text, is_gone = text + line, False
            else:
                is_gone = True
        return text.rstrip("\n") if is_gone else text


def placeholders_in(text: str) -> list[str]:
    """Return the names of all that may be holes, in order, each once."""
    return list(dict.fromkeys(_HOLE.findall(text)))


def _read_line(line: str, names: Collection[str]) -> "str | _Line":
    before, holes, end = list[str](), list[str](), 0
    for found in _HOLE.finditer(line):
        if found[1] in names:
            before.append(line[end : found.start()])
            holes.append(found[1])
            end = found.end()
    return _Line(tuple(before), tuple(holes), line[end:]) if holes else line
