"""Word-by-word comparison of texts, and the comment with the changes."""

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


def side(texts, cases=None):
    """Return the data of one side."""
    return {"said": texts, "cases": {key: dict.fromkeys(names) for key, names in (cases or texts).items()}}


def changes(old, new, *repeats):
    """Return the changes as messages."""
    return [str(change) for change in text_changes(old, new, repeats)]


class TestChanges:
    def test_kinds_of_changes(self):
        """An equal text is not a change, and new and removed cases are reported."""
        old = side({"prompt 'a'": {"x": "1", "y": "2", "gone": "3"}})
        new = side({"prompt 'a'": {"x": "1", "y": "3"}, "prompt 'b'": {"z": "4"}})

        assert changes(old, new) == [
            "prompt 'a': 'y' renders another text",
            "prompt 'b': 'z' is new",
            "prompt 'a': 'gone' is gone",
        ]

    def test_unstable_text(self):
        """A text that differs each time is marked and not counted."""
        old, new = side({"p": {"x": "1"}}), side({"p": {"x": "2"}})
        repeats = new, side({"p": {"x": "3"}})

        (change,) = text_changes(old, new, [repeats])

        assert str(change) == "p: 'x' renders another text, each time"
        assert summary_of([change], "HEAD") == "no case says anything else than at HEAD"

    @pytest.mark.parametrize(
        ("old", "new", "breaks"),
        [("[user]\nx", "[fails] no", True), ("[fails] a", "[fails] b", False), ("a", "b", False)],
    )
    def test_new_failure(self, old, new, breaks):
        """A case breaks if it fails and did not fail before."""
        assert TextChange("p", "x", old, new).breaks == breaks


class TestWords:
    def test_lines(self):
        """Differing words are marked within their lines, and distant equal lines are omitted."""
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
    def test_inserted_word(self, words, data):
        """An inserted word is the only reported difference."""
        position = data.draw(st.integers(0, len(words)))
        old = " ".join(words)
        new = " ".join([*words[:position], "planted", *words[position:]])

        lines = changed_words(old, new)

        added = [part for line in lines for sign, part in line if sign == "+"]
        assert "".join(added).split() == ["planted"]
        assert not "".join(part for line in lines for sign, part in line if sign == "-").split()

    def test_git_configuration_is_ignored(self, tmp_path, monkeypatch):
        """Git configuration is ignored, whether around the temporary folder or from environment variables."""
        (tmp_path / ".git").mkdir()
        (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (tmp_path / ".git" / "objects").mkdir()
        (tmp_path / ".git" / "refs").mkdir()
        (tmp_path / ".git" / "config").write_text("[diff\n")  # git fails on it
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

        assert changed_words("a", "b") == [[("-", "a"), ("+", "b")]]
        monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))
        assert changed_words("a", "b") == [[("-", "a"), ("+", "b")]]

    def test_unusual_characters(self):
        """Texts can contain NUL and lone surrogates."""
        assert changed_words("a\0b \ud800", "a\0c \ud800") != []


class TestComment:
    @pytest.mark.parametrize("text", FOREIGN)
    def test_foreign_text_is_code(self, text):
        """Names, texts and revisions contain no Markdown or HTML."""
        changes = [
            TextChange(text, text, "x", text),
            TextChange(text, text, text, "x"),
            TextChange(text, text, "", None),
        ]

        assert_foreign_text_is_code(as_comment(changes, text))

    @settings(max_examples=60, deadline=None)
    @given(ALPHABET, ALPHABET)
    def test_any_foreign_text_is_code(self, name, text):
        """No combination of markup characters leaves the surrounding code."""
        assert_foreign_text_is_code(as_comment([TextChange(name, name, "x", text)], name))

    def test_comment_is_truncated(self):
        """A comment stays below GitHub's limit, and cuts are marked."""
        changes = [TextChange("prompt 'a'", f"case {n}", "x", f"{n} " * 500_000) for n in range(3)]
        changes += [TextChange("prompt 'b'", f"case {n}", "x", "word " * 200) for n in range(200)]

        comment = as_comment(changes, "HEAD")

        assert len(comment) < 65_536
        assert "characters cut" in comment
        assert re.search(r"\n\d+ more are not shown: `promptkit diff --text` shows them\.\n$", comment)

    def test_format(self):
        """The comment lists the changed cases, with their texts folded."""
        changes = [TextChange("prompt 'a'", "x", "[user]\nOld words.", "[user]\nNew words.")]
        changes += [TextChange("prompt 'a'", "y", "", None)]

        assert as_comment(changes, "main") == (
            "<!-- promptkit diff -->\n\n## What prompts say\n\n` 2 cases changed since main. `\n\n"
            "<details><summary>"
            "<code>prompt &#39;a&#39;&#58; &#39;x&#39; renders another text</code></summary>"
            "\n\n```diff\n [user]\n-Old words.\n+New words.\n```\n\n</details>\n\n"
            "- ` prompt 'a': 'y' is gone `\n"
        )
