"""Requests for Markdown prompts: tools, elicitation, scopes and programs that load them by name."""

import pytest

from promptkit.compiler import compile
from promptkit.errors import UnknownPromptError
from promptkit.testing import Client, ProtocolError

REVIEW = """\
---
title: Review
elicit: true
scopes: [team]
tool: {read-only: true}
deprecated: use check
arguments:
  diff: The change
  depth: {choices: [quick, thorough], default: quick}
  count: {type: int, default: 1}
---
Review {{diff}}, {{depth}}, {{count}}.
"""


@pytest.fixture
def prompts(tmp_path):
    """A folder with two Markdown prompts, one of which requires a scope."""
    (tmp_path / "review.prompt.md").write_text(REVIEW)
    (tmp_path / "tidy.prompt.md").write_text("---\ntool: false\n---\nTidy up.")
    return tmp_path


def test_prompts_are_listed_and_rendered(prompts):
    """A list has the names, titles and arguments, and a request converts and validates arguments."""
    client = Client(prompts, scopes=["team"])

    review, tidy = client.list_prompts()
    assert [argument.name for argument in review.arguments] == ["diff", "depth", "count"]
    assert (review.title, tidy.arguments) == ("Review", [])
    assert review.description == "Deprecated: use check. Review {{diff}}, {{depth}}, {{count}}."
    arguments = {"diff": "x", "depth": "Thorough", "count": "2"}
    assert client.get_prompt("review", arguments).text == "Review x, thorough, 2."
    assert client.complete("review", "depth", "t").values == ("thorough",)
    with pytest.raises(ProtocolError, match="'count' is 'two', not a whole number"):
        client.get_prompt("review", {"diff": "x", "count": "two"})


def test_tools(prompts):
    """A prompt is a tool with its hints, unless its front matter has `tool: false`."""
    client = Client(prompts, scopes=["team"], tools=True)

    (tool,) = client.list_tools()
    assert (tool.name, tool.annotations.read_only_hint) == ("review", True)
    assert client.call_tool("review", {"diff": "x", "count": 3}).text == "Review x, quick, 3."


def test_elicitation(prompts):
    """A prompt with `elicit: true` asks for its missing arguments."""
    client = Client(prompts, scopes=["team"], answers={"diff": "y"})

    assert client.get_prompt("review").text == "Review y, quick, 1."


def test_optional_arguments_are_offered(tmp_path):
    """A prompt with `elicit: always` asks for its optional arguments, even if a model calls it."""
    (tmp_path / "tidy.prompt.md").write_text(
        "---\nelicit: always\narguments:\n  depth: {default: quick}\n---\n{{depth}}"
    )
    client = Client(tmp_path, tools=True, answers={"depth": "thorough"})

    assert client.get_prompt("tidy").text == "thorough"
    assert client.call_tool("tidy", {}).text == "thorough"


def test_scopes(prompts):
    """A prompt with scopes does not exist for callers without them."""
    client = Client(prompts)

    assert [prompt.name for prompt in client.list_prompts()] == ["tidy"]
    with pytest.raises(ProtocolError, match="review"):
        client.get_prompt("review", {"diff": "x"})


def test_a_program_loads_prompts_by_name(prompts):
    """A program takes a Markdown prompt from the catalog by its name and renders it."""
    catalog = compile(str(prompts))

    assert catalog["review"].render({"diff": "x"}).text == "Review x, quick, 1."
    with pytest.raises(UnknownPromptError):
        catalog["revue"]
