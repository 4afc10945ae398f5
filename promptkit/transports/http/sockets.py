"""Sockets: the ones a server listens on, what the kernel knows of one, and handing one to another worker."""

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


#: How many connections wait in the kernel for a worker. The kernel may allow fewer.
_BACKLOG: Final = 2048

#: The first descriptor that systemd passes, see sd_listen_fds(3).
_FIRST_SYSTEMD_DESCRIPTOR: Final = 3

#: Linux: attaches a packet filter to a socket; Python has no name for it.
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

#: What may come of making a Unix socket. Its mode cannot be set if a link has taken its place.
_UNIX_FAILURES: Final = (OSError, ValueError, NotImplementedError)

#: What to do about an error of TCP, by its number.
_REMEDIES: Final[dict[int | None, str]] = {
    errno.EADDRINUSE: "another server listens there: end it, or name another port",
    errno.EADDRNOTAVAIL: "this machine has no such address",
    errno.EACCES: "ports below 1024 need a privilege: name a higher one",
}


class ListenError(Exception):
    """Nothing can be served at an address; the text says why, and what to do."""


class Listener:
    """
    One address with its listening sockets.

    Args:
        sockets:
            One for each worker, or one that they share.

        path:
            The Unix socket that was made here, and is removed at the end.

        is_inherited:
            Whether another process holds the socket, too, and may go on to listen.
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
        """Where clients find it, without a path."""
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
        """Return the socket of a worker, who are counted from 0."""
        return self._sockets[worker % len(self._sockets)]

    def stop_connecting(self) -> None:
        """
        Let nobody connect from now on; who has connected waits in the queue and can be accepted.

        Otherwise who connects between the last `accept` and the end of the socket would be reset. Who tries
        to connect tries again a second later, and then finds the next server. Only Linux can do so for TCP.
        """
        self._unlink()
        if sys.platform == "linux" and not self._is_inherited:
            for one in filter(_is_ip, self._sockets):
                _drop_new_connections(one)

    def close(self) -> None:
        """Stop listening, and remove the path of a Unix socket."""
        self._unlink()
        for one in self._sockets:
            one.close()

    def _unlink(self) -> None:
        with suppress(OSError):  # it is gone already
            if self._path is not None and self._path.stat().st_ino == self._inode:
                self._path.unlink()
        self._path = None


def listen_tcp(host: str, port: int, workers: int = 1) -> list[Listener]:
    """
    Listen on TCP, with a socket for each worker.

    Args:
        host:
            An IP address, or a name that stands for some.

        port:
            The port; 0 for one that the system chooses.

        workers:
            How many processes accept connections.

    Returns:
        One listener for each address of the host.

    Raises:
        ListenError: If that is not possible.
    """
    listeners: list[Listener] = []
    error: OSError | None = None
    for family, address in _addresses(host, port):
        try:
            listeners.append(Listener(_sockets(family, (address, port), workers)))
        except OSError as failed:
            if error is None or failed.errno == errno.EADDRINUSE:
                error = failed
        else:
            port = listeners[0].of(0).getsockname()[1]
    if error is not None and (not listeners or error.errno == errno.EADDRINUSE):
        for listener in listeners:
            listener.close()
        reason = _REMEDIES.get(error.errno, _reason(error))
        msg = f"cannot listen at {host}, port {port}: {reason}"
        raise ListenError(msg)
    return listeners


def listen_unix(path: str, mode: int | None = None, group: str | None = None) -> Listener:
    """
    Listen on a Unix socket, and replace one that nobody listens to any more.

    Args:
        path:
            Where it is made.

        mode:
            Who may connect: those who may write. By default the user alone; with a group, that, too.

        group:
            The group that it belongs to, by name or number.

    Raises:
        ListenError: If that is not possible.
    """
    if sys.platform == "win32":
        msg = "Unix sockets need another system than Windows: use --http"
        raise ListenError(msg)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if _is_stale(path):
            Path(path).unlink()
        _bind(made, path)
        try:
            made.listen(_BACKLOG)
            _share(path, mode, group)
            return Listener([made], Path(path).absolute())
        except _UNIX_FAILURES:
            Path(path).unlink()
            raise
    except _UNIX_FAILURES as error:
        made.close()
        msg = f"cannot listen at {path!r}: {_reason(error)}"
        raise ListenError(msg) from None


def listen_inherited(descriptor: int) -> Listener:
    """
    Listen on an inherited socket.

    Args:
        descriptor:
            Its number.

    Raises:
        ListenError: If it is no socket that listens.
    """
    try:
        inherited = socket.socket(fileno=descriptor)
        listens = inherited.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError as error:
        msg = f"descriptor {descriptor} is no socket: {_reason(error)}"
        raise ListenError(msg) from None
    if not listens:
        inherited.detach()  # it is somebody else's
        msg = f"descriptor {descriptor} is a socket that does not listen"
        raise ListenError(msg)
    inherited.set_inheritable(False)
    return Listener([inherited], is_inherited=True)


def systemd_descriptors() -> list[int]:
    """
    Return the sockets that systemd has passed to this process.

    What says so is removed from the environment, as it is not meant for child processes.

    Raises:
        ListenError: If there are none.
    """
    said = {name: os.environ.pop(name, "") for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")}
    number = said["LISTEN_FDS"]
    if said["LISTEN_PID"] != str(os.getpid()) or not number.isdecimal() or not int(number):
        msg = "systemd has passed no socket: start this service by its .socket unit"
        raise ListenError(msg)
    return list(range(_FIRST_SYSTEMD_DESCRIPTOR, _FIRST_SYSTEMD_DESCRIPTOR + int(number)))


def _bind(made: socket.socket, path: str) -> None:
    """Make a socket for its user alone. What other threads make meanwhile is, too."""
    before = os.umask(0o177)
    try:
        made.bind(path)
    finally:
        os.umask(before)


def _share(path: str, mode: int | None, group: str | None) -> None:
    """Give a socket to a group first, and then its mode: so it is never more open than it is to be."""
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
    """The number of a group, which may be named by it. Raises ValueError if there is none."""
    if sys.platform != "win32":
        from grp import getgrnam  # few sockets are for a group

        with suppress(KeyError):
            return getgrnam(group).gr_gid
    if group.isascii() and group.isdigit() and len(group) < 10:
        return int(group)
    msg = f"there is no group {group!r}: name one that `getent group` lists, or its number"
    raise ValueError(msg)


def _addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, str]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        msg = f"cannot listen at {host!r}: {_reason(error)}"
        raise ListenError(msg) from None
    return list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in found))


def _sockets(family: socket.AddressFamily, address: tuple[str, int], workers: int) -> list[socket.socket]:
    """Listen with one socket, or several that share a port."""
    sockets = [socket.create_server(address, family=family, backlog=_BACKLOG)]
    if workers > 1 and hasattr(socket, "SO_REUSEPORT"):
        # Sockets that share a port would also share it with another server: the first one was to find out.
        address = (address[0], sockets[0].getsockname()[1])
        sockets.pop().close()
        shared = partial(socket.create_server, address, family=family, backlog=_BACKLOG, reuse_port=True)
        sockets = [shared() for _ in range(workers)]
    for one in sockets:  # each connection takes this over: replies and events are sent at once
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sockets


def _is_stale(path: str) -> bool:
    """Whether there is a socket that nobody listens to. Raises OSError if there is anything else."""
    if not Path(path).exists():
        return False
    if not Path(path).is_socket():
        raise FileExistsError(
            errno.EEXIST, "there is a file that is no socket: remove it, or name another path"
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
    # A sandbox may not allow it, or no file be opened any more; then the queue is all that is served.
    with suppress(OSError):
        from ctypes import addressof, create_string_buffer  # only at the end

        memory = create_string_buffer(program, len(program))
        filter_ = pack("HP", len(_DROP_NEW_CONNECTIONS), addressof(memory))
        listening.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, filter_)


def _is_ip(one: socket.socket) -> bool:
    return one.family in (socket.AF_INET, socket.AF_INET6)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
