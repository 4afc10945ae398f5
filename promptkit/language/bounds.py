"""
Limits on reading authors' iterators, which may be endless: reading stops when a reply would be too large.
"""

from collections.abc import AsyncIterable, Iterable, Sequence
from typing import Any, Final, TypeVar

from promptkit.language.content import Content
from promptkit.language.text import Text

T = TypeVar("T")

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
    A byte counter for items read from an author's iterators.

    Args:
        limit:
            The size limit of a reply, in bytes.

        prefix:
            The start of the error message, which names the source of the items.
    """

    __slots__ = ("_items", "_limit", "_prefix", "_remaining")

    def __init__(self, limit: int = MAX_REPLY_BYTES, prefix: str = "") -> None:
        self._limit = self._remaining = limit
        self._items = 0
        self._prefix = prefix

    def count(self, item: Any) -> None:
        """
        Count an item: text, bytes, content, or a message. Other values count as empty text.

        Raises:
            TooLongError: If the items exceed the limit even before escaping and base64.
        """
        self._items += 1
        self._remaining -= _OVERHEAD + _size(item)
        if self._remaining < 0:
            msg = (
                f"{self._prefix}more than {self._limit:,} bytes, in {self._items:,} items: "
                "make it finite, or return less"
            )
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


def read_all(values: Iterable[T], prefix: str = "") -> Sequence[T]:
    """
    Return all items of an author's iterable; a list or tuple is returned unchanged.

    Raises `TooLongError` if the items of any other iterable do not fit into a reply.
    """
    if isinstance(values, list | tuple):
        return values
    bound, items = Bound(prefix=prefix), list[T]()
    for value in values:
        bound.count(value)
        items.append(value)
    return items


async def read_all_async(values: AsyncIterable[T], prefix: str = "") -> Sequence[T]:
    """Return all items of an author's asynchronous iterable; see `read_all`."""
    bound, items = Bound(prefix=prefix), list[T]()
    async for value in values:
        bound.count(value)
        items.append(value)
    return items
