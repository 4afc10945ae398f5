"""The front matter of Markdown: YAML between two lines of hyphens, before the text."""

import re
from typing import Final

#: A line of a top-level key, or its indented or listed values. A quantifier that gives nothing back keeps the
#: time linear.
_PROPERTY: Final = r"[\"']?[^\W\d][\w .-]*+[\"']?[ \t]*:.*\n"

_BLANK_OR_COMMENT: Final = r"[ \t]*(?:#.*)?\n"

#: A block between two lines of hyphens is front matter only if its first line, after blank lines and
#: comments, is a property.
_LINES: Final = rf"(?:(?:{_BLANK_OR_COMMENT})*{_PROPERTY}(?:{_PROPERTY}|(?:[ \t#-].*|)\n)*?)?"
_FRONT_MATTER: Final = re.compile(rf"\A---[ \t]*\n({_LINES})---[ \t]*(?:\n|\Z)")

_BLANK_LINES: Final = re.compile(r"\A(?:[ \t]*\n)+")


def split_front_matter(text: str) -> tuple[str, str, int]:
    """
    Split the text of a Markdown file with LF line endings.

    Returns:
        The front matter between the hyphens, or ``""``; the text below without blank lines at its ends; and
        the number of its first line in the file.
    """
    match = _FRONT_MATTER.match(text)
    rest = text[match.end() :] if match else text
    body = _BLANK_LINES.sub("", rest)
    first_line = 1 + text.count("\n") - body.count("\n")
    end = body.find("\n", len(body.rstrip()))
    return match[1] if match else "", body if end < 0 else body[:end], first_line
