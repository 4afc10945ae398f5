"""The summary of a job, which GitHub renders as Markdown."""

import pytest
from hypothesis import given, settings

from promptkit.cli.differences.changes import Difference, Kind
from promptkit.cli.differences.summary import as_summary
from tests.cli.differences.github import ALPHABET, FOREIGN, assert_foreign_text_is_code


@pytest.mark.parametrize("text", FOREIGN)
def test_foreign_text_is_code(text):
    """Names, texts and revisions contain no Markdown or HTML."""
    assert_foreign_text_is_code(summarize(text, text))


@settings(max_examples=200, deadline=None)
@given(ALPHABET, ALPHABET)
def test_any_foreign_text_is_code(name, text):
    """No combination of markup characters leaves the surrounding code."""
    assert_foreign_text_is_code(summarize(name, text))


def summarize(name, text):
    """Return the summary of three changes, two of which contain a block of code."""
    changes = [
        Difference(Kind.RENDERING, name, name, "x", text),
        Difference(Kind.RENDERING, name, name, text, "x"),
        Difference(Kind.PROMPT_REMOVED, name, name),
    ]
    return as_summary(changes, name)


def test_summary_is_truncated():
    """A summary stays below GitHub's limit of 1 MiB, and cuts are marked."""
    change = Difference(Kind.RENDERING, "prompt 'a'", "renders another text", "", "\U0001f600" * 100_000)

    summary = as_summary([change] * 100, "HEAD")

    assert len(summary.encode()) < 1 << 20
    assert "characters cut" in summary
    assert summary.endswith(" more are not shown: `promptkit diff` shows them.\n")
