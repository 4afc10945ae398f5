"""
promptkit.service and nginx on one machine, with the commands of docs/deploying.md and docs/operating.md.

nginx runs as www-data, like on Debian, and promptkit as a separate user. `machine.py` is the machine, and
replaces systemd. The test needs Linux, root, namespaces and nginx.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.units import EXAMPLES, command_of, service_of

ROOT = Path(__file__).parents[3]
NEEDED = ("unshare", "mount", "setpriv", "useradd", "ip", "openssl", "nginx", "curl")
PATH = os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"])
#: The socket of the other version in the page.
SOCKET = "/run/promptkit-trial/prompts.sock"

IN_NAMESPACES = ("unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child")

pytestmark = [pytest.mark.slow, pytest.mark.installs, pytest.mark.timeout(180)]


def missing_requirement():
    """Return why the machine cannot run here; None if it can."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return "the machine needs Linux and root"
    if missing := [name for name in NEEDED if shutil.which(name, path=PATH) is None]:
        return f"not installed: {', '.join(missing)}"
    if "www-data:" not in Path("/etc/group").read_text(encoding="utf-8"):
        return "nginx's group is not called www-data here"
    completed = subprocess.run([*IN_NAMESPACES, "true"], capture_output=True, text=True, check=False)
    return f"namespaces cannot be created: {completed.stderr.strip()}" if completed.returncode else None


@pytest.fixture(scope="module")
def observations():
    """The observations of users and clients of the machine."""
    if (reason := missing_requirement()) is not None:
        pytest.skip(reason)
    command = [*IN_NAMESPACES, sys.executable, "-m", "tests.end_to_end.http.machine"]
    environment = {**os.environ, "PATH": PATH}
    settings = {"cwd": ROOT, "env": environment, "timeout": 170}
    completed = subprocess.run(command, capture_output=True, text=True, check=False, **settings)
    assert completed.returncode == 0, completed.stderr
    observed = json.loads(completed.stdout)
    if "skip" in observed:
        pytest.skip(observed["skip"])
    return observed


def test_only_nginx_can_use_the_socket(observations):
    """The socket belongs to the user of the service and the group of nginx; other users cannot connect."""
    command = command_of(service_of(EXAMPLES / "promptkit.service"))

    assert observations["around"]["socket"] == [
        command[command.index("--uds-mode") + 1],
        "promptkit",
        "www-data",
    ]
    assert observations["around"]["nginx"] == ["www-data"]
    assert observations["around"]["connecting"] == "PermissionError: [Errno 13] Permission denied"


def test_clients_need_a_token(observations):
    """Through nginx, requests with a missing or invalid token are rejected, and others are served."""
    assert (observations["around"]["statuses"], observations["around"]["prompt"]) == ([401, 401, 200], True)
    assert observations["around"]["subjects"] == ["ada"]


def test_permissions_of_secrets_and_audit(observations):
    """The server can read but not change the secrets; other users can read neither them nor the audit."""
    assert observations["around"]["secrets"] == {
        "state.keys": ["640", "root", "promptkit"],
        "tokens": ["640", "root", "promptkit"],
    }
    assert observations["around"]["audit"] == ["600", "promptkit", "promptkit"]
    assert observations["around"]["reading"] == "cat: /etc/promptkit/tokens: Permission denied"


def test_health_checks_are_local(observations):
    """Health checks are answered on a local port that serves nothing else."""
    assert observations["around"]["probes"] == [200, 200, 404]


def test_token_rotation(observations):
    """With the commands of the page, both tokens are valid, then only the new one, without a restart."""
    assert observations["token"] == [True, True, True, True]


def test_key_rotation(observations):
    """
    With the commands of the page, the first key seals at each step, and a session continues until its key is
    removed.
    """
    assert observations["key"] == [
        [["old", "new"], True, True],
        [["new", "old"], True, True],
        [["new"], True, False],
    ]


def test_added_recipe_is_served(observations):
    """All workers serve the new recipe, and standard error contains only the address."""
    assert observations["recipe"]
    assert observations["log"] == "promptkit: serving at unix:/run/promptkit/prompts.sock\n"


def test_trial_of_another_version(observations):
    """
    With the commands of the page, another version listens on its own socket with the same files, while the
    service continues.
    """
    command, trial = command_of(service_of(EXAMPLES / "promptkit.service")), observations["trial"]

    replacements = {command[0]: "/opt/promptkit-2/bin/promptkit", "/run/promptkit/prompts.sock": SOCKET}
    assert trial["command"] == [replacements.get(word, word) for word in command]
    assert (trial["code"], trial["left"]) == (0, 200)


def test_restart(observations):
    """
    The exit code is 0, nginx answers 502 in the meantime, and sessions continue. Without the options for the
    group of the socket, nginx cannot use it.
    """
    assert observations["restart"] == {"codes": [0, 0, 0], "statuses": [502, 200, 502]}
