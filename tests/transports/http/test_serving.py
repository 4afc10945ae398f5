"""`promptkit serve --http` as a process: where it serves, and what."""

import os
import signal
import socket
import sys
import time

import pytest

from tests.transports.http.conftest import GREET, PATIENCE, Connection

unix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such sockets")

#: Starts a server as systemd does: with the socket as descriptor 3, and in a process that keeps its number.
AS_SYSTEMD = """
import os, sys
passed = max(map(int, filter(lambda name: os.path.exists(f"/dev/fd/{name}"), os.listdir("/dev/fd"))))
os.dup2(passed, 3)
os.environ |= {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())}
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def test_everybody(serve):
    """With --no-auth, every address is served."""
    served = serve("--http", "0.0.0.0:0", "--no-auth")
    port = int(served.wait_for(r"http://0\.0\.0\.0:(\d+)/mcp")[1])

    with Connection(socket.create_connection(("127.0.0.1", port), PATIENCE)) as connection:
        assert connection.ask().status == 200


def test_one_line_names_all_urls(serve, tmp_path):
    """Standard error has one line, when all is there."""
    served = serve("--http", "0", "--uds", str(tmp_path / "socket"))
    _, port = served.address

    assert (
        served.said() == f"promptkit: serving at http://127.0.0.1:{port}/mcp and unix:{tmp_path / 'socket'}\n"
    )


@unix
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_unix_socket(serve, tmp_path, workers):
    """It serves, and is gone after the end."""
    path = tmp_path / "socket"
    served = serve("--uds", str(path), "--workers", workers)
    served.wait_for("serving at")
    with socket.socket(socket.AF_UNIX) as made:
        made.connect(str(path))
        assert Connection(made).ask().status == 200
    code, _ = served.end()

    assert (code, path.exists()) == (0, False)


@unix
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_signal_right_after_the_line(started, tmp_path, workers):
    """
    The server is announced once a signal ends it properly: the exit code is 0, and no socket file is left.
    """
    path = tmp_path / "socket"
    for _ in range(10):
        served = started("--uds", str(path), "--workers", workers, greet=GREET)
        code, _ = served.end()
        assert (code, path.exists()) == (0, False)


@unix
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_signal_at_the_moment_of_the_line(serve, tmp_path, workers):
    """Not even a signal that comes while the line is written ends the process by itself."""
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
    served = serve("--uds", str(path), "--workers", workers, launcher=launcher)

    assert (served.process.wait(PATIENCE), path.exists()) == (0, False)


@unix
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_while_recipes_load(serve, tmp_path, name):
    """It ends the process, and removes the socket file, too."""
    path = tmp_path / "socket"
    source = f"import os, signal, time\nos.kill(os.getpid(), signal.{name})\ntime.sleep(60)\n"
    served = serve("--uds", str(path), source=source)

    assert served.process.wait(PATIENCE) in (-getattr(signal, name), 128 + getattr(signal, name))
    assert not path.exists()


@unix
@pytest.mark.parametrize(
    ("options", "mode"), [([], 0o600), (["--uds-mode", "660"], 0o660), (["--uds-mode", "0666"], 0o666)]
)
def test_who_may_connect_to_a_unix_socket(serve, tmp_path, options, mode):
    """It has the mode that was asked for, else one that lets in its user alone, whatever the umask is."""
    path = tmp_path / "socket"
    served = serve("--uds", str(path), *options, umask=0)
    served.wait_for("serving at")

    assert path.stat().st_mode & 0o777 == mode


@unix
@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_inherited_socket(serve, workers):
    """Its holder finds what comes after the end in its queue: nothing is refused in between."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        options = ("--fd", str(held.fileno()), "--workers", workers)
        first = serve(*options, pass_fds=[held.fileno()])
        assert first.get()["path"] == "/"
        assert first.end()[0] == 0
        with first.connect() as waiting:
            waiting.request()
            second = serve(*options, pass_fds=[held.fileno()])
            assert waiting.reply().status == 200
        assert second.get()["path"] == "/"


@unix
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_socket_of_systemd(serve, workers):
    """A service that is started by its socket says --fd systemd."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        served = serve("--fd", "systemd", "--workers", workers, launcher=AS_SYSTEMD, pass_fds=[held.fileno()])
        assert served.get()["path"] == "/"
        assert served.address == held.getsockname()


@unix
def test_a_change_is_served(serve, tmp_path):
    """A single process reloads, too, and with --no-watch it does not."""
    watching, still = serve("--http", "0"), serve("--http", "0", "--no-watch")
    assert watching.get()["prompts"] == still.get()["prompts"] == ["greet"]
    (tmp_path / "recipes" / "more.py").write_text(
        "from promptkit import prompt\n\n@prompt\ndef more():\n    return 'More.'\n"
    )
    until = time.monotonic() + PATIENCE
    while watching.get()["prompts"] != ["greet", "more"]:
        assert time.monotonic() < until

    assert still.get()["prompts"] == ["greet"]


@unix
@pytest.mark.parametrize("workers", ["1", "2"])
def test_nobody_reads_standard_error(serve, tmp_path, workers):
    """What is printed and not read keeps no worker from serving, and none from ending."""
    path = tmp_path / "socket"
    reading, writing = os.pipe()
    served = serve("--uds", str(path), "--workers", workers, stderr=writing)
    os.close(writing)
    assert b"serving at" in os.read(reading, 4096)
    for _ in range(4):
        with socket.socket(socket.AF_UNIX) as made:
            made.settimeout(PATIENCE)
            made.connect(str(path))
            assert Connection(made).ask("/print").status == 200

    assert served.end()[0] == 0
    os.close(reading)


def test_threads_of_recipes(serve):
    """What a recipe starts at import does not run in workers, which is said."""
    source = """
    import threading
    from promptkit import prompt

    threading.Thread(target=threading.Event().wait, daemon=True).start()

    @prompt
    def greet():
        return "Hello."
    """
    served = serve("--http", "0", "--workers", "2", source=source)

    assert served.get()["prompts"] == ["greet"]
    served.wait_for("recipes have started threads at import: these do not run in the workers")


def test_strict(serve):
    """With --strict, faults keep everything from being served, with exit code 1."""
    served = serve(
        "--http", "0", "--strict", source="from promptkit import prompt\n\n@prompt\ndef bad(x): ...\n"
    )

    assert served.process.wait(PATIENCE) == 1
    assert "nothing is served because of --strict" in served.said()
