"""Untrusted text in the log of a GitHub job, whose runner executes workflow commands."""

import json
import re
import time
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit.cli.diagnostics import print_annotation, print_diagnostics, print_error, print_text
from promptkit.cli.output import Output, escape_commands
from promptkit.errors.diagnostics import Diagnostic, Location
from promptkit.errors.rules import Rule
from tests.terminal import command

COMMANDS = [
    "::add-mask::x",
    "    ::add-mask::x",
    "\t::add-mask::x",
    "\r::add-mask::x",
    "\xa0\u2003\u3000::add-mask::x",
    "\u200d\ufe0f\u200b\xad\x00::add-mask::x",
    "\x1b[32m  ::error file=a,line=1::x",
    "a\r::stop-commands::x",
    "a\x0b ::add-mask::x",
    "a\u2028 ::add-mask::x",
    "a\x85::add-mask::x",
    "\n\n  ::warning::",
    "##[add-mask]x",
    "text ##[set-env name=a;]x",
    "###[add-mask]x",
    ":\x1b[1m:add-mask::x",
    "::add-mask:\x1b[1m:x",
    "#\x1b[1m#\x1b[m[add-mask]x",
]

HARMLESS = [
    "Example::\n\n::\n\n    code",
    "std::vector::size",
    "text ::add-mask::x",
    "- ::add-mask::x",
    "# [a]",
    "#[derive]",
    "",
]


def commands_in(text):
    """
    Return the lines that the runner would treat as commands, with a broader pattern than its `ActionCommand`.
    """
    lines = re.split(r"[\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", re.sub(r"\x1b\[[0-9;]*m", "", text))
    return [line for line in lines if re.match(r"[^\w!-@\[-`{-~]*::.*::", line) or "##[" in line]


@pytest.fixture(autouse=True)
def workflow(monkeypatch):
    """Set the environment variable of the runner."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")


@pytest.mark.parametrize("text", COMMANDS)
def test_command_is_escaped(text):
    """A command is escaped in either syntax, whatever precedes it."""
    assert commands_in(text)
    assert not commands_in(escape_commands(text))


@pytest.mark.parametrize("text", HARMLESS)
def test_other_text_is_unchanged(text):
    """Other colons and brackets are not escaped."""
    assert escape_commands(text) == text


@given(st.lists(st.sampled_from([*":#[]ax \t\r\n\x1b\u2028\u200d-", "::", "##[", "\x1b[1m"])).map("".join))
def test_any_text(text):
    """Escaped text contains no command, and text without one is unchanged."""
    assert not commands_in(escape_commands(text))
    if not commands_in(text):
        assert escape_commands(text) == text


def test_text_is_unchanged_outside_of_workflows(monkeypatch):
    """Outside of a workflow nothing is escaped."""
    monkeypatch.delenv("GITHUB_ACTIONS")

    assert [escape_commands(text) for text in COMMANDS] == COMMANDS


@pytest.mark.parametrize(
    "text",
    [
        *(
            character * 200_000
            for character in (" ", "\x1b", "\x0b", "#", ":", "\x1b[m", "#\x1b[m", ":\x1b[m")
        ),
        "::" + "a:\x1b[m" * 200_000,
    ],
)
def test_linear_time(text):
    """The search takes linear time, whatever the text is."""
    start = time.process_time()
    escape_commands(text)
    assert time.process_time() - start < 1


def output_of(write):
    """Return everything that an output sends."""
    stream = StringIO()
    output = Output(stream, "utf-8")
    write(output)
    output.send()
    return stream.getvalue()


@pytest.mark.parametrize("text", COMMANDS)
def test_standard_output(text):
    """All text except a command's own annotations is escaped, and JSON has the same data."""
    assert not commands_in(output_of(lambda output: output.print_lines([text])))
    assert not commands_in(output_of(lambda output: output.print_content(text)))
    output = output_of(lambda output: output.print_json({"text": text}))
    assert not commands_in(output)
    assert json.loads(output) == {"text": text}


@pytest.mark.parametrize("text", COMMANDS)
def test_annotation(text):
    """An annotation is a single command, whatever its text and properties are."""
    properties = {"file": text, "line": 3, "title": text}
    output = output_of(lambda output: print_annotation("error", text, output, properties))

    assert re.fullmatch(r"::error file=[^\n:,]*,line=3,title=[^\n:,]*::[^\r\n]*\n", output)


@pytest.mark.parametrize("colour", [True, False])
@pytest.mark.parametrize("text", COMMANDS)
def test_standard_error(text, colour, monkeypatch, capsys):
    """Errors, lines and diagnostics are escaped."""
    if colour:
        monkeypatch.setenv("FORCE_COLOR", "1")
    print_error(text)
    print_text(f"{text}\n")
    stream = StringIO()
    print_diagnostics([Diagnostic(Rule.NO_PROMPTS, text, text, Location(text.replace("\0", "")))], stream)

    assert not commands_in(capsys.readouterr().err)
    assert not commands_in(stream.getvalue())


def test_file_is_not_escaped(tmp_path):
    """Output to a file is not escaped, because the runner only reads pipes."""
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "a.py").write_text(
        "from promptkit import prompt\n\n@prompt\ndef a():\n    return '::add-mask::x'\n"
    )
    with (tmp_path / "out.txt").open("wb") as file:
        command("render", "a", cwd=tmp_path, stdout=file)
    _, output, _ = command("render", "a", cwd=tmp_path)

    assert "\n::add-mask::x" in (tmp_path / "out.txt").read_text()
    assert rb"\u003a:add-mask::x" in output
