"""What is kept in memory for a page that will ask for it: the newest, up to a size."""

from collections import OrderedDict
from threading import Lock
from typing import Generic, TypeVar

__all__ = ["Kept"]

T = TypeVar("T")


class Kept(Generic[T]):
    """
    Things by a key, of which those that nobody has asked for longest are forgotten. Any thread may use it.

    Args:
        most:
            How large they may be together. One that is larger is kept alone.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._things: OrderedDict[str, tuple[T, int]] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def keep(self, key: str, thing: T, size: int) -> None:
        """Keep something of a size. What has the key already stays."""
        with self._lock:
            if key not in self._things:
                self._things[key] = thing, size
                self._size += size
            self._things.move_to_end(key)
            while self._size > self._most and len(self._things) > 1:
                _, (_, dropped) = self._things.popitem(last=False)
                self._size -= dropped

    def get(self, key: str) -> T | None:
        """Return what is kept; None if it was forgotten, or never was."""
        with self._lock:
            if key not in self._things:
                return None
            self._things.move_to_end(key)
            return self._things[key][0]
