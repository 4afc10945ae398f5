"""What is known of a connection beside what comes: what waits in the kernel, and for the client."""

import select
import sys
from typing import Any

__all__ = ["Backlog", "can_see_reset", "end_writing", "has_input", "is_reset"]


class Backlog:
    """What waits until a client reads it, from look to look."""

    def __init__(self) -> None:
        self._size = 0
        self._since: float | None = None

    def stalls(self, size: int, now: float, seconds: float) -> bool:
        """Whether the client, for whom *size* bytes wait at the time *now*, has read nothing for so long."""
        if self._since is None or size < self._size:
            self._since = now
        self._size = size
        return now - self._since > seconds


def has_input(transport: Any) -> bool:
    """Whether bytes wait in the kernel. To close then would answer them with a reset."""
    descriptor = transport.get_extra_info("socket").fileno()
    if sys.platform == "win32":
        return bool(select.select([descriptor], [], [], 0)[0])
    return bool(_state(descriptor) & select.POLLIN)


def end_writing(transport: Any) -> None:
    """Say that nothing more will be sent."""
    if transport.can_write_eof():
        transport.write_eof()


def can_see_reset() -> bool:
    """Whether `is_reset` can be asked here."""
    return sys.platform != "win32"


def is_reset(transport: Any) -> bool:
    """Whether a client that sends no more reads no more, either."""
    if sys.platform == "win32":  # it has no poll
        return False
    return bool(_state(transport.get_extra_info("socket").fileno()) & (select.POLLERR | select.POLLHUP))


if sys.platform != "win32":

    def _state(descriptor: int) -> int:
        """What the kernel has to say of a socket, as `select.poll` says it."""
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return next((state for _, state in poll.poll(0)), 0)
