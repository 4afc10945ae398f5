"""Listening sockets: for TCP one for each worker; a Unix socket, or one that is inherited, is for all."""

import errno
import os
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from struct import pack
from typing import Final

__all__ = ["ListenError", "Listener", "listen_inherited", "listen_tcp", "listen_unix", "systemd_descriptors"]

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
