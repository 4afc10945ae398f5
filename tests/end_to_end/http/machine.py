"""
A machine that runs promptkit.service with nginx as its proxy, as described in docs/deploying.md and
docs/operating.md.

This program runs as root in its own namespaces for mounts, the network and processes. There, /etc is a copy,
and all files that the pages create disappear at the end. A few lines replace systemd. It prints the
observations of the machine's users and clients as JSON.
"""

import grp
import json
import os
import pwd
import re
import signal
import ssl
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any

from promptkit.protocol.key_ring import KeyRing
from promptkit.transports.state_keys import parse_keys
from tests.posting import modern_headers
from tests.units import INSTALLED, command_of, service_of
from tests.wire import initialize, modern, request

ROOT = Path(__file__).parents[3]

#: Files that the machine needs from its host.
MOUNTED = Path("/run/machine")
PATH = os.pathsep.join([str(MOUNTED / "bin"), "/usr/sbin", "/usr/bin", "/sbin", "/bin"])

HOST = "prompts.example"
CERTIFICATE = Path("/etc/ssl", HOST)
SECRETS = Path("/etc/promptkit")

#: The timeout for everything that this program waits for, in seconds.
PATIENCE = 20.0

#: The number of requests after which both of two workers have answered.
REQUESTS = 12


def run(*words: object, **settings: Any) -> str:
    """Run a program that must succeed, and return its output."""
    completed = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, timeout=PATIENCE, check=False, **settings
    )
    if completed.returncode:
        msg = f"{words} exited with {completed.returncode}: {completed.stdout}{completed.stderr}"
        raise RuntimeError(msg)
    return completed.stdout


def code_blocks(page: str, heading: str) -> list[str]:
    """Return the code blocks of a section."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    section = re.search(rf"^##+ {heading}\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
    assert section is not None, heading
    return re.findall(r"^```\n(.*?)^```$", section[1], re.MULTILINE | re.DOTALL)


def follow(block: str) -> None:
    """Run a code block as root in a checkout, as a reader of the page would."""
    run("bash", "-euo", "pipefail", "-c", block, cwd=ROOT, env={"PATH": PATH})


def mount_empty_folders() -> None:
    """Mount empty folders, and keep Python and the checkout accessible in them."""
    empty = ("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs")
    run(*empty, "/run")
    folders = sorted({Path(sys.base_prefix), Path(sys.prefix), ROOT})  # nested folders follow their parents
    for number, folder in enumerate(folders):
        (MOUNTED / str(number)).mkdir(parents=True)
        run("mount", "--bind", folder, MOUNTED / str(number))
    parents = {parent for folder in folders for parent in folder.parents}
    private = {folder for folder in parents if not folder.stat().st_mode & stat.S_IXOTH}
    for folder in sorted({Path("/opt"), Path("/srv"), Path("/var/log"), *private}):
        if folder.exists():  # otherwise its parent is already empty
            run(*empty, folder)
    for number, folder in enumerate(folders):
        if not folder.exists():
            folder.mkdir(parents=True)
            run("mount", "--bind", MOUNTED / str(number), folder)


def set_up_machine() -> None:
    """Set up a machine with promptkit, nginx and the certificate."""
    os.umask(0o022)
    mount_empty_folders()
    run("cp", "-a", "/etc", MOUNTED / "etc")
    run("mount", "--bind", MOUNTED / "etc", "/etc")
    Path("/var/log/nginx").mkdir()
    Path("/etc/nginx/sites-enabled/default").unlink(missing_ok=True)
    with Path("/etc/hosts").open("a") as hosts:
        hosts.write(f"127.0.0.1 {HOST}\n")
    promptkit = f'PYTHONPATH={ROOT} exec {sys.executable} -m promptkit "$@"'
    write_program(Path("/opt/promptkit-1/bin/promptkit"), promptkit)
    Path("/opt/promptkit").symlink_to("promptkit-1")
    write_program(MOUNTED / "bin" / "systemctl", "true")
    write_program(MOUNTED / "bin" / "python3", f'exec {sys.executable} "$@"')
    run("ip", "link", "set", "lo", "up", env={"PATH": PATH})
    CERTIFICATE.mkdir()
    run(
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}", "-days", 2),
        *("-keyout", CERTIFICATE / "privkey.pem", "-out", CERTIFICATE / "fullchain.pem"),
    )


def write_program(file: Path, line: str) -> None:
    """Write a shell script of one line."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{line}\n")
    file.chmod(0o755)


def as_user(name: str, *groups: str) -> list[str]:
    """Return the prefix that makes a command run as a user without root privileges."""
    user = pwd.getpwnam(name)
    group_ids = ",".join(str(grp.getgrnam(group).gr_gid) for group in groups)
    return [
        *("setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}"),
        f"--groups={group_ids}" if groups else "--clear-groups",
        *("--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"),
    ]


class Service:
    """The installed service, started like systemd does."""

    def __init__(self, unit: str = "/etc/systemd/system/promptkit.service") -> None:
        self.unit = service_of(Path(unit))
        self.log = Path("/run/journal", Path(unit).stem)
        self.log.parent.mkdir(exist_ok=True)

    def start(self, *without: str) -> None:
        """Create its folders and run its command, omitting the options in *without* and their values."""
        user = pwd.getpwnam(self.unit["User"])
        for kind, base in (("RuntimeDirectory", "/run"), ("LogsDirectory", "/var/log")):
            folder = Path(base, self.unit[kind])
            folder.mkdir(exist_ok=True)
            os.chown(folder, user.pw_uid, user.pw_gid)
            folder.chmod(int(self.unit.get(f"{kind}Mode", "0755"), 8))
        command = command_of(self.unit)
        for option in without:
            index = command.index(option)
            del command[index : index + 2]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*as_user(user.pw_name, *self.unit["SupplementaryGroups"].split()), *command],
                cwd="/",
                env={"PATH": PATH, "HOME": user.pw_dir, "USER": user.pw_name},
                umask=int(self.unit["UMask"], 8),
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        self.wait_for("serving at")

    def wait_for(self, text: str) -> None:
        """Wait until standard error contains *text*."""
        deadline = time.monotonic() + PATIENCE
        while text not in (log := self.log.read_text()):
            if self.process.poll() is not None or time.monotonic() > deadline:
                msg = f"{text!r} did not come: {log}"
                raise RuntimeError(msg)
            time.sleep(0.02)

    def stop(self) -> int:
        """Send SIGTERM to the main process, as with `KillMode=mixed`, and return the exit code."""
        assert self.unit["KillMode"] == "mixed"
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(float(self.unit["TimeoutStopSec"]))


def ask(
    token: str | None = None, session: str | None = None, message: Any = None
) -> tuple[int, str | None, bytes]:
    """Send a request through nginx, and return the status, the session id and the body."""
    message = message or modern(1, "prompts/get", {"name": "code_review", "arguments": {"code": "x = 1"}})
    fields = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    if "_meta" in message.get("params", {}):
        fields |= modern_headers(message)
    if token is not None:
        fields["authorization"] = f"Bearer {token}"
    if session is not None:
        fields["mcp-session-id"] = session
    context = ssl.create_default_context(cafile=str(CERTIFICATE / "fullchain.pem"))
    connection = HTTPSConnection(HOST, timeout=PATIENCE, context=context)
    connection.request("POST", "/mcp", json.dumps(message), fields)
    with connection.getresponse() as response:
        reply = response.status, response.getheader("mcp-session-id"), response.read()
    connection.close()
    return reply


def probe(path: str) -> int:
    """Return the status of a path on the local port of nginx."""
    connection = HTTPConnection("127.0.0.1", 9464, timeout=PATIENCE)
    connection.request("GET", path)
    with connection.getresponse() as response:
        return response.status


def becomes(expected: object, look: Callable[[], object], or_never: object = None) -> bool:
    """
    Return True once repeated calls of *look* settle on *expected*, and False once they settle on *or_never*.
    """
    deadline, repetitions, previous = time.monotonic() + PATIENCE, 0, None
    while time.monotonic() < deadline:
        result = look()
        repetitions, previous = repetitions + 1 if result == previous else 1, result
        if repetitions >= REQUESTS and result in (expected, or_never):
            return result == expected
    return False


def tokens() -> list[str]:
    """Return the tokens of Ada."""
    return [line.split()[1] for line in (SECRETS / "tokens").read_text().splitlines()]


def mode_and_owner(path: str | Path) -> list[str]:
    """Return the mode, user and group of a file."""
    status = Path(path).stat()
    return [
        f"{stat.S_IMODE(status.st_mode):03o}",
        pwd.getpwuid(status.st_uid).pw_name,
        grp.getgrgid(status.st_gid).gr_name,
    ]


def users_of_nginx() -> list[str]:
    """Return the users of nginx's workers."""
    users = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            if b"nginx: worker" in (process / "cmdline").read_bytes():
                users.add(pwd.getpwuid(process.stat().st_uid).pw_name)
    return sorted(users)


def failing_output(user: str, *command: str) -> str:
    """Return the last line of standard error of a command that runs as *user* and must fail."""
    completed = subprocess.run(
        [*as_user(user), *command], capture_output=True, text=True, check=False, env={"PATH": PATH}
    )
    return completed.stderr.strip().split("\n")[-1]


def observe(service: Service) -> dict[str, object]:
    """Return the permissions, statuses and audit of the running service."""
    path = command_of(service.unit)[command_of(service.unit).index("--uds") + 1]
    connect = f"import socket; socket.socket(socket.AF_UNIX).connect({path!r})"
    (token,) = tokens()
    answers = [ask(), ask(token[::-1]), ask(token)]
    return {
        "socket": mode_and_owner(path),
        "secrets": {file.name: mode_and_owner(file) for file in sorted(SECRETS.iterdir())},
        "nginx": users_of_nginx(),
        "statuses": [status for status, _, _ in answers],
        "prompt": b"x = 1" in answers[-1][2],
        "probes": [probe("/readyz"), probe("/healthz"), probe("/mcp")],
        "connecting": failing_output("nobody", "python3", "-c", connect),
        "reading": failing_output("nobody", "cat", str(SECRETS / "tokens")),
        "audit": mode_and_owner("/var/log/promptkit/audit.jsonl"),
        "subjects": [json.loads(line)["subject"] for line in Path("/var/log/promptkit/audit.jsonl").open()],
    }


def replace_the_token() -> list[bool]:
    """
    Follow the page, and return whether both tokens are valid, and whether the old one is rejected once
    removed.
    """
    (old,) = tokens()
    follow("\n".join(code_blocks("operating.md", "Tokens")))
    _, new = tokens()
    both = [becomes(200, lambda: ask(new)[0]), becomes(200, lambda: ask(old)[0])]
    run("sed", "-i", f"/{old}/d", SECRETS / "tokens")
    return [*both, becomes(401, lambda: ask(old)[0]), becomes(200, lambda: ask(new)[0])]


def replace_the_key() -> list[object]:
    """
    Follow the page, and return for each step the keys, whether the first one seals, and whether a session
    continues.
    """
    (token,) = tokens()
    (old,) = parse_keys((SECRETS / "state.keys").read_text())
    handshake, steps = initialize("2025-11-25"), []
    _, session, _ = ask(token, message=handshake)
    for block in code_blocks("operating.md", "Keys"):
        follow(block)
        time.sleep(1.1)  # each worker reads the file with its next request
        keys = parse_keys((SECRETS / "state.keys").read_text())
        first = key_of(KeyRing(keys[:1]).seal("p", 1))
        seals = becomes(first, lambda: key_of(ask(token, message=handshake)[1]))
        continues = becomes(200, lambda: ask(token, session, request(1, "prompts/list"))[0], or_never=404)
        steps.append([["old" if key == old else "new" for key in keys], seals, continues])
    return steps


def key_of(sealed: str | None) -> str | None:
    """Return the key id in a session id."""
    return sealed and sealed.split(".")[1]


def add_a_recipe() -> bool:
    """Copy a recipe into the folder, and return whether all workers then serve it."""
    (token,) = tokens()
    Path("/srv/prompts/later.py").write_text(
        "import promptkit\n\n@promptkit.prompt\ndef later(): return 'Later.'\n"
    )
    message = modern(1, "prompts/get", {"name": "later"})
    return becomes(expected=True, look=lambda: b"Later." in ask(token, message=message)[2])


def start_another_version() -> dict[str, object]:
    """Follow the page: start another version next to the service, and return its command and exit code."""
    Path("/run/systemd/system").mkdir(parents=True)
    start, answer = code_blocks("operating.md", "promptkit")[1].split("systemctl start promptkit-trial\n")
    write_program(Path("/opt/promptkit-2/bin/promptkit"), 'exec /opt/promptkit-1/bin/promptkit "$@"')
    follow(start)
    trial = Service("/run/systemd/system/promptkit-trial.service")
    trial.start()
    follow(answer)
    return {"command": command_of(trial.unit), "code": trial.stop(), "left": ask(*tokens())[0]}


def restart(service: Service) -> dict[str, object]:
    """Restart the service, also without access for nginx, and return exit codes and statuses."""
    (token,) = tokens()
    _, session, _ = ask(token, message=initialize("2025-11-25"))
    codes = [service.stop()]
    meanwhile = ask(token)[0]
    service.start()
    resumed = ask(token, session, request(1, "prompts/list"))[0]
    codes.append(service.stop())
    service.start("--uds-group", "--uds-mode")
    without_access = ask(token)[0]
    codes.append(service.stop())
    return {"codes": codes, "statuses": [meanwhile, resumed, without_access]}


def main() -> None:
    """Set up the machine, use it, and report the observations."""
    set_up_machine()
    _, secrets, units = code_blocks("deploying.md", "One machine")
    follow(secrets)
    if error := failing_output("promptkit", INSTALLED, "--version"):
        report({"skip": f"other users cannot run this Python: {error}"})
        return
    follow(units)
    service = Service()
    service.start()
    with behind_nginx():
        observations = {"around": observe(service), "token": replace_the_token(), "key": replace_the_key()}
        observations |= {
            "recipe": add_a_recipe(),
            "log": service.log.read_text(),
            "trial": start_another_version(),
        }
        observations |= {"restart": restart(service)}
    report(observations)


@contextmanager
def behind_nginx() -> Iterator[None]:
    """Run the installed nginx."""
    with subprocess.Popen(["nginx", "-g", "daemon off;"], env={"PATH": PATH}) as nginx:  # noqa: S607 (found in PATH)
        try:
            deadline = time.monotonic() + PATIENCE
            while not Path(
                "/run/nginx.pid"
            ).read_text():  # created empty by `nginx -t`; written once nginx listens
                assert time.monotonic() < deadline
                time.sleep(0.02)
            yield
        finally:
            nginx.terminate()


def report(observations: object) -> None:
    """Print the observations for the test."""
    sys.stdout.write(json.dumps(observations))


if __name__ == "__main__":
    main()
