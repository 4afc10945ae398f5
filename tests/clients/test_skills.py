"""Clients with the skills extension list, read and verify the skills; other clients see resources."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from promptkit.cli import main
from tests.clients.node_clients import INSPECTOR, PATIENCE, TEST_TIMEOUT, install, node, run_typescript
from tests.http_server import http_server

HERE = Path(__file__).parent
RECIPES = HERE.parents[1] / "recipes"
SKILLS = [
    "skill://promptkit-authoring/SKILL.md",
    "skill://review-changes/SKILL.md",
    "skill://write-changelog/SKILL.md",
]
COMMAND = [sys.executable, "-m", "promptkit", "serve", str(RECIPES)]


@pytest.mark.installs
@pytest.mark.timeout(TEST_TIMEOUT)
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_inspector_verifies_the_skills(installations, transport):
    """
    Every file has the listed size and digest, and the Inspector finds no violation of the extension's rules.
    """
    inspector = install(HERE / "inspector", installations)
    options = ["--cli", "--method", "skills/list", "--verify", "--require-digests", "--"]

    def verify_skills(*server):
        return node(inspector / INSPECTOR, *options, *server, timeout=2 * PATIENCE)

    if transport == "stdio":
        completed = verify_skills(*COMMAND)
    else:
        with http_server(RECIPES) as url:
            completed = verify_skills(url)

    assert completed.returncode == 0, completed.stdout + completed.stderr
    rows = [json.loads(line) for line in completed.stdout.splitlines() if line.startswith("{")]
    assert [(row["uri"], row["outcome"]) for row in rows] == [(uri, "verified") for uri in SKILLS]


def run_skill_reader(*arguments):
    """Return the JSON that `skill_readers.py` prints in a separate process."""
    command = [sys.executable, str(HERE / "skill_readers.py"), *map(str, arguments)]
    completed = subprocess.run(
        command, capture_output=True, encoding="utf-8", timeout=5 * PATIENCE, check=False
    )
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout)


def test_fastmcp_reads_the_skills():
    """FastMCP's client supports the extension and verifies the files that it reads."""
    assert run_skill_reader("fastmcp", RECIPES) == {
        SKILLS[0]: ["SKILL.md", "references/guide.md"],
        SKILLS[1]: ["SKILL.md", "references/focus.md"],
        SKILLS[2]: ["SKILL.md", "references/sections.md", "scripts/commits.py"],
    }


def test_python_client_sees_resources():
    """
    The official Python client lacks the extension, so it lists each skill as a resource and can read it.
    """

    async def read():
        async with Client(StdioServerParameters(command=COMMAND[0], args=COMMAND[1:])) as client:
            resources = (await client.list_resources()).resources
            texts = [
                (await client.read_resource(str(resource.uri))).contents[0].text
                for resource in resources[-3:]
            ]
            return resources, texts, len((await client.list_prompts()).prompts)

    resources, texts, prompts = asyncio.run(read())

    assert [str(resource.uri) for resource in resources][-3:] == SKILLS
    assert [text.splitlines()[1] for text in texts] == [f"name: {uri.split('/')[2]}" for uri in SKILLS]
    assert prompts == 15


def test_python_client_uses_skills_as_tools_and_prompts():
    """Without the extension, the official Python client reads a skill with tools, or gets it as a prompt."""

    async def use():
        arguments = [*COMMAND[1:], "--skills-as", "tools,prompts"]
        async with Client(StdioServerParameters(command=COMMAND[0], args=arguments)) as client:
            calls = [
                ("find_skills", {"query": "write the changelog"}),
                ("read_skill", {"name": "write-changelog"}),
                ("read_skill", {"name": "write-changelog", "file": "references/sections.md"}),
            ]
            results = [await client.call_tool(name, sent) for name, sent in calls]
            chosen = await client.get_prompt("write-changelog", {"task": "since 0.1"})
            return [result.content[0].text for result in results], chosen.messages[0].content.text

    (found, text, sections), prompt = asyncio.run(use())

    assert json.loads(found)["skills"][0]["name"] == "write-changelog"
    assert text.splitlines()[1] == "name: write-changelog"
    assert sections == (RECIPES / "skills" / "write-changelog" / "references" / "sections.md").read_text()
    assert "references/sections.md" in prompt
    assert prompt.endswith("Task: since 0.1")


def test_format_validator_reports_no_errors(tmp_path):
    """The reference library of the format accepts the files of `export skills`."""
    names = ["promptkit-authoring", "review-changes", "write-changelog"]
    assert main(["export", "skills", str(tmp_path), *names, "--target", str(RECIPES)]) == 0

    assert run_skill_reader("validator", *(tmp_path / name for name in names)) == [[], [], []]


@pytest.mark.installs
@pytest.mark.timeout(TEST_TIMEOUT)
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_typescript_client_sees_resources(installations, mode):
    """The official TypeScript client, without the extension, lists and reads each skill in both eras."""
    client = install(HERE / "typescript", installations)
    calls = [
        {"pages": "resources/list"},
        *({"request": "resources/read", "params": {"uri": uri}} for uri in SKILLS),
    ]

    result = run_typescript(client, COMMAND, RECIPES, mode, calls)

    listed, *reads = result["outcomes"]
    assert result["complaints"] == []
    assert [resource["uri"] for page in listed["pages"] for resource in page["resources"]][-3:] == SKILLS
    texts = [outcome["result"]["contents"][0]["text"] for outcome in reads]
    assert [text.splitlines()[1] for text in texts] == [f"name: {uri.split('/')[2]}" for uri in SKILLS]
