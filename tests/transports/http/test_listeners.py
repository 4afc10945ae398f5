"""Where a server listens."""

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

unix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such sockets")
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux can do so")
as_root = pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() != 0, reason="only root becomes somebody else"
)

#: A user, and groups, of nobody in particular.
USER, GROUP, OTHERS = 61_234, 61_235, 61_236


def has_ipv6():
    """Whether this machine can listen at ::1."""
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.fixture
def listen():
    """A function that listens, and forgets it after the test."""
    made = []

    def start(*arguments):
        found = listen_tcp(*arguments)
        made.extend(found)
        return found

    yield start
    for listener in made:
        listener.close()


class TestTcp:
    def test_the_system_chooses_a_port(self, listen):
        """
        With port 0, the URL names the one that was chosen.
        """
        (listener,) = listen("127.0.0.1", 0)
        port = listener.of(0).getsockname()[1]

        assert port > 0
        assert listener.url == f"http://127.0.0.1:{port}"

    @pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
    def test_ipv6(self, listen):
        """
        An IPv6 address stands in brackets, and takes no IPv4 connections.
        """
        (listener,) = listen("::1", 0)
        port = listener.of(0).getsockname()[1]

        assert listener.url == f"http://[::1]:{port}"
        assert listener.is_local
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), 1)

    def test_a_name_stands_for_all_its_addresses(self, listen):
        """
        The port is the same at each of them.
        """
        listeners = listen("localhost", 0)

        assert all(listener.is_local for listener in listeners)
        assert len({listener.of(0).getsockname()[1] for listener in listeners}) == 1

    @unix
    def test_each_worker_has_a_socket(self, listen):
        """
        They share a port.
        """
        (listener,) = listen("127.0.0.1", 0, 3)

        assert len({listener.of(number) for number in range(3)}) == 3
        assert len({listener.of(number).getsockname() for number in range(3)}) == 1

    @pytest.mark.parametrize("workers", [1, 2])
    @pytest.mark.parametrize("before", [1, 2])
    @unix
    def test_a_port_that_is_taken(self, listen, before, workers):
        """
        Two servers never share a port by mistake, not even those with several workers.
        """
        (first,) = listen("127.0.0.1", 0, before)
        port = first.of(0).getsockname()[1]

        with pytest.raises(ListenError) as refused:
            listen("127.0.0.1", port, workers)
        assert str(refused.value) == (
            f"cannot listen at 127.0.0.1, port {port}: another server listens there: "
            "end it, or name another port"
        )

    @pytest.mark.parametrize(
        ("host", "reason"),
        [
            ("203.0.113.7", "cannot listen at 203.0.113.7, port 0: this machine has no such address"),
            ("no-such-host.invalid", "cannot listen at 'no-such-host.invalid': "),
        ],
    )
    def test_an_address_of_another_machine(self, listen, host, reason):
        """
        What cannot be listened at is named.
        """
        with pytest.raises(ListenError) as refused:
            listen(host, 0)
        assert str(refused.value).startswith(reason)

    @pytest.mark.parametrize("others", [["203.0.113.7"], ["203.0.113.7", "127.0.0.2"]])
    def test_an_address_that_is_in_use_among_others(self, listen, monkeypatch, others):
        """
        It is the reason that is told, whatever the other addresses of the name are.
        """
        (first,) = listen("127.0.0.1", 0)
        port = first.of(0).getsockname()[1]
        found = [(socket.AF_INET, address) for address in ("127.0.0.1", *others)]
        monkeypatch.setattr("promptkit.transports.http.sockets._addresses", lambda *_: found)

        with pytest.raises(ListenError, match="another server listens there"):
            listen("shelf.example", port)

    @pytest.mark.parametrize(
        ("host", "local"),
        [("127.0.0.1", True), ("127.0.0.2", True), ("0.0.0.0", False)],  # noqa: S104
    )
    @linux
    def test_what_is_local(self, listen, host, local):
        """
        Only what no other machine can reach.
        """
        (listener,) = listen(host, 0)

        assert listener.is_local is local

    @linux
    def test_nobody_connects_any_more(self, listen):
        """
        Who has connected is still accepted; who tries it then is not reset, but finds nobody.
        """
        (listener,) = listen("127.0.0.1", 0)
        address = listener.of(0).getsockname()
        with socket.create_connection(address, 5) as early:
            listener.stop_connecting()
            with pytest.raises(TimeoutError):
                socket.create_connection(address, 0.3)
            accepted, _ = listener.of(0).accept()
            early.sendall(b"sent")
            assert accepted.recv(4) == b"sent"
            accepted.close()


@unix
class TestUnix:
    def test_a_path(self, tmp_path):
        """
        It is there while somebody listens, and gone afterwards.
        """
        path = tmp_path / "socket"
        listener = listen_unix(str(path))

        assert path.is_socket()
        assert (listener.url, listener.is_local) == (f"unix:{path}", True)
        listener.close()
        assert not path.exists()

    def test_a_stale_one_is_replaced(self, tmp_path):
        """
        Nobody listens to what a server has left that was killed.
        """
        path = tmp_path / "socket"
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(path))
            left.listen()
        listener = listen_unix(str(path))
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
        listener.close()

    def test_one_that_is_in_use_is_not(self, tmp_path):
        """
        A server that runs goes on to run.
        """
        path = tmp_path / "socket"
        listener = listen_unix(str(path))

        with pytest.raises(ListenError) as refused:
            listen_unix(str(path))
        assert str(refused.value) == (
            f"cannot listen at {str(path)!r}: another server listens there: end it, or name another path"
        )
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
        listener.close()

    def test_a_file_is_not_removed(self, tmp_path):
        """
        What is no socket belongs to somebody else.
        """
        path = tmp_path / "file"
        path.write_text("mine")

        with pytest.raises(ListenError) as refused:
            listen_unix(str(path))
        assert str(refused.value) == (
            f"cannot listen at {str(path)!r}: "
            "there is a file that is not a socket: remove it, or name another path"
        )
        assert path.read_text() == "mine"

    @pytest.mark.parametrize("path", ["", "x" * 200, "no/such/folder/socket"])
    def test_a_path_that_cannot_be(self, path):
        """
        It is refused with a reason.
        """
        with pytest.raises(ListenError, match="cannot listen at"):
            listen_unix(path)

    def test_that_of_a_successor_stays(self, tmp_path):
        """
        If another server has taken the path meanwhile, it keeps it.
        """
        path = tmp_path / "socket"
        first = listen_unix(str(path))
        path.unlink()
        second = listen_unix(str(path))

        first.close()

        assert path.is_socket()
        second.close()


def access(path):
    """The mode and the group of a socket."""
    found = path.lstat()
    return stat.S_IMODE(found.st_mode), found.st_gid


@pytest.fixture
def everybodys_umask():
    """A process that would give everything that it makes to everybody."""
    before = os.umask(0)
    yield
    assert os.umask(before) == 0, "it is not what it was"


@unix
@pytest.mark.usefixtures("everybodys_umask")
class TestWhoMayConnect:
    @pytest.mark.parametrize(
        ("asked", "mode"), [({}, 0o600), ({"mode": 0o660}, 0o660), ({"mode": 0o666}, 0o666)]
    )
    def test_the_mode(self, tmp_path, asked, mode):
        """
        It is what was asked for, whatever the umask is; by default its user alone may connect.
        """
        path = tmp_path / "socket"
        listener = listen_unix(str(path), **asked)

        assert access(path) == (mode, os.getegid())
        listener.close()

    @pytest.mark.parametrize(("asked", "mode"), [({}, 0o660), ({"mode": 0o600}, 0o600)])
    def test_the_group(self, tmp_path, asked, mode):
        """
        A group that one belongs to gets the socket, by its name or number, and may connect unless a mode says
        that it may not.
        """
        import grp

        own = os.getegid()
        for number, name in enumerate((str(own), grp.getgrgid(own).gr_name)):
            path = tmp_path / f"socket{number}"
            listener = listen_unix(str(path), group=name, **asked)

            assert access(path) == (mode, own)
            listener.close()

    @as_root
    def test_it_is_never_more_open(self, tmp_path, monkeypatch):
        """
        From the moment at which it is there, nobody may connect who may not in the end: the group of the
        process neither, if the socket is for another one.
        """
        path, seen = tmp_path / "socket", []

        def noting(owner, name):
            original = getattr(owner, name)

            def call(*arguments, **options):
                result = original(*arguments, **options)
                seen.append((name, *access(path)))
                return result

            monkeypatch.setattr(owner, name, call)

        class Noted(socket.socket):
            def bind(self, address):
                super().bind(address)
                seen.append(("bind", *access(path)))

        monkeypatch.setattr(socket, "socket", Noted)
        noting(os, "chown")
        noting(Path, "chmod")
        listen_unix(str(path), 0o660, str(GROUP)).close()

        own = os.getegid()
        assert seen == [("bind", 0o600, own), ("chown", 0o600, GROUP), ("chmod", 0o660, GROUP)]

    def test_a_group_that_does_not_exist(self, tmp_path):
        """
        It is named, and nothing is left behind.
        """
        path = tmp_path / "socket"

        with pytest.raises(ListenError) as refused:
            listen_unix(str(path), group="no-such-group")
        assert str(refused.value) == (
            f"cannot listen at {str(path)!r}: there is no group 'no-such-group': "
            "name one that `getent group` lists, or its number"
        )
        assert not path.exists()

    @as_root
    def test_a_group_of_others(self):
        """
        Who does not belong to a group may not give it the socket: the error says what to do. A member may.
        """
        with TemporaryDirectory() as name:  # pytest's own are for the user alone
            folder = Path(name)
            folder.chmod(0o777)
            told = [as_a_user(folder / "socket", group) for group in (GROUP, OTHERS)]

            assert told == [
                f"0o660 {GROUP}",
                (
                    f"cannot listen at '{folder}/socket': its user may not give it to the group '{OTHERS}': "
                    "make it a member (systemd: SupplementaryGroups=), or start the server as root"
                ),
            ]
            assert list(folder.iterdir()) == []

    def test_a_link_in_its_place(self, tmp_path, monkeypatch):
        """
        What somebody puts into its place is not opened to others.
        """
        path, secret = tmp_path / "socket", tmp_path / "secret"
        secret.touch(mode=0o600)
        listen = socket.socket.listen

        def replaced(made, backlog):
            listen(made, backlog)
            path.unlink()
            path.symlink_to(secret)

        monkeypatch.setattr(socket.socket, "listen", replaced)
        with pytest.raises(ListenError, match="cannot listen at"):
            listen_unix(str(path), 0o666)
        assert access(secret)[0] == 0o600


def as_a_user(path, group):
    """Listen as a user who is in one group; return what came of it, or the error."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.setgroups([GROUP])
            os.setgid(USER)
            os.setuid(USER)
            try:
                listener = listen_unix(str(path), group=str(group))
                os.write(writing, "{:#o} {}".format(*access(path)).encode())
                listener.close()
            except ListenError as error:
                os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with open(reading) as answer:
        return answer.read()


@unix
class TestInherited:
    def test_what_is_no_listening_socket(self, tmp_path):
        """
        A file, a socket that does not listen, and nothing at all are refused.
        """
        with (tmp_path / "file").open("w") as file, pytest.raises(ListenError, match="is not a socket"):
            listen_inherited(file.fileno())
        with pytest.raises(ListenError, match="descriptor 999 is no socket"):
            listen_inherited(999)
        with socket.socket() as silent, pytest.raises(ListenError, match="does not listen"):
            listen_inherited(os.dup(silent.fileno()))

    @pytest.mark.parametrize(
        "said", [{}, {"LISTEN_FDS": "1", "LISTEN_PID": "1"}, {"LISTEN_FDS": "0"}, {"LISTEN_FDS": "x"}]
    )
    def test_systemd_has_passed_nothing(self, monkeypatch, said):
        """
        What was meant for another process is not taken.
        """
        for name, value in {"LISTEN_PID": str(os.getpid()), **said}.items():
            monkeypatch.setenv(name, value)
        if not said:
            monkeypatch.delenv("LISTEN_FDS", raising=False)

        with pytest.raises(ListenError) as refused:
            systemd_descriptors()
        assert str(refused.value) == "systemd has passed no socket: start this service by its .socket unit"

    def test_systemd_has_passed_two(self, monkeypatch):
        """
        They begin at 3. Child processes are not told.
        """
        monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
        monkeypatch.setenv("LISTEN_FDS", "2")

        assert systemd_descriptors() == [3, 4]
        assert "LISTEN_FDS" not in os.environ
