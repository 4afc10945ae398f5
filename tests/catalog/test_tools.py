import json

import pytest

from promptkit import Tool, prompt
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.tools import Tools, callable_prompts, combine_hints, find
from promptkit.errors import UnknownToolError


def make_prompt(name, description="", **options):
    """Return a compiled prompt."""
    return prompt(name=name, description=description or None, **options)(lambda: "x").compiled


PROMPTS = [
    make_prompt("code_review", "Ask for a review of a piece of code."),
    make_prompt("commit_message", "Write a message for a change.", tags=["git"]),
    make_prompt("explain", "Say what code does.", title="Explain Code"),
    make_prompt("release_notes", "Write the notes of a release.", tags=["git", "release"]),
    make_prompt("travel", "Plan a journey by train."),
]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("travel", ["travel"]),
        ("TRAVEL", ["travel"]),
        ("code", ["code_review", "explain"]),
        ("code review", ["code_review", "explain"]),
        ("review code", ["code_review", "explain"]),
        ("git", ["commit_message", "release_notes"]),
        ("release git", ["release_notes", "commit_message"]),
        ("reviews of releases", ["release_notes", "code_review"]),
        ("journey", ["travel"]),
        ("nothing xyz", []),
        ("", [compiled.name for compiled in PROMPTS]),
        (" ", [compiled.name for compiled in PROMPTS]),
        ("please help", [compiled.name for compiled in PROMPTS]),
    ],
)
def test_search_results(query, names):
    """Results are sorted by the words that they share with the query, and rare words count more."""
    assert [compiled.name for compiled in find(PROMPTS, query)] == names


@pytest.mark.parametrize("tags", ["git", 5, None, {"a": 1}], ids=str)
def test_invalid_tags_are_ignored(tags):
    """Tags in `meta` that are not a list are ignored, and the search still works."""
    odd = make_prompt("odd", meta={"promptkit/tags": tags})
    plain = make_prompt("plain", meta={"promptkit/tags": ["git", 5]})

    assert (odd.tags, plain.tags) == ((), ("git", "5"))
    assert find([odd, plain], "git") == [plain]


def test_hints_of_several_prompts_are_combined():
    """A tool that can call any of several prompts has the most pessimistic of their hints."""
    prompts = [
        make_prompt("a", tool=Tool(idempotent=False)),
        make_prompt("b", tool=Tool(read_only=False)),
        make_prompt("c"),
    ]

    assert combine_hints(prompts) == Tool(read_only=False, idempotent=False)
    assert combine_hints([]) == Tool()


def test_prompt_without_a_tool_is_hidden():
    """A prompt with `tool=False` is not listed, found, called or suggested as a tool."""
    catalog = Catalog((*PROMPTS, make_prompt("traveller", tool=False)))

    assert "traveller" not in [compiled.name for compiled in callable_prompts(catalog)]
    with pytest.raises(UnknownToolError, match=r"^unknown tool 'traveller'; did you mean 'travel'\?$"):
        Tools(catalog)["traveller"]
    (message,) = Tools(catalog, search=True)["find_prompts"].render({"query": "traveller"})
    assert json.loads(message.text)["found"] == 0


def test_tool_is_compiled_once():
    """A tool is compiled once, on first use."""
    tools = Tools(Catalog(PROMPTS))

    assert tools["travel"] is tools["travel"]
