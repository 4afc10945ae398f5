"""Two servers with nginx in front: a caller's replies never depend on prompts outside the caller's scopes."""

import http.client
import json
import secrets
from random import Random
from urllib.parse import urlsplit

import pytest

from promptkit.compiler.compilation import compile
from tests.clients.nginx import list_servers, nginx
from tests.http_server import http_server
from tests.posting import PLAIN, body_of, repeated_headers
from tests.subjects import Site, caller
from tests.wire import modern, request

PROMPT = '''
@prompt({options})
def {name}(word: Literal["one", "two"] = "one"):
    """Say {name}."""
    return f"{name}, {{word}}."
'''
RESOURCE = """
@resource("docs://{name}", name="{name}", {options})
def read_{name}() -> str:
    return "{name}"
"""
TEMPLATE = """
@resource("{name}://{{day}}", name="{name}", {options})
def find_{name}(day: Literal["monday", "tuesday"]) -> str:
    return "{name} of " + day
"""

#: The prompts and resources by name, with the scopes that each requires.
WORLD = {
    "alpha": (PROMPT, ""),
    "alpha2": (PROMPT, "a"),
    "alpine": (PROMPT, "b"),
    "beta": (PROMPT, "a b"),
    "betas": (PROMPT, "c"),
    "plan": (RESOURCE, "a"),
    "plans": (RESOURCE, "b"),
    "docs": (TEMPLATE, "c"),
    "notes": (TEMPLATE, "b"),
}
SCOPES = {"ada": ("a", "b"), "bob": ("c",)}
REQUESTS = 240


def render_recipes(seen_by=None):
    """
    Return the source of the recipes.

    With the scopes *seen_by*, omit recipes that need other scopes, and declare no scopes for the remaining
    ones.
    """
    parts = ["from typing import Literal\nfrom promptkit import prompt, resource\n"]
    for name, (text, required) in WORLD.items():
        scopes = required.split()
        if seen_by is None or set(scopes) <= set(seen_by):
            parts.append(text.format(name=name, options=f"scopes={scopes if seen_by is None else []}"))
    return "".join(parts)


def random_message(random, number):
    """Return a random request of any kind."""
    name = random.choice([*WORLD, "alphas"])
    uri = random.choice(["docs://plan", "docs://plans", "docs://monday", "notes://tuesday", "notes://plan"])
    lists = ["prompts/list", "resources/list", "resources/templates/list", "tools/list"]
    refs = [{"type": "ref/prompt", "name": name}, {"type": "ref/resource", "uri": f"{name}://{{day}}"}]
    argument = {"name": random.choice(["word", "day"]), "value": random.choice(["", "t"])}
    kinds = [
        lambda: modern(number, random.choice(lists)),
        lambda: request(number, random.choice(lists)),
        lambda: modern(number, "prompts/get", {"name": name}),
        lambda: request(number, "prompts/get", {"name": name, "arguments": {"word": "three"}}),
        lambda: modern(number, "tools/call", {"name": name, "arguments": {"word": "two"}}),
        lambda: modern(number, "resources/read", {"uri": uri}),
        lambda: modern(number, "completion/complete", {"ref": random.choice(refs), "argument": argument}),
    ]
    return random.choice(kinds)()


def headers_for(message):
    """Return the HTTP headers that a message needs in addition to the headers of every request."""
    return repeated_headers(message) or {"mcp-protocol-version": "2025-11-25"}


@pytest.mark.installs
def test_two_callers_through_nginx(recipes, tmp_path):
    """
    Each of many random requests gets the reply of a server with only the prompts that its caller can see,
    whichever worker of whichever server answers.
    """
    tokens = {subject: secrets.token_urlsafe(32) for subject in SCOPES}
    file = tmp_path / "tokens"
    file.touch(0o600)
    file.write_text("".join(f"{name} {tokens[name]} {' '.join(SCOPES[name])}\n" for name in SCOPES))
    folder = recipes(all=render_recipes())
    sites = {
        subject: Site(
            compile(str(recipes(**{subject: render_recipes(scopes)}) / f"{subject}.py")), tools=True
        )
        for subject, scopes in SCOPES.items()
    }
    for subject in SCOPES:
        (folder / f"{subject}.py").unlink()
    (tmp_path / "nginx").mkdir()
    options = ("--token-file", str(file), "--tools", "--workers", "2")
    random = Random(18)  # noqa: S311 (the same each time)
    with (
        http_server(folder, *options) as first,
        http_server(folder, *options) as second,
        nginx(tmp_path / "nginx", [first, second]) as url,
    ):
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
        for number in range(REQUESTS):
            subject, message = random.choice([*SCOPES]), random_message(random, number)
            headers = {**PLAIN, **headers_for(message), "authorization": f"Bearer {tokens[subject]}"}
            connection.request("POST", "/mcp", body_of(message), {**headers, "host": urlsplit(url).netloc})
            with connection.getresponse() as response:
                reply = json.loads(response.read())
                assert response.headers["cache-control"] == "no-store"
            header_arguments = {name.replace("-", "_"): value for name, value in headers_for(message).items()}
            expected = sites[subject].ask(message, caller(subject, *SCOPES[subject]), **header_arguments)
            assert without_version(reply) == without_version(expected), (subject, message)
        connection.close()
        assert list_servers(tmp_path / "nginx") == {urlsplit(first).netloc, urlsplit(second).netloc}


def without_version(reply):
    """Return a reply without `_meta`, which holds the version of the server."""
    if "result" in reply:
        reply["result"].pop("_meta", None)
    return reply
