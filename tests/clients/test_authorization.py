"""The official clients get a token: they are rejected, discover the issuer, authorize, and retry."""

import json

import pytest

from tests.clients import authorized
from tests.clients.node_clients import RUNNING, TEST_TIMEOUT, node
from tests.http_server import http_server
from tests.issuer import issuing

RECIPE = '''
from promptkit import prompt

@prompt
def greet(name: str):
    """Say hello."""
    return f"Hello, {name}."
'''

GREETING = {"prompts": ["greet"], "text": "Hello, Ada."}


#: The modes of the client. A client with a fixed revision behaves as in `auto`: see `test_http.py`.
PYTHON_MODES = pytest.mark.parametrize(
    ("mode", "revision"), [("legacy", "2025-11-25"), ("auto", "2026-07-28")]
)


@pytest.fixture
def issuer():
    """Run a token issuer."""
    with issuing() as issuer:
        yield issuer


@pytest.fixture
def server(tmp_path, issuer):
    """The URL of a server that requires the issuer's tokens with two scopes."""
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "greet.py").write_text(RECIPE)
    options = ("--issuer", issuer.url, "--require-scope", "read", "--require-scope", "write")
    with http_server(tmp_path / "recipes", *options) as url:
        yield url


@pytest.fixture
def run_in_node(typescript, server):
    """
    A function that runs the official TypeScript client, which gets a token, and returns the client's output.
    """

    def run(mode):
        options = json.dumps({"server": server, "mode": mode})
        completed = node(typescript / "authorized.mjs", input=options, timeout=RUNNING)
        assert completed.returncode == 0, completed.stderr
        return json.loads(completed.stdout)

    return run


@pytest.mark.parametrize("has_token", [False, True], ids=["no token", "missing scope"])
@PYTHON_MODES
def test_python_client_gets_a_token(server, issuer, mode, revision, has_token):
    """
    With and without a handshake, the official Python client gets a token if it has none, or if its token
    lacks a scope.
    """
    token = issuer.token(server, scope="read") if has_token else None

    result = authorized.run(server, mode, token)
    assert result == {**GREETING, "revision": revision, "granted": ["read write"]}
    assert issuer.key_requests == 1


@PYTHON_MODES
def test_python_client_gets_the_scopes_of_a_prompt(tmp_path, issuer, mode, revision):
    """
    A prompt that the token does not allow is not listed. When the client gets it anyway, the server names the
    missing scopes; the client requests a token with these and its other scopes, and then gets the prompt.
    """
    (tmp_path / "recipes").mkdir()
    scoped = RECIPE.replace("@prompt", '@prompt(scopes=["write", "admin"])')
    (tmp_path / "recipes" / "greet.py").write_text(scoped)
    options = ("--issuer", issuer.url, "--require-scope", "read")
    with http_server(tmp_path / "recipes", *options) as server:
        result = authorized.run(server, mode, issuer.token(server, scope="read"))

    assert result["prompts"] == []
    assert result["text"] == "Hello, Ada."
    assert result["revision"] == revision
    assert [set(scopes.split()) for scopes in result["granted"]] == [{"read", "write", "admin"}]


@pytest.mark.installs
@pytest.mark.timeout(TEST_TIMEOUT)
@pytest.mark.parametrize(
    "granted", [["read write"], ["read", "read write"]], ids=["together", "step by step"]
)
@pytest.mark.parametrize(
    ("mode", "revision"),
    [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ({"pin": "2026-07-28"}, "2026-07-28")],
    ids=["legacy", "auto", "pin"],
)
def test_typescript_client_gets_a_token(run_in_node, issuer, mode, revision, granted):
    """
    The official TypeScript client gets a token, and asks again if the issuer first grants one of two scopes.
    """
    issuer.grants += [len(scopes.split()) for scopes in granted]

    assert run_in_node(mode) == {**GREETING, "revision": revision, "granted": granted}
    assert issuer.key_requests == 1
