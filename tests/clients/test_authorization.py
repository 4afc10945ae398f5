"""The official clients get a token: they are rejected, discover the issuer, authorize, and retry."""

import json

import pytest

from tests.clients import authorized
from tests.clients.node_clients import PATIENT, RUNNING, node
from tests.http_server import http_server
from tests.issuer import issuing

RECIPE = '''
from promptkit import prompt

@prompt
def greet(name: str):
    """Say hello."""
    return f"Hello, {name}."
'''

GREETING = {"prompts": ["greet"], "said": "Hello, Ada."}


#: A client that is told its revision works as in `auto`: see `test_http.py`.
PYTHON_MODES = pytest.mark.parametrize(
    ("mode", "revision"), [("legacy", "2025-11-25"), ("auto", "2026-07-28")]
)


@pytest.fixture
def issuer():
    """Run a token issuer."""
    with issuing() as one:
        yield one


@pytest.fixture
def server(tmp_path, issuer):
    """The URL of a server that requires the issuer's tokens with two scopes."""
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "greet.py").write_text(RECIPE)
    options = ("--issuer", issuer.url, "--require-scope", "read", "--require-scope", "write")
    with http_server(tmp_path / "recipes", *options) as url:
        yield url


@pytest.fixture
def in_node(typescript, server):
    """A function that gets a token with the official TypeScript client and returns what it printed."""

    def carry_out(mode):
        sent = json.dumps({"server": server, "mode": mode})
        ran = node(typescript / "authorized.mjs", input=sent, timeout=RUNNING)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    return carry_out


@pytest.mark.parametrize("held", [False, True], ids=["no token", "a scope less"])
@PYTHON_MODES
def test_the_python_client_gets_a_token(server, issuer, mode, revision, held):
    """
    With and without a handshake, the official Python client gets a token if it has none, or if its token
    lacks a scope.
    """
    token = issuer.token(server, scope="read") if held else None

    came = authorized.run(server, mode, token)
    assert came == {**GREETING, "revision": revision, "granted": ["read write"]}
    assert issuer.asked_for_keys == 1


@PYTHON_MODES
def test_the_python_client_gets_the_scopes_of_a_prompt(tmp_path, issuer, mode, revision):
    """
    A prompt that the token does not allow is not listed. When the client gets it anyway, the server names the
    missing scopes; the client requests a token with these and its other scopes, and then gets the prompt.
    """
    (tmp_path / "recipes").mkdir()
    scoped = RECIPE.replace("@prompt", '@prompt(scopes=["write", "admin"])')
    (tmp_path / "recipes" / "greet.py").write_text(scoped)
    options = ("--issuer", issuer.url, "--require-scope", "read")
    with http_server(tmp_path / "recipes", *options) as server:
        came = authorized.run(server, mode, issuer.token(server, scope="read"))

    assert came["prompts"] == []
    assert came["said"] == "Hello, Ada."
    assert came["revision"] == revision
    assert [set(scopes.split()) for scopes in came["granted"]] == [{"read", "write", "admin"}]


@pytest.mark.installs
@pytest.mark.timeout(PATIENT)
@pytest.mark.parametrize("granted", [["read write"], ["read", "read write"]], ids=["at once", "step by step"])
@pytest.mark.parametrize(
    ("mode", "revision"),
    [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ({"pin": "2026-07-28"}, "2026-07-28")],
    ids=["legacy", "auto", "pin"],
)
def test_the_typescript_client_gets_a_token(in_node, issuer, mode, revision, granted):
    """
    The official TypeScript client gets a token, and asks again if the issuer first grants one of two scopes.
    """
    issuer.grants += [len(scopes.split()) for scopes in granted]

    assert in_node(mode) == {**GREETING, "revision": revision, "granted": granted}
    assert issuer.asked_for_keys == 1
