"""
Text with placeholders and optional lines: parsing, filling, and detection of template syntax left unfilled.

Text is parsed once and can be filled many times. Inserted values are never parsed.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct, structs

from promptkit.errors.suggestions import is_misspelling_of

#: A placeholder (``{{name}}`` or ``{{name?}}``) or a mark (``{{#name}}``, ``{{^name}}`` or ``{{/name}}``).
#: Possessive quantifiers keep the time linear.
TAG: Final = re.compile(r"\{\{[ \t]*+([#^/]?)[ \t]*+([^\W\d]\w*+)[ \t]*+(\??)[ \t]*+\}\}")

_LEADING_BLANK_LINES: Final = re.compile(r"(?:[ \t]*\r?\n)+")

#: The line endings of Markdown.
LINE_END: Final = re.compile(r"\r\n?|\n")

#: The indentation of a line, including the markers of lists and quotations.
_INDENTATION: Final = re.compile(r"[ \t]*(?:(?:[-*+>]|\d{1,9}[.)])[ \t]+)*")

#: The hint for a mark that is not alone on its line.
_SHARED_LINE: Final = (
    "move it to a separate line; to make part of a line optional, insert the part as a value, which can be ''"
)

#: A function that returns the text to insert for a name.
_TextOf: TypeAlias = Callable[[str], str]


class MarkError(ValueError):
    """
    Raised if a mark such as ``{{#name}}`` is not alone on its line, or has no counterpart.

    Args:
        label:
            The name of the text, to be shown in the message.

        problem:
            The problem with the mark.

        hint:
            How to fix the problem.

        line:
            The number of the line with the mark, starting at 1.
    """

    def __init__(self, label: str, problem: str, hint: str, line: int) -> None:
        super().__init__(f"{label}: line {line}: {problem}: {hint}")
        self.problem, self.hint, self.line = problem, hint, line


class _Line(Struct, frozen=True):
    """
    A line with placeholders.

    Args:
        before:
            For each placeholder, the text between it and the previous one.

        names:
            The names of the placeholders.

        optional:
            The names that are written with ``?``. The line is omitted if any of their values is absent.

        suffix:
            The text after the last placeholder, including the line ending.
    """

    before: tuple[str, ...]
    names: tuple[str, ...]
    optional: tuple[str, ...]
    suffix: str

    def filled(self, text_of: _TextOf) -> str:
        """Return the line with its placeholders filled."""
        line = ""
        for before, name in zip(self.before, self.names, strict=True):
            line = append_indented(line + before, text_of(name))
        return line + self.suffix


class _Mark(Struct):
    """
    A line that consists of a mark.

    Args:
        sign:
            ``#``, ``^`` or ``/``.

        name:
            The name in the mark.

        line:
            The number of the line.

        end:
            For an opening mark, the index of the piece after its closing mark; 0 for a closing mark.
    """

    sign: str
    name: str
    line: int
    end: int = 0

    def __str__(self) -> str:
        return f"{{{{{self.sign}{self.name}}}}}"

    def skips(self, values: Mapping[str, Any]) -> bool:
        """Return whether the lines between the mark and its closing mark are omitted."""
        return self.sign != "/" and is_present(values[self.name]) is (self.sign == "^")


class Insertion(Struct, frozen=True):
    """
    An occurrence of a placeholder in text.

    Args:
        name:
            The placeholder's name.

        present:
            The names whose values are always present when the placeholder is filled: the names of the
            ``{{#name}}`` marks around it, and the names that are written with ``?`` on its line.
    """

    name: str
    present: frozenset[str]


class TextWithPlaceholders(Struct, frozen=True):
    """
    Parsed text with placeholders and marks.

    Args:
        pieces:
            Lines without placeholders, lines with placeholders, and marks, in order.
    """

    pieces: list[str | _Line | _Mark]

    @classmethod
    def parse(
        cls, text: str, names: Collection[str], label: str, first_line: int = 1
    ) -> "TextWithPlaceholders":
        """
        Parse text with placeholders and marks.

        Args:
            text:
                The text.

            names:
                The names of the values. Any other names in braces are literal text.

            label:
                The name of the text in error messages.

            first_line:
                The number of the text's first line.

        Raises:
            MarkError: If a mark with one of *names* is not alone on its line, or has no counterpart.

            ValueError: If one of *names* is not in the text; the message lists the placeholders.
        """
        names, placeholders = dict.fromkeys(names), dict.fromkeys(placeholders_in(text))
        if unknown := [name for name in names if name not in placeholders]:
            listing = ", ".join(f"{{{{{name}}}}}" for name in placeholders) or "none"
            msg = f"{label}: the text has no placeholder {{{{{unknown[0]}}}}}; its placeholders: {listing}"
            if halved := find_single_braces(text, unknown[0]):
                msg += f"; it has {halved}: an f-string and str.format turn {{{halved}}} into {halved}"
            raise ValueError(msg)
        pieces: list[str | _Line | _Mark] = []
        open_marks: list[_Mark] = []
        end, number = 0, first_line
        for start, line, tags in _tagged_lines(text, names):
            if start > end:
                pieces.append(text[end:start])
            number += text.count("\n", end, start)
            end = start + len(line)
            pieces.append(_parse_line(line, tags, number, label))
            if isinstance(mark := pieces[-1], _Mark):
                _match_mark(mark, open_marks, len(pieces), label)
            number += 1
        for mark in open_marks[-1:]:
            hint = f"write {{{{/{mark.name}}}}} on a line below it"
            raise MarkError(label, f"{mark} is not closed", hint, mark.line)
        return cls([*pieces, text[end:]] if end < len(text) else pieces)

    def map_literals(self, convert: Callable[[str], str]) -> "TextWithPlaceholders":
        """Return a copy in which *convert* has been applied to all literal parts."""
        return TextWithPlaceholders(
            [
                convert(piece)
                if isinstance(piece, str)
                else structs.replace(
                    piece, before=tuple(map(convert, piece.before)), suffix=convert(piece.suffix)
                )
                if isinstance(piece, _Line)
                else piece
                for piece in self.pieces
            ]
        )

    def insertions(self) -> Iterator[Insertion]:
        """Yield each occurrence of a placeholder, in order."""
        marks = [frozenset[str]()]
        for piece in self.pieces:
            if isinstance(piece, _Line):
                present = marks[-1].union(piece.optional)
                yield from (Insertion(name, present) for name in piece.names)
            elif isinstance(piece, _Mark) and piece.sign == "/":
                marks.pop()
            elif isinstance(piece, _Mark):
                marks.append(marks[-1] | {piece.name} if piece.sign == "#" else marks[-1])

    def filled(self, values: Mapping[str, Any], text_of: _TextOf) -> str:
        """
        Return the text with its placeholders filled, and without the lines that must be omitted.

        If lines between blank lines are omitted, one blank line remains; at the start or end of the text, no
        blank line remains. All lines of an inserted text after the first are indented like its placeholder's
        line.

        Args:
            values:
                The value for each name.

            text_of:
                Returns the text to insert for a name. It is called only for lines that are kept.
        """
        lines, position = _Lines(), 0
        while position < len(self.pieces):
            piece = self.pieces[position]
            position += 1
            if isinstance(piece, str):
                lines.add_literal(piece)
            elif isinstance(piece, _Mark):
                lines.omit()
                position = piece.end if piece.skips(values) else position
            elif all(is_present(values[name]) for name in piece.optional):
                lines.add_filled(piece.filled(text_of))
            else:
                lines.omit()
        return lines.joined()


def is_present(value: Any) -> bool:
    """Return whether a value counts as present, which means that it is not None, False, or of length 0."""
    if value is None or value is False:
        return False
    return not hasattr(value, "__len__") or len(value) > 0


def placeholders_in(text: str) -> list[str]:
    """Return the distinct names in all possible placeholders and marks, in order."""
    return list(dict.fromkeys(match[2] for match in TAG.finditer(text)))


def find_single_braces(text: str, name: str) -> str | None:
    """Return the first placeholder or mark with *name* that has single braces; None if there is none."""
    match = re.search(rf"(?<!\{{)\{{[ \t]*[#^/]?[ \t]*{re.escape(name)}[ \t]*\??[ \t]*\}}(?!\}})", text)
    return match and match[0]


def find_unfilled(text: str, names: Collection[str], first_line: int = 1) -> dict[str, tuple[str, int]]:
    """
    Return the placeholders and pairs of marks for which there is no value.

    Args:
        text:
            The text.

        names:
            The names of the values.

        first_line:
            The number of the text's first line.

    Returns:
        The name, and the number of the first line, for each placeholder or opening mark.
    """
    unfilled = dict[str, tuple[str, int]]()
    opening = dict[str, tuple[str, int]]()
    for start, line, tags in _tagged_lines(text, {*placeholders_in(text)}.difference(names)):
        number = first_line + text.count("\n", 0, start)
        for tag in tags:
            name = tag[2]
            if not tag[1]:
                unfilled.setdefault(f"{{{{{name}}}}}", (name, number))
            elif line.strip() == tag[0] and tag[1] != "/":
                opening.setdefault(name, (f"{{{{{tag[1]}{name}}}}}", number))
            elif line.strip() == tag[0] and name in opening:
                mark, number = opening[name]
                unfilled.setdefault(mark, (name, number))
    return unfilled


def _tagged_lines(text: str, names: Collection[str]) -> Iterator[tuple[int, str, list[re.Match[str]]]]:
    """Yield the start, the text and the matches of each line that has placeholders or marks with *names*."""
    end = 0
    for first in TAG.finditer(text):
        if first.start() < end or first[2] not in names:
            continue
        start = text.rfind("\n", end, first.start()) + 1 or end
        end = text.find("\n", start) + 1 or len(text)
        line = text[start:end]
        yield start, line, [tag for tag in TAG.finditer(line) if tag[2] in names]


def _parse_line(line: str, tags: list[re.Match[str]], number: int, label: str) -> _Line | _Mark:
    for tag in tags:
        if tag[1] and tag[3]:
            raise MarkError(label, f"{tag[0]} has a '?'", f"write {{{{{tag[1]}{tag[2]}}}}}", number)
        if tag[1] and line.strip() != tag[0]:
            raise MarkError(label, f"{tag[0]} is not alone on its line", _SHARED_LINE, number)
        if tag[1]:
            return _Mark(tag[1], tag[2], number)
    starts = [0, *(tag.end() for tag in tags)]
    before = tuple(line[start : tag.start()] for start, tag in zip(starts, tags, strict=False))
    optional = tuple(tag[2] for tag in tags if tag[3])
    return _Line(before, tuple(tag[2] for tag in tags), optional, line[starts[-1] :])


def _match_mark(mark: _Mark, open_marks: list[_Mark], end: int, label: str) -> None:
    """
    Add an opening mark to *open_marks*. Match a closing mark with the last of them, and set its end to *end*.

    Raises MarkError if there is no open mark, or the last one has a different name.
    """
    if mark.sign != "/":
        open_marks.append(mark)
    elif not open_marks:
        hint = f"write {{{{#{mark.name}}}}} or {{{{^{mark.name}}}}} above the lines that can be omitted"
        raise MarkError(label, f"{mark} has no opening mark", hint, mark.line)
    elif (opening := open_marks.pop()).name == mark.name:
        opening.end = end
    else:
        closing = f"{{{{/{opening.name}}}}}"
        hint = f"write {closing}" if is_misspelling_of(mark.name, opening.name) else f"close {opening} first"
        raise MarkError(label, f"{mark} is above {closing}", hint, mark.line)


class _Lines:
    """Lines to be joined. Blank lines before and after omitted lines are merged."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._is_omitted = False
        #: The offset of the trailing blank lines in the last item; None if the last item is a filled line.
        self._blank_start: int | None = 0

    def omit(self) -> None:
        """Record that a line is omitted at this position."""
        self._is_omitted = True

    def add_filled(self, line: str) -> None:
        """Add a line with filled placeholders."""
        self._texts.append(line)
        self._is_omitted, self._blank_start = False, None

    def add_literal(self, lines: str) -> None:
        """Add lines without placeholders."""
        if self._is_omitted and self._is_after_blank() and (blank := _LEADING_BLANK_LINES.match(lines)):
            lines = lines[blank.end() :]
            self._cut(keep_one=True)
        if lines:
            self._texts.append(lines)
            self._is_omitted, self._blank_start = False, _blank_start(lines)

    def _is_after_blank(self) -> bool:
        """Return whether there are no lines yet, or the last line is a literal blank line."""
        return not self._texts or (self._blank_start is not None and self._blank_start < len(self._texts[-1]))

    def _cut(self, *, keep_one: bool) -> None:
        """Remove the blank lines at the end, except for one if *keep_one* is true."""
        if self._texts and self._blank_start is not None:
            last = self._texts[-1]
            end = last.index("\n", self._blank_start) + 1 if keep_one else self._blank_start
            self._texts[-1] = last[:end]

    def joined(self) -> str:
        """Return all lines as one string."""
        if self._is_omitted:
            self._cut(keep_one=False)
            return re.sub(r"\r?\n\Z", "", "".join(self._texts))
        return "".join(self._texts)


def _blank_start(lines: str) -> int:
    """Return the offset of the blank lines at the end of *lines*; the length of *lines* if there are none."""
    content = len(lines.rstrip(" \t\r\n"))
    if content == 0:
        return 0
    return lines.find("\n", content) + 1 or len(lines)


def hanging_indent(text: str, first: str, further: str) -> str:
    """Return *text* with *first* before its first line and *further* before all further lines."""
    head, *tail = LINE_END.split(text)
    return "\n".join([first + head, *(further + line if line.strip() else further.rstrip() for line in tail)])


def append_indented(before: str, text: str) -> str:
    """
    Append *text* to *before*.

    All lines of *text* after the first are aligned with the content of the last line of *before*.
    """
    indentation = _INDENTATION.match(before, before.rfind("\n") + 1)
    if not (indentation and indentation[0] and LINE_END.search(text)):
        return before + text
    return before + hanging_indent(text, "", re.sub(r"[^\s>]", " ", indentation[0]))


#: Kinds of syntax from Jinja, Handlebars and Mustache, and from the commands of Claude Code, Gemini CLI and
#: VS Code. If several kinds match, the first is used.
_TEMPLATE_SYNTAX: Final = re.compile(
    r"""
    (?P<condition>
        \{%-?[ \t]*(?:if|elif|else|endif)\b[^%\n]*%\}
        | \{\{~?[ \t]*(?:[\#^/][ \t]*(?:if|unless)\b|else\b)[^{}\n]*\}\}
    )
    | (?P<loop>
        \{%-?[ \t]*(?:for|endfor)\b[^%\n]*%\}
        | \{\{~?[ \t]*(?:[\#/][ \t]*each\b[^{}\n]*|(?:this\b|@)[\w.]*|\.)[ \t]*~?\}\}
    )
    | (?P<unescaped>(?<![{\\\w])\{\{\{[ \t]*[^\W\d]\w*[ \t]*\}\}\}(?!\})|\{\{&[ \t]*\w+[ \t]*\}\})
    | (?P<comment>\{\#-?[ \t][^{}\n]*?\#\}|\{\{![^{}\n]*?\}\})
    | (?P<other>
        \{%-?[ \t]*(?:set|include|macro|block|extends)\b[^%\n]*%\}
        | \{\{~?[\#^/>?][^{}\n]*\}\}
        | \{\{[-~]?[ \t]*\w+[ \t]*[.|][^{}\n]*\}\}
        | \{\{[-~]?[ \t]*\w+[ \t]+(?:or|and|if)\b[^{}\n]*\}\}
        | \{\{[-~]?[ \t]*(?:\w+[ \t]+)?(?:'[^'\n]*'|"[^"\n]*")[^{}:\n]*\}\}
        | \$ARGUMENTS\b | !\{[^{}\n]*\} | \$\{input:[^{}\n]*\}
    )
    """,
    re.VERBOSE,
)

#: The hint for each kind of syntax.
_HINTS: Final = {
    "condition": "write {{#name}} and {{/name}}, or {{^name}} for 'else', each alone on its line",
    "loop": "text is never repeated: insert the items as one value, such as bullets(...) or lines(...)",
    "unescaped": "write {{name}}: values are never escaped",
    "comment": "remove the comment",
    "other": "write {{name}} instead, and give it a value: name=...",
}

#: Handlebars keywords that look like the names of placeholders or marks.
FOREIGN_WORDS: Final = frozenset(("each", "else", "if", "this", "unless"))


def find_template_syntax(text: str, names: Collection[str]) -> Iterator[tuple[str, int, str]]:
    """
    Find syntax from other template systems.

    For each kind of syntax, yield the text of its first use, the offset of that text, and a hint.

    Args:
        text:
            The text.

        names:
            The names of the text's own placeholders and marks, which are not reported.
    """
    reported = set[str]()
    for match in _TEMPLATE_SYNTAX.finditer(text):
        kind = match.lastgroup or ""
        placeholder = TAG.fullmatch(match[0])
        if kind not in reported and not (placeholder and placeholder[2] in names):
            reported.add(kind)
            yield match[0], match.start(), _HINTS[kind]
