"""Frozen commands: the text of a prompt with the client's placeholders."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit import prompt
from promptkit.cli import main
from promptkit.exports.client_files import (
    ClientFileError,
    claude_command,
    freeze,
    gemini_command,
    skill_files,
)
from tests.cli.export.clients import ClaudeExpansion, expand_gemini

#: Text that clients interpret, and similar text.
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


def make_prompt(*texts):
    """Return a prompt with an argument between each pair of adjacent strings."""
    if len(texts) == 2:

        @prompt
        def saying(topic: str) -> str:
            """Repeat it."""
            return f"{texts[0]}{topic}{texts[1]}"
    else:

        @prompt
        def saying(topic: str, second: str) -> str:
            """Repeat it."""
            return f"{texts[0]}{topic}{texts[1]}{second}{texts[2]}"

    return saying.compiled


def file_of(export, source):
    """Return the file of a prompt, or None if the client would interpret a part of its text."""
    try:
        return export(freeze(source))
    except ClientFileError as error:
        if "which cannot be escaped" in str(error):
            return None
        raise


class TestClaude:
    def test_single_argument(self, export):
        """A single argument receives all of the typed text, and other placeholders are escaped."""
        assert export("claude-commands", "explain").decode() == (
            '---\ndescription: "Explain something: to a child."\nargument-hint: "[topic]"\n'
            'disable-model-invocation: "true"\n---\n\n'
            "Explain $ARGUMENTS to a child, for \\$100. $ARGUMENTS!\n"
        )

    def test_several_arguments(self, export):
        """Several arguments are numbered from 0, and quotes group words."""
        file = export("claude-commands", "compare")

        assert b"Compare $ARGUMENTS[0] with $ARGUMENTS[1]." in file
        text = ClaudeExpansion.expand(file, "'the sun' moon").text
        assert text == "Compare the sun with moon.\n\nBegin with the sun."

    def test_texts_are_joined(self, export):
        """Several strings are joined by a blank line."""
        assert ClaudeExpansion.expand(export("claude-commands", "greet"), "").text == "Hello.\n\nWho are you?"

    @given(TEXTS, TEXTS, st.sampled_from(["word", "two words", "it's", "<b>", "$HOME"]))
    def test_command_matches_its_prompt(self, before, after, typed):
        """The command expands to the prompt's text, or the export is rejected."""
        source = make_prompt(f"Say {before}", f"{after} now.")
        if (file := file_of(claude_command, source)) is None:
            return
        assert ClaudeExpansion.expand(file, typed).text == source.render({"topic": typed}).text
        assert ClaudeExpansion.expand(file, typed).commands == []

    @given(TEXTS, TEXTS)
    def test_command_with_two_arguments(self, before, between):
        """Two arguments are expanded too, even if they are adjacent."""
        source = make_prompt(f"Say {before}", between, " now.")
        if (file := file_of(claude_command, source)) is None:
            return
        expected = source.render({"topic": "one", "second": "a b"}).text
        assert ClaudeExpansion.expand(file, "one 'a b'").text == expected

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            (
                "See\n\n@notes.md",
                r"line 3 of its text contains '@', after which Claude Code expects a file name",
            ),
            ("Of\n!`date`", "line 2 of its text contains the beginning of a command that Claude Code runs"),
            ("```!\nls\n```", "line 1 of its text contains the beginning of a command that Claude Code runs"),
            (
                "In ${CLAUDE_SESSION_ID}",
                "line 1 of its text contains '${CLAUDE_', a placeholder of Claude Code",
            ),
            (r"As \$1", r"line 1 of its text contains a backslash before a placeholder of Claude Code"),
            ("At \\", "line 1 of its text contains a backslash before an argument"),
        ],
    )
    def test_text_that_claude_code_would_interpret_is_rejected(self, text, reason):
        """The error has the line and an alternative."""
        with pytest.raises(ClientFileError) as error:
            claude_command(freeze(make_prompt(text, "")))
        assert str(error.value).startswith(f"prompt 'saying' cannot be exported: {reason}")
        assert str(error.value).endswith(
            "which cannot be escaped: use --live to write a file that renders the prompt on each use"
        )

    def test_index_after_an_argument_is_rejected(self):
        """An index after an argument would select another argument."""
        with pytest.raises(ClientFileError, match="where Claude Code expects its number"):
            claude_command(freeze(make_prompt("Say ", "[0]")))


class TestGemini:
    def test_single_placeholder(self, export):
        """The placeholder can occur several times."""
        file = export("gemini-commands", "explain")

        assert tomllib.loads(file.decode()) == {
            "description": "Explain something: to a child.",
            "prompt": "Explain {{args}} to a child, for $100. {{args}}!",
        }

    def test_several_arguments_are_rejected(self, export_error):
        """Several arguments are rejected, because each would receive all of the typed text."""
        message = export_error("gemini-commands", "compare")

        assert "for all typed text, but the prompt has the arguments 'first', 'second': " in message
        assert "use --live to write a file that distinguishes them" in message

    @given(TEXTS, TEXTS, st.sampled_from(["word", "two words", "it's", "<b>"]))
    def test_command_matches_its_prompt(self, before, after, typed):
        """The command expands to the prompt's text, or the export is rejected."""
        source = make_prompt(f"Say {before}", f"{after} now.")
        if (file := file_of(gemini_command, source)) is None:
            return
        assert expand_gemini(file, typed) == source.render({"topic": typed}).text

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("Of\n{{args}}", "line 2 of its text contains '{{args}}', a placeholder of Gemini CLI"),
            ("Of !{date}", "line 1 of its text contains '!{', after which Gemini CLI expects a command"),
            (
                "See @{notes.md}",
                "line 1 of its text contains '@{', after which Gemini CLI expects the name of a file",
            ),
            ("Hear me!", "line 1 of its text contains '!{', after which Gemini CLI expects a command"),
        ],
    )
    def test_text_that_gemini_cli_would_interpret_is_rejected(self, text, reason):
        """The error has the line, even if the text only becomes special next to the placeholder."""
        with pytest.raises(ClientFileError) as error:
            gemini_command(freeze(make_prompt(text, "")))
        assert reason in str(error.value)


class TestSkills:
    def test_placeholders(self, export):
        """The model replaces a placeholder for each argument."""
        assert export("skills", "explain").decode() == (
            '---\nname: explain\ndescription: "Explain something: to a child."\n---\n\n'
            "Replace each of these placeholders with the value that the user provides, and then follow the "
            "instructions below the line.\n\n"
            "- `{{topic}}`: What to explain\n\n---\n\n"
            "Explain {{topic}} to a child, for $100. {{topic}}!\n"
        )

    def test_braces_in_the_text(self):
        """Placeholders have more braces than the text."""
        file = skill_files(freeze(make_prompt("Write {{topic}} for ", ".")))["SKILL.md"].data.decode()

        assert "- `{{{topic}}}`" in file
        assert file.endswith("\nWrite {{topic}} for {{{topic}}}.\n")

    def test_prompt_without_arguments(self, export):
        """Without arguments the skill is the text alone."""
        expected = "---\nname: greet\ndescription: Say hello.\n---\n\nHello.\n\nWho are you?\n"
        assert export("skills", "greet").decode() == expected


class TestErrors:
    @pytest.mark.parametrize(
        ("name", "reason"),
        [
            (
                "count",
                "but a placeholder accepts any text: use --set number=VALUE",
            ),
            ("debug", "turn 2 has the role 'assistant', but a file can contain only user text"),
            ("unlock", "argument 'key' is secret"),
            ("review", "when 'code' is"),
        ],
    )
    @pytest.mark.parametrize("form", ["claude-commands", "codex"])
    def test_unsupported_prompts(self, export_error, form, name, reason):
        """A prompt that is not plain text with placeholders is rejected with a reason."""
        message = export_error(form, name)

        assert f"prompt {name!r} cannot be exported: " in message
        assert reason in message
        assert "give" not in message

    def test_equal_errors_are_one_line(self, recipes, tmp_path, monkeypatch, capsys):
        """Prompts that cannot be exported for the same reason are named on one line."""
        monkeypatch.chdir(tmp_path)
        functions = [f"@prompt\ndef p{number}(n: int):\n    return f'{{n}}'\n" for number in range(10)]
        recipes(counting="from promptkit import prompt\n" + "".join(functions))

        assert main(["export", "claude-commands", "out"]) == 1

        (line,) = capsys.readouterr().err.splitlines()
        names = ", ".join(f"'p{number}'" for number in range(10))
        assert line.startswith(f"promptkit: prompts {names} cannot be exported: 'n' requires a whole number")


class TestOptionalArguments:
    """Arguments with a default, which a frozen file cannot omit."""

    @pytest.fixture
    def freeze_source(self, recipes, tmp_path, monkeypatch, capsys):
        """
        A function that exports a prompt with a given signature and text for Claude Code.

        It returns the text of the file and the notes of the output, or the error.
        """

        def run(signature, text, *options):
            monkeypatch.chdir(tmp_path)
            function = f"@prompt\ndef one({signature}):\n    return {text}\n"
            imports = "from promptkit import Text, prompt\nfrom promptkit.workspace import run, workspace\n"
            recipes(one=f"{imports}\n{function}")
            code = main(["export", "claude-commands", "out", *options])
            captured = capsys.readouterr()
            if code:
                return captured.err
            content = (tmp_path / "out" / "one.md").read_text().rpartition("---\n\n")[2]
            return content, captured.out.splitlines()[1:]

        return run

    def test_defaults_are_frozen(self, freeze_source):
        """Arguments are frozen at their defaults, and the output names them."""
        assert freeze_source(
            "text: str, n: int | None = 3, tone: str | None = None", "f'{tone} {n}: {text}'"
        ) == (
            "None 3: $ARGUMENTS\n",
            ["    frozen in one.md: n='3', tone=None"],
        )

    @pytest.mark.parametrize(
        ("default", "placeholder"),
        [("", "$ARGUMENTS"), *((text, "$ARGUMENTS[0]") for text in ("$1", "$ARGUMENTS[0]", "$it"))],
    )
    def test_defaults_that_are_placeholders(self, default, placeholder, freeze_source):
        """
        An argument becomes a placeholder if its default is blank, or a placeholder that `import` has written.
        """
        assert freeze_source(f"it: str = {default!r}", "f'Say {it}.'") == (f"Say {placeholder}.\n", [])

    def test_text_that_is_omitted_without_a_value(self, freeze_source):
        """An argument is frozen at its blank default if the prompt omits text around it."""
        assert freeze_source("it: str = ''", "'Go.' + (f' To {it}.' if it else '')") == (
            "Go.\n",
            ["    frozen in one.md: it=''"],
        )

    def test_values_of_the_command_line(self, freeze_source):
        """`--set` freezes required and optional arguments at the given values."""
        options = ("--set", "n=4", "--set", "tone=dry")
        assert freeze_source("n: int, text: str, tone: str = ''", "f'{tone} {n}: {text}'", *options) == (
            "dry 4: $ARGUMENTS\n",
            ["    frozen in one.md: n='4', tone='dry'"],
        )

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--set", "n=x"], "'n' is 'x', not a whole number"),
            (["--set", "n=@none.txt"], "promptkit: --set: "),
        ],
        ids=["type", "file"],
    )
    def test_invalid_values(self, options, message, freeze_source):
        """An invalid value is reported like an invalid argument."""
        assert message in freeze_source("n: int", "f'{n}'", *options)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--set", "txt=x"], "--set: no prompt has an argument 'txt'; did you mean 'text'?"),
            (["--set", "text=x", "--live"], "--set is for frozen files"),
            (["--set", "text=x", "--remove"], "--set is for frozen files"),
            (["--lossy", "--live"], "--lossy is for frozen files"),
            (["--lossy", "--remove"], "--lossy is for frozen files"),
        ],
        ids=" ".join,
    )
    def test_wrong_usage(self, options, message, freeze_source, capsys):
        """
        Argument names that no prompt has are usage errors, and so are combinations of conflicting options.
        """
        with pytest.raises(SystemExit):
            freeze_source("text: str", "f'{text}'", *options)

        assert message in capsys.readouterr().err

    @pytest.mark.parametrize("text", ["run('git', 'status')", "Text.below(workspace(), 'notes.md')"])
    def test_workspace_is_not_frozen(self, text, freeze_source):
        """A prompt that runs a command or reads a file of the workspace is rejected."""
        error = freeze_source("", text)

        assert (
            "it uses the workspace, whose current content would be frozen in the file: use --live to write"
            in error
        )

    FENCED = "f'```\\n{text.rstrip()}\\n```' + (f'\\n\\nFor {who}.' if who else '')"

    def test_lossy_files(self, freeze_source):
        """
        With `--lossy`, a file can differ from its prompt for some argument values, and an example is printed.
        """
        content, lines = freeze_source("text: str, who: str = ''", self.FENCED, "--lossy")

        assert content == "```\n$ARGUMENTS\n```\n"
        assert lines[0] == "    frozen in one.md: who=''"
        assert lines[1].startswith(
            "    differs in one.md: when 'text' is ' blanks around ', the prompt renders "
        )

    def test_lossy_is_suggested(self, freeze_source):
        """`--lossy` is suggested if it would write a file."""
        close = freeze_source("text: str", "text.rstrip()")
        far = freeze_source("text: str", "text.upper()")
        still_far = freeze_source("text: str", "text.upper()", "--lossy")

        assert "use --lossy to accept the difference, or use --live to write a file" in close
        assert "--lossy" not in far
        assert far == still_far

    def test_exact_files_are_preferred(self, freeze_source):
        """`--lossy` has no effect on a prompt whose file is exact."""
        options = "text: str, who: str = ''", "f'{who}: {text}'"

        assert freeze_source(*options) == freeze_source(*options, "--lossy")
