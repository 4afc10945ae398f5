"""Line ends and indentation."""

import re
from typing import Final

#: The line ends of Markdown.
LINE_END: Final = re.compile(r"\r\n?|\n")

#: The indentation of a line, including list and quotation markers.
_INDENTATION: Final = re.compile(r"[ \t]*(?:(?:[-*+>]|\d{1,9}[.)])[ \t]+)*")


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
