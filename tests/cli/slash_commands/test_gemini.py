"""
Gemini CLI commands: the conversion of each placeholder, and the reported losses.

The expected renderings follow the client's own code (`FileCommandLoader` and its processors).
"""

import json
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from promptkit.clients.slash_commands.command import (
    ArgumentPart,
    CommandPart,
    CommandSyntaxError,
    FilePart,
    TextPart,
)
from promptkit.clients.slash_commands.gemini import read_gemini_command

GREP = '''\
description = "Find a pattern"
model = "pro"
prompt = """
Say what `{{args}}` means.

!{grep -r {{args}} .}
!{git --version}
@{docs/style.md}
@{docs} and @{logo.png}
"""
'''


class TestCompleteFile:
    def test_parsed_command(self):
        """A command is parsed into its parts, and the losses with the line of their field."""
        command = read_gemini_command("fs/grep", GREP)

        kinds = [type(part) for part in command.parts if not isinstance(part, TextPart)]
        assert kinds == [ArgumentPart, ArgumentPart, CommandPart, FilePart]
        assert command.description == "Find a pattern"
        assert [(loss.line, loss.description) for loss in command.losses] == [
            (2, "the field 'model' is not imported"),
            (3, "the command 'grep -r {{args}} .' is not run and is kept as text: it contains arguments"),
            (3, "'@{docs}' is kept as text: it could be a folder, or outside the workspace"),
            (3, "'@{logo.png}' is kept as text: it is not text"),
        ]

    def test_served_prompt(self, import_files, tmp_path):
        """
        Arguments, output and files replace their placeholders; a command that is not run has arguments filled
        in.
        """
        (tmp_path / "docs").mkdir()
        (tmp_path / "docs" / "style.md").write_text("Be plain {{args}}.", encoding="utf-8")

        result = import_files("gemini-commands", {"fs/grep.toml": GREP})

        version = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True)  # noqa: S607
        assert result.render("fs-grep", arguments="a b").splitlines() == [
            *("Say what `a b` means.", "", "!{grep -r a b .}", version.stdout.strip()),
            *("Be plain {{args}}.", "@{docs} and @{logo.png}"),
        ]
        assert result.code == 1

    def test_arguments_without_a_placeholder(self, import_files):
        """Without a placeholder, the typed line is appended after an empty line, like in Gemini CLI."""
        result = import_files("gemini-commands", {"git/log.toml": "prompt = 'Write a log.'"})

        assert result.code == 0
        assert result.render("git-log") == "Write a log."
        assert result.render("git-log", arguments="1.2 --all") == "Write a log.\n\n/git:log 1.2 --all"

    @pytest.mark.parametrize(
        ("prompt", "what"),
        [
            ("Do !{ls", "'!{' is not closed, so Gemini CLI rejects the command; it is kept as text"),
            ("Do @{x.md", "'@{' is not closed, so Gemini CLI rejects the command; it is kept as text"),
            (
                "Read @{../x.md}",
                "'@{../x.md}' is kept as text: it could be a folder, or outside the workspace",
            ),
            ("Read @{{{args}}}", "'@{{{args}}}' is kept as text: it contains arguments"),
            ("Run !{ls | wc}", "the command 'ls | wc' is not run and is kept as text: it needs a shell"),
        ],
        ids=str,
    )
    def test_losses_are_reported(self, import_files, prompt, what):
        """Each loss is reported with the line of its field."""
        result = import_files(
            "gemini-commands", {"try.toml": f"description = 'x'\nprompt = {json.dumps(prompt)}"}
        )

        assert result.code == 1
        assert f"try.toml:2: {what}" in result.lines
        assert result.render("try", arguments="y").startswith(prompt.replace("{{args}}", "y"))

    @pytest.mark.parametrize(
        ("text", "reason", "line"),
        [
            ("prompt = 'a", "it is not valid TOML: ", 1),
            ("x = 1\ny = [", "it is not valid TOML: ", 2),
            ("description = 'a'", "it has no prompt", 1),
            ("prompt = 1", "it has no prompt", 1),
            ("\nprompt = ' '", "it has no prompt", 2),
        ],
    )
    def test_invalid_file(self, text, reason, line):
        """An invalid file is rejected with the line."""
        with pytest.raises(CommandSyntaxError, match=reason) as error:
            read_gemini_command("x", text)
        assert error.value.line <= line + 1


def expected_rendering(prompt, arguments):
    """Return the text that Gemini CLI sends for a prompt without files and commands."""
    if "{{args}}" in prompt:
        return prompt.replace("{{args}}", arguments)
    return f"{prompt}\n\n/try {arguments}" if arguments else prompt


class TestEquivalence:
    @settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    @given(
        pieces=st.lists(
            st.sampled_from(
                ["{{args}}", "{args}", "{{", "}}", "{", "}", "{{arguments}}", "---\n", "\n", "- ", " "]
            )
            | st.text(st.characters(codec="utf-8", exclude_characters="\r!@\ufeff"), max_size=6),
            max_size=12,
        ),
        value=st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"])).map(str.strip),
    )
    def test_rendering_matches_gemini_cli(self, import_files, tmp_path, pieces, value):
        """The prompt renders what Gemini CLI sends, for any text and arguments."""
        prompt = f"x{''.join(pieces)}"
        number = len(list(tmp_path.glob("out*")))

        toml = f"prompt = {json.dumps(prompt, ensure_ascii=False)}".replace("\x7f", "\\u007f")
        result = import_files("gemini-commands", {"try.toml": toml}, out=f"out{number}")

        assert result.render("try", arguments=value).strip() == expected_rendering(prompt, value).strip()
