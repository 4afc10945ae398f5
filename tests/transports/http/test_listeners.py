"""The addresses, sockets and permissions of listeners."""

import os
import socket
import stat
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from promptkit.transports.http.sockets import (
    ListenError,
    listen_inherited,
    listen_tcp,
    listen_unix,
    systemd_descriptors,
)

unix_only = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no Unix sockets")
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="only Linux supports this")
as_root = pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() != 0, reason="only root can change its user"
)

#: A user and groups without a special meaning.
USER, GROUP, OTHER_GROUP = 61_234, 61_235, 61_236


def has_ipv6():
    """Return whether this machine can listen at ::1."""
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.fixture
def listen():
    """A function that opens TCP listeners, which are closed after the test."""
    opened = []

    def start(*arguments):
        listeners = listen_tcp(*arguments)
        opened.extend(listeners)
        return listeners

    yield start
    for listener in opened:
        listener.close()


class TestTcp:
    def test_port_0_is_replaced_in_the_url(self, listen):
        """With port 0, the URL contains the port that the system chose."""
        (listener,) = listen("127.0.0.1", 0)
        port = listener.socket_for(0).getsockname()[1]

        assert port > 0
        assert listener.url == f"http://127.0.0.1:{port}"

    @pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
    def test_ipv6(self, listen):
        """The URL has the IPv6 address in brackets, and the listener accepts no IPv4 connections."""
        (listener,) = listen("::1", 0)
        port = listener.socket_for(0).getsockname()[1]

        assert listener.url == f"http://[::1]:{port}"
        assert listener.is_local
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), 1)

    def test_host_name_with_several_addresses(self, listen):
        """A server for a host name with several addresses listens at all of them, on the same port."""
        listeners = listen("localhost", 0)

        assert all(listener.is_local for listener in listeners)
        assert len({listener.socket_for(0).getsockname()[1] for listener in listeners}) == 1

    @unix_only
    def test_each_worker_has_a_socket(self, listen):
        """The sockets of workers share a port."""
        (listener,) = listen("127.0.0.1", 0, 3)

        assert len({listener.socket_for(number) for number in range(3)}) == 3
        assert len({listener.socket_for(number).getsockname() for number in range(3)}) == 1

    @pytest.mark.parametrize("workers", [1, 2])
    @pytest.mark.parametrize("before", [1, 2])
    @unix_only
    def test_used_port_is_rejected(self, listen, before, workers):
        """Two servers never share a port by mistake, even with several workers."""
        (first,) = listen("127.0.0.1", 0, before)
        port = first.socket_for(0).getsockname()[1]

        with pytest.raises(ListenError) as error:
            listen("127.0.0.1", port, workers)
        assert str(error.value) == (
            f"cannot listen on 127.0.0.1, port {port}: another server is already listening there: "
            "stop it, or use another port"
        )

    @pytest.mark.parametrize(
        ("host", "reason"),
        [
            ("203.0.113.7", "cannot listen on 203.0.113.7, port 0: Cannot assign requested address"),
            ("no-such-host.invalid", "cannot listen on 'no-such-host.invalid': "),
        ],
    )
    def test_address_of_another_machine_is_rejected(self, listen, host, reason):
        """The error for an address of another machine names the address."""
        with pytest.raises(ListenError) as error:
            listen(host, 0)
        assert str(error.value).startswith(reason)

    @pytest.mark.parametrize("other_addresses", [["203.0.113.7"], ["203.0.113.7", "127.0.0.2"]])
    def test_used_address_is_reported_first(self, listen, monkeypatch, other_addresses):
        """If one address of a host name is in use, the error reports it, whatever the other addresses are."""
        (first,) = listen("127.0.0.1", 0)
        port = first.socket_for(0).getsockname()[1]
        addresses = [(socket.AF_INET, address) for address in ("127.0.0.1", *other_addresses)]
        monkeypatch.setattr("promptkit.transports.http.sockets._resolve_addresses", lambda *_: addresses)

        with pytest.raises(ListenError, match="another server is already listening there"):
            listen("prompts.example", port)

    @pytest.mark.parametrize(
        ("host", "local"),
        [("127.0.0.1", True), ("127.0.0.2", True), ("0.0.0.0", False)],  # noqa: S104
    )
    @linux_only
    def test_local_addresses(self, listen, host, local):
        """Only loopback addresses are local."""
        (listener,) = listen(host, 0)

        assert listener.is_local is local

    @unix_only
    def test_claimed_socket(self, listen):
        """A worker closes the sockets of the others, so that each socket is closed when its worker exits."""
        (listener,) = listen("127.0.0.1", 0, 2)
        claimed = listener.claim(1)

        assert claimed is listener.socket_for(1)
        assert [listener.socket_for(number).fileno() >= 0 for number in range(2)] == [False, True]


@unix_only
class TestUnix:
    def test_socket_file(self, tmp_path):
        """The socket file exists while the server listens, and is removed afterwards."""
        path = tmp_path / "socket"
        listener = listen_unix(str(path))

        assert path.is_socket()
        assert (listener.url, listener.is_local) == (f"unix:{path}", True)
        listener.close()
        assert not path.exists()

    def test_stale_socket_file_is_replaced(self, tmp_path):
        """A file that a killed server has left is replaced."""
        path = tmp_path / "socket"
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(str(path))
            stale.listen()
        listener = listen_unix(str(path))
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
        listener.close()

    def test_used_socket_file_is_kept(self, tmp_path):
        """A socket file that a running server uses is kept, and the server is not affected."""
        path = tmp_path / "socket"
        listener = listen_unix(str(path))

        with pytest.raises(ListenError) as error:
            listen_unix(str(path))
        assert str(error.value) == (
            f"cannot listen on {str(path)!r}: another server is already listening there: stop it, or use "
            "another path"
        )
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
        listener.close()

    def test_regular_file_is_kept(self, tmp_path):
        """A file that is not a socket is not removed."""
        path = tmp_path / "file"
        path.write_text("mine")

        with pytest.raises(ListenError) as error:
            listen_unix(str(path))
        assert str(error.value) == (
            f"cannot listen on {str(path)!r}: "
            "the path is a file that is not a socket: remove it, or use another path"
        )
        assert path.read_text() == "mine"

    @pytest.mark.parametrize("path", ["", "x" * 200, "no/such/folder/socket"])
    def test_invalid_path_is_rejected(self, path):
        """The error for an invalid path names the reason."""
        with pytest.raises(ListenError, match="cannot listen on"):
            listen_unix(path)

    def test_socket_file_of_a_successor_is_kept(self, tmp_path):
        """A server does not remove a file that another server has replaced."""
        path = tmp_path / "socket"
        first = listen_unix(str(path))
        path.unlink()
        second = listen_unix(str(path))

        first.close()

        assert path.is_socket()
        second.close()


def mode_and_group(path):
    """Return the mode and the group of a socket file."""
    status = path.lstat()
    return stat.S_IMODE(status.st_mode), status.st_gid


@pytest.fixture
def open_umask():
    """Set a umask that gives every user all permissions."""
    before = os.umask(0)
    yield
    assert os.umask(before) == 0, "the umask was changed"


@unix_only
@pytest.mark.usefixtures("open_umask")
class TestPermissions:
    @pytest.mark.parametrize(
        ("options", "mode"), [({}, 0o600), ({"mode": 0o660}, 0o660), ({"mode": 0o666}, 0o666)]
    )
    def test_mode(self, tmp_path, options, mode):
        """The socket has the requested mode regardless of the umask; by default, only its user has access."""
        path = tmp_path / "socket"
        listener = listen_unix(str(path), **options)

        assert mode_and_group(path) == (mode, os.getegid())
        listener.close()

    @pytest.mark.parametrize(("options", "mode"), [({}, 0o660), ({"mode": 0o600}, 0o600)])
    def test_group(self, tmp_path, options, mode):
        """
        The socket belongs to the group (a name or a number), which has access unless the mode excludes it.
        """
        import grp

        own = os.getegid()
        for number, name in enumerate((str(own), grp.getgrgid(own).gr_name)):
            path = tmp_path / f"socket{number}"
            listener = listen_unix(str(path), group=name, **options)

            assert mode_and_group(path) == (mode, own)
            listener.close()

    @as_root
    def test_permissions_are_never_wider_during_setup(self, tmp_path, monkeypatch):
        """The socket is private until its final permissions are set, even for the group of the process."""
        path, calls = tmp_path / "socket", []

        def record_calls(owner, name):
            original = getattr(owner, name)

            def call(*arguments, **options):
                result = original(*arguments, **options)
                calls.append((name, *mode_and_group(path)))
                return result

            monkeypatch.setattr(owner, name, call)

        class RecordingSocket(socket.socket):
            def bind(self, address):
                super().bind(address)
                calls.append(("bind", *mode_and_group(path)))

        monkeypatch.setattr(socket, "socket", RecordingSocket)
        record_calls(os, "chown")
        record_calls(Path, "chmod")
        listen_unix(str(path), 0o660, str(GROUP)).close()

        own = os.getegid()
        assert calls == [("bind", 0o600, own), ("chown", 0o600, GROUP), ("chmod", 0o660, GROUP)]

    def test_unknown_group_is_rejected(self, tmp_path):
        """The error names the group, and no socket file remains."""
        path = tmp_path / "socket"

        with pytest.raises(ListenError) as error:
            listen_unix(str(path), group="no-such-group")
        assert str(error.value) == (
            f"cannot listen on {str(path)!r}: there is no group 'no-such-group': "
            "use a name or number from `getent group`"
        )
        assert not path.exists()

    @as_root
    def test_group_of_other_users(self):
        """
        A user outside the group cannot assign the socket to it; the error contains a hint.
        """
        with TemporaryDirectory() as name:  # those of pytest are private to the user
            folder = Path(name)
            folder.chmod(0o777)
            outcomes = [listen_as_user(folder / "socket", group) for group in (GROUP, OTHER_GROUP)]

            assert outcomes == [
                f"0o660 {GROUP}",
                (
                    f"cannot listen on '{folder}/socket': "
                    f"the server's user cannot assign the socket to the group '{OTHER_GROUP}': "
                    "add the user to the group (systemd: SupplementaryGroups=), or start the server as root"
                ),
            ]
            assert list(folder.iterdir()) == []

    def test_symbolic_link_in_place_of_the_socket(self, tmp_path, monkeypatch):
        """The target of a link that replaces the socket keeps its permissions."""
        path, secret = tmp_path / "socket", tmp_path / "secret"
        secret.touch(mode=0o600)
        listen = socket.socket.listen

        def listen_and_replace(sock, backlog):
            listen(sock, backlog)
            path.unlink()
            path.symlink_to(secret)

        monkeypatch.setattr(socket.socket, "listen", listen_and_replace)
        with pytest.raises(ListenError, match="cannot listen on"):
            listen_unix(str(path), 0o666)
        assert mode_and_group(secret)[0] == 0o600


def listen_as_user(path, group):
    """Listen as a user in one group, and return the permissions or the error."""
    read_end, write_end = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.setgroups([GROUP])
            os.setgid(USER)
            os.setuid(USER)
            try:
                listener = listen_unix(str(path), group=str(group))
                os.write(write_end, "{:#o} {}".format(*mode_and_group(path)).encode())
                listener.close()
            except ListenError as error:
                os.write(write_end, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(write_end)
    with open(read_end) as answer:
        return answer.read()


@unix_only
class TestInherited:
    def test_other_descriptors_are_rejected(self, tmp_path):
        """Files, sockets that do not listen, and closed descriptors are rejected."""
        with (tmp_path / "file").open("w") as file, pytest.raises(ListenError, match="is not a socket"):
            listen_inherited(file.fileno())
        with pytest.raises(ListenError, match="descriptor 999 is not a socket"):
            listen_inherited(999)
        with socket.socket() as not_listening, pytest.raises(ListenError, match="not a listening socket"):
            listen_inherited(os.dup(not_listening.fileno()))

    @pytest.mark.parametrize(
        "variables", [{}, {"LISTEN_FDS": "1", "LISTEN_PID": "1"}, {"LISTEN_FDS": "0"}, {"LISTEN_FDS": "x"}]
    )
    def test_sockets_for_other_processes_are_ignored(self, monkeypatch, variables):
        """Variables for another process are ignored, and the error reports that no socket was passed."""
        for name, value in {"LISTEN_PID": str(os.getpid()), **variables}.items():
            monkeypatch.setenv(name, value)
        if not variables:
            monkeypatch.delenv("LISTEN_FDS", raising=False)

        with pytest.raises(ListenError) as error:
            systemd_descriptors()
        assert (
            str(error.value) == "systemd did not pass a socket: start this service through its .socket unit"
        )

    def test_systemd_descriptors(self, monkeypatch):
        """The descriptors start at 3, and child processes do not inherit the variables."""
        monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
        monkeypatch.setenv("LISTEN_FDS", "2")

        assert systemd_descriptors() == [3, 4]
        assert "LISTEN_FDS" not in os.environ
