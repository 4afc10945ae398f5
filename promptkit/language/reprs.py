"""
Detection of content whose ``repr`` ends up in a text, as in ``f"{[Image(...)]}"``.

Formatting the content itself is an error (`promptkit.language.content`). A container, however, formats its
items with `repr`, which must not fail, because debuggers, logs and assertions need it. So each ``repr`` that
is made while a prompt renders is noted, and a rendering that contains one of them is rejected.
"""

from contextvars import ContextVar
from typing import Final

#: Collects the reprs that are made while a prompt renders.
noted_reprs: Final[ContextVar[list[str] | None]] = ContextVar("noted_reprs", default=None)


def note_repr(text: str) -> str:
    """Return *text*, the ``repr`` of a value that is not text, after noting it for the current rendering."""
    if (reprs := noted_reprs.get()) is not None:
        reprs.append(text)
    return text
