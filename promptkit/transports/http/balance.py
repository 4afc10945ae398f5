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

if sys.platform != "win32":
    from fcntl import ioctl
    from termios import FIONREAD

__all__ = ["Balance"]

_BYTES: Final = 8

#: The number of connections of a worker that takes no more.
_CLOSED: Final = 1 << 60


class Balance:
    """
    What workers share to have equally many connections. To be made before they are forked.

    Args:
        workers:
            How many there are.
    """

    def __init__(self, workers: int) -> None:
        self._counts = memoryview(mmap.mmap(-1, workers * _BYTES)).cast("q")
        # This process holds both ends: what was handed over to a worker that dies waits for the next one.
        self._channels = [socket.socketpair() for _ in range(workers)]
        for ends in self._channels:
            for end in ends:
                end.settimeout(0)

    def channel(self, worker: int) -> socket.socket:
        """Return where the connections for a worker come from the others."""
        return self._channels[worker][0]

    def note(self, worker: int, connections: int) -> None:
        """Tell the others how many connections a worker has."""
        self._counts[worker] = connections

    def end(self, worker: int) -> None:
        """Give a worker no more connections. Those that are on their way can still be taken."""
        self.note(worker, _CLOSED)

    def hand_over(self, worker: int, accepted: socket.socket) -> bool:
        """
        Give a new connection to the worker that has fewest, unless this is one of those.

        Args:
            worker:
                Who has accepted it.

            accepted:
                The connection. It is closed here if another has got it.

        Returns:
            Whether another has got it.
        """
        loads = [self._load(number) for number in range(len(self._channels))]
        fewest = min(loads)
        if loads[worker] == fewest or sys.platform == "win32":
            return False
        try:
            socket.send_fds(self._channels[loads.index(fewest)][1], [b"x"], [accepted.fileno()])
        except OSError:  # it has not taken many others yet
            return False
        accepted.close()
        return True

    def take(self, worker: int) -> Iterator[socket.socket]:
        """
        The connections that others have handed over to a worker.

        Raises:
            OSError: If this process may open no more: they wait for it, or for the one after it.
        """
        if sys.platform == "win32":
            return
        channel = self.channel(worker)
        while True:
            os.close(os.dup(channel.fileno()))  # without a descriptor for it, a connection would be lost
            try:
                _, descriptors, _, _ = socket.recv_fds(channel, 1, 1)
            except BlockingIOError:
                return
            for descriptor in descriptors:
                with suppress(OSError):
                    yield socket.socket(fileno=descriptor)

    def close(self) -> None:
        """Close all channels."""
        for end in (end for ends in self._channels for end in ends):
            end.close()

    def _load(self, worker: int) -> int:
        """How many connections a worker has, with those on their way to it: a byte for each."""
        waiting = bytearray(4)
        if sys.platform != "win32":
            ioctl(self.channel(worker), FIONREAD, waiting)
        return self._counts[worker] + int.from_bytes(waiting, sys.byteorder)
