"""Tests of `request_approval`."""

import pytest
from syrupy.assertion import SnapshotAssertion

from promptkit import PromptError
from promptkit.testing import Client
from recipes.code_review import code_review
from recipes.request_approval import request_approval


def test_choices_are_explicit() -> None:
    """The request offers `approve`, `reject` and `ask`, each on a separate line."""
    rendering = str(request_approval("Drop the table"))

    assert [f"\n- `{choice}`: " in rendering for choice in ("approve", "reject", "ask")] == [True, True, True]


def test_request_covers_summary_risks_and_rollback() -> None:
    """The request asks for a summary, risks and a rollback, in this order."""
    rendering = str(request_approval("Drop the table"))
    positions = [rendering.index(f"**{part}**") for part in ("Summary", "Risks", "Rollback")]

    assert positions == sorted(positions)


def test_diff_is_reviewed_first() -> None:
    """With a diff, the workflow contains the prompt of `code_review` and ends with the request."""
    workflow = request_approval.render_wire({"change": "More retries", "diff": "+retries = 5"})
    review = code_review("+retries = 5", language="diff", intent="More retries")

    assert workflow[2:-1] == review
    assert "Now write the request" in str(workflow[-1])


def test_rendering_matches_the_snapshot(promptkit_snapshot: SnapshotAssertion) -> None:
    """The rendering equals the snapshot, so that the choices cannot change unnoticed."""
    assert request_approval("Drop the table", environment="staging") == promptkit_snapshot


def test_environments_are_completed() -> None:
    """Completion returns the environments that start with the input."""
    assert Client(request_approval).complete("request_approval", "environment", "stag").values == ("staging",)


def test_missing_diff_is_mentioned() -> None:
    """Without a diff, the last message mentions that it is missing."""
    workflow = request_approval("Drop the table", environment="staging")

    assert "staging" in str(workflow[0])
    assert "There is no diff." in str(workflow[-1])


def test_blank_change_is_rejected() -> None:
    """A change from an empty form field is rejected."""
    with pytest.raises(PromptError, match="change is empty"):
        request_approval.render_wire({"change": ""})
