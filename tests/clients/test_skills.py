"""Clients with the skills extension list, read and verify the skills; other clients see resources."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from promptkit.cli import main
from tests.clients.node_clients import INSPECTOR, PATIENCE, PATIENT, install, node, run_typescript
from tests.http_server import http_server

HERE = Path(__file__).parent
RECIPES = HERE.parents[1] / "recipes"
SKILLS = ["skill://review-changes/SKILL.md", "skill://write-changelog/SKILL.md"]
COMMAND = [sys.executable, "-m", "promptkit", "serve", str(RECIPES)]


@pytest.mark.installs
@pytest.mark.timeout(PATIENT)
@pytest.mark.parametrize("way", ["stdio", "http"])
def test_the_inspector_verifies_them(installations, way):
    """
    Every file has the listed size and digest, and the Inspector finds no violation of the extension's rules.
    """
    inspector = install(HERE / "inspector", installations)
    verify = ["--cli", "--method", "skills/list", "--verify", "--require-digests", "--"]

    def verified(*server):
        return node(inspector / INSPECTOR, *verify, *server, timeout=2 * PATIENCE)

    if way == "stdio":
        ran = verified(*COMMAND)
    else:
        with http_server(RECIPES) as url:
            ran = verified(url)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    assert [(one["uri"], one["outcome"]) for one in found] == [(uri, "verified") for uri in SKILLS]


def others(*arguments):
    """Return the JSON that `skill_readers.py` prints in a separate process."""
    command = [sys.executable, str(HERE / "skill_readers.py"), *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=5 * PATIENCE, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_fastmcp_reads_them():
    """FastMCP's client supports the extension and verifies the files that it reads."""
    assert others("fastmcp", RECIPES) == {
        SKILLS[0]: ["SKILL.md", "references/focus.md"],
        SKILLS[1]: ["SKILL.md", "references/sections.md", "scripts/commits.py"],
    }


def test_the_python_client_sees_resources():
    """The official Python client lacks the extension: it lists each skill as a resource and can read it."""

    async def read():
        async with Client(StdioServerParameters(command=COMMAND[0], args=COMMAND[1:])) as client:
            listed = (await client.list_resources()).resources
            texts = [(await client.read_resource(str(one.uri))).contents[0].text for one in listed[-2:]]
            return listed, texts, len((await client.list_prompts()).prompts)

    listed, texts, prompts = asyncio.run(read())

    assert [str(one.uri) for one in listed][-2:] == SKILLS
    assert [text.splitlines()[1] for text in texts] == ["name: review-changes", "name: write-changelog"]
    assert prompts == 13


def test_the_validator_of_the_format_minds_nothing(tmp_path):
    """The reference library of the format accepts the files of `export skills`."""
    names = ["review-changes", "write-changelog"]
    assert main(["export", "skills", str(tmp_path), *names, "--target", str(RECIPES)]) == 0

    assert others("validator", *(tmp_path / name for name in names)) == [[], []]


@pytest.mark.installs
@pytest.mark.timeout(PATIENT)
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_typescript_client_sees_resources(installations, mode):
    """The official TypeScript client, without the extension, lists and reads each skill in both eras."""
    client = install(HERE / "typescript", installations)
    calls = [
        {"pages": "resources/list"},
        *({"request": "resources/read", "params": {"uri": u}} for u in SKILLS),
    ]

    came = run_typescript(client, COMMAND, RECIPES, mode, calls)

    listed, *read = came["outcomes"]
    assert came["complaints"] == []
    assert [one["uri"] for page in listed["pages"] for one in page["resources"]][-2:] == SKILLS
    texts = [one["result"]["contents"][0]["text"] for one in read]
    assert [text.splitlines()[1] for text in texts] == ["name: review-changes", "name: write-changelog"]
