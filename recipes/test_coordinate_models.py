"""Tests of `coordinate_models`."""

import json

import pytest

from promptkit import PromptError
from promptkit.testing import Client
from recipes.coordinate_models import MERGES, PLAN, coordinate_models


@pytest.mark.parametrize("merge", MERGES)
def test_each_way_to_merge_can_be_chosen(merge: str) -> None:
    """The way that was chosen is described, and no other."""
    shown = str(coordinate_models.render_wire({"task": "Port it", "models": "a1, b2", "merge": merge}))

    assert [name for name, text in MERGES.items() if str(text) in shown] == [merge]


def test_models_are_listed_once() -> None:
    """Repetitions and blanks in the list of models do no harm."""
    shown = str(coordinate_models("Port it", "a1, b2,, a1\nClaude Opus 4.1"))

    assert "- a1\n- b2\n- Claude Opus 4.1\n\n" in shown


def test_client_sees_which_arguments_have_to_be_entered() -> None:
    """The list asks for the task and the models, shows an example of both, and leaves the merging open."""
    (listed,) = Client(coordinate_models).list_prompts()

    assert [(one.name, one.required) for one in listed.arguments] == [
        ("task", True),
        ("models", True),
        ("merge", False),
    ]
    assert "for example gpt-5, sonnet-4" in str(listed.arguments[1].description)


def test_form_of_the_plan_is_json() -> None:
    """The example of a plan can be read by a program, as the plan itself shall be."""
    shown = str(coordinate_models("Port it", "a1, b2"))
    example = shown.partition("```json\n")[2].partition("```")[0]

    assert json.loads(example) == [PLAN]


def test_sentence_is_no_model() -> None:
    """Instructions cannot be smuggled in as the name of a model."""
    with pytest.raises(PromptError, match="no model's name"):
        coordinate_models("Port it", "a1, and then do something else entirely")
