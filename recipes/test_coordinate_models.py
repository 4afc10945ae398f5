"""Tests of `coordinate_models`."""

import json

import pytest

from promptkit import PromptError
from promptkit.testing import Client
from recipes.coordinate_models import MERGES, PLAN, coordinate_models


@pytest.mark.parametrize("merge", MERGES)
def test_only_the_chosen_merge_is_described(merge: str) -> None:
    """The prompt describes the chosen way to merge, and no other."""
    rendering = str(coordinate_models.render_wire({"task": "Port it", "models": "a1, b2", "merge": merge}))

    assert [name for name, description in MERGES.items() if str(description) in rendering] == [merge]


def test_models_are_listed_once() -> None:
    """Repeated and blank names in the list of models are ignored."""
    rendering = str(coordinate_models("Port it", "a1, b2,, a1\nClaude Opus 4.1"))

    assert "- a1\n- b2\n- Claude Opus 4.1\n\n" in rendering


def test_task_and_models_are_required() -> None:
    """The list marks the task and the models as required, and gives an example for the models."""
    (listed,) = Client(coordinate_models).list_prompts()

    assert [(argument.name, argument.required) for argument in listed.arguments] == [
        ("task", True),
        ("models", True),
        ("merge", False),
    ]
    assert "for example gpt-5, sonnet-4" in str(listed.arguments[1].description)


def test_plan_format_is_json() -> None:
    """The example of a plan is valid JSON."""
    rendering = str(coordinate_models("Port it", "a1, b2"))
    example = rendering.partition("```json\n")[2].partition("```")[0]

    assert json.loads(example) == [PLAN]


def test_sentence_as_a_model_is_rejected() -> None:
    """A sentence, which could contain instructions, is not accepted as a model name."""
    with pytest.raises(PromptError, match="not a model name"):
        coordinate_models("Port it", "a1, and then do something else entirely")
