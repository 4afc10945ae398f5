"""Sockets: listening sockets, their state in the kernel, and handing connections over to other workers."""

import errno
import mmap
import os
import select
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from struct import pack
from typing import Any, Final

from msgspec.structs import replace

from promptkit.transports.http.connection_limits import ConnectionLimits

if sys.platform != "win32":
    from fcntl import ioctl
    from termios import FIONREAD

__all__ = ["CAN_SEE_RESET", "Balance", "fit_descriptor_limit", "has_input", "is_reset", "limit_unsent"]

#: Whether `is_reset` works on this system.
CAN_SEE_RESET: Final = sys.platform != "win32"

#: Maximum size of unsent data in the kernel. By default, the kernel buffers some MiB per client, which hides
#: how fast the client reads. For a Unix socket, progress shows only once three quarters are read.
_MAX_UNSENT: Final = 128 * 1024
_MAX_UNSENT_UNIX: Final = 16 * 1024

#: Number of files that prompts can open in addition to the connections.
_OTHER_DESCRIPTORS: Final = 512

#: Maximum number of files that the process itself opens, and the number of further files that it needs under
#: a low limit.
_OWN_DESCRIPTORS: Final = 24
_FEW_DESCRIPTORS: Final = 4

#: Size of a worker's connection count.
_BYTES: Final = 8

#: Connection count of a worker that accepts no more.
_CLOSED: Final = 1 << 60


def fit_descriptor_limit(limits: ConnectionLimits) -> ConnectionLimits:
    """
    Return the limits that this process can keep: raise its limit of open files, or lower its connections.

    Args:
        limits:
            The requested limits.
    """
    if sys.platform == "win32":
        return limits
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    requested = limits.connections + _OTHER_DESCRIPTORS
    if soft == resource.RLIM_INFINITY:
        return limits
    target = requested if hard == resource.RLIM_INFINITY else min(requested, hard)
    if soft < target:
        with suppress(OSError, ValueError):  # the system may have another limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
            soft = target
    reserved = min(_OTHER_DESCRIPTORS, max(soft // 2, _OWN_DESCRIPTORS + _FEW_DESCRIPTORS))
    connections = max(min(limits.connections, soft - reserved), 1)
    refused = max(min(limits.refused, (reserved - _OWN_DESCRIPTORS) // 4), 0)
    return replace(limits, connections=connections, refused=refused)


def limit_unsent(accepted: socket.socket) -> None:
    """Limit the unsent data that the kernel buffers for a connection."""
    with suppress(OSError):  # the client is gone
        if accepted.family == getattr(socket, "AF_UNIX", None):
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MAX_UNSENT_UNIX)
        elif hasattr(socket, "TCP_NOTSENT_LOWAT"):
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _MAX_UNSENT)


def is_reset(transport: Any) -> bool:
    """Return whether a client that sends no more does not read either; False if the system cannot tell."""
    return sys.platform != "win32" and bool(_poll_state(transport) & (select.POLLERR | select.POLLHUP))


def has_input(transport: Any) -> bool:
    """Return whether unread bytes wait in the kernel. Closing the socket would reset the connection."""
    if sys.platform == "win32":
        return bool(select.select([transport.get_extra_info("socket")], [], [], 0)[0])
    return bool(_poll_state(transport) & select.POLLIN)


def _poll_state(transport: Any) -> int:
    if sys.platform == "win32":  # no poll on Windows
        return 0
    poll = select.poll()
    poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
    return next((state for _, state in poll.poll(0)), 0)


class Balance:
    """
    Memory and channels that workers share to balance their connections. Must be created before they fork.

    The kernel distributes connections at random: of 32, one of two workers may get 21. So a worker hands new
    connections over to another worker that has fewer.

    Args:
        workers:
            The number of workers.
    """

    def __init__(self, workers: int) -> None:
        self._counts = memoryview(mmap.mmap(-1, workers * _BYTES)).cast("q")
        # Each process holds both ends, so that connections for a worker that dies wait for its successor.
        self._channels = [socket.socketpair() for _ in range(workers)]
        for ends in self._channels:
            for end in ends:
                end.settimeout(0)

    def channel(self, worker: int) -> socket.socket:
        """Return the socket on which a worker receives connections from other workers."""
        return self._channels[worker][0]

    def note(self, worker: int, connections: int) -> None:
        """Publish the number of connections to a worker."""
        self._counts[worker] = connections

    def end(self, worker: int) -> None:
        """Hand no more connections over to a worker. Connections that were handed over can still be taken."""
        self.note(worker, _CLOSED)

    def hand_over(self, worker: int, accepted: socket.socket) -> bool:
        """
        Hand a new connection over to the worker with the fewest connections, unless this one has as few.

        Args:
            worker:
                The worker that accepted the connection.

            accepted:
                The connection. It is closed here if it was handed over.

        Returns:
            Whether the connection was handed over.
        """
        loads = [self._load(number) for number in range(len(self._channels))]
        fewest = min(loads)
        if loads[worker] == fewest or sys.platform == "win32":
            return False
        try:
            socket.send_fds(self._channels[loads.index(fewest)][1], [b"x"], [accepted.fileno()])
        except OSError:  # its channel is full
            return False
        accepted.close()
        return True

    def take(self, worker: int) -> Iterator[socket.socket]:
        """
        Yield the connections that other workers have handed over to a worker.

        Raises:
            OSError: If this process can open no more files: the connections keep waiting for it or its
                successor.
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
        """
        Return the number of a worker's connections, including those handed over to it: one byte for each.
        """
        waiting = bytearray(4)
        if sys.platform != "win32":
            ioctl(self.channel(worker), FIONREAD, waiting)
        return self._counts[worker] + int.from_bytes(waiting, sys.byteorder)


#: Length of the kernel's queue of new connections. The kernel may allow fewer.
_BACKLOG: Final = 2048

#: The first descriptor that systemd passes, see sd_listen_fds(3).
_FIRST_SYSTEMD_DESCRIPTOR: Final = 3

#: Linux: attaches a packet filter to a socket. Python has no constant for it.
_SO_ATTACH_FILTER: Final = 26

#: Drops segments that open a connection (SYN without ACK), and accepts all others. Each instruction is a
#: code, two jumps and a value: load the byte of the flags, keep SYN and ACK, compare with SYN alone.
_DROP_NEW_CONNECTIONS: Final = (
    (0x30, 0, 0, 13),
    (0x54, 0, 0, 0x12),
    (0x15, 0, 1, 0x02),
    (0x06, 0, 0, 0),
    (0x06, 0, 0, 0xFFFFFFFF),
)

#: Errors of creating a Unix socket. Its mode cannot be set if a link has replaced it.
_UNIX_FAILURES: Final = (OSError, ValueError, NotImplementedError)

#: What to do about a TCP error, by its number.
_TCP_HINTS: Final[dict[int | None, str]] = {
    errno.EADDRINUSE: "another server listens there: end it, or name another port",
    errno.EADDRNOTAVAIL: "this machine has no such address",
    errno.EACCES: "ports below 1024 need a privilege: name a higher one",
}


class ListenError(Exception):
    """An address cannot be served; the text gives the reason and a fix."""


class Listener:
    """
    One address with its listening sockets.

    Args:
        sockets:
            One for each worker, or one that all workers share.

        path:
            The path of a Unix socket that was created here and must be removed at the end.

        is_inherited:
            Whether another process also holds the socket and may continue to listen.
    """

    def __init__(
        self, sockets: Sequence[socket.socket], path: Path | None = None, *, is_inherited: bool = False
    ) -> None:
        self._sockets = sockets
        self._path = path
        self._inode = None if path is None else path.stat().st_ino
        self._is_inherited = is_inherited

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

    def of(self, worker: int) -> socket.socket:
        """Return the socket of a worker, counted from 0."""
        return self._sockets[worker % len(self._sockets)]

    def stop_connecting(self) -> None:
        """
        Reject new connections, while those in the queue can still be accepted.

        Otherwise, connections between the last `accept` and the closing of the socket would be reset. A
        client that tries to connect now retries after a second and reaches the next server. For TCP, only
        Linux supports this.
        """
        self._unlink()
        if sys.platform == "linux" and not self._is_inherited:
            for listening in filter(_is_ip, self._sockets):
                _drop_new_connections(listening)

    def close(self) -> None:
        """Stop listening, and remove the path of a Unix socket."""
        self._unlink()
        for listening in self._sockets:
            listening.close()

    def _unlink(self) -> None:
        with suppress(OSError):  # already removed
            if self._path is not None and self._path.stat().st_ino == self._inode:
                self._path.unlink()
        self._path = None


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
    listeners: list[Listener] = []
    error: OSError | None = None
    for family, address in _addresses(host, port):
        try:
            listeners.append(Listener(_sockets(family, (address, port), workers)))
        except OSError as failure:
            if error is None or failure.errno == errno.EADDRINUSE:
                error = failure
        else:
            port = listeners[0].of(0).getsockname()[1]
    if error is not None and (not listeners or error.errno == errno.EADDRINUSE):
        for listener in listeners:
            listener.close()
        reason = _TCP_HINTS.get(error.errno, _error_text(error))
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
            The mode of the socket: connecting needs write access. By default, only the user and the *group*,
            if any, can connect.

        group:
            The group of the socket, by name or number.

    Raises:
        ListenError: If the socket cannot be served.
    """
    if sys.platform == "win32":
        msg = "Unix sockets need another system than Windows: use --http"
        raise ListenError(msg)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if _is_stale(path):
            Path(path).unlink()
        _bind(listening, path)
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
            Its number.

    Raises:
        ListenError: If it is not a listening socket.
    """
    try:
        inherited = socket.socket(fileno=descriptor)
        is_listening = inherited.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError as error:
        msg = f"descriptor {descriptor} is not a socket: {_error_text(error)}"
        raise ListenError(msg) from None
    if not is_listening:
        inherited.detach()  # it belongs to another owner
        msg = f"descriptor {descriptor} is a socket that does not listen"
        raise ListenError(msg)
    inherited.set_inheritable(False)
    return Listener([inherited], is_inherited=True)


def systemd_descriptors() -> list[int]:
    """
    Return the sockets that systemd has passed to this process.

    The variables that describe them are removed from the environment, because child processes must not see
    them.

    Raises:
        ListenError: If there are none.
    """
    variables = {name: os.environ.pop(name, "") for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")}
    count = variables["LISTEN_FDS"]
    if variables["LISTEN_PID"] != str(os.getpid()) or not count.isdecimal() or not int(count):
        msg = "systemd has passed no socket: start this service by its .socket unit"
        raise ListenError(msg)
    return list(range(_FIRST_SYSTEMD_DESCRIPTOR, _FIRST_SYSTEMD_DESCRIPTOR + int(count)))


def _bind(listening: socket.socket, path: str) -> None:
    """Bind a socket that only its user can access. Meanwhile, files of other threads get the same mode."""
    previous = os.umask(0o177)
    try:
        listening.bind(path)
    finally:
        os.umask(previous)


def _share(path: str, mode: int | None, group: str | None) -> None:
    """Set the group of a socket before its mode, so that it is never more accessible than requested."""
    if group is not None and sys.platform != "win32":
        try:
            os.chown(path, -1, _group_number(group), follow_symlinks=False)
        except PermissionError as error:
            hint = "make it a member (systemd: SupplementaryGroups=), or start the server as root"
            reason = f"its user may not give it to the group {group!r}: {hint}"
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
    msg = f"there is no group {group!r}: name one that `getent group` lists, or its number"
    raise ValueError(msg)


def _addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, str]]:
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        msg = f"cannot listen at {host!r}: {_error_text(error)}"
        raise ListenError(msg) from None
    return list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in addresses))


def _sockets(family: socket.AddressFamily, address: tuple[str, int], workers: int) -> list[socket.socket]:
    """Listen on one socket, or on one per worker that share the port."""
    sockets = [socket.create_server(address, family=family, backlog=_BACKLOG)]
    if workers > 1 and hasattr(socket, "SO_REUSEPORT"):
        # Sockets that share a port would also share it with another server, so the exclusive socket above
        # checks the port first.
        address = (address[0], sockets[0].getsockname()[1])
        sockets.pop().close()
        shared = partial(socket.create_server, address, family=family, backlog=_BACKLOG, reuse_port=True)
        sockets = [shared() for _ in range(workers)]
    for listening in sockets:  # inherited by connections: send replies and events immediately
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sockets


def _is_stale(path: str) -> bool:
    """
    Return whether a path is a socket without a listener; False if there is no file. Raises OSError otherwise.
    """
    if not Path(path).exists():
        return False
    if not Path(path).is_socket():
        raise FileExistsError(
            errno.EEXIST, "there is a file that is not a socket: remove it, or name another path"
        )
    if sys.platform != "win32":
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(1)
            try:
                probe.connect(path)
            except ConnectionRefusedError:
                return True
    raise OSError(errno.EADDRINUSE, "another server listens there: end it, or name another path")


def _drop_new_connections(listening: socket.socket) -> None:
    program = b"".join(pack("HBBI", *instruction) for instruction in _DROP_NEW_CONNECTIONS)
    # It fails in some sandboxes, and if no file can be opened. Later connections are reset then.
    with suppress(OSError):
        from ctypes import addressof, create_string_buffer  # only needed at shutdown

        memory = create_string_buffer(program, len(program))
        filter_ = pack("HP", len(_DROP_NEW_CONNECTIONS), addressof(memory))
        listening.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, filter_)


def _is_ip(listening: socket.socket) -> bool:
    return listening.family in (socket.AF_INET, socket.AF_INET6)


def _error_text(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
