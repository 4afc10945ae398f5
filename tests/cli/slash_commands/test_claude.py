"""
Claude Code commands: the conversion of each placeholder, and the reported losses.

The rules are from https://code.claude.com/docs/en/skills.
"""

import re
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from promptkit.clients.slash_commands.claude import read_claude_command
from promptkit.clients.slash_commands.command import (
    ArgumentPart,
    CommandParameter,
    CommandPart,
    CommandSyntaxError,
    FilePart,
    TextPart,
)

ISSUE = """\
---
description: Fix an issue
argument-hint: [issue-number] [priority]
allowed-tools: Bash(git:*), Read
model: opus
---

# Fix $1

- Version: !`git --version`
- Log: !`git log -5 | head`
- Follow @docs/style.md, but not @src/

Issue $1 has priority $2, and costs $20 or \\$1. {{issue_number}}
"""


class TestCompleteFile:
    def test_parsed_command(self):
        """
        A command is parsed into its parts, the parameters with their documented names, and the losses with
        their lines.
        """
        command = read_claude_command("git/fix-issue", ISSUE)

        kinds = [type(part) for part in command.parts if not isinstance(part, TextPart)]
        assert kinds == [ArgumentPart, CommandPart, FilePart, ArgumentPart, ArgumentPart]
        assert command.description == "Fix an issue"
        assert command.parameters == (
            CommandParameter("issue_number", default="$1"),
            CommandParameter("priority", default="$2"),
        )
        assert [(loss.line, loss.description) for loss in command.losses] == [
            (4, "the field 'allowed-tools' is not imported"),
            (5, "the field 'model' is not imported"),
            (11, "the command 'git log -5 | head' is not run and is kept as text: it needs a shell"),
            (12, "'@src/' is kept as text: it could be a folder"),
            (14, "'$20' is kept as text: it looks like an amount"),
        ]

    def test_served_prompt(self, import_files, tmp_path):
        """A client sees the name, description and arguments, and receives the text and the file."""
        (tmp_path / "docs").mkdir()
        (tmp_path / "docs" / "style.md").write_text("Be plain.", encoding="utf-8")

        result = import_files("claude-commands", {"git/fix-issue.md": ISSUE})

        (listed,) = result.client.list_prompts()
        assert (listed.name, listed.description) == ("git-fix-issue", "Fix an issue")
        assert [argument.name for argument in listed.arguments] == ["issue_number", "priority"]
        messages = result.client.get_prompt("git-fix-issue", {"issue_number": "7", "priority": "high"})
        version = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True)  # noqa: S607
        assert messages[0].content.text == (
            f"# Fix 7\n\n- Version: {version.stdout.strip()}\n- Log: !`git log -5 | head`\n"
            "- Follow @docs/style.md, but not @src/\n\n"
            "Issue 7 has priority high, and costs $20 or $1. {{issue_number}}"
        )
        assert messages[1].content.text == "Be plain."
        assert result.code == 1
        assert result.lines[-1] == "imported 1 command (1 only in part)"


class TestArguments:
    @pytest.mark.parametrize(
        ("text", "arguments", "expected"),
        [
            ("Fix $ARGUMENTS.", {"arguments": "it's {{x}} $1"}, "Fix it's {{x}} $1."),
            ("Fix $ARGUMENTS.", {}, "Fix ."),
            ("Keep \\$ARGUMENTS and $ARGUMENTS", {"arguments": "x"}, "Keep $ARGUMENTS and x"),
            ("$0 then $1", {"argument_1": "a", "argument_2": "b"}, "a then b"),
            ("$1 then $2", {"argument_1": "a", "argument_2": "b"}, "a then b"),
            ("$1 then $2", {"argument_1": "a"}, "a then $2"),
            ("$ARGUMENTS[0]!", {"argument_1": "a"}, "a!"),
            ("Just $1: $ARGUMENTS", {"arguments": "a b"}, "Just $1: a b"),
            ("Just $2: $ARGUMENTS, $1", {"arguments": "a"}, "Just $2: a, $1"),
            ("Costs $5, $1,000 and $0.5, $HOME", {}, "Costs $5, $1,000 and $0.5, $HOME"),
            ("Plain.", {}, "Plain."),
            ("Plain.", {"arguments": "x y"}, "Plain.\n\nARGUMENTS: x y"),
            ("{{arguments}} is $ARGUMENTS", {"arguments": "x"}, "{{arguments}} is x"),
        ],
        ids=str,
    )
    def test_substitution(self, import_files, text, arguments, expected):
        """Arguments are inserted like in Claude Code; a missing single argument leaves its placeholder."""
        assert import_files("claude-commands", {"try.md": text}).render("try", **arguments) == expected

    def test_named_arguments(self, import_files):
        """The field `arguments` names the arguments, and other words after a dollar sign are text."""
        text = "---\narguments: [issue, class]\n---\n$issue of $class, $issues, $1"

        result = import_files("claude-commands", {"try.md": text})

        assert result.code == 0
        assert result.render("try", issue="7", class_="x") == "7 of x, $issues, x"

    @pytest.mark.parametrize(
        ("hint", "names"),
        [
            ("<pr number> {author}", ["pr_number", "author"]),
            ("user run", ["user_", "run_"]),
            ("[same] [same]", ["argument_1", "argument_2"]),
            ("[one|two] [three]", ["argument_1", "argument_2"]),
            ("[one]", ["one", "argument_2"]),
        ],
        ids=str,
    )
    def test_argument_hint(self, hint, names):
        """The words of a hint name the arguments if they are distinct and none is reserved."""
        command = read_claude_command("x", f"---\nargument-hint: {hint}\n---\n$1 $2")

        assert [parameter.name for parameter in command.parameters] == names


class TestLosses:
    @pytest.mark.parametrize(
        ("text", "what"),
        [
            (
                "!`git log $1`",
                "the command 'git log $1' is not run and is kept as text: it contains arguments",
            ),
            ("!`git log > x`", "the command 'git log > x' is not run and is kept as text: it needs a shell"),
            (
                "!`cd x`",
                "the command 'cd x' is not run and is kept as text: 'cd' is a shell builtin",
            ),
            (
                "!`A=1 b`",
                "the command 'A=1 b' is not run and is kept as text: it starts by setting a variable",
            ),
            ("```!\nls *.md\n```", "'```!' is kept as text: scripts need a shell"),
            ("See @../x.md", "'@../x.md' is kept as text: it is outside the workspace"),
            ("See @~/x.md", "'@~/x.md' is kept as text: it is outside the workspace"),
            ("See @$1", "'@$1' is kept as text: it contains arguments"),
            (
                "In ${CLAUDE_SKILL_DIR}/x",
                "'${CLAUDE_SKILL_DIR}' is kept as text: it is a variable of Claude Code",
            ),
            ("$1 of $ARGUMENTS", "'$1' is kept as text: it is one of the words in $ARGUMENTS"),
        ],
        ids=str,
    )
    def test_losses_are_reported(self, import_files, text, what):
        """Each loss is reported with its line in the file, and the exit code is 1."""
        result = import_files("claude-commands", {"try.md": f"---\ndescription: x\n---\n\nFirst.\n{text}"})

        assert result.code == 1
        assert f"try.md:6: {what}" in result.lines

    def test_text_of_a_command_has_its_arguments(self, import_files):
        """A command that is not run becomes text with the arguments filled in."""
        result = import_files("claude-commands", {"try.md": "Look at !`gh pr view $1 | cat`"})

        assert result.render("try", argument_1="7") == "Look at !`gh pr view 7 | cat`"

    @pytest.mark.parametrize(
        "text", ["me@example.org", "@param x", "@pytest.fixture", "@app.get('/x')", "@scope/name", "a!`ls`"]
    )
    def test_text_that_resembles_a_reference(self, text):
        """Text that only resembles a reference is kept without a report."""
        command = read_claude_command("x", f"{text} $ARGUMENTS")

        assert command.parts == (TextPart(f"{text} "), ArgumentPart("arguments"))
        assert command.losses == ()


class TestFrontmatter:
    def test_invalid_yaml_field(self):
        """
        A field that is not valid YAML is taken literally, like in Claude Code, and the others are parsed.
        """
        text = "---\ndescription: Fix: a bug\nargument-hint: [a] [b]\ntags: [x\n---\n$ARGUMENTS"

        command = read_claude_command("x", text)

        assert (command.description, command.parameters[0].description) == ("Fix: a bug", "[a] [b]")
        assert [loss.description for loss in command.losses] == ["the field 'tags' is not imported"]

    def test_multi_line_field(self):
        """A multi-line description becomes one line."""
        text = "---\n# about\ndescription: >-\n  Fix\n  it\nmodel:\n  - a\n---\nx"

        command = read_claude_command("x", text)

        assert command.description == "Fix it"
        assert [loss.line for loss in command.losses] == [6]

    @pytest.mark.parametrize("value", ["[" * 450, "2026-02-30", "&a [*a]", "!!python/name:os", "{a: b}"])
    def test_unparsable_values(self, value):
        """A value that cannot be parsed is taken as text."""
        command = read_claude_command("x", f"---\nargument-hint: {value}\nother: {value}\n---\nx")

        assert [loss.line for loss in command.losses] == [3]

    @pytest.mark.parametrize(
        ("text", "line"), [("description: a\0b", 1), ("model: a\nmodel: b", 3), ("model:\n\t- a: b\n\t c", 3)]
    )
    def test_invalid_front_matter(self, text, line):
        """Front matter that is not valid YAML raises an error with the line of the problem."""
        with pytest.raises(CommandSyntaxError, match=r"is not valid YAML|occurs twice") as caught:
            read_claude_command("x", f"---\n{text}\n---\nx")

        assert caught.value.line == line

    @pytest.mark.parametrize("names", ["{a: b}", "[a, [b]]", "[a, {b: c}]", "a 1"])
    def test_arguments_that_are_not_names(self, names):
        """Items of the field `arguments` that are not names do not become placeholders."""
        command = read_claude_command("x", f"---\narguments: {names}\n---\n$1 $b $ARGUMENTS")

        assert [part.text for part in command.parts if isinstance(part, TextPart)] == ["$1 $b "]

    def test_text_between_rules(self):
        """Text between two lines of hyphens is not frontmatter if it does not start with a field."""
        command = read_claude_command("x", "---\nHello there\n---\n$ARGUMENTS")

        assert command.parts[0] == TextPart("---\nHello there\n---\n")

    @pytest.mark.parametrize("text", ["", "\n \n", "---\ndescription: x\n---\n\n"])
    def test_empty_text(self, text):
        """A file without text is not a command."""
        with pytest.raises(CommandSyntaxError, match="it has no text"):
            read_claude_command("x", text)


#: Text that could mislead a parser, among other text.
PIECES = st.lists(
    st.sampled_from(
        [
            *(
                "$ARGUMENTS",
                "\\$ARGUMENTS",
                "$",
                "\\",
                "{{arguments}}",
                "{{",
                "}}",
                "{",
                "}",
                "---\n",
                "\n",
                "  ",
            ),
            *(
                "a: b",
                '"""',
                "'",
                "- ",
                "> ",
                "@ ",
                "! ",
                "`",
                "$USD",
                "é",
                "{{ arguments_2 }}",
                "${x}",
                "%s",
            ),
        ]
    )
    | st.text(st.characters(codec="utf-8", exclude_characters="\r@!`\ufeff"), max_size=8),
    max_size=14,
)
ONE_LINE = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), min_size=1).map(
    str.strip
)


class TestEquivalence:
    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    @given(pieces=PIECES, value=ONE_LINE, data=st.data())
    def test_rendering_matches_claude_code(self, import_files, tmp_path, pieces, value, data):
        """The prompt renders what Claude Code sends, for any text and arguments."""
        text = "".join(pieces)
        if not text.strip() or re.search(r"\$\d|\$ARGUMENTS\[\d|[!`]`|!`|@\S", text):
            text = f"x {text.replace('$', '').replace('`', '').replace('@', '').replace('!', '')}"
        expected = re.sub(r"(\\?)\$ARGUMENTS", lambda match: "$ARGUMENTS" if match[1] else value, text)
        if re.search(r"(?<!\\)\$ARGUMENTS", text) is None:
            expected = f"{expected.rstrip()}\n\nARGUMENTS: {value}" if value else expected
        number = len(list(tmp_path.glob("out*")))
        source = f"---\ndescription: x\n---\n{text}"

        result = import_files("claude-commands", {"try.md": source}, out=f"out{number}")

        assert result.render("try", arguments=value).strip() == expected.strip()
