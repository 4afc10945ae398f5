"""`promptkit serve` that asks for tokens: what real clients get, and what is kept of their tokens."""

import json
import os
import re
import secrets
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from http.client import HTTPConnection

import pytest

from tests.issuer import issuing
from tests.posting import agreeing
from tests.wire import modern

#: How long anything is waited for, in seconds.
PATIENCE = 20.0

RECIPE = '''
import sys
from promptkit import prompt

@prompt
def loaded():
    """What is loaded of the packages that verify signatures."""
    return " ".join(["loaded:", *(name for name in ("joserfc", "cryptography") if name in sys.modules)])
'''

ADA = secrets.token_urlsafe(32)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals end the server")


@pytest.fixture
def folder(tmp_path):
    """Recipes, and a file with one token."""
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "loaded.py").write_text(RECIPE)
    (tmp_path / "tokens").write_text(f"ada {ADA} read\n")
    (tmp_path / "tokens").chmod(0o600)
    return tmp_path


@contextmanager
def serving(folder, *options, address="127.0.0.1:0"):
    """A server; its port, and the file that it writes to."""
    said = folder / "said"
    command = [
        sys.executable,
        "-m",
        "promptkit",
        "serve",
        "recipes",
        "--http",
        address,
        "--grace",
        "1",
        *options,
    ]
    with said.open("wb") as file:
        process = subprocess.Popen(command, cwd=folder, stderr=file, stdin=subprocess.DEVNULL)
    try:
        until = time.monotonic() + PATIENCE
        while not (found := re.search(r"http://\S+:(\d+)/mcp", said.read_text())):
            assert process.poll() is None, said.read_text()
            assert time.monotonic() < until, "it does not serve"
            time.sleep(0.01)
        yield int(found[1]), said
    finally:
        process.terminate()
        process.wait(PATIENCE)


def ask(port, token=None, path="/mcp", method="prompts/get", **params):
    """Ask for a prompt; return the status, the challenge, and the body."""
    message = modern(1, method, params or {"name": "loaded"})
    fields = {"content-type": "application/json", "accept": "application/json", **agreeing(message)}
    if token is not None:
        fields["authorization"] = f"Bearer {token}"
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("POST", path, json.dumps(message), fields)
        response = connection.getresponse()
        return response.status, response.getheader("www-authenticate"), response.read().decode()
    finally:
        connection.close()


@pytest.mark.parametrize("options", [(), ("--token-file", "tokens")], ids=["nobody-is-asked", "token-file"])
def test_cryptography_is_loaded_only_for_an_issuer(folder, options):
    """The extra `auth` is needed only where signatures are verified."""
    with serving(folder, *options) as (port, _):
        assert '"text":"loaded:"' in ask(port, ADA if options else None)[2]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_of_tokens(folder, workers):
    """
    With one, every address is served: to whoever has a token. The audit names them; no token is written down.
    """
    options = ("--token-file", "tokens", "--require-scope", "read", "--workers", str(workers))
    with serving(folder, *options, "--audit", "audit", address="0.0.0.0:0") as (port, said):
        wrong = ADA[::-1]
        tries = [(None, "/mcp"), (wrong, "/mcp"), (ADA, f"/mcp?access_token={ADA}"), (ADA, "/mcp")]
        statuses = [ask(port, token, path)[0] for token, path in tries]

        assert statuses == [401, 401, 400, 200]
    lines = (folder / "audit").read_text().splitlines()
    assert [json.loads(one)["subject"] for one in lines] == ["ada"]
    assert not [token for token in (ADA, wrong) if token in said.read_text() + lines[0]]


@pytest.mark.parametrize("option", ["--token-file", "--state-keys"])
def test_a_pipe_in_the_place_of_secrets(folder, option):
    """The start is refused, and does not wait for somebody who writes into it."""
    os.mkfifo(folder / "pipe", 0o600)
    command = [sys.executable, "-m", "promptkit", "serve", "recipes", "--http", "0", option, "pipe"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=PATIENCE)

    assert ran.returncode == 2
    assert ran.stderr == b"promptkit: pipe: cannot be read: it is not a regular file\n"


def test_a_pipe_that_takes_the_place_of_tokens(folder):
    """Neither requests nor probes wait for it; standard error says what lies there."""
    with serving(folder, "--token-file", "tokens") as (port, said):
        assert ask(port, ADA)[0] == 200
        os.mkfifo(folder / "pipe", 0o600)
        (folder / "pipe").rename(folder / "tokens")
        until = time.monotonic() + PATIENCE
        while "tokens: cannot be read: it is not a regular file; " not in said.read_text():
            assert ask(port, ADA)[0] == 200
            assert time.monotonic() < until, "it is not looked at"
            time.sleep(0.05)
        probe = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        probe.request("GET", "/healthz")
        assert probe.getresponse().status == 200
        probe.close()


def test_a_token_of_megabytes(folder):
    """The server answers as soon as the head is longer than one may be, and asks nobody."""
    beginning = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer "
    with serving(folder, "--token-file", "tokens") as (port, _):
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
            connection.sendall(beginning + b"x" * 65536)
            assert connection.recv(4096).startswith(b"HTTP/1.1 431 ")
        assert ask(port, ADA)[0] == 200


@pytest.mark.parametrize("workers", [1, 2])
def test_an_issuer(folder, workers):
    """
    Its tokens are for the address of the server if that has no other URL; those for another server are not.
    """
    with (
        issuing() as issuer,
        serving(folder, "--issuer", issuer.url, "--workers", str(workers)) as (port, said),
    ):
        resource = f"http://127.0.0.1:{port}/mcp"
        status, challenge, _ = ask(port)
        assert (status, f"{port}/.well-known/oauth-protected-resource/mcp" in challenge) == (401, True)

        token, other = issuer.token(resource), issuer.token("http://127.0.0.1:1/mcp")
        answers = [ask(port, one) for one in (token, other) * 5]

        assert [answer[0] for answer in answers] == [200, 401] * 5
        assert "joserfc" in answers[0][2]
        assert 1 <= issuer.asked_for_keys <= workers
        for part in (*token.split("."), *other.split(".")):
            assert part not in said.read_text()
