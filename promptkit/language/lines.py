"""Lines of text: where they end, and how they are indented."""

import re
from typing import Final

#: Markdown has no other line ends.
LINE_END: Final = re.compile(r"\r\n?|\n")


#: The indentation of a line, with its marks of lists and quotations.
_INDENTATION: Final = re.compile(r"[ \t]*(?:(?:[-*+>]|\d{1,9}[.)])[ \t]+)*")


def hanging_indent(text: str, first: str, rest: str) -> str:
    """
    Return *text* with *first* before its first line and *rest* before the others.
    """
    head, *tail = LINE_END.split(text)
    return "\n".join([first + head, *(rest + line if line.strip() else rest.rstrip() for line in tail)])


def put_behind(before: str, text: str) -> str:
    """
    Return *text* behind *before*: its further lines are indented as the last line there is, below its marks.
    """
    found = _INDENTATION.match(before, before.rfind("\n") + 1)
    if not (found and found[0] and LINE_END.search(text)):
        return before + text
    return before + hanging_indent(text, "", re.sub(r"[^\s>]", " ", found[0]))
