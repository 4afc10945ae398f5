"""The summary of a job, which GitHub renders as Markdown."""

import pytest
from hypothesis import given, settings

from promptkit.cli.differences.changes import Difference, Kind
from promptkit.cli.differences.summary import as_summary
from tests.cli.differences.github import ALPHABET, FOREIGN, assert_foreign_text_is_code


@pytest.mark.parametrize("text", FOREIGN)
def test_foreign_text_is_code(text):
    """
    Names, texts and revisions hold no Markdown and no HTML.
    """
    assert_foreign_text_is_code(summary(text, text))


@settings(max_examples=200, deadline=None)
@given(ALPHABET, ALPHABET)
def test_any_foreign_text_is_code(name, text):
    """
    A law: no text, whatever marks it is made of, leaves the code that it is put into.
    """
    assert_foreign_text_is_code(summary(name, text))


def summary(name, text):
    """Three changes, two of which have a block of code within their item."""
    changes = [
        Difference(Kind.RENDERING, name, name, "x", text),
        Difference(Kind.RENDERING, name, name, text, "x"),
        Difference(Kind.PROMPT_REMOVED, name, name),
    ]
    return as_summary(changes, name)


def test_it_is_short_enough():
    """
    GitHub drops a summary of more than 1 MiB; cuts are marked.
    """
    change = Difference(Kind.RENDERING, "prompt 'a'", "renders another text", "", "\U0001f600" * 100_000)

    summary_ = as_summary([change] * 100, "HEAD")

    assert len(summary_.encode()) < 1 << 20
    assert "characters cut" in summary_
    assert summary_.endswith(" more are not shown: `promptkit diff` shows them.\n")
