"""`promptkit dev --mcp`: the tools for a coding agent, as the official client calls them."""

import sys

import pytest

from promptkit.cli import main
from promptkit.cli.dev_tools import explain
from promptkit.errors.exceptions import PromptError
from promptkit.errors.rules import Rule
from tests.clients import python_client

RECIPE = """
from promptkit import prompt

@prompt
def greet(name: str):
    "Say hello."
    return "Hello, {name}."

greet.case("a friend", "Ada")
"""


def call(tool, **arguments):
    """Return a request for a tool call."""
    return {"request": "tools/call", "params": {"name": tool, "arguments": arguments}}


def text_of(outcome):
    """Return the text of a tool's result."""
    return outcome["result"]["content"][0]["text"]


def test_agent_finds_and_understands_a_problem(recipes):
    """The agent lists, checks and renders the prompts of the project, and gets the explanation of a code."""
    folder = recipes("project/prompts", greet=RECIPE)
    calls = [
        {"request": "tools/list", "params": {}},
        call("list_prompts"),
        call("check_prompts"),
        call("render_prompt", name="greet", arguments={"name": "@Ada"}),
        call("render_cases", name="greet"),
        call("explain_code", code="pk207"),
        call("explain_code", code="PK999"),
    ]
    command = [sys.executable, "-m", "promptkit", "dev", "--mcp", str(folder)]
    listed, *outcomes = python_client.run(command, folder, "auto", calls)["outcomes"]
    texts = list(map(text_of, outcomes))

    assert [tool["name"] for tool in listed["result"]["tools"]] == [
        "check_prompts",
        "explain_code",
        "list_prompts",
        "render_cases",
        "render_prompt",
    ]
    assert "prompt greet: Say hello." in texts[0]
    assert "PK207" in texts[1]
    assert "Hello, {name}." in texts[2]
    assert "a friend" in texts[3]
    assert texts[4].startswith("# PK207")
    assert outcomes[5]["result"]["isError"]


def test_every_code_is_explained():
    """Each code has an explanation; an unknown code is an error that the model receives."""
    assert [rule.value for rule in Rule if not explain(rule.value).startswith(f"# {rule.value}\n\n")] == []
    with pytest.raises(PromptError, match="there is no code 'PK999'"):
        explain("PK999")


def test_options_of_the_preview_are_rejected(capsys):
    """Options of the preview are rejected with `--mcp`, which uses stdio."""
    with pytest.raises(SystemExit):
        main(["dev", "--mcp", "--port", "0"])
    assert "--port is for the preview" in capsys.readouterr().err
