"""Listening sockets, and limits on the kernel resources that they and their connections use."""

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

#: Maximum size of a connection's unsent data in the kernel, in bytes. By default, the kernel buffers several
#: MiB per client, which hides how fast the client reads. For a Unix socket, progress is visible only once the
#: client has read three quarters of the data.
_MAX_UNSENT: Final = 128 * 1024
_MAX_UNSENT_UNIX: Final = 16 * 1024

#: Number of descriptors reserved for files other than connections. If the limit on open files is low, two
#: thirds of it are reserved.
_OTHER_DESCRIPTORS: Final = 512


def fit_to_descriptor_limit(limits: ConnectionLimits) -> ConnectionLimits:
    """
    Raise the process's limit on open files. Return *limits*, with fewer connections if it is still too low.

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


#: Requested length of the kernel's queue of new connections. The kernel may limit it further.
_BACKLOG: Final = 2048

#: The first descriptor that systemd passes (see sd_listen_fds(3)).
_FIRST_SYSTEMD_DESCRIPTOR: Final = 3


#: Errors that can occur when a Unix socket is created. NotImplementedError is raised if a link has replaced
#: the socket.
_UNIX_FAILURES: Final = (OSError, ValueError, NotImplementedError)


class ListenError(Exception):
    """The server cannot listen on an address. The message gives the reason and, if possible, a fix."""


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

    def socket_for(self, worker: int) -> socket.socket:
        """Return the socket for a worker. Workers are numbered from 0."""
        return self._sockets[worker % len(self._sockets)]

    def claim(self, worker: int) -> socket.socket:
        """Return the socket for a worker, and close the sockets for other workers in this process."""
        claimed = self.socket_for(worker)
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
    Listen on TCP, with one socket for each worker.

    Args:
        host:
            An IP address, or a host name, which can resolve to several addresses.

        port:
            The port, or 0 to let the system choose one.

        workers:
            The number of processes that accept connections.

    Returns:
        One listener for each address of the host.

    Raises:
        ListenError: If no address of the host can be used, or if the port is in use.
    """
    listeners, failures = list[Listener](), list[OSError]()
    for family, address in _resolve_addresses(host, port):
        try:
            listeners.append(Listener(_create_sockets(family, (address, port), workers)))
        except OSError as error:
            failures.append(error)
        else:
            port = listeners[0].socket_for(0).getsockname()[1]
    used = [error for error in failures if error.errno == errno.EADDRINUSE]
    if used or not listeners:
        for listener in listeners:
            listener.close()
        in_use = "another server is already listening there: stop it, or use another port"
        reason = in_use if used else _error_text(failures[0])
        msg = f"cannot listen on {host}, port {port}: {reason}"
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
        ListenError: If the socket cannot be created, or if another server is listening there.
    """
    if sys.platform == "win32":
        msg = "Unix sockets are not supported on Windows: use --http"
        raise ListenError(msg)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if _is_stale(path):
            Path(path).unlink()
        previous = os.umask(0o177)  # only the user gets access; affects other threads' files as well
        try:
            listening.bind(path)
        finally:
            os.umask(previous)
        try:
            listening.listen(_BACKLOG)
            _set_access(path, mode, group)
            return Listener([listening], Path(path).absolute())
        except _UNIX_FAILURES:
            Path(path).unlink()
            raise
    except _UNIX_FAILURES as error:
        listening.close()
        msg = f"cannot listen on {path!r}: {_error_text(error)}"
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
        inherited.detach()  # do not close the descriptor, because it may be in use elsewhere
        msg = f"descriptor {descriptor} is a socket, but not a listening socket"
        raise ListenError(msg)
    inherited.set_inheritable(False)
    return Listener([inherited])


def systemd_descriptors() -> list[int]:
    """
    Return the descriptors that systemd has passed to this process.

    The variables that describe the descriptors are removed from the environment, because child processes must
    not see them.

    Raises:
        ListenError: If systemd has not passed any sockets.
    """
    variables = {name: os.environ.pop(name, "") for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")}
    count = variables["LISTEN_FDS"]
    if variables["LISTEN_PID"] != str(os.getpid()) or not count.isdecimal() or not int(count):
        msg = "systemd did not pass a socket: start this service through its .socket unit"
        raise ListenError(msg)
    return list(range(_FIRST_SYSTEMD_DESCRIPTOR, _FIRST_SYSTEMD_DESCRIPTOR + int(count)))


def _set_access(path: str, mode: int | None, group: str | None) -> None:
    """Set a socket's group before its mode, so that the socket is never more accessible than requested."""
    if group is not None and sys.platform != "win32":
        try:
            os.chown(path, -1, _find_group_id(group), follow_symlinks=False)
        except PermissionError as error:
            hint = "add the user to the group (systemd: SupplementaryGroups=), or start the server as root"
            reason = f"the server's user cannot assign the socket to the group {group!r}: {hint}"
            raise PermissionError(error.errno, reason) from None
    if mode is None:
        mode = 0o600 if group is None else 0o660
    Path(path).chmod(mode, follow_symlinks=False)


def _find_group_id(group: str) -> int:
    """Return the id of a group that is given by name or id. Raise ValueError if the group does not exist."""
    if sys.platform != "win32":
        from grp import getgrnam  # rarely needed

        with suppress(KeyError):
            return getgrnam(group).gr_gid
    if group.isascii() and group.isdigit() and len(group) < 10:
        return int(group)
    msg = f"there is no group {group!r}: use a name or number from `getent group`"
    raise ValueError(msg)


def _resolve_addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, str]]:
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        msg = f"cannot listen on {host!r}: {_error_text(error)}"
        raise ListenError(msg) from None
    return list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in addresses))


def _create_sockets(
    family: socket.AddressFamily, address: tuple[str, int], workers: int
) -> list[socket.socket]:
    """Return one listening socket or, if the system supports it, one socket per worker on the same port."""
    sockets = [socket.create_server(address, family=family, backlog=_BACKLOG)]
    if workers > 1 and hasattr(socket, "SO_REUSEPORT"):
        # Sockets that share a port would also share it with another server, so the exclusive socket above
        # checks the port first.
        address = (address[0], sockets[0].getsockname()[1])
        sockets.pop().close()
        shared = partial(socket.create_server, address, family=family, backlog=_BACKLOG, reuse_port=True)
        sockets = [shared() for _ in range(workers)]
    for listening in sockets:  # connections inherit this, so that replies and events are sent immediately
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sockets


def _is_stale(path: str) -> bool:
    """Return whether a path is a socket without a listener. Raise OSError if the path is otherwise in use."""
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
    raise OSError(errno.EADDRINUSE, "another server is already listening there: stop it, or use another path")


def _is_ip(listening: socket.socket) -> bool:
    return listening.family in (socket.AF_INET, socket.AF_INET6)


def _error_text(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
