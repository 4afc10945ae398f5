"""
Balance: a worker hands a new connection over to another that has fewer.

The kernel spreads connections by chance: of 32, one of two workers may well get 21.
"""

import mmap
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

__all__ = ["Balance", "Share"]

_BYTES: Final = 8

#: The number of connections of a worker that takes no more.
_CLOSED: Final = 1 << 60


class Balance:
    """
    What workers tell each other, to be made before they are forked.

    Args:
        workers:
            How many there are.
    """

    def __init__(self, workers: int) -> None:
        # A row for each worker, which no other writes to: how many connections it has, how many it has handed
        # over to each worker, and how many it has taken from each.
        length = 1 + 2 * workers
        table = memoryview(mmap.mmap(-1, workers * length * _BYTES)).cast("q")
        self._rows = [table[start : start + length] for start in range(0, workers * length, length)]
        # This process holds both ends: what was handed over to a worker that dies waits for the next one.
        self._channels = [socket.socketpair() for _ in range(workers)]
        for ends in self._channels:
            for end in ends:
                end.settimeout(0)

    def of(self, number: int) -> "Share":
        """Return what the worker of a number uses; it begins without connections."""
        return Share(number, self._rows, self._channels)

    def close(self) -> None:
        """Close all channels."""
        for end in (end for ends in self._channels for end in ends):
            end.close()


class Share:
    """One worker's part in the balance. Only `Balance` makes it."""

    def __init__(
        self, number: int, rows: list[memoryview], channels: list[tuple[socket.socket, socket.socket]]
    ) -> None:
        self._number = number
        self._rows = rows
        self._row = rows[number]
        self._channels = channels
        self.note(0)

    @property
    def channel(self) -> socket.socket:
        """Where connections come from others."""
        return self._channels[self._number][0]

    def note(self, connections: int) -> None:
        """Tell the others how many connections this worker has."""
        self._row[0] = connections

    def close(self) -> None:
        """Take no more connections from others; those that are on their way can still be taken."""
        self.note(_CLOSED)

    def hand_over(self, accepted: socket.socket) -> bool:
        """
        Give a new connection to the worker that has fewest, unless this is one of those.

        Args:
            accepted:
                The connection. It is closed here if another has got it.

        Returns:
            Whether another has got it.
        """
        loads = [self._load(number) for number in range(len(self._rows))]
        number = loads.index(min(loads))
        if loads[number] == loads[self._number] or sys.platform == "win32":
            return False
        try:
            socket.send_fds(self._channels[number][1], [bytes([self._number])], [accepted.fileno()])
        except OSError:  # it has not taken many others yet
            return False
        self._row[1 + number] += 1
        accepted.close()
        return True

    def take(self) -> Iterator[socket.socket]:
        """
        The connections that others have handed over.

        Raises:
            OSError: If this process may open no more: they wait for it, or for the one after it.
        """
        if sys.platform == "win32":
            return
        while True:
            os.close(os.dup(self.channel.fileno()))  # without a descriptor for it, a connection would be lost
            try:
                data, descriptors, _, _ = socket.recv_fds(self.channel, 1, 1)
            except BlockingIOError:
                return
            self._row[1 + len(self._rows) + data[0]] += 1
            for descriptor in descriptors:
                with suppress(OSError):
                    yield socket.socket(fileno=descriptor)

    def _load(self, number: int) -> int:
        """How many connections a worker has, with those on their way to it."""
        row, workers = self._rows[number], len(self._rows)
        on_their_way = sum(
            giver[1 + number] - row[1 + workers + index] for index, giver in enumerate(self._rows)
        )
        return int(row[0]) + max(0, on_their_way)
