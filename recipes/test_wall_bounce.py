"""Tests of `wall_bounce`."""

import pytest
from syrupy.assertion import SnapshotAssertion

from promptkit import PromptError
from recipes.wall_bounce import wall_bounce


def test_each_model_criticizes_the_previous_answer() -> None:
    """Every model has one turn, in order, between the question and the consensus."""
    _, first, second, third, consensus = map(str, wall_bounce.render("Tabs or spaces?", models="a1, b2, c3"))

    assert "Turn of a1" in first
    assert "Turn of b2" in second
    assert "the answer from a1" in second
    assert "Turn of c3" in third
    assert "the answer from b2" in third
    assert "## Consensus" in consensus


def test_rendering_matches_the_snapshot(promptkit_snapshot: SnapshotAssertion) -> None:
    """The rendering equals the snapshot; ``--snapshot-update`` accepts intended changes."""
    assert wall_bounce.render("Tabs or spaces?", models="a1, b2") == promptkit_snapshot


def test_first_message_has_question_panel_and_limit() -> None:
    """The first message contains the question, the panel and the word limit."""
    message = wall_bounce.render_wire({"question": "Tabs or spaces?", "models": "a1\nb2", "words": "80"})[0]

    assert "Tabs or spaces?" in str(message)
    assert "1. a1\n2. b2" in str(message)
    assert "80 words" in str(message)


@pytest.mark.parametrize("models", ["", "gpt-5", "gpt-5, gpt-5"])
def test_panel_needs_two_models(models: str) -> None:
    """Fewer than two different models are rejected."""
    with pytest.raises(PromptError, match="at least two different models"):
        wall_bounce.render_wire({"question": "Why?", "models": models})


def test_word_limit_has_a_minimum() -> None:
    """A limit of fewer than 50 words is rejected."""
    with pytest.raises(PromptError, match="allow 50 or more"):
        wall_bounce.render("Why?", words=5)
