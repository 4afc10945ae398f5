import json
from dataclasses import dataclass
from typing import Literal

import pytest

from promptkit import prompt, user
from promptkit.compiler.compilation import compile
from promptkit.errors.rules import Rule
from promptkit.loader.recipes import Recipes
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.pagination import paginate
from promptkit.protocol.revisions import LATEST_HANDSHAKE, REVISIONS


@dataclass
class Verdict:
    """The verdict on a change."""

    word: Literal["yes", "no"]
    why: str = ""


SCHEMA = {
    "type": "object",
    "properties": {
        "word": {"type": "string", "enum": ["yes", "no"]},
        "why": {"type": "string", "default": ""},
    },
    "required": ["word"],
}


@prompt(answer=Verdict)
def judge(diff: str):
    """Judge a change."""
    return user(diff)


@prompt(answer=Verdict)
async def judge_later():
    """Judge nothing."""
    yield "Judge."


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_list_has_the_schema_of_an_answer(revision):
    """In revisions with metadata, `prompts/list` includes the JSON schema of a prompt's answer."""
    features = REVISIONS[revision]
    (entry,) = json.loads(paginate("prompts/list", compile(Recipes([judge])), lowering_for(features)).page())[
        "prompts"
    ]

    assert entry.get("_meta", {}).get("promptkit/answer") == (SCHEMA if features.metadata else None)


def test_a_tool_has_no_answer_schema():
    """A tool has no answer schema, because it returns the prompt and not the answer."""
    assert lowering_for(LATEST_HANDSHAKE).tool(judge.compiled).meta == {}


def test_every_rendering_has_the_answer_type():
    """Every way to render sets the answer type, which comparisons ignore and `+` drops."""
    rendered = judge.render("x")

    assert (
        rendered.answer is judge.render_wire({"diff": "x"}).answer is judge_later.render().answer is Verdict
    )
    assert rendered == user("x")
    assert (rendered + "y").answer is None
    assert (user("y") + rendered).answer is None


@pytest.mark.parametrize(
    ("answer", "subject"),
    [(object, "object"), (3, "3"), (Verdict("yes"), "Verdict("), (list[object], "list[object]")],
)
def test_an_invalid_answer_type_is_reported(answer, subject):
    """An invalid answer type is reported with a hint that names valid ones."""

    @prompt(answer=answer)
    def wrong():
        return "x"

    (diagnostic,) = wrong.compile()[1]

    assert diagnostic.rule is Rule.BAD_ANSWER
    assert diagnostic.message.startswith(f"prompt 'wrong': {subject}")
    assert diagnostic.message.endswith("cannot be the type of an answer")
    assert diagnostic.hint.startswith("use a dataclass")
