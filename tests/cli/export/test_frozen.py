"""Frozen commands: the text of a prompt with the client's own holes."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit import prompt
from promptkit.exports.client_files import claude, gemini, skills
from promptkit.exports.client_files.prompts import ExportRefusedError
from tests.cli.export.clients import Claude, gemini_says

#: Pieces of text that clients read in a way of their own, and what is near to that.
PIECES = [
    *(
        "$1",
        "$0",
        "$12",
        "$1x",
        "$ARGUMENTS",
        "$ARGUMENTS[0]",
        "$ARG",
        "$",
        "\\",
        "\\$1",
        "${CLAUDE_SESSION_ID}",
    ),
    *(
        "{{args}}",
        "{",
        "}",
        "!{ls}",
        "@{a}",
        "!",
        "@",
        "@file",
        "a@b",
        "!`ls`",
        "```!",
        "```",
        "`",
        '"""',
        '"',
    ),
    *("\n", " ", "word", "\\n", "\t", "\x7f", "é", "[0]", "[", "x", "0", "'''", "---", "#", "\r"),
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)


def made_of(*texts):
    """A prompt with an argument between each two of the texts."""
    if len(texts) == 2:

        @prompt
        def saying(topic: str) -> str:
            """Say it."""
            return f"{texts[0]}{topic}{texts[1]}"
    else:

        @prompt
        def saying(topic: str, second: str) -> str:
            """Say it."""
            return f"{texts[0]}{topic}{texts[1]}{second}{texts[2]}"

    return saying.compiled


def written(client, source):
    """The file of a prompt; None if the client would read something in its text."""
    try:
        return client.frozen(source)
    except ExportRefusedError as error:
        if "for which there is no escape" in str(error):
            return None
        raise


class TestClaude:
    def test_an_only_argument_is_all_that_is_typed(self, exported):
        """
        Escapes are written where it would fill in something else.
        """
        assert exported("claude-commands", "explain").decode() == (
            '---\ndescription: "Explain something: to a child."\nargument-hint: "[topic]"\n'
            'disable-model-invocation: "true"\n---\n\n'
            "Explain $ARGUMENTS to a child, for \\$100. $ARGUMENTS!\n"
        )

    def test_several_are_numbered_from_0(self, exported):
        """
        What is in quotes is one.
        """
        file = exported("claude-commands", "compare")

        assert b"Compare $ARGUMENTS[0] with $ARGUMENTS[1]." in file
        said = Claude.reads(file, "'the sun' moon").text
        assert said == "Compare the sun with moon.\n\nBegin with the sun."

    def test_texts_of_a_user_are_joined(self, exported):
        """
        A blank line stands between two.
        """
        assert Claude.reads(exported("claude-commands", "greet"), "").text == "Hello.\n\nWho are you?"

    @given(TEXTS, TEXTS, st.sampled_from(["word", "two words", "it's", "<b>", "$HOME"]))
    def test_a_command_says_what_its_prompt_says(self, before, behind, typed):
        """
        Whatever its text holds, or it is refused with the line.
        """
        source = made_of(f"Say {before}", f"{behind} now.")
        if (file := written(claude, source)) is None:
            return
        assert Claude.reads(file, typed).text == source.render({"topic": typed}).text
        assert Claude.reads(file, typed).commands == []

    @given(TEXTS, TEXTS)
    def test_so_does_one_of_two_arguments(self, before, between):
        """
        Also where they touch.
        """
        source = made_of(f"Say {before}", between, " now.")
        if (file := written(claude, source)) is None:
            return
        said = source.render({"topic": "one", "second": "a b"}).text
        assert Claude.reads(file, "one 'a b'").text == said

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("See\n\n@notes.md", r"line 3 of its text has '@', after which Claude Code expects a file name"),
            ("Of\n!`date`", "line 2 of its text has the beginning of a command that Claude Code runs"),
            ("```!\nls\n```", "line 1 of its text has the beginning of a command that Claude Code runs"),
            ("In ${CLAUDE_SESSION_ID}", "line 1 of its text has '${CLAUDE_', a placeholder of Claude Code"),
            (r"As \$1", r"line 1 of its text has a backslash before what Claude Code fills"),
            ("At \\", "line 1 of its text has a backslash before the place of an argument"),
        ],
    )
    def test_what_it_would_read_is_refused(self, text, reason):
        """
        With the line, and what else can be done.
        """
        with pytest.raises(ExportRefusedError) as refused:
            claude.frozen(made_of(text, ""))
        assert str(refused.value).startswith(f"prompt 'saying' cannot be written: {reason}")
        assert str(refused.value).endswith("no escape: --live writes a file that renders it each time")

    def test_an_index_behind_the_place_of_an_argument_is_refused(self):
        """
        It would be that of another argument.
        """
        with pytest.raises(ExportRefusedError, match="where Claude Code expects its number"):
            claude.frozen(made_of("Say ", "[0]"))


class TestGemini:
    def test_it_has_one_hole(self, exported):
        """
        It may stand in several places.
        """
        file = exported("gemini-commands", "explain")

        assert tomllib.loads(file.decode()) == {
            "description": "Explain something: to a child.",
            "prompt": "Explain {{args}} to a child, for $100. {{args}}!",
        }

    def test_several_arguments_are_refused(self, refused):
        """
        All that is typed would be in each.
        """
        said = refused("gemini-commands", "compare")

        assert (
            "Gemini CLI has one placeholder, {{args}}, for all that is typed, and it takes 'first', 'second'"
            in said
        )
        assert "--live writes a file that tells them apart" in said

    @given(TEXTS, TEXTS, st.sampled_from(["word", "two words", "it's", "<b>"]))
    def test_a_command_says_what_its_prompt_says(self, before, behind, typed):
        """
        Whatever its text holds, or it is refused with the line.
        """
        source = made_of(f"Say {before}", f"{behind} now.")
        if (file := written(gemini, source)) is None:
            return
        assert gemini_says(file, typed) == source.render({"topic": typed}).text

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("Of\n{{args}}", "line 2 of its text has '{{args}}', a placeholder of Gemini CLI"),
            ("Of !{date}", "line 1 of its text has '!{', after which Gemini CLI expects a command"),
            (
                "See @{notes.md}",
                "line 1 of its text has '@{', after which Gemini CLI expects the name of a file",
            ),
            ("Hear me!", "line 1 of its text has '!{', after which Gemini CLI expects a command"),
        ],
    )
    def test_what_it_would_read_is_refused(self, text, reason):
        """
        Also where it begins with the text, and ends with the hole.
        """
        with pytest.raises(ExportRefusedError) as refused:
            gemini.frozen(made_of(text, ""))
        assert reason in str(refused.value)


class TestSkills:
    def test_a_model_fills_in_what_the_user_says(self, exported):
        """
        A mark for each argument stands in the text.
        """
        assert exported("skills", "explain").decode() == (
            '---\nname: explain\ndescription: "Explain something: to a child."\n---\n\n'
            "Replace each of these by the value that the user gives, and then follow the "
            "instructions below the line.\n\n"
            "- `{{topic}}`: What to explain\n\n---\n\n"
            "Explain {{topic}} to a child, for $100. {{topic}}!\n"
        )

    def test_an_authors_braces_are_no_mark(self):
        """
        A mark has more of them than the text.
        """
        file = skills.frozen(made_of("Write {{topic}} for ", "."))["SKILL.md"].data.decode()

        assert "- `{{{topic}}}`" in file
        assert file.endswith("\nWrite {{topic}} for {{{topic}}}.\n")

    def test_without_arguments_there_is_nothing_to_fill_in(self, exported):
        """
        It is the text alone.
        """
        expected = "---\nname: greet\ndescription: Say hello.\n---\n\nHello.\n\nWho are you?\n"
        assert exported("skills", "greet").decode() == expected


class TestRefusals:
    @pytest.mark.parametrize(
        ("name", "reason"),
        [
            ("count", "'number' takes a whole number, and a placeholder any text: --live writes"),
            (
                "translate",
                "'language' is optional, but a frozen export cannot omit a placeholder: --live writes",
            ),
            ("debug", "turn 2 is of the assistant, but files are content of the user"),
            ("unlock", "'key' is a secret"),
            ("review", "where 'code' is"),
        ],
    )
    @pytest.mark.parametrize("form", ["claude-commands", "codex"])
    def test_what_is_no_text_with_holes_is_refused(self, refused, form, name, reason):
        """
        And it is said why.
        """
        said = refused(form, name)

        assert f"prompt {name!r} cannot be written: {reason}" in said
        assert "give" not in said
