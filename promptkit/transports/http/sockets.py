"""What the kernel knows of a socket beside what comes."""

import select
import socket
import sys
from typing import Any

__all__ = ["can_see_reset", "end_writing", "has_input", "is_reset", "listens"]


def listens(one: socket.socket) -> bool:
    """Whether connections can be accepted from a socket. Nothing else tells that it was closed."""
    try:
        return bool(one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    except OSError:
        return False


def end_writing(transport: Any) -> None:
    """Say that nothing more will be sent."""
    if transport.can_write_eof():
        transport.write_eof()


if sys.platform == "win32":  # it has no poll

    def can_see_reset() -> bool:
        """Whether `is_reset` is to be trusted here."""
        return False

    def is_reset(_transport: Any) -> bool:
        """Return False, as it is not known."""
        return False

    def has_input(transport: Any) -> bool:
        """Whether bytes wait in the kernel. To close then would answer them with a reset."""
        return bool(select.select([_descriptor(transport)], [], [], 0)[0])

else:

    def can_see_reset() -> bool:
        """Whether `is_reset` is to be trusted here."""
        return True

    def is_reset(transport: Any) -> bool:
        """Whether a client that sends no more reads no more, either."""
        return bool(_state(transport) & (select.POLLERR | select.POLLHUP))

    def has_input(transport: Any) -> bool:
        """Whether bytes wait in the kernel. To close then would answer them with a reset."""
        return bool(_state(transport) & select.POLLIN)

    def _state(transport: Any) -> int:
        poll = select.poll()
        poll.register(_descriptor(transport), select.POLLIN)
        return next((state for _, state in poll.poll(0)), 0)


def _descriptor(transport: Any) -> int:
    return int(transport.get_extra_info("socket").fileno())
