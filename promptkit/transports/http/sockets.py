"""What the kernel knows of a socket beside what comes, and how much it keeps of what goes."""

import select
import socket
import sys
from contextlib import suppress
from typing import Any, Final

from msgspec.structs import replace

from promptkit.transports.http.connections import ConnectionLimits

__all__ = ["CAN_SEE_RESET", "has_input", "is_reset", "keep_little_unsent", "within_descriptors"]

#: Whether `is_reset` is to be trusted here.
CAN_SEE_RESET: Final = sys.platform != "win32"

#: How much the kernel may keep of what it cannot send yet. By itself, it keeps some MiB for each client, and
#: nobody sees there how fast that is read. What a Unix socket keeps is seen once three quarters are read.
_MOST_UNSENT: Final = 128 * 1024
_MOST_UNSENT_UNIX: Final = 16 * 1024

#: How many files prompts may have open besides the connections.
_OTHER_DESCRIPTORS: Final = 512


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
    allowed = soft - min(_OTHER_DESCRIPTORS, soft // 2)
    return replace(limits, connections=min(limits.connections, allowed))


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
