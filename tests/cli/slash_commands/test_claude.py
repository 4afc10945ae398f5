"""
Commands of Claude Code: what each of its marks becomes, and what is named as lost.

The rules are those of https://code.claude.com/docs/en/skills.
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


class TestWholeFile:
    def test_the_parsed_form(self):
        """
        It has each part with its line, the parameters by the names that people are told, and what is lost.
        """
        command = read_claude_command("git/fix-issue", ISSUE)

        found = [(type(part), part.line) for part in command.parts if not isinstance(part, TextPart)]
        assert found == [
            *((ArgumentPart, 8), (CommandPart, 10), (FilePart, 12)),
            *((ArgumentPart, 14), (ArgumentPart, 14)),
        ]
        assert command.description == "Fix an issue"
        assert command.parameters == (
            CommandParameter("issue_number", default="$1"),
            CommandParameter("priority", default="$2"),
        )
        assert [(loss.line, loss.what) for loss in command.losses] == [
            (4, "the field 'allowed-tools' is not carried"),
            (5, "the field 'model' is not carried"),
            (11, "the command 'git log -5 | head' is not run, and left as text: it needs a shell"),
            (12, "'@src/' is left as text: it may be a folder"),
            (14, "'$20' is left as text: it looks like an amount"),
        ]

    def test_it_is_served(self, imported, tmp_path):
        """
        A client is shown its name, description and arguments, and receives the text and the file.
        """
        (tmp_path / "docs").mkdir()
        (tmp_path / "docs" / "style.md").write_text("Be plain.", encoding="utf-8")

        found = imported("claude-commands", {"git/fix-issue.md": ISSUE})

        (listed,) = found.client.list_prompts()
        assert (listed.name, listed.description) == ("git-fix-issue", "Fix an issue")
        assert [one.name for one in listed.arguments] == ["issue_number", "priority"]
        said = found.client.get_prompt("git-fix-issue", {"issue_number": "7", "priority": "high"})
        version = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True)  # noqa: S607
        assert said[0].content.text == (
            f"# Fix 7\n\n- Version: {version.stdout.strip()}\n- Log: !`git log -5 | head`\n"
            "- Follow @docs/style.md, but not @src/\n\n"
            "Issue 7 has priority high, and costs $20 or $1. {{issue_number}}"
        )
        assert said[1].content.text == "Be plain."
        assert found.code == 1
        assert found.said[-1] == "imported 1 command, 0 of them whole"


class TestArguments:
    @pytest.mark.parametrize(
        ("text", "arguments", "said"),
        [
            ("Fix $ARGUMENTS.", {"arguments": "it's {{x}} $1"}, "Fix it's {{x}} $1."),
            ("Fix $ARGUMENTS.", {}, "Fix ."),
            ("Keep \\$ARGUMENTS and $ARGUMENTS", {"arguments": "x"}, "Keep $ARGUMENTS and x"),
            ("$0 then $1", {"argument_1": "a", "argument_2": "b"}, "a then b"),
            ("$1 then $2", {"argument_1": "a", "argument_2": "b"}, "a then b"),
            ("$1 then $2", {"argument_1": "a"}, "a then $2"),
            ("$ARGUMENTS[0]!", {"argument_1": "a"}, "a!"),
            ("Just $1: $ARGUMENTS", {"arguments": "a b"}, "Just a: a b"),
            ("Just $2: $ARGUMENTS, $1", {"arguments": "a"}, "Just $2: a, a"),
            ("Costs $5, $1,000 and $0.5, $HOME", {}, "Costs $5, $1,000 and $0.5, $HOME"),
            ("Plain.", {}, "Plain."),
            ("Plain.", {"arguments": "x y"}, "Plain.\n\nARGUMENTS: x y"),
            ("{{arguments}} is $ARGUMENTS", {"arguments": "x"}, "{{arguments}} is x"),
        ],
        ids=str,
    )
    def test_what_is_put_where(self, imported, text, arguments, said):
        """
        Each is put where Claude Code puts it; a single one that is missing leaves its placeholder.
        """
        assert imported("claude-commands", {"try.md": text}).text("try", **arguments) == said

    def test_named_arguments(self, imported):
        """
        The field 'arguments' names them; other words behind a dollar are text.
        """
        text = "---\narguments: [issue, class]\n---\n$issue of $class, $issues, $1"

        found = imported("claude-commands", {"try.md": text})

        assert found.code == 0
        assert found.text("try", issue="7", class_="x") == "7 of x, $issues, x"

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
    def test_hints_name_single_arguments(self, hint, names):
        """
        If each of them is another name, that no recipe uses itself.
        """
        command = read_claude_command("x", f"---\nargument-hint: {hint}\n---\n$1 $2")

        assert [one.name for one in command.parameters] == names


class TestLosses:
    @pytest.mark.parametrize(
        ("text", "what"),
        [
            (
                "!`git log $1`",
                "the command 'git log $1' is not run, and left as text: it takes what callers send",
            ),
            ("!`git log > x`", "the command 'git log > x' is not run, and left as text: it needs a shell"),
            (
                "!`cd x`",
                "the command 'cd x' is not run, and left as text: 'cd' is not a program but a shell builtin",
            ),
            ("!`A=1 b`", "the command 'A=1 b' is not run, and left as text: it sets a variable first"),
            ("```!\nls *.md\n```", "the command 'ls *.md' is not run, and left as text: it needs a shell"),
            ("See @../x.md", "'@../x.md' is left as text: it leads out of the workspace"),
            ("See @~/x.md", "'@~/x.md' is left as text: it leads out of the workspace"),
            ("See @$1", "'@$1' is left as text: it takes what callers send"),
            ("In ${CLAUDE_SKILL_DIR}/x", "'${CLAUDE_SKILL_DIR}' is left as text: Claude Code's own variable"),
            ("$1 of $ARGUMENTS", "single arguments are the words of $ARGUMENTS, whatever is in quotes"),
        ],
        ids=str,
    )
    def test_each_is_named_with_its_line(self, imported, text, what):
        """
        The line counts from the beginning of the file, and the exit code says that something was lost.
        """
        found = imported("claude-commands", {"try.md": f"---\ndescription: x\n---\n\nFirst.\n{text}"})

        assert found.code == 1
        assert f"try.md:6: {what}" in found.said

    def test_a_command_that_is_left_has_its_arguments(self, imported):
        """
        It is text for the model, and says what was asked for.
        """
        found = imported("claude-commands", {"try.md": "Look at !`gh pr view $1 | cat`"})

        assert found.text("try", argument_1="7") == "Look at !`gh pr view 7 | cat`"

    @pytest.mark.parametrize(
        "text", ["me@example.org", "@param x", "@pytest.fixture", "@app.get('/x')", "@scope/name", "a!`ls`"]
    )
    def test_what_only_looks_like_a_reference_is_text(self, text):
        """
        Nothing is said of it.
        """
        command = read_claude_command("x", f"{text} $ARGUMENTS")

        assert command.parts == (TextPart(f"{text} "), ArgumentPart("arguments"))
        assert command.losses == ()

    def test_a_block_of_a_command(self):
        """
        A fence that opens with an exclamation mark is a command, too.
        """
        command = read_claude_command("x", "```!\ngit status -s\n```\n$ARGUMENTS")

        assert command.parts[0] == CommandPart(("git", "status", "-s"))


class TestFrontmatter:
    def test_one_field_that_is_no_yaml_spoils_no_other(self):
        """
        It is taken as it stands, as Claude Code does.
        """
        text = "---\ndescription: Fix: a bug\nargument-hint: [a] [b]\ntags: [x\n---\n$ARGUMENTS"

        command = read_claude_command("x", text)

        assert (command.description, command.parameters[0].description) == ("Fix: a bug", "[a] [b]")
        assert [loss.what for loss in command.losses] == ["the field 'tags' is not carried"]

    def test_several_lines(self):
        """
        A description is one line.
        """
        text = "---\n# about\ndescription: >-\n  Fix\n  it\nmodel:\n  - a\n---\nx"

        command = read_claude_command("x", text)

        assert command.description == "Fix it"
        assert [loss.line for loss in command.losses] == [6]

    @pytest.mark.parametrize("value", ["[" * 450, "2026-02-30", "*a", "&a [*a]", "!!python/name:os", "\x00"])
    def test_values_that_no_reader_takes(self, value):
        """
        They are text, and spoil no import.
        """
        command = read_claude_command("x", f"---\nargument-hint: {value}\nother: {value}\n---\nx")

        assert [loss.line for loss in command.losses] == [3]

    def test_rules_in_the_text_are_none(self):
        """
        What stands between two lines of hyphens is text if it begins with no field.
        """
        command = read_claude_command("x", "---\nHello there\n---\n$ARGUMENTS")

        assert command.parts[0] == TextPart("---\nHello there\n---\n")

    @pytest.mark.parametrize("text", ["", "\n \n", "---\ndescription: x\n---\n\n"])
    def test_no_text(self, text):
        """
        A file without text is no command.
        """
        with pytest.raises(CommandSyntaxError, match="it has no text"):
            read_claude_command("x", text)


#: What may lead a reader astray, among other text.
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


class TestLaw:
    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    @given(pieces=PIECES, value=ONE_LINE, data=st.data())
    def test_it_says_what_the_original_says(self, imported, tmp_path, pieces, value, data):
        """
        For any text, and whatever is given.
        """
        text = "".join(pieces)
        if not text.strip() or re.search(r"\$\d|\$ARGUMENTS\[\d|[!`]`|!`|@\S", text):
            text = f"x {text.replace('$', '').replace('`', '').replace('@', '').replace('!', '')}"
        said = re.sub(r"(\\?)\$ARGUMENTS", lambda found: "$ARGUMENTS" if found[1] else value, text)
        if re.search(r"(?<!\\)\$ARGUMENTS", text) is None:
            said = f"{said.rstrip()}\n\nARGUMENTS: {value}" if value else said
        number = len(list(tmp_path.glob("out*")))
        source = f"---\ndescription: x\n---\n{text}"

        found = imported("claude-commands", {"try.md": source}, out=f"out{number}")

        assert found.text("try", arguments=value).strip() == said.strip()
