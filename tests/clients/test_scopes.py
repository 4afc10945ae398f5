"""Two servers behind nginx: a caller's replies never depend on prompts outside the caller's scopes."""

import http.client
import json
import secrets
from random import Random
from urllib.parse import urlsplit

import pytest

from promptkit.compiler.compilation import compile
from tests.clients.nginx import nginx, servers_of
from tests.http_server import http_server
from tests.posting import PLAIN, body_of, repeat
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
SUBJECTS = {"ada": ("a", "b"), "bob": ("c",)}
NUMBER = 240


def source_of(seen_by=None):
    """Return the recipes; with *seen_by*, only those visible with these scopes, without requiring any."""
    found = ["from typing import Literal\nfrom promptkit import prompt, resource\n"]
    for name, (text, needed) in WORLD.items():
        scopes = needed.split()
        if seen_by is None or set(scopes) <= set(seen_by):
            found.append(text.format(name=name, options=f"scopes={scopes if seen_by is None else []}"))
    return "".join(found)


def random_message(chance, number):
    """Return a random request of any kind."""
    name = chance.choice([*WORLD, "alphas"])
    uri = chance.choice(["docs://plan", "docs://plans", "docs://monday", "notes://tuesday", "notes://plan"])
    lists = ["prompts/list", "resources/list", "resources/templates/list", "tools/list"]
    refs = [{"type": "ref/prompt", "name": name}, {"type": "ref/resource", "uri": f"{name}://{{day}}"}]
    argument = {"name": chance.choice(["word", "day"]), "value": chance.choice(["", "t"])}
    kinds = [
        lambda: modern(number, chance.choice(lists)),
        lambda: request(number, chance.choice(lists)),
        lambda: modern(number, "prompts/get", {"name": name}),
        lambda: request(number, "prompts/get", {"name": name, "arguments": {"word": "three"}}),
        lambda: modern(number, "tools/call", {"name": name, "arguments": {"word": "two"}}),
        lambda: modern(number, "resources/read", {"uri": uri}),
        lambda: modern(number, "completion/complete", {"ref": chance.choice(refs), "argument": argument}),
    ]
    return chance.choice(kinds)()


def fields_of(message):
    """Return the HTTP headers that a message needs in addition to those that every client sends."""
    return repeat(message) or {"mcp-protocol-version": "2025-11-25"}


@pytest.mark.installs
def test_two_subjects_behind_nginx(recipes, tmp_path):
    """
    Each of many random requests gets the reply of a server with only the prompts that its caller can see,
    whichever worker of whichever server answers.
    """
    tokens = {subject: secrets.token_urlsafe(32) for subject in SUBJECTS}
    file = tmp_path / "tokens"
    file.touch(0o600)
    file.write_text("".join(f"{name} {tokens[name]} {' '.join(SUBJECTS[name])}\n" for name in SUBJECTS))
    folder = recipes(all=source_of())
    alone = {
        subject: Site(compile(str(recipes(**{subject: source_of(scopes)}) / f"{subject}.py")), tools=True)
        for subject, scopes in SUBJECTS.items()
    }
    for subject in SUBJECTS:
        (folder / f"{subject}.py").unlink()
    (tmp_path / "nginx").mkdir()
    options = ("--token-file", str(file), "--tools", "--workers", "2")
    chance = Random(18)  # noqa: S311 (the same each time)
    with (
        http_server(folder, *options) as one,
        http_server(folder, *options) as other,
        nginx(tmp_path / "nginx", [one, other]) as url,
    ):
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
        for number in range(NUMBER):
            subject, message = chance.choice([*SUBJECTS]), random_message(chance, number)
            fields = {**PLAIN, **fields_of(message), "authorization": f"Bearer {tokens[subject]}"}
            connection.request("POST", "/mcp", body_of(message), {**fields, "host": urlsplit(url).netloc})
            with connection.getresponse() as response:
                found = json.loads(response.read())
                assert response.headers["cache-control"] == "no-store"
            given = {name.replace("-", "_"): value for name, value in fields_of(message).items()}
            expected = alone[subject].ask(message, caller(subject, *SUBJECTS[subject]), **given)
            assert without_version(found) == without_version(expected), (subject, message)
        connection.close()
        assert servers_of(tmp_path / "nginx") == {urlsplit(one).netloc, urlsplit(other).netloc}


def without_version(reply):
    """Return a reply without `_meta`, which holds the version of the server."""
    if "result" in reply:
        reply["result"].pop("_meta", None)
    return reply
