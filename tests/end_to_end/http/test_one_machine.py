"""
promptkit.service and nginx on one machine, by the commands of docs/deploying.md and docs/operating.md.

nginx runs as www-data, as Debian has it, and promptkit as a user of its own. `machine.py` is the machine, and
does what systemd would. It needs Linux, root, namespaces and nginx.
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
#: Where the page has another version listen.
SOCKET = "/run/promptkit-trial/prompts.sock"

ALONE = ("unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child")

pytestmark = [pytest.mark.slow, pytest.mark.installs, pytest.mark.timeout(180)]


def lacking():
    """What keeps this machine from having another one in it; None if nothing does."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return "another machine in this one needs Linux, and root"
    if missing := [name for name in NEEDED if shutil.which(name, path=PATH) is None]:
        return f"not installed: {', '.join(missing)}"
    if "www-data:" not in Path("/etc/group").read_text(encoding="utf-8"):
        return "nginx's group is not called www-data here"
    tried = subprocess.run([*ALONE, "true"], capture_output=True, text=True, check=False)
    return f"namespaces cannot be made: {tried.stderr.strip()}" if tried.returncode else None


@pytest.fixture(scope="module")
def seen():
    """What users and clients of the machine have seen."""
    if (reason := lacking()) is not None:
        pytest.skip(reason)
    command = [*ALONE, sys.executable, "-m", "tests.end_to_end.http.machine"]
    environment = {**os.environ, "PATH": PATH}
    settings = {"cwd": ROOT, "env": environment, "timeout": 170}
    ran = subprocess.run(command, capture_output=True, text=True, check=False, **settings)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    if "skip" in found:
        pytest.skip(found["skip"])
    return found


def test_the_socket_is_for_nginx_alone(seen):
    """
    It belongs to the service's user and to nginx's group, which is another user's. Nobody else may connect.
    """
    command = command_of(service_of(EXAMPLES / "promptkit.service"))

    assert seen["around"]["socket"] == [command[command.index("--uds-mode") + 1], "promptkit", "www-data"]
    assert seen["around"]["nginx"] == ["www-data"]
    assert seen["around"]["connecting"] == "PermissionError: [Errno 13] Permission denied"


def test_clients_need_a_token(seen):
    """Through nginx, who has none is refused, and so is who has a wrong one; the others get their prompt."""
    assert (seen["around"]["statuses"], seen["around"]["prompt"]) == ([401, 401, 200], True)
    assert seen["around"]["subjects"] == ["ada"]


def test_secrets_and_the_audit_are_read_by_few(seen):
    """The server may read the secrets and not change them; others may not even read them, nor the audit."""
    assert seen["around"]["secrets"] == {
        "state.keys": ["640", "root", "promptkit"],
        "tokens": ["640", "root", "promptkit"],
    }
    assert seen["around"]["audit"] == ["600", "promptkit", "promptkit"]
    assert seen["around"]["reading"] == "cat: /etc/promptkit/tokens: Permission denied"


def test_probes_are_for_this_machine(seen):
    """They are answered at a port of their own, where nothing else is."""
    assert seen["around"]["probes"] == [200, 200, 404]


def test_a_token_is_replaced(seen):
    """By the page's commands, both are taken, and then the new one alone, without a restart."""
    assert seen["token"] == [True, True, True, True]


def test_a_key_is_replaced(seen):
    """
    By the page's commands, the first key seals at each step, and a session goes on until its key is removed.
    """
    assert seen["key"] == [
        [["old", "new"], True, True],
        [["new", "old"], True, True],
        [["new"], True, False],
    ]


def test_a_recipe_is_added(seen):
    """
    Once it is in the folder, all workers serve it, and nothing is said on standard error but where that is.
    """
    assert seen["recipe"]
    assert seen["log"] == "promptkit: serving at unix:/run/promptkit/prompts.sock\n"


def test_another_version_is_tried(seen):
    """
    By the page's commands, it answers at a socket of its own, with the service's files; the service goes on.
    """
    own, trial = command_of(service_of(EXAMPLES / "promptkit.service")), seen["trial"]

    replaced = {own[0]: "/opt/promptkit-2/bin/promptkit", "/run/promptkit/prompts.sock": SOCKET}
    assert trial["command"] == [replaced.get(word, word) for word in own]
    assert (trial["code"], trial["left"]) == (0, 200)


def test_a_restart(seen):
    """
    It ends with 0, nginx answers 502 meanwhile, and sessions go on then. Without the options that give the
    socket to its group, nginx cannot use it.
    """
    assert seen["restart"] == {"codes": [0, 0, 0], "statuses": [502, 200, 502]}
