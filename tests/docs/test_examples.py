"""
The systemd units in docs/examples, checked without a running systemd.

In `tests/end_to_end/http`, `test_one_machine.py` runs the service with nginx in front of it, and
`test_replicas.py` runs the other examples.
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
TIMEOUT = 20.0

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="systemd runs on Linux")
systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")


@pytest.fixture
def units(tmp_path):
    """A function that installs example units below a root folder and returns the root."""

    def install(*names):
        for name in names:
            file = tmp_path / "etc" / "systemd" / "system" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            example = DROP_IN if file.suffix == ".conf" else EXAMPLES / name
            file.write_text(example.read_text(encoding="utf-8").replace(INSTALLED, str(PROMPTKIT)))
        return tmp_path

    return install


def run_systemd(*arguments, root):
    """Run a systemd program and return its output and exit code."""
    folder = root / "etc" / "systemd" / "system"
    result = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    return result.stdout + result.stderr, result.returncode


@systemd
@pytest.mark.parametrize(
    "names",
    [
        ("promptkit.service",),
        ("promptkit.service", "promptkit.socket", "promptkit.service.d/socket.conf"),
    ],
    ids=["service", "socket"],
)
def test_units_are_valid(units, names):
    """`systemd-analyze verify` reports nothing for the service, alone or with its socket."""
    root = units(*names)
    command = ("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *names[:2])

    assert run_systemd(*command, root=root) == ("", 0)


@systemd
@pytest.mark.parametrize(
    ("name", "target"), [("promptkit.service", "multi-user"), ("promptkit.socket", "sockets")]
)
def test_unit_is_enabled(units, name, target):
    """`systemctl enable` makes the unit start at boot."""
    root = units(name)
    output, code = run_systemd("systemctl", f"--root={root}", "enable", name, root=root)

    assert code == 0, output
    link = root / "etc" / "systemd" / "system" / f"{target}.target.wants" / name
    assert str(link.readlink()) == f"/etc/systemd/system/{name}"


@systemd
def test_exposure_is_low(units):
    """`systemd-analyze security` rates the service's exposure below 2.5 of 10."""
    root = units("promptkit.service")
    command = ("systemd-analyze", "security", "--offline=true", "--threshold=25", "promptkit.service")

    output, code = run_systemd(*command, root=root)

    assert code == 0, output


def test_drop_in_changes_only_the_socket():
    """The drop-in for socket activation changes only the socket options, and the socket unit matches them."""
    command = command_of(service_of(SERVICE))
    options = dict(pairwise(command))
    socket_options = [
        "--uds",
        options["--uds"],
        "--uds-group",
        options["--uds-group"],
        "--uds-mode",
        options["--uds-mode"],
    ]
    socket_unit = read_unit(SOCKET)["Socket"]
    index = command.index("--uds")

    assert command_of(service_of(DROP_IN)) == [
        *command[:index],
        "--fd",
        "systemd",
        *command[index + len(socket_options) :],
    ]
    assert command[index : index + len(socket_options)] == socket_options
    assert (socket_unit["ListenStream"], socket_unit["SocketGroup"], socket_unit["SocketMode"]) == (
        options["--uds"],
        options["--uds-group"],
        f"0{options['--uds-mode']}",
    )
    assert socket_unit["SocketUser"] == service_of(SERVICE)["User"]


def test_service_listens_on_the_systemd_socket(tmp_path):
    """The service's command serves early connections on the systemd socket, and exits with 0 on SIGTERM."""
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "greet.py").write_text(
        'from promptkit import prompt\n@prompt\ndef greet() -> str:\n    """Greet."""\n    return "hello"\n'
    )
    for name, secret in {"state.keys": "0f" * 32, "tokens": f"ada {'0f' * 32}"}.items():
        (tmp_path / name).touch(mode=0o600)
        (tmp_path / name).write_text(secret)
    command = "\n".join(command_of(service_of(DROP_IN)))
    for documented, replacement in {
        INSTALLED: str(PROMPTKIT),
        "/srv/prompts": str(tmp_path / "prompts"),
        "/etc/promptkit": str(tmp_path),
        "/var/log/promptkit": str(tmp_path),
    }.items():
        assert documented in command
        command = command.replace(documented, replacement)
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as early:
        listening.bind(str(tmp_path / "socket"))
        listening.listen()
        early.settimeout(TIMEOUT)
        early.connect(str(tmp_path / "socket"))
        early.sendall(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        # Only the process itself can set LISTEN_PID to its own id, so it starts through a Python launcher.
        launcher = (
            "import os, sys; os.dup2(int(sys.argv[1]), 3); "
            "os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid())); "
            "os.execv(sys.argv[2], sys.argv[2:])"
        )
        arguments = [sys.executable, "-c", launcher, str(listening.fileno()), *command.split("\n")]
        with subprocess.Popen(arguments, pass_fds=[listening.fileno()], stderr=subprocess.PIPE) as process:
            try:
                response = http.client.HTTPResponse(early)
                response.begin()
                assert (response.status, b'"status":"ready"' in response.read()) == (200, True)
                process.send_signal(signal.SIGTERM)
                assert process.wait(TIMEOUT) == 0, process.stderr.read()
            finally:
                process.kill()
    assert (tmp_path / "audit.jsonl").exists()
