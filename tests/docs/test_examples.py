"""
The systemd units in docs/examples, checked without a running systemd.

In `tests/end_to_end/http`, `test_one_machine.py` runs the service behind nginx, and `test_replicas.py` runs
the other examples.
"""

import http.client
import shutil
import signal
import socket
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.units import EXAMPLES, INSTALLED, command_of, read_unit, service_of

PROMPTKIT = Path(sys.executable).with_name("promptkit")
SERVICE, SOCKET, DROP_IN = (
    EXAMPLES / name for name in ("promptkit.service", "promptkit.socket", "promptkit-socket.conf")
)

#: Timeout of every wait, in seconds: an upper bound, not a measurement.
PATIENCE = 20.0

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="systemd runs on Linux")
systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")


@pytest.fixture
def units(tmp_path):
    """A function that installs example units below a root folder and returns the root."""

    def put(*names):
        for name in names:
            file = tmp_path / "etc" / "systemd" / "system" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            example = DROP_IN if file.suffix == ".conf" else EXAMPLES / name
            file.write_text(example.read_text(encoding="utf-8").replace(INSTALLED, str(PROMPTKIT)))
        return tmp_path

    return put


def systemd_says(*words, root):
    """Run a systemd program and return its output and exit code."""
    folder = root / "etc" / "systemd" / "system"
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr, done.returncode


@systemd
@pytest.mark.parametrize(
    "names",
    [
        ("promptkit.service",),
        ("promptkit.service", "promptkit.socket", "promptkit.service.d/socket.conf"),
    ],
    ids=["service", "socket"],
)
def test_systemd_minds_nothing(units, names):
    """`systemd-analyze verify` reports nothing for the service, alone or with its socket."""
    root = units(*names)
    command = ("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *names[:2])

    assert systemd_says(*command, root=root) == ("", 0)


@systemd
@pytest.mark.parametrize(
    ("name", "target"), [("promptkit.service", "multi-user"), ("promptkit.socket", "sockets")]
)
def test_it_is_enabled(units, name, target):
    """`systemctl enable` makes the unit start at boot."""
    root = units(name)
    said, code = systemd_says("systemctl", f"--root={root}", "enable", name, root=root)

    assert code == 0, said
    link = root / "etc" / "systemd" / "system" / f"{target}.target.wants" / name
    assert str(link.readlink()) == f"/etc/systemd/system/{name}"


@systemd
def test_little_is_exposed(units):
    """`systemd-analyze security` rates the service's exposure below 2.5 of 10."""
    root = units("promptkit.service")
    command = ("systemd-analyze", "security", "--offline=true", "--threshold=25", "promptkit.service")

    said, code = systemd_says(*command, root=root)

    assert code == 0, said


def test_a_socket_of_systemd_changes_nothing_else():
    """The drop-in for socket activation changes only the socket options, and the socket unit matches them."""
    command = command_of(service_of(SERVICE))
    asked = dict(pairwise(command))
    own = ["--uds", asked["--uds"], "--uds-group", asked["--uds-group"], "--uds-mode", asked["--uds-mode"]]
    held = read_unit(SOCKET)["Socket"]
    place = command.index("--uds")

    assert command_of(service_of(DROP_IN)) == [
        *command[:place],
        "--fd",
        "systemd",
        *command[place + len(own) :],
    ]
    assert command[place : place + len(own)] == own
    assert (held["ListenStream"], held["SocketGroup"], held["SocketMode"]) == (
        asked["--uds"],
        asked["--uds-group"],
        f"0{asked['--uds-mode']}",
    )
    assert held["SocketUser"] == service_of(SERVICE)["User"]


def test_the_service_serves_at_the_socket(tmp_path):
    """The service's command serves early connections on the systemd socket, and SIGTERM ends it with 0."""
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "greet.py").write_text(
        'from promptkit import prompt\n@prompt\ndef greet() -> str:\n    """Greet."""\n    return "hello"\n'
    )
    for name, secret in {"state.keys": "0f" * 32, "tokens": f"ada {'0f' * 32}"}.items():
        (tmp_path / name).touch(mode=0o600)
        (tmp_path / name).write_text(secret)
    command = "\n".join(command_of(service_of(DROP_IN)))
    for there, here in {
        INSTALLED: str(PROMPTKIT),
        "/srv/prompts": str(tmp_path / "prompts"),
        "/etc/promptkit": str(tmp_path),
        "/var/log/promptkit": str(tmp_path),
    }.items():
        assert there in command
        command = command.replace(there, here)
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as early:
        listening.bind(str(tmp_path / "socket"))
        listening.listen()
        early.settimeout(PATIENCE)
        early.connect(str(tmp_path / "socket"))
        early.sendall(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        # Only the process itself can set LISTEN_PID to its own id, so it starts through a Python launcher.
        launcher = (
            "import os, sys; os.dup2(int(sys.argv[1]), 3); "
            "os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid())); "
            "os.execv(sys.argv[2], sys.argv[2:])"
        )
        words = [sys.executable, "-c", launcher, str(listening.fileno()), *command.split("\n")]
        with subprocess.Popen(words, pass_fds=[listening.fileno()], stderr=subprocess.PIPE) as process:
            try:
                answer = http.client.HTTPResponse(early)
                answer.begin()
                assert (answer.status, b'"status":"ready"' in answer.read()) == (200, True)
                process.send_signal(signal.SIGTERM)
                assert process.wait(PATIENCE) == 0, process.stderr.read()
            finally:
                process.kill()
    assert (tmp_path / "audit.jsonl").exists()
