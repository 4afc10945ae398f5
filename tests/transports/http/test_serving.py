"""`promptkit serve --http` as a process: its addresses, signals and options."""

import os
import signal
import socket
import sys
import time

import pytest

from tests.transports.http.conftest import GREET, PATIENCE, Connection

unix_only = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no Unix sockets")

#: Starts a server like systemd does: with the socket as descriptor 3, and with an unchanged process id.
AS_SYSTEMD = """
import os, sys
passed = max(map(int, filter(lambda name: os.path.exists(f"/dev/fd/{name}"), os.listdir("/dev/fd"))))
os.dup2(passed, 3)
os.environ |= {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())}
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def test_no_auth_allows_every_address(serve):
    """With `--no-auth`, the server can listen on all addresses."""
    server = serve("--http", "0.0.0.0:0", "--no-auth")
    port = int(server.wait_for(r"http://0\.0\.0\.0:(\d+)/mcp")[1])

    with Connection(socket.create_connection(("127.0.0.1", port), PATIENCE)) as connection:
        assert connection.ask().status == 200


def test_all_urls_are_reported_in_one_line(serve, tmp_path):
    """Standard error has one line once the server listens, and there is one process."""
    server = serve("--http", "0", "--uds", str(tmp_path / "socket"))
    _, port = server.address

    assert server.get()["pid"] == server.process.pid

    assert (
        server.stderr()
        == f"promptkit: serving at http://127.0.0.1:{port}/mcp and unix:{tmp_path / 'socket'}\n"
    )


@unix_only
def test_unix_socket(serve, tmp_path):
    """The server listens on the socket, and removes it on exit."""
    path = tmp_path / "socket"
    server = serve("--uds", str(path), "--workers", "2")
    server.wait_for("serving at")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(path))
        assert Connection(sock).ask().status == 200
    code, _ = server.stop()

    assert (code, path.exists()) == (0, False)


@unix_only
@pytest.mark.parametrize("workers", ["1", "2"])
def test_signal_right_after_the_start(serve_promptkit, tmp_path, workers):
    """
    Once the server has reported its address, a signal stops it with exit code 0, and no socket file remains.
    """
    path = tmp_path / "socket"
    for _ in range(2):
        server = serve_promptkit("--uds", str(path), "--workers", workers, greet=GREET)
        code, _ = server.stop()
        assert (code, path.exists()) == (0, False)


@unix_only
@pytest.mark.parametrize("workers", ["1", "2"])
def test_signal_while_the_address_is_reported(serve, tmp_path, workers):
    """A signal while the server reports its address stops it properly as well."""
    launcher = (
        "import os, runpy, signal, sys\n"
        "from promptkit.cli import serve_http\n"
        "write = serve_http.say\n"
        "def say(text):\n"
        "    write(text)\n"
        "    if text.startswith('serving at'):\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "serve_http.say = say\n"
        "sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    path = tmp_path / "socket"
    server = serve("--uds", str(path), "--workers", workers, launcher=launcher)

    assert (server.process.wait(PATIENCE), path.exists()) == (0, False)


@unix_only
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_signal_while_recipes_load(serve, tmp_path, name):
    """On a signal while recipes load, the process exits, and the socket file is removed."""
    path = tmp_path / "socket"
    source = f"import os, signal, time\nos.kill(os.getpid(), signal.{name})\ntime.sleep(60)\n"
    server = serve("--uds", str(path), source=source)

    assert server.process.wait(PATIENCE) in (-getattr(signal, name), 128 + getattr(signal, name))
    assert not path.exists()


@unix_only
@pytest.mark.parametrize(("options", "mode"), [([], 0o600), (["--uds-mode", "0660"], 0o660)])
def test_mode_of_a_unix_socket(serve, tmp_path, options, mode):
    """The socket has the requested mode regardless of the umask; by default, only its user has access."""
    path = tmp_path / "socket"
    server = serve("--uds", str(path), *options, umask=0)
    server.wait_for("serving at")

    assert path.stat().st_mode & 0o777 == mode


@unix_only
def test_inherited_socket(serve):
    """Connections that arrive between two servers wait in the queue of the socket, and none is refused."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        options = ("--fd", str(listening.fileno()), "--workers", "2")
        first = serve(*options, pass_fds=[listening.fileno()])
        assert first.get()["path"] == "/"
        assert first.stop()[0] == 0
        with first.connect() as waiting:
            waiting.request()
            second = serve(*options, pass_fds=[listening.fileno()])
            assert waiting.reply().status == 200
        assert second.get()["path"] == "/"


@unix_only
def test_systemd_socket(serve):
    """With `--fd systemd`, the server listens on the socket that systemd has passed."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = serve(
            "--fd", "systemd", "--workers", "2", launcher=AS_SYSTEMD, pass_fds=[listening.fileno()]
        )
        assert server.get()["path"] == "/"
        assert server.address == listening.getsockname()


@unix_only
def test_single_process_reloads(serve, tmp_path):
    """A single process reloads changed recipes, except with `--no-watch`."""
    watching, static = serve("--http", "0"), serve("--http", "0", "--no-watch")
    assert watching.get()["prompts"] == static.get()["prompts"] == ["greet"]
    (tmp_path / "recipes" / "more.py").write_text(
        "from promptkit import prompt\n\n@prompt\ndef more():\n    return 'More.'\n"
    )
    deadline = time.monotonic() + PATIENCE
    while watching.get()["prompts"] != ["greet", "more"]:
        assert time.monotonic() < deadline

    assert static.get()["prompts"] == ["greet"]


@unix_only
def test_blocked_standard_error(serve, tmp_path):
    """An unread pipe at standard error blocks neither requests nor the exit."""
    path = tmp_path / "socket"
    read_end, write_end = os.pipe()
    server = serve("--uds", str(path), "--workers", "2", stderr=write_end)
    os.close(write_end)
    assert b"serving at" in os.read(read_end, 4096)
    for _ in range(4):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(PATIENCE)
            sock.connect(str(path))
            assert Connection(sock).ask("/print").status == 200

    assert server.stop()[0] == 0
    os.close(read_end)


def test_threads_of_recipes_are_reported(serve):
    """The server reports that threads that a recipe starts at import do not run in workers."""
    source = """
    import threading
    from promptkit import prompt

    threading.Thread(target=threading.Event().wait, daemon=True).start()

    @prompt
    def greet():
        return "Hello."
    """
    server = serve("--http", "0", "--workers", "2", source=source)

    assert server.get()["prompts"] == ["greet"]
    server.wait_for("recipes started threads while they were imported: these do not run in the workers")


def test_strict_server_does_not_start_with_errors(serve):
    """A strict server with errors does not start, and exits with code 1."""
    server = serve(
        "--http", "0", "--strict", source="from promptkit import prompt\n\n@prompt\ndef bad(x): ...\n"
    )

    assert server.process.wait(PATIENCE) == 1
    assert "nothing is served because of --strict" in server.stderr()
