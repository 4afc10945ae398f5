"""Sockets: what the kernel knows of them beside what comes, and how workers hand them over to each other."""

import mmap
import os
import select
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from msgspec.structs import replace

from promptkit.transports.http.connection_limits import ConnectionLimits

if sys.platform != "win32":
    from fcntl import ioctl
    from termios import FIONREAD

__all__ = ["CAN_SEE_RESET", "Balance", "has_input", "is_reset", "keep_little_unsent", "within_descriptors"]

#: Whether `is_reset` is to be trusted here.
CAN_SEE_RESET: Final = sys.platform != "win32"

#: How much the kernel may keep of what it cannot send yet. By itself, it keeps some MiB for each client, and
#: nobody sees there how fast that is read. What a Unix socket keeps is seen once three quarters are read.
_MOST_UNSENT: Final = 128 * 1024
_MOST_UNSENT_UNIX: Final = 16 * 1024

#: How many files prompts may have open besides the connections.
_OTHER_DESCRIPTORS: Final = 512

#: How many files the process itself has open at most, and how many more it needs where few may be open.
_OWN_DESCRIPTORS: Final = 24
_FEW_DESCRIPTORS: Final = 4

#: The size of the number of connections of a worker.
_BYTES: Final = 8

#: The number of connections of a worker that takes no more.
_CLOSED: Final = 1 << 60


def within_descriptors(limits: ConnectionLimits) -> ConnectionLimits:
    """
    Return the limits for this process. It allows itself more open files, or else fewer connections.

    Args:
        limits:
            What connections may be.
    """
    if sys.platform == "win32":
        return limits
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.connections + _OTHER_DESCRIPTORS
    if soft == resource.RLIM_INFINITY:
        return limits
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft < most:
        with suppress(OSError, ValueError):  # the system may have another bound
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
    others = min(_OTHER_DESCRIPTORS, max(soft // 2, _OWN_DESCRIPTORS + _FEW_DESCRIPTORS))
    connections = max(min(limits.connections, soft - others), 1)
    refused = max(min(limits.refused, (others - _OWN_DESCRIPTORS) // 4), 0)
    return replace(limits, connections=connections, refused=refused)


def keep_little_unsent(accepted: socket.socket) -> None:
    """Have the kernel keep little of what it cannot send yet."""
    with suppress(OSError):  # the client has left
        if accepted.family == getattr(socket, "AF_UNIX", None):
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST_UNSENT_UNIX)
        elif hasattr(socket, "TCP_NOTSENT_LOWAT"):
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _MOST_UNSENT)


def is_reset(transport: Any) -> bool:
    """Whether a client that sends no more reads no more, either; False where nothing says that."""
    return sys.platform != "win32" and bool(_state(transport) & (select.POLLERR | select.POLLHUP))


def has_input(transport: Any) -> bool:
    """Whether bytes wait in the kernel. To close then would answer them with a reset."""
    if sys.platform == "win32":
        return bool(select.select([transport.get_extra_info("socket")], [], [], 0)[0])
    return bool(_state(transport) & select.POLLIN)


def _state(transport: Any) -> int:
    if sys.platform == "win32":  # it has no poll
        return 0
    poll = select.poll()
    poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
    return next((state for _, state in poll.poll(0)), 0)


class Balance:
    """
    What workers share to have equally many connections. To be made before they are forked.

    The kernel spreads connections by chance: of 32, one of two workers may well get 21. So a worker hands a
    new connection over to another that has fewer.

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

    def _load(self, worker: int) -> int:
        """How many connections a worker has, with those on their way to it: a byte for each."""
        waiting = bytearray(4)
        if sys.platform != "win32":
            ioctl(self.channel(worker), FIONREAD, waiting)
        return self._counts[worker] + int.from_bytes(waiting, sys.byteorder)
