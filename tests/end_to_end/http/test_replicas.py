"""
Three replicas with nginx as their proxy, each in its own network namespace, like on separate machines.

nginx uses `docs/examples/nginx.conf`, which distributes requests without a session over all replicas. The
test needs Linux, root, `ip` and nginx.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from base64 import b64encode
from pathlib import Path

import pytest

LOAD = Path(__file__).with_name("load.py")
EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "nginx.conf"
REPLICAS = (1, 2, 3)
PORT = 8000
CLIENTS = 8

#: The timeout for everything that the test waits for, in seconds.
PATIENCE = 30.0

#: The minimum number of requests, by default and with `--whole`.
SHORT, FULL = 1_000, 20_000

RECIPES = '''
from promptkit import prompt

@prompt
def greet(name: str) -> str:
    """Say hello."""
    return f"Hello, {name}."

@prompt(elicit=True)
def plan(goal: str) -> str:
    """Plan something."""
    return f"Plan {goal}."
'''

NGINX = """
daemon off;
master_process off;
pid nginx.pid;
error_log error.log;
events {}
http {
    access_log off;
    client_body_temp_path bodies;
    proxy_temp_path proxied;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    add_header X-Upstream $upstream_addr always;
    include prompts.conf;
}
"""


def ip(*words):
    """Run `ip`."""
    subprocess.run([shutil.which("ip"), *words], check=True, capture_output=True, timeout=PATIENCE)


def address(replica):
    """Return the address of a replica."""
    return f"10.77.{replica}.2"


@pytest.fixture(scope="module")
def network():
    """
    A function that returns the prefix of a command that runs in the namespace of a replica, or of the proxy
    (0).
    """
    if not sys.platform.startswith("linux") or os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need Linux, root, and ip")
    names = [f"promptkit{os.getpid()}-{number}" for number in (0, *REPLICAS)]
    try:
        ip("netns", "add", names[0])
    except subprocess.CalledProcessError as error:
        pytest.skip(f"network namespaces cannot be created: {error.stderr.decode().strip()}")
    created = [names[0]]
    try:
        ip("-n", names[0], "link", "set", "lo", "up")
        for number in REPLICAS:
            ip("netns", "add", names[number])
            created.append(names[number])
            here, there = (names[0], f"to{number}", f"10.77.{number}.1/30"), (names[number], "eth0", None)
            ip("link", "add", here[1], "netns", here[0], "type", "veth", "peer", there[1], "netns", there[0])
            for name, device, address_ in (here, (*there[:2], f"{address(number)}/30")):
                ip("-n", name, "address", "add", address_, "dev", device)
                ip("-n", name, "link", "set", device, "up")
        yield lambda number: ["ip", "netns", "exec", names[number]]
    finally:
        for name in created:
            ip("netns", "delete", name)


class Replica:
    """A server in its own network namespace."""

    def __init__(self, inside, number, folder):
        self.inside, self.number, self.folder = inside, number, folder
        self.log = folder / f"replica{number}.log"
        self.process = None

    def start(self):
        """Start the server with the current keys, and wait until it is ready, like a rollout does."""
        command = [
            *(sys.executable, "-m", "promptkit", "serve", str(self.folder / "recipes")),
            *("--http", f"{address(self.number)}:{PORT}", "--no-auth", "--no-watch", "--grace", "5"),
            *("--public-url", "http://prompts.example/mcp", "--state-keys", str(self.folder / "keys")),
        ]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(self.inside(self.number) + command, stderr=log)
        deadline = time.monotonic() + PATIENCE
        while b"serving at" not in self.log.read_bytes():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.02)
        url = f"http://{address(self.number)}:{PORT}/readyz"
        ask = f"import urllib.request; urllib.request.urlopen({url!r}, timeout={PATIENCE})"
        subprocess.run([*self.inside(0), sys.executable, "-c", ask], check=True, timeout=2 * PATIENCE)

    def stop(self):
        """Stop the server like a deployment does, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


def write_keys(folder, *letters):
    """Write the key file, whose first key seals."""
    file = folder / "keys.new"
    file.touch(mode=0o600)
    file.write_text("".join(b64encode(letter * 32).decode() + "\n" for letter in letters))
    file.replace(folder / "keys")


@pytest.fixture
def replicas(network, tmp_path):
    """Three replicas with the same recipes."""
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "prompts.py").write_text(RECIPES)
    write_keys(tmp_path, b"a")
    started = [Replica(network, number, tmp_path) for number in REPLICAS]
    try:
        for replica in started:
            replica.start()
        yield started
    finally:
        for replica in started:
            if replica.process is not None:
                replica.process.kill()
                replica.process.wait(PATIENCE)


@pytest.fixture
def proxy(network, replicas, tmp_path):
    """The proxy in front of the replicas."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        pytest.skip("nginx is not installed")
    folder = tmp_path / "nginx"
    folder.mkdir()
    text = EXAMPLE.read_text(encoding="utf-8").replace("listen 80;", f"listen 127.0.0.1:{PORT};")
    for number in REPLICAS:
        assert f"10.0.0.1{number}:8000" in text
        text = text.replace(f"10.0.0.1{number}:8000", f"{address(number)}:{PORT}")
    (folder / "prompts.conf").write_text(text)
    (folder / "nginx.conf").write_text(NGINX)
    words = [program, "-e", "error.log", "-p", str(folder), "-c", "nginx.conf"]
    subprocess.run([*network(0), *words, "-t"], check=True, timeout=PATIENCE, capture_output=True)
    process = subprocess.Popen(network(0) + words)
    deadline = time.monotonic() + PATIENCE
    while not (folder / "nginx.pid").exists():  # written once nginx listens
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    yield
    process.terminate()
    process.wait(PATIENCE)


@pytest.mark.installs
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("proxy")
def test_rolling_key_rotation_loses_no_requests(network, replicas, tmp_path, request, record_property):
    """
    While clients send requests and answer input requests through nginx, a key is rotated in three steps, each
    with a rolling restart. Every request gets the right reply, even if several replicas take part in one
    exchange.
    """
    minimum = FULL if request.config.getoption("--whole") else SHORT
    command = [sys.executable, str(LOAD), "127.0.0.1", *map(str, (PORT, CLIENTS, minimum))]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    started = time.monotonic()
    with subprocess.Popen(network(0) + command, text=True, **pipes) as load:
        try:
            for keys in ((b"a", b"b"), (b"b", b"a"), (b"b",)):
                write_keys(tmp_path, *keys)
                for replica in replicas:
                    assert replica.stop() == 0, replica.log.read_text()
                    replica.start()
            stdout, stderr = load.communicate(timeout=500)
        finally:
            load.kill()
    result = json.loads(stdout)
    seconds = round(time.monotonic() - started, 1)
    record_property("figures", f"{result} in {seconds} s, with nine restarts")

    assert (result["errors"], stderr) == ([], "")
    assert result["sent"] >= minimum
    assert set(result["served"]) == {f"{address(number)}:{PORT}" for number in REPLICAS}
    assert result["crossed"]["different"] > 0
