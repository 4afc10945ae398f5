"""The official clients get a token from an issuer: they are refused, find out where, and come back."""

import json

import pytest

from tests.clients import authorized
from tests.clients.node_clients import PATIENT, RUNNING, node
from tests.http_server import http_server
from tests.issuer import issuing

pytestmark = pytest.mark.sampled

RECIPE = '''
from promptkit import prompt

@prompt
def greet(name: str):
    """Say hello."""
    return f"Hello, {name}."
'''

GREETING = {"prompts": ["greet"], "said": "Hello, Ada."}


@pytest.fixture
def issuer():
    """An issuer."""
    with issuing() as one:
        yield one


@pytest.fixture
def server(tmp_path, issuer):
    """The URL of a server that asks for its tokens, with two scopes."""
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "greet.py").write_text(RECIPE)
    options = ("--issuer", issuer.url, "--require-scope", "read", "--require-scope", "write")
    with http_server(tmp_path / "recipes", *options) as url:
        yield url


@pytest.fixture
def in_node(typescript, server):
    """A function that gets a token with the official TypeScript client."""

    def carry_out(mode):
        sent = json.dumps({"server": server, "mode": mode})
        ran = node(typescript / "authorized.mjs", input=sent, timeout=RUNNING)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    return carry_out


@pytest.mark.parametrize("held", [False, True], ids=["no token", "a scope less"])
@pytest.mark.parametrize(
    ("mode", "revision"),
    [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")],
)
def test_the_python_client_gets_a_token(server, issuer, mode, revision, held):
    """
    The official Python client gets one in every mode, if it has none, or if the one that it has lacks a
    scope.
    """
    token = issuer.token(server, scope="read") if held else None

    came = authorized.run(server, mode, token)
    assert came == {**GREETING, "revision": revision, "granted": ["read write"]}
    assert issuer.asked_for_keys == 1


@pytest.mark.parametrize(
    ("mode", "revision"),
    [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")],
)
def test_the_python_client_gets_the_scopes_of_a_prompt(tmp_path, issuer, mode, revision):
    """
    A prompt that its token does not allow is not listed. When it is got all the same, the client is told
    which scopes it needs, gets a token with them beside what everybody needs, and then the prompt.
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
    So does the official TypeScript client. The issuer may grant one of two scopes at first: then it asks
    again.
    """
    issuer.grants += [len(scopes.split()) for scopes in granted]

    assert in_node(mode) == {**GREETING, "revision": revision, "granted": granted}
    assert issuer.asked_for_keys == 1
