"""Tests of `request_approval`."""

import pytest
from syrupy.assertion import SnapshotAssertion

from promptkit import PromptError
from promptkit.testing import Client
from recipes.code_review import code_review
from recipes.request_approval import request_approval


def test_choice_is_explicit() -> None:
    """The person is offered to approve, to reject or to ask, each on a line of its own."""
    shown = str(request_approval("Drop the table"))

    assert [f"\n- `{word}`: " in shown for word in ("approve", "reject", "ask")] == [True, True, True]


def test_request_covers_summary_risks_and_rollback() -> None:
    """What one needs to know before deciding is asked for in this order."""
    shown = str(request_approval("Drop the table"))
    places = [shown.index(f"**{part}**") for part in ("Summary", "Risks", "Rollback")]

    assert places == sorted(places)


def test_diff_is_reviewed_first() -> None:
    """With a diff the workflow holds the review that `code_review` asks for, and ends with the request."""
    workflow = request_approval.render_wire({"change": "More retries", "diff": "+retries = 5"})
    review = code_review("+retries = 5", language="diff", intent="More retries")

    assert workflow[2:-1] == review
    assert "Now write the request" in str(workflow[-1])


def test_all_of_it(promptkit_snapshot: SnapshotAssertion) -> None:
    """What the person is asked reads as in the snapshot: nobody changes the choice unseen."""
    assert request_approval("Drop the table", environment="staging") == promptkit_snapshot


def test_environments_are_offered_while_one_types() -> None:
    """A client completes where the change takes effect."""
    assert Client(request_approval).complete("request_approval", "environment", "stag").values == ("staging",)


def test_missing_diff_is_no_secret() -> None:
    """Without a diff the request has to say what nobody has seen."""
    workflow = request_approval("Drop the table", environment="staging")

    assert "staging" in str(workflow[0])
    assert "There is no diff." in str(workflow[-1])


def test_blank_change_is_refused() -> None:
    """There is nothing to approve in an empty field."""
    with pytest.raises(PromptError, match="no change"):
        request_approval.render_wire({"change": ""})
