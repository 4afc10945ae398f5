"""
Limits on reading the results of prompts, which may be endless: reading stops when a reply would be too large.
"""

from typing import Any, Final

from promptkit.language.content import Content
from promptkit.language.text import Text

#: Default size limit of a reply, in bytes. It also applies without a server, so that an oversized prompt
#: fails in its tests as it would for a client, instead of exhausting memory.
MAX_REPLY_BYTES: Final = 64 * 1024 * 1024

#: Minimum overhead of each text in a reply to ``prompts/get``, in bytes.
_OVERHEAD: Final = len('{"role":"user","content":{"type":"text","text":""}},')


class TooLongError(ValueError):
    """Raised if items, such as those of an endless iterator, do not fit into a reply."""

    path: tuple[int, ...] = ()  # as in `UnsendableError`; empty, because the result as a whole is too long


class Bound:
    """
    A byte counter for the items of a prompt's result.

    Args:
        limit:
            The size limit of a reply, in bytes.
    """

    __slots__ = ("_items", "_limit", "_remaining")

    def __init__(self, limit: int = MAX_REPLY_BYTES) -> None:
        self._limit = self._remaining = limit
        self._items = 0

    def count(self, item: Any) -> None:
        """
        Count an item: text, bytes, content, or a message. Other values count as empty text.

        Raises:
            TooLongError: If the items exceed the limit even before escaping and base64.
        """
        self._items += 1
        self._remaining -= _OVERHEAD + _size(item)
        if self._remaining < 0:
            msg = f"more than {self._limit:,} bytes, in {self._items:,} items: make it finite, or return less"
            raise TooLongError(msg)


def _size(item: Any) -> int:
    """Return a lower bound of an item's bytes in a reply."""
    content = getattr(item, "content", item)  # of a message
    if type(content) is Text:  # a fast path for the most common content
        return len(content.text)
    if not isinstance(content, Content):
        return len(item) if isinstance(item, str | bytes) else 0
    data = getattr(content, "data", None) or getattr(content, "blob", None) or b""
    return len(data) + sum(map(len, content.texts))
