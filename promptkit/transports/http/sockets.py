"""Sockets: listening sockets, and limits on what they and their connections use in the kernel."""

import errno
import os
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from promptkit.transports.http.connection import ConnectionLimits

#: Maximum size of unsent data in the kernel. By default, the kernel buffers some MiB per client, which hides
#: how fast the client reads. For a Unix socket, progress is visible only once three quarters have been read.
_MAX_UNSENT: Final = 128 * 1024
_MAX_UNSENT_UNIX: Final = 16 * 1024

#: Number of files that the process can open in addition to the connections. If the limit on open files is
#: low, two thirds of it are for other files.
_OTHER_DESCRIPTORS: Final = 512


def fit_descriptor_limit(limits: ConnectionLimits) -> ConnectionLimits:
    """
    Raise this process's limit on open files. Return *limits*, with fewer connections if it stays too low.

    Args:
        limits:
            The requested limits.
    """
    if sys.platform == "win32":
        return limits
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    requested = limits.connections + _OTHER_DESCRIPTORS
    target = requested if hard == resource.RLIM_INFINITY else min(requested, hard)
    if soft < target:
        with suppress(OSError, ValueError):  # the system may have a lower limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
            soft = target
    reserved = min(_OTHER_DESCRIPTORS, soft * 2 // 3)
    connections = min(limits.connections, max(1, soft - reserved))
    return replace(limits, connections=connections, rejected=min(limits.rejected, reserved // 4))


def limit_unsent(accepted: socket.socket) -> None:
    """Limit the unsent data that the kernel buffers for a connection."""
    with suppress(OSError):  # the client is gone
        if accepted.family == getattr(socket, "AF_UNIX", None):
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MAX_UNSENT_UNIX)
        elif hasattr(socket, "TCP_NOTSENT_LOWAT"):
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _MAX_UNSENT)


#: Length of the kernel's queue of new connections. The kernel may allow fewer.
_BACKLOG: Final = 2048

#: The first descriptor that systemd passes: see sd_listen_fds(3).
_FIRST_SYSTEMD_DESCRIPTOR: Final = 3


#: Errors that occur when a Unix socket is created. NotImplementedError is raised if a link has replaced the
#: socket.
_UNIX_FAILURES: Final = (OSError, ValueError, NotImplementedError)


class ListenError(Exception):
    """An address cannot be served; the message gives the reason and a fix."""


class Listener:
    """
    One address with its listening sockets.

    Args:
        sockets:
            One socket for each worker, or one socket that all workers share.

        path:
            The path of a Unix socket that this process created, and that `close` removes.
    """

    def __init__(self, sockets: Sequence[socket.socket], path: Path | None = None) -> None:
        self._sockets = sockets
        self._path = path
        self._inode = None if path is None else path.stat().st_ino

    @property
    def url(self) -> str:
        """The URL of the listener, without a path."""
        name = self._sockets[0].getsockname()
        if not _is_ip(self._sockets[0]):
            return f"unix:{name if isinstance(name, str) else os.fsdecode(name)}"
        host, port = name[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    @property
    def is_local(self) -> bool:
        """Whether only processes on this machine can connect."""
        return not _is_ip(self._sockets[0]) or ip_address(self._sockets[0].getsockname()[0]).is_loopback

    def socket_of(self, worker: int) -> socket.socket:
        """Return the socket of a worker, counted from 0."""
        return self._sockets[worker % len(self._sockets)]

    def claim(self, worker: int) -> socket.socket:
        """Return the socket of a worker, and close those of other workers in this process."""
        claimed = self.socket_of(worker)
        for listening in self._sockets:
            if listening is not claimed:
                listening.close()
        return claimed

    def close(self) -> None:
        """Stop listening in this process, and remove the path of a Unix socket."""
        with suppress(OSError):  # already removed
            if self._path is not None and self._path.stat().st_ino == self._inode:
                self._path.unlink()
        self._path = None
        for listening in self._sockets:
            listening.close()


def listen_tcp(host: str, port: int, workers: int = 1) -> list[Listener]:
    """
    Listen on TCP, with a socket for each worker.

    Args:
        host:
            An IP address, or a name that resolves to several.

        port:
            The port; 0 lets the system choose one.

        workers:
            The number of processes that accept connections.

    Returns:
        One listener for each address of the host.

    Raises:
        ListenError: If the address cannot be served.
    """
    listeners, failures = list[Listener](), list[OSError]()
    for family, address in _addresses(host, port):
        try:
            listeners.append(Listener(_sockets(family, (address, port), workers)))
        except OSError as error:
            failures.append(error)
        else:
            port = listeners[0].socket_of(0).getsockname()[1]
    used = [error for error in failures if error.errno == errno.EADDRINUSE]
    if used or not listeners:
        for listener in listeners:
            listener.close()
        in_use = "another server already listens there: stop it, or use another port"
        reason = in_use if used else _error_text(failures[0])
        msg = f"cannot listen at {host}, port {port}: {reason}"
        raise ListenError(msg)
    return listeners


def listen_unix(path: str, mode: int | None = None, group: str | None = None) -> Listener:
    """
    Listen on a Unix socket, replacing a stale one.

    Args:
        path:
            The path of the socket.

        mode:
            The mode of the socket. Connecting requires write access. By default, only the user and the
            *group*, if any, can connect.

        group:
            The group of the socket, by name or number.

    Raises:
        ListenError: If the socket cannot be served.
    """
    if sys.platform == "win32":
        msg = "Unix sockets are not supported on Windows: use --http"
        raise ListenError(msg)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if _is_stale(path):
            Path(path).unlink()
        previous = os.umask(0o177)  # access for the user only; files of other threads get it as well
        try:
            listening.bind(path)
        finally:
            os.umask(previous)
        try:
            listening.listen(_BACKLOG)
            _share(path, mode, group)
            return Listener([listening], Path(path).absolute())
        except _UNIX_FAILURES:
            Path(path).unlink()
            raise
    except _UNIX_FAILURES as error:
        listening.close()
        msg = f"cannot listen at {path!r}: {_error_text(error)}"
        raise ListenError(msg) from None


def listen_inherited(descriptor: int) -> Listener:
    """
    Listen on an inherited socket.

    Args:
        descriptor:
            The number of the socket's descriptor.

    Raises:
        ListenError: If the descriptor is not a listening socket.
    """
    try:
        inherited = socket.socket(fileno=descriptor)
        is_listening = inherited.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError as error:
        msg = f"descriptor {descriptor} is not a socket: {_error_text(error)}"
        raise ListenError(msg) from None
    if not is_listening:
        inherited.detach()  # the descriptor belongs to another owner
        msg = f"descriptor {descriptor} is a socket that does not listen"
        raise ListenError(msg)
    inherited.set_inheritable(False)
    return Listener([inherited])


def systemd_descriptors() -> list[int]:
    """
    Return the descriptors that systemd has passed to this process.

    The variables that describe them are removed from the environment, because child processes must not see
    them.

    Raises:
        ListenError: If systemd has passed no sockets.
    """
    variables = {name: os.environ.pop(name, "") for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")}
    count = variables["LISTEN_FDS"]
    if variables["LISTEN_PID"] != str(os.getpid()) or not count.isdecimal() or not int(count):
        msg = "systemd did not pass a socket: start this service through its .socket unit"
        raise ListenError(msg)
    return list(range(_FIRST_SYSTEMD_DESCRIPTOR, _FIRST_SYSTEMD_DESCRIPTOR + int(count)))


def _share(path: str, mode: int | None, group: str | None) -> None:
    """Set the group of a socket, then its mode, so that it is never more accessible than requested."""
    if group is not None and sys.platform != "win32":
        try:
            os.chown(path, -1, _group_number(group), follow_symlinks=False)
        except PermissionError as error:
            hint = "add the user to the group (systemd: SupplementaryGroups=), or start the server as root"
            reason = f"the server's user cannot assign it to the group {group!r}: {hint}"
            raise PermissionError(error.errno, reason) from None
    if mode is None:
        mode = 0o600 if group is None else 0o660
    Path(path).chmod(mode, follow_symlinks=False)


def _group_number(group: str) -> int:
    """Return the id of a group, given by name or id. Raises ValueError if there is no such group."""
    if sys.platform != "win32":
        from grp import getgrnam  # rarely needed

        with suppress(KeyError):
            return getgrnam(group).gr_gid
    if group.isascii() and group.isdigit() and len(group) < 10:
        return int(group)
    msg = f"there is no group {group!r}: use a group that `getent group` lists, or its number"
    raise ValueError(msg)


def _addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, str]]:
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        msg = f"cannot listen at {host!r}: {_error_text(error)}"
        raise ListenError(msg) from None
    return list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in addresses))


def _sockets(family: socket.AddressFamily, address: tuple[str, int], workers: int) -> list[socket.socket]:
    """Listen on one socket, or on one socket per worker, all on the same port."""
    sockets = [socket.create_server(address, family=family, backlog=_BACKLOG)]
    if workers > 1 and hasattr(socket, "SO_REUSEPORT"):
        # Sockets that share a port would also share it with another server, so the exclusive socket above
        # checks the port first.
        address = (address[0], sockets[0].getsockname()[1])
        sockets.pop().close()
        shared = partial(socket.create_server, address, family=family, backlog=_BACKLOG, reuse_port=True)
        sockets = [shared() for _ in range(workers)]
    for listening in sockets:  # inherited by connections, so that replies and events are sent immediately
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sockets


def _is_stale(path: str) -> bool:
    """Return whether a path is a socket without a listener. Raises OSError if anything else is there."""
    if not Path(path).exists():
        return False
    if not Path(path).is_socket():
        raise FileExistsError(
            errno.EEXIST, "the path is a file that is not a socket: remove it, or use another path"
        )
    if sys.platform != "win32":
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(1)
            try:
                probe.connect(path)
            except ConnectionRefusedError:
                return True
    raise OSError(errno.EADDRINUSE, "another server already listens there: stop it, or use another path")


def _is_ip(listening: socket.socket) -> bool:
    return listening.family in (socket.AF_INET, socket.AF_INET6)


def _error_text(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
