"""
A machine on which promptkit.service runs behind nginx, as docs/deploying.md and docs/operating.md say.

It is run as a program, by root, in namespaces of its own for mounts, the network and processes. There, /etc
is a copy, and what the pages make is gone at the end. What systemd would do is done by few lines. It prints
what its users and clients see, as JSON.
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
from promptkit.transports.secret_files import read_keys
from tests.posting import agreeing
from tests.units import INSTALLED, command_of, service_of
from tests.wire import initialize, modern, request

ROOT = Path(__file__).parents[3]

#: What is needed of the other machine.
HELD = Path("/run/machine")
PATH = os.pathsep.join([str(HELD / "bin"), "/usr/sbin", "/usr/bin", "/sbin", "/bin"])

HOST = "prompts.example"
CERTIFICATE = Path("/etc/ssl", HOST)
SECRETS = Path("/etc/promptkit")

#: How long anything is waited for, in seconds. It is a bound, no figure.
PATIENCE = 20.0

#: How often a server of two workers is asked, so that both have answered.
OFTEN = 12


def run(*words: object, **settings: Any) -> str:
    """Run a program, which must not fail; return what it prints."""
    ran = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, timeout=PATIENCE, check=False, **settings
    )
    if ran.returncode:
        msg = f"{words} ended with {ran.returncode}: {ran.stdout}{ran.stderr}"
        raise RuntimeError(msg)
    return ran.stdout


def blocks(page: str, heading: str) -> list[str]:
    """Return the commands of a section, block by block."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = re.search(rf"^##+ {heading}\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, heading
    return re.findall(r"^```\n(.*?)^```$", found[1], re.MULTILINE | re.DOTALL)


def follow(block: str) -> None:
    """Run a block as who reads the page would, as root, in a checkout."""
    run("bash", "-euo", "pipefail", "-c", block, cwd=ROOT, env={"PATH": PATH})


def make_room() -> None:
    """Put empty folders over some, with Python and the checkout in them where they hide these."""
    empty = ("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs")
    run(*empty, "/run")
    kept = sorted({Path(sys.base_prefix), Path(sys.prefix), ROOT})  # what is in another comes after that
    for number, folder in enumerate(kept):
        (HELD / str(number)).mkdir(parents=True)
        run("mount", "--bind", folder, HELD / str(number))
    above = {parent for folder in kept for parent in folder.parents}
    closed = {folder for folder in above if not folder.stat().st_mode & stat.S_IXOTH}
    for folder in sorted({Path("/opt"), Path("/srv"), Path("/var/log"), *closed}):
        if folder.exists():  # else it is in one that is empty now
            run(*empty, folder)
    for number, folder in enumerate(kept):
        if not folder.exists():
            folder.mkdir(parents=True)
            run("mount", "--bind", HELD / str(number), folder)


def make_a_machine() -> None:
    """Make a machine with promptkit, nginx and the certificate."""
    os.umask(0o022)
    make_room()
    run("cp", "-a", "/etc", HELD / "etc")
    run("mount", "--bind", HELD / "etc", "/etc")
    Path("/var/log/nginx").mkdir()
    Path("/etc/nginx/sites-enabled/default").unlink(missing_ok=True)
    with Path("/etc/hosts").open("a") as hosts:
        hosts.write(f"127.0.0.1 {HOST}\n")
    promptkit = f'PYTHONPATH={ROOT} exec {sys.executable} -m promptkit "$@"'
    program(Path("/opt/promptkit-1/bin/promptkit"), promptkit)
    Path("/opt/promptkit").symlink_to("promptkit-1")
    program(HELD / "bin" / "systemctl", "true")
    program(HELD / "bin" / "python3", f'exec {sys.executable} "$@"')
    run("ip", "link", "set", "lo", "up", env={"PATH": PATH})
    CERTIFICATE.mkdir()
    run(
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}", "-days", 2),
        *("-keyout", CERTIFICATE / "privkey.pem", "-out", CERTIFICATE / "fullchain.pem"),
    )


def program(file: Path, line: str) -> None:
    """Write a program of one line."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{line}\n")
    file.chmod(0o755)


def as_user(name: str, *groups: str) -> list[str]:
    """Return what comes before a command that a user runs, with nothing of what root may do."""
    user = pwd.getpwnam(name)
    others = ",".join(str(grp.getgrnam(group).gr_gid) for group in groups)
    return [
        *("setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}"),
        f"--groups={others}" if groups else "--clear-groups",
        *("--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"),
    ]


class Service:
    """The service that was installed, started as systemd starts it."""

    def __init__(self, unit: str = "/etc/systemd/system/promptkit.service") -> None:
        self.unit = service_of(Path(unit))
        self.log = Path("/run/journal", Path(unit).stem)
        self.log.parent.mkdir(exist_ok=True)

    def start(self, *without: str) -> None:
        """Make its folders, and run its command; leave out some options, each with its value."""
        user = pwd.getpwnam(self.unit["User"])
        for kind, base in (("RuntimeDirectory", "/run"), ("LogsDirectory", "/var/log")):
            folder = Path(base, self.unit[kind])
            folder.mkdir(exist_ok=True)
            os.chown(folder, user.pw_uid, user.pw_gid)
            folder.chmod(int(self.unit.get(f"{kind}Mode", "0755"), 8))
        command = command_of(self.unit)
        for option in without:
            place = command.index(option)
            del command[place : place + 2]
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
        """Wait until standard error has a text."""
        until = time.monotonic() + PATIENCE
        while text not in (said := self.log.read_text()):
            if self.process.poll() is not None or time.monotonic() > until:
                msg = f"{text!r} did not come: {said}"
                raise RuntimeError(msg)
            time.sleep(0.02)

    def stop(self) -> int:
        """Tell its main process to end, as `KillMode=mixed` has it; return the exit code."""
        assert self.unit["KillMode"] == "mixed"
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(float(self.unit["TimeoutStopSec"]))


def ask(
    token: str | None = None, session: str | None = None, message: Any = None
) -> tuple[int, str | None, bytes]:
    """Ask nginx as a client does; return the status, the session id that comes, and the body."""
    message = message or modern(1, "prompts/get", {"name": "code_review", "arguments": {"code": "x = 1"}})
    fields = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    if "_meta" in message.get("params", {}):
        fields |= agreeing(message)
    if token is not None:
        fields["authorization"] = f"Bearer {token}"
    if session is not None:
        fields["mcp-session-id"] = session
    context = ssl.create_default_context(cafile=str(CERTIFICATE / "fullchain.pem"))
    connection = HTTPSConnection(HOST, timeout=PATIENCE, context=context)
    connection.request("POST", "/mcp", json.dumps(message), fields)
    with connection.getresponse() as answer:
        found = answer.status, answer.getheader("mcp-session-id"), answer.read()
    connection.close()
    return found


def probe(path: str) -> int:
    """Ask nginx for what is for this machine alone; return the status."""
    connection = HTTPConnection("127.0.0.1", 9464, timeout=PATIENCE)
    connection.request("GET", path)
    with connection.getresponse() as answer:
        return answer.status


def becomes(expected: object, look: Callable[[], object], or_never: object = None) -> bool:
    """Whether something is as expected so often that each worker has said so; not if each says otherwise."""
    until, seen, before = time.monotonic() + PATIENCE, 0, None
    while time.monotonic() < until:
        found = look()
        seen, before = seen + 1 if found == before else 1, found
        if seen >= OFTEN and found in (expected, or_never):
            return found == expected
    return False


def tokens() -> list[str]:
    """The tokens of Ada."""
    return [line.split()[1] for line in (SECRETS / "tokens").read_text().splitlines()]


def owners(path: str | Path) -> list[str]:
    """Return the mode of a file, its user and its group."""
    found = Path(path).stat()
    return [
        f"{stat.S_IMODE(found.st_mode):03o}",
        pwd.getpwuid(found.st_uid).pw_name,
        grp.getgrgid(found.st_gid).gr_name,
    ]


def users_of_nginx() -> list[str]:
    """The users that run nginx's workers."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            if b"nginx: worker" in (process / "cmdline").read_bytes():
                found.add(pwd.getpwuid(process.stat().st_uid).pw_name)
    return sorted(found)


def tried(user: str, *command: str) -> str:
    """The last line of what a command of some user says, which is to fail."""
    ran = subprocess.run(
        [*as_user(user), *command], capture_output=True, text=True, check=False, env={"PATH": PATH}
    )
    return ran.stderr.strip().split("\n")[-1]


def look_around(service: Service) -> dict[str, object]:
    """What is there once it serves."""
    path = command_of(service.unit)[command_of(service.unit).index("--uds") + 1]
    connect = f"import socket; socket.socket(socket.AF_UNIX).connect({path!r})"
    (token,) = tokens()
    answers = [ask(), ask(token[::-1]), ask(token)]
    return {
        "socket": owners(path),
        "secrets": {file.name: owners(file) for file in sorted(SECRETS.iterdir())},
        "nginx": users_of_nginx(),
        "statuses": [status for status, _, _ in answers],
        "prompt": b"x = 1" in answers[-1][2],
        "probes": [probe("/readyz"), probe("/healthz"), probe("/mcp")],
        "connecting": tried("nobody", "python3", "-c", connect),
        "reading": tried("nobody", "cat", str(SECRETS / "tokens")),
        "audit": owners("/var/log/promptkit/audit.jsonl"),
        "subjects": [json.loads(line)["subject"] for line in Path("/var/log/promptkit/audit.jsonl").open()],
    }


def replace_the_token() -> list[bool]:
    """Follow the page: whether the new token is taken, and the old one until it is taken out."""
    (old,) = tokens()
    follow("\n".join(blocks("operating.md", "Tokens")))
    _, new = tokens()
    both = [becomes(200, lambda: ask(new)[0]), becomes(200, lambda: ask(old)[0])]
    run("sed", "-i", f"/{old}/d", SECRETS / "tokens")
    return [*both, becomes(401, lambda: ask(old)[0]), becomes(200, lambda: ask(new)[0])]


def replace_the_key() -> list[object]:
    """Follow the page: after each step, the keys, whether the first seals, and whether a session goes on."""
    (token,) = tokens()
    (old,) = read_keys((SECRETS / "state.keys").read_text())
    begin, found = initialize("2025-11-25"), []
    _, session, _ = ask(token, message=begin)
    for block in blocks("operating.md", "Keys"):
        follow(block)
        time.sleep(1.1)  # each worker reads the file with its next request
        keys = read_keys((SECRETS / "state.keys").read_text())
        first = key_of(KeyRing(keys[:1]).seal("p", 1))
        seals = becomes(first, lambda: key_of(ask(token, message=begin)[1]))
        goes_on = becomes(200, lambda: ask(token, session, request(1, "prompts/list"))[0], or_never=404)
        found.append([["old" if key == old else "new" for key in keys], seals, goes_on])
    return found


def key_of(sealed: str | None) -> str | None:
    """What a session id says of the key that has sealed it."""
    return sealed and sealed.split(".")[1]


def add_a_recipe() -> bool:
    """Whether a recipe that is copied into the folder is served, by all workers."""
    (token,) = tokens()
    Path("/srv/prompts/later.py").write_text(
        "import promptkit\n\n@promptkit.prompt\ndef later(): return 'Later.'\n"
    )
    message = modern(1, "prompts/get", {"name": "later"})
    return becomes(expected=True, look=lambda: b"Later." in ask(token, message=message)[2])


def try_another_version() -> dict[str, object]:
    """Follow the page: start the promptkit of another folder beside the service."""
    Path("/run/systemd/system").mkdir(parents=True)
    begin, answer = blocks("operating.md", "promptkit")[1].split("systemctl start promptkit-trial\n")
    program(Path("/opt/promptkit-2/bin/promptkit"), 'exec /opt/promptkit-1/bin/promptkit "$@"')
    follow(begin)
    trial = Service("/run/systemd/system/promptkit-trial.service")
    trial.start()
    follow(answer)
    return {"command": command_of(trial.unit), "code": trial.stop(), "left": ask(*tokens())[0]}


def restart(service: Service) -> dict[str, object]:
    """What comes of a restart, and of a start without what lets nginx in."""
    (token,) = tokens()
    _, session, _ = ask(token, message=initialize("2025-11-25"))
    codes = [service.stop()]
    meanwhile = ask(token)[0]
    service.start()
    again = ask(token, session, request(1, "prompts/list"))[0]
    codes.append(service.stop())
    service.start("--uds-group", "--uds-mode")
    closed = ask(token)[0]
    codes.append(service.stop())
    return {"codes": codes, "statuses": [meanwhile, again, closed]}


def main() -> None:
    """Set the machine up, use it, and say what was seen."""
    make_a_machine()
    _, secrets, units = blocks("deploying.md", "One machine")
    follow(secrets)
    if said := tried("promptkit", INSTALLED, "--version"):
        say({"skip": f"other users cannot run this Python: {said}"})
        return
    follow(units)
    service = Service()
    service.start()
    with behind_nginx():
        seen = {"around": look_around(service), "token": replace_the_token(), "key": replace_the_key()}
        seen |= {"recipe": add_a_recipe(), "log": service.log.read_text(), "trial": try_another_version()}
        seen |= {"restart": restart(service)}
    say(seen)


@contextmanager
def behind_nginx() -> Iterator[None]:
    """Have nginx run, as it was installed."""
    with subprocess.Popen(["nginx", "-g", "daemon off;"], env={"PATH": PATH}) as nginx:  # noqa: S607 (it is PATH's)
        try:
            until = time.monotonic() + PATIENCE
            while not Path(
                "/run/nginx.pid"
            ).read_text():  # `nginx -t` has made it; it listens before it writes
                assert time.monotonic() < until
                time.sleep(0.02)
            yield
        finally:
            nginx.terminate()


def say(seen: object) -> None:
    """Tell the test."""
    sys.stdout.write(json.dumps(seen))


if __name__ == "__main__":
    main()
