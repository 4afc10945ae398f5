"""
Text with placeholders, and indentation of inserted text.

A text is parsed once and filled many times. Inserted values are never parsed.
"""

import re
from collections.abc import Collection, Mapping
from typing import Final

from msgspec import Struct

#: A placeholder, if there is a value with its name.
_PLACEHOLDER: Final = re.compile(r"\{\{[ \t]*([^\W\d]\w*)[ \t]*\}\}")

_LINES: Final = re.compile(r"[^\n]*\n|[^\n]+")

#: The line endings of Markdown.
LINE_END: Final = re.compile(r"\r\n?|\n")

#: The indentation of a line, including list and quotation markers.
_INDENTATION: Final = re.compile(r"[ \t]*(?:(?:[-*+>]|\d{1,9}[.)])[ \t]+)*")


class _Line(Struct, frozen=True):
    """A line with placeholders: the text before each, their names, and the rest of the line with its end."""

    before: tuple[str, ...]
    names: tuple[str, ...]
    suffix: str

    def filled(self, texts: Mapping[str, str | None]) -> str | None:
        """Return the filled line, or None if the values of all its placeholders are None."""
        if all(texts[name] is None for name in self.names):
            return None
        line = ""
        for before, name in zip(self.before, self.names, strict=True):
            line += before
            line = append_indented(line, texts[name] or "")
        return line + self.suffix


class TextWithPlaceholders(Struct, frozen=True):
    """
    A parsed text with placeholders.

    Args:
        pieces:
            The lines with placeholders, and the text between them.
    """

    pieces: tuple["str | _Line", ...]

    @classmethod
    def parse(cls, text: str, names: Collection[str], label: str) -> "TextWithPlaceholders":
        """
        Parse the placeholders of a text.

        Args:
            text:
                The text.

            names:
                The names of the values. Other names in braces are literal text.

            label:
                The name of the text in error messages.

        Raises:
            ValueError: If the text has no placeholder for one of *names*; the message lists the placeholders.
        """
        placeholders = placeholders_in(text)
        if unknown := [name for name in names if name not in placeholders]:
            listing = ", ".join(f"{{{{{name}}}}}" for name in placeholders) or "none"
            msg = f"{label}: the text has no placeholder {{{{{unknown[0]}}}}}; its placeholders: {listing}"
            raise ValueError(msg)
        pieces: list[str | _Line] = []
        for line in _LINES.findall(text):
            piece = _parse_line(line, names)
            if isinstance(piece, str) and pieces and isinstance(pieces[-1], str):
                pieces[-1] += piece
            else:
                pieces.append(piece)
        return cls(tuple(pieces))

    def filled(self, texts: Mapping[str, str | None]) -> str:
        """
        Return the text with its placeholders filled.

        Args:
            texts:
                The text for each placeholder, or None. A line is removed if all its placeholders are None,
                together with the blank lines after it if there is a blank line before it. Further lines of a
                text are indented like the line of its placeholder.
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
    """Return the distinct names of all possible placeholders, in order."""
    return list(dict.fromkeys(_PLACEHOLDER.findall(text)))


def _parse_line(line: str, names: Collection[str]) -> str | _Line:
    before, placeholders, end = list[str](), list[str](), 0
    for match in _PLACEHOLDER.finditer(line):
        if match[1] in names:
            before.append(line[end : match.start()])
            placeholders.append(match[1])
            end = match.end()
    return _Line(tuple(before), tuple(placeholders), line[end:]) if placeholders else line


def hanging_indent(text: str, first: str, further: str) -> str:
    """Return *text* with *first* before its first line and *further* before all further lines."""
    head, *tail = LINE_END.split(text)
    return "\n".join([first + head, *(further + line if line.strip() else further.rstrip() for line in tail)])


def append_indented(before: str, text: str) -> str:
    """Append *text* to *before*, aligning its further lines with the content of the last line of *before*."""
    indentation = _INDENTATION.match(before, before.rfind("\n") + 1)
    if not (indentation and indentation[0] and LINE_END.search(text)):
        return before + text
    return before + hanging_indent(text, "", re.sub(r"[^\s>]", " ", indentation[0]))
