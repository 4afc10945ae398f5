"""`promptkit serve` with authorization: the replies to real clients, and the secrecy of their tokens."""

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
from tests.posting import modern_headers
from tests.wire import modern

#: The timeout for everything that tests wait for, in seconds.
PATIENCE = 20.0

RECIPE = '''
import sys
from promptkit import prompt

@prompt
def loaded():
    """Return which packages for signatures are loaded."""
    return " ".join(["loaded:", *(name for name in ("joserfc", "cryptography") if name in sys.modules)])
'''

ADA = secrets.token_urlsafe(32)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals kill the server")


@pytest.fixture
def folder(tmp_path):
    """A folder with recipes and a token file."""
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "loaded.py").write_text(RECIPE)
    (tmp_path / "tokens").write_text(f"ada {ADA} read\n")
    (tmp_path / "tokens").chmod(0o600)
    return tmp_path


@contextmanager
def serving(folder, *options, address="127.0.0.1:0"):
    """Run a server, and yield its port and the file with standard error."""
    log = folder / "log"
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
    with log.open("wb") as file:
        process = subprocess.Popen(command, cwd=folder, stderr=file, stdin=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + PATIENCE
        while not (match := re.search(r"http://\S+:(\d+)/mcp", log.read_text())):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, "the server does not start"
            time.sleep(0.01)
        yield int(match[1]), log
    finally:
        process.terminate()
        process.wait(PATIENCE)


def ask(port, token=None, path="/mcp", method="prompts/get", **params):
    """Request a prompt, and return the status, the challenge and the body."""
    message = modern(1, method, params or {"name": "loaded"})
    fields = {"content-type": "application/json", "accept": "application/json", **modern_headers(message)}
    if token is not None:
        fields["authorization"] = f"Bearer {token}"
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("POST", path, json.dumps(message), fields)
        response = connection.getresponse()
        return response.status, response.getheader("www-authenticate"), response.read().decode()
    finally:
        connection.close()


@pytest.mark.parametrize("options", [(), ("--token-file", "tokens")], ids=["no-authorization", "token-file"])
def test_cryptography_is_loaded_only_for_an_issuer(folder, options):
    """The library of the extra `auth` is only loaded if an issuer is configured, to verify signatures."""
    with serving(folder, *options) as (port, _):
        assert '"text":"loaded:"' in ask(port, ADA if options else None)[2]


@pytest.mark.parametrize("workers", [1, 2])
def test_token_file(folder, workers):
    """
    With a token file, the server can listen on all addresses, and clients need a token. The audit names the
    clients, and no token is logged.
    """
    options = ("--token-file", "tokens", "--require-scope", "read", "--workers", str(workers))
    with serving(folder, *options, "--audit", "audit", address="0.0.0.0:0") as (port, log):
        invalid = ADA[::-1]
        attempts = [(None, "/mcp"), (invalid, "/mcp"), (ADA, f"/mcp?access_token={ADA}"), (ADA, "/mcp")]
        statuses = [ask(port, token, path)[0] for token, path in attempts]

        assert statuses == [401, 401, 400, 200]
    lines = (folder / "audit").read_text().splitlines()
    assert [json.loads(line)["subject"] for line in lines] == ["ada"]
    assert not [token for token in (ADA, invalid) if token in log.read_text() + lines[0]]


@pytest.mark.parametrize("option", ["--token-file", "--state-keys"])
def test_pipe_instead_of_a_secret_file(folder, option):
    """If the token or key file is a pipe, the server neither starts nor waits for a writer."""
    os.mkfifo(folder / "pipe", 0o600)
    command = [sys.executable, "-m", "promptkit", "serve", "recipes", "--http", "0", option, "pipe"]
    completed = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=PATIENCE)

    assert completed.returncode == 2
    assert completed.stderr == b"promptkit: pipe: the file cannot be read: it is not a regular file\n"


def test_pipe_that_replaces_the_token_file(folder):
    """If a pipe replaces the token file, no request or health check blocks, and the pipe is reported."""
    with serving(folder, "--token-file", "tokens") as (port, log):
        assert ask(port, ADA)[0] == 200
        os.mkfifo(folder / "pipe", 0o600)
        (folder / "pipe").rename(folder / "tokens")
        deadline = time.monotonic() + PATIENCE
        while "tokens: the file cannot be read: it is not a regular file; " not in log.read_text():
            assert ask(port, ADA)[0] == 200
            assert time.monotonic() < deadline, "the change is not noticed"
            time.sleep(0.05)
        probe = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        probe.request("GET", "/healthz")
        assert probe.getresponse().status == 200
        probe.close()


def test_huge_token(folder):
    """The server rejects the request as soon as the head exceeds its limit."""
    head = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer "
    with serving(folder, "--token-file", "tokens") as (port, _):
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
            connection.sendall(head + b"x" * 65536)
            assert connection.recv(4096).startswith(b"HTTP/1.1 431 ")
        assert ask(port, ADA)[0] == 200


@pytest.mark.parametrize("workers", [1, 2])
def test_tokens_of_an_issuer(folder, workers):
    """
    Without a public URL, tokens must be for the address of the server; tokens for another server are
    rejected.
    """
    with (
        issuing() as issuer,
        serving(folder, "--issuer", issuer.url, "--workers", str(workers)) as (port, log),
    ):
        resource = f"http://127.0.0.1:{port}/mcp"
        status, challenge, _ = ask(port)
        assert (status, f"{port}/.well-known/oauth-protected-resource/mcp" in challenge) == (401, True)

        token, foreign = issuer.token(resource), issuer.token("http://127.0.0.1:1/mcp")
        answers = [ask(port, each) for each in (token, foreign) * 5]

        assert [answer[0] for answer in answers] == [200, 401] * 5
        assert "joserfc" in answers[0][2]
        assert 1 <= issuer.key_requests <= workers
        for part in (*token.split("."), *foreign.split(".")):
            assert part not in log.read_text()
