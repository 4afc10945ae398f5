"""Comparison of case texts, line by line and word by word."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from promptkit.cli.diff import summarize_cases
from promptkit.cli.diff_changes import TextChange, changed_words, text_changes
from promptkit.cli.diff_sides import Answer, SentCall

WORDS = st.lists(st.sampled_from(["lorem", "ipsum", "dolor", "sit", "\n", "a.", "x = 1", "é"]), min_size=1)


def side(outcomes):
    """Return the answer of one side."""
    calls = {key: dict.fromkeys(cases, SentCall({}, "case")) for key, cases in outcomes.items()}
    return Answer({}, calls, outcomes, [])


class TestChanges:
    def test_kinds_of_changes(self):
        """Equal text is not a change, and new and removed cases are reported."""
        old = side({"prompt 'a'": {"x": "1", "y": "2", "gone": "3"}})
        new = side({"prompt 'a'": {"x": "1", "y": "3"}, "prompt 'b'": {"z": "4"}})

        assert [str(change) for change in text_changes([old], [new])] == [
            "prompt 'a': 'y' renders different text",
            "prompt 'b': 'z' was added",
            "prompt 'a': 'gone' was removed",
        ]

    def test_unstable_text(self):
        """Text that differs each time is marked and not counted."""
        old, new = side({"p": {"x": "1"}}), side({"p": {"x": "2"}})

        (change,) = text_changes([old, old], [new, side({"p": {"x": "3"}})])

        assert str(change) == "p: 'x' renders different text (it differs each time)"
        assert summarize_cases([change], "HEAD") == "all text is the same as at HEAD"

    @pytest.mark.parametrize(
        ("old", "new", "breaks"),
        [("[user]\nx", "[fails] no", True), ("[fails] a", "[fails] b", False), ("a", "b", False)],
    )
    def test_new_failure(self, old, new, breaks):
        """A case breaks if it fails and did not fail before."""
        assert TextChange("p", "x", old, new).breaking == breaks


class TestWords:
    def test_lines(self):
        """Differing words are marked within their lines, and distant equal lines are omitted."""
        old = "[user]\nReview this code.\na\nb\nc\nd\nEnd."
        new = "[user]\nReview this Rust code.\na\nb\nc\nd\nEnd!"

        assert changed_words(old, new) == [
            [(" ", "[user]")],
            [(" ", "Review this"), ("+", " Rust"), (" ", " code.")],
            [(" ", "a")],
            [(" ", "...")],
            [(" ", "d")],
            [(" ", "End"), ("-", "."), ("+", "!")],
        ]

    @settings(max_examples=30, deadline=None)
    @given(WORDS, st.data())
    def test_inserted_word(self, words, data):
        """An inserted word is the only reported difference."""
        position = data.draw(st.integers(0, len(words)))
        old = " ".join(words)
        new = " ".join([*words[:position], "planted", *words[position:]])

        lines = changed_words(old, new)

        added = [part for line in lines for sign, part in line if sign == "+"]
        assert "".join(added).split() == ["planted"]
        assert not "".join(part for line in lines for sign, part in line if sign == "-").split()

    def test_rewritten_line(self):
        """A line with no word in common is one change, and blanks between words do not split it."""
        assert changed_words("one two three", "four five six") == [
            [("-", "one two three"), ("+", "four five six")]
        ]

    def test_long_strings_are_not_matched(self):
        """The lines of very long strings are not matched, because that could take quadratic time."""
        assert changed_words("x\n" * 2_001, "y") == [[("-", "x")]] * 2_001 + [[("+", "y")]]
        words = "a b " * 1_001
        assert changed_words(words, "y") == [[("-", words), ("+", "y")]]

    def test_unusual_characters(self):
        """Texts can contain NUL and lone surrogates."""
        assert changed_words("a\0b \ud800", "a\0c \ud800") == [
            [(" ", "a\0"), ("-", "b"), ("+", "c"), (" ", " \ud800")]
        ]
