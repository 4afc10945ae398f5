import json
import tomllib
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from promptkit.compiler import compile
from promptkit.errors import ArgumentErrors
from promptkit.loader import load
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.revisions import LATEST_HANDSHAKE

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = [token for token in MarkdownIt().parse(README) if token.type == "fence"]


def blocks(language):
    return [token.content for token in BLOCKS if token.info == language]


@pytest.fixture
def review(recipes):
    """The README's first prompt, in a catalog of its own."""
    return compile(load(recipes(review=blocks("python")[0])))


def test_the_listing_is_what_a_client_receives(review):
    """
    The first JSON block is the reply to ``prompts/list``, but for the schema that the text names.
    """
    listing = json.loads(lowering_for(LATEST_HANDSHAKE).listing(review))
    (meta,) = [prompt.pop("_meta") for prompt in listing["prompts"]]

    assert json.loads(blocks("json")[0]) == listing
    assert "`promptkit/arguments`" in README
    assert list(meta) == ["promptkit/arguments"]


def test_the_text_is_what_a_client_receives(review):
    """
    The text that is shown is what the arguments above it give.
    """
    (message,) = review.render("review", {"code": "x = 1", "language": "Python"})

    assert str(message.content) == blocks("text")[0].rstrip("\n")


def test_the_refusal_is_what_a_person_reads(review):
    """
    The sentence that is quoted is the one that is sent.
    """
    with pytest.raises(ArgumentErrors) as refused:
        review.render("review", {"language": "cobol"})

    assert f"`{refused.value}`" in README.replace("\n", " ")


def test_the_commands_are_what_ci_runs():
    """
    The two commands of the README are run to the letter.
    """
    install, test = blocks("sh")[:2]

    assert install == "pip install . && promptkit serve recipes\n"
    assert test == "pip install -e '.[dev]' && pytest\n"
    assert test.strip() in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_every_configuration_is_json():
    """
    What is to be pasted into a client's configuration can be read by it.
    """
    for block in blocks("json"):
        assert json.loads(block)


def test_dependencies_have_a_range():
    """
    Every dependency has a lower and an upper bound.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [name for names in project["optional-dependencies"].values() for name in names]

    assert [name for name in project["dependencies"] + extras if not (">=" in name and ",<" in name)] == []
