"""
Commands of Gemini CLI: what each of its marks becomes, and what is named as lost.

The oracle of the law is written after the client's own code (`FileCommandLoader` and its processors).
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


class TestWholeFile:
    def test_the_parsed_form(self):
        """
        It has each part with its line in the file, and what is lost.
        """
        command = read_gemini_command("fs/grep", GREP)

        found = [(type(part), part.line) for part in command.parts if not isinstance(part, TextPart)]
        assert found == [(ArgumentPart, 4), (ArgumentPart, 6), (CommandPart, 7), (FilePart, 8)]
        assert command.description == "Find a pattern"
        assert [(loss.line, loss.what) for loss in command.losses] == [
            (2, "the field 'model' is not carried"),
            (6, "the command 'grep -r {{args}} .' is not run, and left as text: it takes what callers send"),
            (9, "'@{docs}' is left as text: it may be a folder, or lie outside of the workspace"),
            (9, "'@{logo.png}' is left as text: it is not text"),
        ]

    def test_it_is_served(self, imported, tmp_path):
        """
        Arguments, output and files stand where their marks were; a command that is left has its arguments.
        """
        (tmp_path / "docs").mkdir()
        (tmp_path / "docs" / "style.md").write_text("Be plain {{args}}.", encoding="utf-8")

        found = imported("gemini-commands", {"fs/grep.toml": GREP})

        version = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True)  # noqa: S607
        assert found.text("fs-grep", arguments="a b").splitlines() == [
            *("Say what `a b` means.", "", "!{grep -r a b .}", version.stdout.strip()),
            *("Be plain {{args}}.", "@{docs} and @{logo.png}"),
        ]
        assert found.code == 1

    def test_what_was_typed_is_appended_where_there_is_no_hole(self, imported):
        """
        As Gemini CLI does: the whole line, behind an empty one, if there are arguments.
        """
        found = imported("gemini-commands", {"git/log.toml": "prompt = 'Write a log.'"})

        assert found.code == 0
        assert found.text("git-log") == "Write a log."
        assert found.text("git-log", arguments="1.2 --all") == "Write a log.\n\n/git:log 1.2 --all"

    @pytest.mark.parametrize(
        ("prompt", "what"),
        [
            ("Do !{ls", "'!{' has no end, so that Gemini CLI refuses the command; it is left as text"),
            ("Do @{x.md", "'@{' has no end, so that Gemini CLI refuses the command; it is left as text"),
            (
                "Read @{../x.md}",
                "'@{../x.md}' is left as text: it may be a folder, or lie outside of the workspace",
            ),
            ("Read @{{{args}}}", "'@{{{args}}}' is left as text: it takes what callers send"),
            ("Run !{ls | wc}", "the command 'ls | wc' is not run, and left as text: it needs a shell"),
        ],
        ids=str,
    )
    def test_each_loss_is_named_with_its_line(self, imported, prompt, what):
        """
        The line is that of the prompt, where it is written on one line.
        """
        found = imported("gemini-commands", {"try.toml": f"description = 'x'\nprompt = {json.dumps(prompt)}"})

        assert found.code == 1
        assert f"try.toml:2: {what}" in found.said
        assert found.text("try", arguments="y").startswith(prompt.replace("{{args}}", "y"))

    @pytest.mark.parametrize(
        ("text", "reason", "line"),
        [
            ("prompt = 'a", "this is not TOML: ", 1),
            ("x = 1\ny = [", "this is not TOML: ", 2),
            ("description = 'a'", "it has no prompt", 1),
            ("prompt = 1", "it has no prompt", 1),
            ("\nprompt = ' '", "it has no prompt", 2),
        ],
    )
    def test_what_is_no_command(self, text, reason, line):
        """
        It is refused with the line.
        """
        with pytest.raises(CommandSyntaxError, match=reason) as refused:
            read_gemini_command("x", text)
        assert refused.value.line <= line + 1


def said_by_gemini(prompt, arguments):
    """What the client sends for a prompt without files and commands."""
    if "{{args}}" in prompt:
        return prompt.replace("{{args}}", arguments)
    return f"{prompt}\n\n/try {arguments}" if arguments else prompt


class TestLaw:
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
    def test_it_says_what_the_original_says(self, imported, tmp_path, pieces, value):
        """
        For any text, and whatever is given.
        """
        prompt = f"x{''.join(pieces)}"
        number = len(list(tmp_path.glob("out*")))

        toml = f"prompt = {json.dumps(prompt, ensure_ascii=False)}".replace("\x7f", "\\u007f")
        found = imported("gemini-commands", {"try.toml": toml}, out=f"out{number}")

        assert found.text("try", arguments=value).strip() == said_by_gemini(prompt, value).strip()
