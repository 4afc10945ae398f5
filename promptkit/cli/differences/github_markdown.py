"""
Foreign text in GitHub's Markdown.

All of it becomes code. Elsewhere GitHub makes images, links, mentions, references and e-mail addresses of
text, some of them after entities and backslashes were resolved, so that escapes alone do not prevent it.
"""

import re
from typing import Final

from promptkit.fragments.invisible import escape_invisible

__all__ = ["code_span", "html_code"]

#: The longest title, in characters.
_MAX_TITLE: Final = 500


def code_span(text: str) -> str:
    """Return *text* as a code span of Markdown, on one line, which nothing in it can close."""
    line = _one_line(text)
    ticks = "`" * (max(map(len, re.findall("`+", line)), default=0) + 1)
    return f"{ticks} {line} {ticks}"


def html_code(text: str) -> str:
    """Return *text* as a ``<code>`` element on one line; it holds neither HTML nor Markdown."""
    line = "".join(char if char.isalnum() or char == " " else f"&#{ord(char)};" for char in _one_line(text))
    return f"<code>{line}</code>"


def _one_line(text: str) -> str:
    line = escape_invisible(text[: _MAX_TITLE + 1], one_line=True)
    return f"{line[:_MAX_TITLE]}…" if len(line) > _MAX_TITLE else line
