import json

import pytest

from promptkit import Tool, prompt
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.tools import Tools, callable_prompts, everything_expected, find
from promptkit.errors import UnknownToolError


def made(name, description="", **options):
    """Return a compiled prompt."""
    return prompt(name=name, description=description or None, **options)(lambda: "x").compiled


PROMPTS = [
    made("code_review", "Ask for a review of a piece of code."),
    made("commit_message", "Write a message for a change.", tags=["git"]),
    made("explain", "Say what code does.", title="Explain Code"),
    made("release_notes", "Write the notes of a release.", tags=["git", "release"]),
    made("travel", "Plan a journey by train."),
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
        ("journey", ["travel"]),
        ("jrny", []),
        ("cmsg", ["commit_message"]),
        ("nothing xyz", []),
        ("travel travel code travel", ["travel", "code_review", "explain"]),
        (" ".join(f"0{number}" for number in range(16)) + " travel", []),
        ("", [one.name for one in PROMPTS]),
        (" ", [one.name for one in PROMPTS]),
    ],
)
def test_what_is_found(query, names):
    """
    Results are sorted by the number of matching words, then by the quality of the match, then in their
    original order. Only names, titles and tags match with gaps.
    """
    assert [one.name for one in find(PROMPTS, query)] == names


@pytest.mark.parametrize("tags", ["git", 5, None, {"a": 1}], ids=str)
def test_tags_that_an_author_has_put_into_meta(tags):
    """Tags in `meta` that are not a list are ignored, and the search still works."""
    odd = made("odd", meta={"promptkit/tags": tags})
    plain = made("plain", meta={"promptkit/tags": ["git", 5]})

    assert (odd.tags, plain.tags) == ((), ("git", "5"))
    assert find([odd, plain], "git") == [plain]


def test_what_is_expected_of_any_is_the_worst():
    """A tool that can call any of several prompts has the most pessimistic of their hints."""
    said = [made("a", tool=Tool(idempotent=False)), made("b", tool=Tool(read_only=False)), made("c")]

    assert everything_expected(said) == Tool(read_only=False, idempotent=False)
    assert everything_expected([]) == Tool()


def test_a_prompt_that_is_no_tool_is_in_neither_list():
    """A prompt with `tool=False` is not listed, found, called or suggested as a tool."""
    catalog = Catalog((*PROMPTS, made("traveller", tool=False)))

    assert "traveller" not in [one.name for one in callable_prompts(catalog)]
    with pytest.raises(UnknownToolError, match=r"^unknown tool 'traveller'; did you mean 'travel'\?$"):
        Tools(catalog)["traveller"]
    (shown,) = Tools(catalog, search=True)["find_prompts"].render({"query": "traveller"})
    assert json.loads(shown.text)["found"] == 0


def test_a_tool_is_made_once():
    """A tool is compiled once, on first use."""
    tools = Tools(Catalog(PROMPTS))

    assert tools["travel"] is tools["travel"]
