"""The units of systemd in docs/examples work. `tests/end_to_end/http/test_replicas.py` runs the rest."""

import configparser
import json
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
PROMPTKIT = Path(sys.executable).with_name("promptkit")
INSTALLED = "/opt/promptkit/bin/promptkit"

#: How long anything is waited for, in seconds. It is a bound, no figure.
PATIENCE = 20.0

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="systemd runs on Linux")


def unit(name):
    """Return what a unit says, by section and key."""
    found = configparser.ConfigParser(strict=False, interpolation=None, comment_prefixes=("#",))
    found.optionxform = str
    found.read(EXAMPLES / name, encoding="utf-8")
    return found


def test_systemd_minds_nothing(tmp_path):
    """
    `systemd-analyze verify` finds nothing to complain about in the two units.
    """
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    for name in ("promptkit.service", "promptkit.socket"):
        text = (EXAMPLES / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text.replace(INSTALLED, str(PROMPTKIT)), encoding="utf-8")
    command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", "promptkit.service"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_service_serves_at_the_socket(tmp_path):
    """
    The command of the service, started as systemd starts it, serves at the socket, with the key and the audit
    of the unit. Whoever connects before it runs, waits; and it ends with 0.
    """
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "greet.py").write_text(
        'from promptkit import prompt\n@prompt\ndef greet() -> str:\n    """Greet."""\n    return "hello"\n'
    )
    keys = tmp_path / "state.keys"
    keys.touch(mode=0o600)
    keys.write_text("0f" * 32)
    command = unit("promptkit.service")["Service"]["ExecStart"]
    for there, here in {
        INSTALLED: str(PROMPTKIT),
        "/srv/recipes": str(tmp_path / "recipes"),
        "${CREDENTIALS_DIRECTORY}": str(tmp_path),
        "/var/log/promptkit": str(tmp_path),
    }.items():
        assert there in command
        command = command.replace(there, here)
    host, _, port = unit("promptkit.socket")["Socket"]["ListenStream"].partition(":")
    assert (host, port) == ("127.0.0.1", "8000")
    with socket.create_server((host, 0)) as listening:
        # Python's own, as only the process itself can say that the socket is meant for it.
        launcher = (
            "import os, sys; os.dup2(int(sys.argv[1]), 3); "
            "os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid())); "
            "os.execv(sys.argv[2], sys.argv[2:])"
        )
        words = [sys.executable, "-c", launcher, str(listening.fileno()), *shlex.split(command)]
        with subprocess.Popen(words, pass_fds=[listening.fileno()], stderr=subprocess.PIPE) as process:
            try:
                url = f"http://127.0.0.1:{listening.getsockname()[1]}/readyz"
                assert json.load(urlopen(url, timeout=PATIENCE))["status"] == "ready"
                process.send_signal(signal.SIGTERM)
                assert process.wait(PATIENCE) == 0, process.stderr.read()
            finally:
                process.kill()
    assert (tmp_path / "audit.jsonl").exists()
