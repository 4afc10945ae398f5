"""Bounds: what an author's iterators give is read only as far as a reply may go. Some never end."""

from collections.abc import AsyncIterable, Iterable, Sequence
from typing import Any, Final, TypeVar

from promptkit.language.content import Content
from promptkit.language.text import Text

T = TypeVar("T")

#: How many bytes a reply has at most unless a server is told otherwise. Where there is no server, that holds,
#: too: so a prompt fails in its tests as it would fail for a client, and no test fills a machine's memory.
LONGEST_REPLY: Final = 64 * 1024 * 1024

#: What a reply has around each text at least, as ``prompts/get`` sends it.
_AROUND: Final = len('{"role":"user","content":{"type":"text","text":""}},')


class TooLongError(ValueError):
    """
    An iterator gave more than a reply may hold. It may have no end.

    Args:
        most:
            How many bytes a reply may have.

        items:
            How many items were read.

        whose:
            What has given them, in words that others follow.
    """

    path: tuple[int, ...] = ()  # as `UnsendableError` has it: the whole is too long, and no part of it

    def __init__(self, most: int, items: int, whose: str = "") -> None:
        super().__init__(most, items, whose)
        self.most = most
        self.items = items
        self.whose = whose

    def __str__(self) -> str:
        return f"{self.whose}more than {self.most:,} bytes, in {self.items:,} items: let it end, or give less"


class Bound:
    """
    Counts what is read of an author's iterators.

    Args:
        most:
            How many bytes a reply may have.

        whose:
            As for `TooLongError`.
    """

    __slots__ = ("_items", "_left", "_most", "_whose")

    def __init__(self, most: int = LONGEST_REPLY, whose: str = "") -> None:
        self._most = self._left = most
        self._items = 0
        self._whose = whose

    def take(self, item: Any) -> None:
        """
        Count an item: text, bytes, content, or a message. Anything else counts as an empty text.

        Raises:
            TooLongError: If no reply can hold all items, whatever is escaped in it, and however media are
                encoded.
        """
        self._items += 1
        self._left -= _AROUND + _size(item)
        if self._left < 0:
            raise TooLongError(self._most, self._items, self._whose)


def _size(item: Any) -> int:
    """How many bytes an item has at least in a reply."""
    content = getattr(item, "content", item)  # of a message
    if type(content) is Text:  # most are, and of long conversations each is counted
        return len(content.text)
    if not isinstance(content, Content):
        return len(item) if isinstance(item, str | bytes) else 0
    data = getattr(content, "data", None) or getattr(content, "blob", None) or b""
    return len(data) + sum(map(len, content.texts))


def all_of(values: Iterable[T], whose: str = "") -> Sequence[T]:
    """
    Return all items of an iterable that an author gives. Raises `TooLongError`, which says *whose* they are.
    """
    if isinstance(values, list | tuple):
        return values
    bound, found = Bound(whose=whose), list[T]()
    for value in values:
        bound.take(value)
        found.append(value)
    return found


async def all_of_async(values: AsyncIterable[T], whose: str = "") -> Sequence[T]:
    """
    Do the same for an asynchronous one.
    """
    bound, found = Bound(whose=whose), list[T]()
    async for value in values:
        bound.take(value)
        found.append(value)
    return found
