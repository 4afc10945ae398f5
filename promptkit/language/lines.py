"""Lines of text: where they end, and how they are indented."""

import re
from typing import Final

__all__ = ["LINE_END", "hanging_indent"]

#: Markdown has no other line ends.
LINE_END: Final = re.compile(r"\r\n?|\n")


def hanging_indent(text: str, first: str, rest: str) -> str:
    """
    Return *text* with *first* before its first line and *rest* before the others.
    """
    head, *tail = LINE_END.split(text)
    return "\n".join([first + head, *(rest + line if line.strip() else rest.rstrip() for line in tail)])
