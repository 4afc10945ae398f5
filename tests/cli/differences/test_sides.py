"""One side of a comparison: a process of its own, which may hang."""

import pytest

from promptkit.cli.differences import sides
from promptkit.cli.differences.revisions import RevisionError
from promptkit.cli.differences.sides import Side


def test_a_side_that_hangs_is_given_up(recipes, monkeypatch):
    """
    Also where it is asked for more than a pipe holds, and reads nothing of it.
    """
    monkeypatch.setattr(sides, "_MAX_S", 1.0)
    folder = recipes(hangs="import time\ntime.sleep(60)\n")

    with (
        Side(sides.__name__, folder.parent, [folder.name]) as side,
        pytest.raises(RevisionError, match="did not end within 1 s"),
    ):
        side.answer({"asked": "x" * 1_000_000})
