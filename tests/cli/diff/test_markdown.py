"""The summary of a job and the comment on a pull request, which GitHub renders as Markdown."""

import re

import pytest
from hypothesis import given, settings

from promptkit.cli.diff import format_as_markdown, summarize_cases
from promptkit.cli.diff_changes import Difference, TextChange
from tests.cli.diff.github import ALPHABET, FOREIGN, assert_untrusted_text_is_code


@pytest.mark.parametrize("text", FOREIGN)
def test_untrusted_text_is_code(text):
    """Names, text and revisions contain no Markdown or HTML."""
    assert_untrusted_text_is_code(markdown_of(text, text))


@settings(max_examples=100, deadline=None)
@given(ALPHABET, ALPHABET)
def test_any_untrusted_text_is_code(name, text):
    """No combination of markup characters leaves the surrounding code."""
    assert_untrusted_text_is_code(markdown_of(name, text))


def markdown_of(name, text):
    """Return four changes as Markdown, three of which contain a block of code."""
    changes = [
        Difference("rendering", name, name, "x", text),
        Difference("rendering", name, name, text, "x"),
        Difference("prompt-removed", name, name),
        TextChange(name, name, "x", text),
    ]
    return format_as_markdown("## Prompts", name, changes, "promptkit diff")


def test_text_is_truncated():
    """A comment stays below GitHub's limit of 65,536 characters, and cuts are marked."""
    changes = [TextChange("prompt 'a'", f"case {n}", "x", f"{n} " * 50_000) for n in range(3)]
    changes += [TextChange("prompt 'b'", f"case {n}", "x", "word " * 200) for n in range(200)]

    comment = format_as_markdown("## Text of prompts", "203 cases changed", changes, "promptkit diff --text")

    assert len(comment) < 65_536
    assert "characters cut" in comment
    assert re.search(
        r"\n\d+ more changes are not shown: run `promptkit diff --text` to see all\.\n$", comment
    )


def test_format():
    """The comment lists the changed cases with their text."""
    changes = [TextChange("prompt 'a'", "x", "[user]\nOld words.", "[user]\nNew words.")]
    changes += [TextChange("prompt 'a'", "y", "", None)]

    assert format_as_markdown("## Title", summarize_cases(changes, "main"), changes, "x") == (
        "## Title\n\n` 2 renderings changed since main `\n\n"
        "- **harmless**: ` prompt 'a': 'x' renders different text `\n\n"
        "  ```diff\n   [user]\n  -Old words.\n  +New words.\n  ```\n\n"
        "- **harmless**: ` prompt 'a': 'y' was removed `\n"
    )
