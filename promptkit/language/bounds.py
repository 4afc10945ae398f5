"""
Functions that read authors' iterators, which may be endless, only until a reply would be too large.
"""

from collections.abc import AsyncIterable, Iterable, Sequence
from typing import Any, Final, TypeVar

from promptkit.language.content import Content
from promptkit.language.text import Text

T = TypeVar("T")

#: Default size limit for a reply, in bytes. It also applies without a server, so that a prompt whose result
#: is too large fails in its tests as it would for a client, instead of exhausting memory.
MAX_REPLY_BYTES: Final = 64 * 1024 * 1024

#: Minimum overhead for each text in a reply to ``prompts/get``, in bytes.
_OVERHEAD: Final = len('{"role":"user","content":{"type":"text","text":""}},')


class TooLongError(ValueError):
    """Raised if items, such as those from an endless iterator, do not fit into a reply."""

    path: tuple[int, ...] = ()  # like that of `UnsendableError`; empty, because the whole result is too long


class ByteCounter:
    """
    A byte counter for items that are read from an author's iterators.

    Args:
        limit:
            The size limit for a reply, in bytes.

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
        Count the size of an item: text, bytes, content or a message. Any other value counts as empty text.

        Raises:
            TooLongError: If the items exceed the limit even before they are escaped or encoded as base64.
        """
        self._items += 1
        self._remaining -= _OVERHEAD + _size(item)
        if self._remaining < 0:
            msg = (
                f"{self._prefix}more than {self._limit:,} bytes, in {self._items:,} items: "
                "use fewer or shorter items, and no endless iterators"
            )
            raise TooLongError(msg)


def _size(item: Any) -> int:
    """Return a lower bound on the number of bytes that an item needs in a reply."""
    content = getattr(item, "content", item)  # a message's content, or the item itself
    if type(content) is Text:  # a fast path for the most common content
        return len(content.text)
    if not isinstance(content, Content):
        return len(item) if isinstance(item, str | bytes) else 0
    data = getattr(content, "data", None) or getattr(content, "blob", None) or b""
    return len(data) + sum(map(len, content.texts))


def read_all(values: Iterable[T], prefix: str = "") -> Sequence[T]:
    """
    Return all items of an author's iterable. A list or a tuple is returned unchanged.

    Raises `TooLongError` if the items of any other iterable do not fit into a reply.
    """
    if isinstance(values, list | tuple):
        return values
    counter, items = ByteCounter(prefix=prefix), list[T]()
    for value in values:
        counter.count(value)
        items.append(value)
    return items


async def read_all_async(values: AsyncIterable[T], prefix: str = "") -> Sequence[T]:
    """Return all items of an author's asynchronous iterable; see `read_all`."""
    counter, items = ByteCounter(prefix=prefix), list[T]()
    async for value in values:
        counter.count(value)
        items.append(value)
    return items
