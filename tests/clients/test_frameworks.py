"""
Clients of frameworks list and get prompts over HTTP, and their agents call prompts as tools.

Each framework is installed from PyPI, together with the version of the official client that it needs, and is
skipped if that is not possible.
"""

import json
import subprocess
from pathlib import Path

import pytest

from tests.clients.calls import PAGE_SIZE
from tests.clients.python_packages import INSTALLING, install_packages
from tests.clients.script import PROMPTS, RECIPES, TOOLS
from tests.http_server import http_server

FRAMEWORKS = Path(__file__).parent / "frameworks"

#: Timeout for one framework, in seconds; importing it takes most of the time.
RUNNING = 120

pytestmark = [pytest.mark.slow, pytest.mark.installs, pytest.mark.timeout(INSTALLING + RUNNING)]


@pytest.fixture(scope="module")
def server():
    """The URL of a server."""
    with http_server(RECIPES, "--tools", page_size=PAGE_SIZE) as url:
        yield url


@pytest.fixture
def run_in_framework(server, installations):
    """A function that runs a program with a framework and returns its JSON output."""

    def run(program, framework, packages):
        python = install_packages(FRAMEWORKS / f"{packages}.txt", installations)
        command = [str(python), str(FRAMEWORKS / program), framework, server]
        completed = subprocess.run(
            command, capture_output=True, encoding="utf-8", timeout=RUNNING, check=False
        )
        assert completed.returncode == 0, completed.stderr
        return json.loads(completed.stdout)

    return run


@pytest.mark.parametrize(
    ("framework", "packages"),
    [("fastmcp", "mcp_2"), ("pydantic-ai", "mcp_2"), ("langchain", "mcp_1")],
)
def test_client_lists_and_gets_prompts(run_in_framework, framework, packages):
    """
    The client lists all pages, gets a prompt with arguments, and shows the error for an unknown prompt.
    """
    result = run_in_framework("ask.py", framework, packages)

    assert result["listed"] == [prompt["name"] for prompt in PROMPTS]
    assert result["got"] == [{"role": "user", "text": "ferris, write 3 functions in rust."}]
    assert "unknown prompt 'txet'; did you mean 'text'?" in result["missing"]


@pytest.mark.parametrize(("framework", "packages"), [("pydantic-ai", "mcp_2"), ("langchain", "mcp_1")])
def test_agent_calls_a_prompt_as_a_tool(run_in_framework, framework, packages):
    """
    The agent's model gets every prompt as a tool, reads the error of its first call, and corrects the call.
    """
    result = run_in_framework("call.py", framework, packages)

    assert result["tools"] == [tool["name"] for tool in TOOLS]
    assert result["results"] == [
        "prompt 'typed': 'count' is 'three', not a whole number",
        "ferris, write 3 functions in rust.",
    ]
