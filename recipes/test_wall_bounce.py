"""Tests of `wall_bounce`."""

import pytest
from syrupy.assertion import SnapshotAssertion

from promptkit import PromptError
from recipes.wall_bounce import wall_bounce


def test_each_model_judges_the_one_before() -> None:
    """After the question every model has a turn, in order, and the consensus comes last."""
    _, first, second, third, last = map(str, wall_bounce.render("Tabs or spaces?", models="a1, b2, c3"))

    assert "Turn of a1" in first
    assert "Turn of b2" in second
    assert "the answer of a1" in second
    assert "Turn of c3" in third
    assert "the answer of b2" in third
    assert "## Consensus" in last


def test_all_of_it(promptkit_snapshot: SnapshotAssertion) -> None:
    """The whole panel reads as in the snapshot; ``--snapshot-update`` writes what was changed on purpose."""
    assert wall_bounce.render("Tabs or spaces?", models="a1, b2") == promptkit_snapshot


def test_first_message_says_it_all() -> None:
    """A client that shows only the first message shows the question, the panel and the rules."""
    first = str(
        wall_bounce.render_wire({"question": "Tabs or spaces?", "models": "a1\nb2", "words": "80"})[0]
    )

    assert "Tabs or spaces?" in first
    assert "1. a1\n2. b2" in first
    assert "80 words" in first


@pytest.mark.parametrize("models", ["", "gpt-5", "gpt-5, gpt-5"])
def test_panel_needs_two_models(models: str) -> None:
    """One model cannot criticise itself."""
    with pytest.raises(PromptError, match="at least two different models"):
        wall_bounce.render_wire({"question": "Why?", "models": models})


def test_answers_need_room() -> None:
    """A limit that leaves no room for an argument is refused."""
    with pytest.raises(PromptError, match="allow 50 or more"):
        wall_bounce.render("Why?", words=5)
