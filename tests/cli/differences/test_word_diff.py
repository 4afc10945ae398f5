"""How what cases say is compared, word by word, and put into a comment."""

import re
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from promptkit.cli.differences.word_diff import (
    TextChange,
    as_comment,
    changed_words,
    summary_of,
    text_changes,
)
from tests.cli.differences.github import ALPHABET, FOREIGN, assert_foreign_text_is_code

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")

WORDS = st.lists(st.sampled_from(["lorem", "ipsum", "dolor", "sit", "\n", "a.", "x = 1", "é"]), min_size=1)


def side(said, cases=None):
    """The data of one side."""
    return {"said": said, "cases": {key: dict.fromkeys(texts) for key, texts in (cases or said).items()}}


def changes(old, new, *again):
    """What differs, in words."""
    return [str(change) for change in text_changes(old, new, again)]


class TestChanges:
    def test_each_kind(self):
        """
        A case that says the same is no change; one on one side only is said.
        """
        old = side({"prompt 'a'": {"x": "1", "y": "2", "gone": "3"}})
        new = side({"prompt 'a'": {"x": "1", "y": "3"}, "prompt 'b'": {"z": "4"}})

        assert changes(old, new) == [
            "prompt 'a': 'y' renders another text",
            "prompt 'b': 'z' is new",
            "prompt 'a': 'gone' is gone",
        ]

    def test_what_says_something_else_each_time(self):
        """
        It is marked, and does not count.
        """
        old, new = side({"p": {"x": "1"}}), side({"p": {"x": "2"}})
        again = new, side({"p": {"x": "3"}})

        (change,) = text_changes(old, new, [again])

        assert str(change) == "p: 'x' renders another text, each time"
        assert summary_of([change], "HEAD") == "no case says anything else than at HEAD"

    @pytest.mark.parametrize(
        ("old", "new", "breaks"),
        [("[user]\nx", "[fails] no", True), ("[fails] a", "[fails] b", False), ("a", "b", False)],
    )
    def test_what_fails_now(self, old, new, breaks):
        """
        A case breaks that fails, and did not.
        """
        assert TextChange("p", "x", old, new).breaks == breaks


class TestWords:
    def test_in_their_lines(self):
        """
        What both sides have stands around what one of them has; equal lines are left out.
        """
        old = "[user]\nReview this code.\na\nb\nc\nd\nEnd."
        new = "[user]\nReview this Rust code.\na\nb\nc\nd\nEnd!"

        assert changed_words(old, new) == [
            [(" ", "[user]")],
            [(" ", "Review this "), ("+", "Rust"), (" ", " code.")],
            [(" ", "a")],
            [(" ", "...")],
            [(" ", "d")],
            [(" ", "End"), ("-", "."), ("+", "!")],
        ]

    @settings(max_examples=30, deadline=None)
    @given(WORDS, st.data())
    def test_every_planted_word_is_found(self, words, data):
        """
        A law: of a text with one word put in, that word is new, and no other.
        """
        at = data.draw(st.integers(0, len(words)))
        old = " ".join(words)
        new = " ".join([*words[:at], "planted", *words[at:]])

        found = changed_words(old, new)

        added = [part for line in found for sign, part in line if sign == "+"]
        assert "".join(added).split() == ["planted"]
        assert not "".join(part for line in found for sign, part in line if sign == "-").split()

    def test_no_configuration_has_a_say(self, tmp_path, monkeypatch):
        """
        Neither that of a repository around the temporary folder, nor one that variables name.
        """
        (tmp_path / ".git").mkdir()
        (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (tmp_path / ".git" / "objects").mkdir()
        (tmp_path / ".git" / "refs").mkdir()
        (tmp_path / ".git" / "config").write_text("[diff\n")  # git fails on it
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

        assert changed_words("a", "b") == [[("-", "a"), ("+", "b")]]
        monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))
        assert changed_words("a", "b") == [[("-", "a"), ("+", "b")]]

    def test_half_a_surrogate_and_what_is_no_text(self):
        """
        Transcripts may hold anything.
        """
        assert changed_words("a\0b \ud800", "a\0c \ud800") != []


class TestComment:
    @pytest.mark.parametrize("text", FOREIGN)
    def test_foreign_text_is_code(self, text):
        """
        Names, texts and revisions hold no Markdown and no HTML.
        """
        changes = [
            TextChange(text, text, "x", text),
            TextChange(text, text, text, "x"),
            TextChange(text, text, "", None),
        ]

        assert_foreign_text_is_code(as_comment(changes, text))

    @settings(max_examples=60, deadline=None)
    @given(ALPHABET, ALPHABET)
    def test_any_foreign_text_is_code(self, name, text):
        """
        A law: no text, whatever marks it is made of, leaves the code that it is put into.
        """
        assert_foreign_text_is_code(as_comment([TextChange(name, name, "x", text)], name))

    def test_it_is_short_enough(self):
        """
        However much has changed, GitHub takes it, and what was cut is said.
        """
        found = [TextChange("prompt 'a'", f"case {n}", "x", f"{n} " * 500_000) for n in range(3)]
        found += [TextChange("prompt 'b'", f"case {n}", "x", "word " * 200) for n in range(200)]

        comment = as_comment(found, "HEAD")

        assert len(comment) < 65_536
        assert "characters cut" in comment
        assert re.search(r"\n\d+ more are not shown: `promptkit diff --text` shows them\.\n$", comment)

    def test_its_form(self):
        """
        A reviewer sees which cases have changed, and unfolds what they say.
        """
        found = [TextChange("prompt 'a'", "x", "[user]\nOld words.", "[user]\nNew words.")]
        found += [TextChange("prompt 'a'", "y", "", None)]

        assert as_comment(found, "main") == (
            "<!-- promptkit diff -->\n\n## What prompts say\n\n` 2 cases changed since main. `\n\n"
            "<details><summary>"
            "<code>prompt &#39;a&#39;&#58; &#39;x&#39; renders another text</code></summary>"
            "\n\n```diff\n [user]\n-Old words.\n+New words.\n```\n\n</details>\n\n"
            "- ` prompt 'a': 'y' is gone `\n"
        )
