"""Text of others in the log of a job on GitHub, whose runner obeys commands."""

import json
import re
import time
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit.cli.diagnostics import print_annotation, print_diagnostics, print_error, print_text
from promptkit.cli.output import Output
from promptkit.cli.workflow_commands import escape_commands
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


def obeyed(text):
    """The lines that the runner takes for commands: as its ``ActionCommand`` does, and more generously."""
    lines = re.split(r"[\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", re.sub(r"\x1b\[[0-9;]*m", "", text))
    return [line for line in lines if re.match(r"[^\w!-@\[-`{-~]*::.*::", line) or "##[" in line]


@pytest.fixture(autouse=True)
def workflow(monkeypatch):
    """The variable that the runner sets."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")


@pytest.mark.parametrize("text", COMMANDS)
def test_a_command_is_escaped(text):
    """
    Whatever is in front of it, and in either syntax.
    """
    assert obeyed(text)
    assert not obeyed(escape_commands(text))


@pytest.mark.parametrize("text", HARMLESS)
def test_other_text_stays(text):
    """
    Other colons and brackets are not escaped.
    """
    assert escape_commands(text) == text


@given(st.lists(st.sampled_from([*":#[]ax \t\r\n\x1b\u2028\u200d-", "::", "##[", "\x1b[1m"])).map("".join))
def test_any_text(text):
    """
    A law: no text has a command after it was escaped, and text without one stays.
    """
    assert not obeyed(escape_commands(text))
    if not obeyed(text):
        assert escape_commands(text) == text


def test_elsewhere_text_stays(monkeypatch):
    """
    Outside of a workflow, these are words as others.
    """
    monkeypatch.delenv("GITHUB_ACTIONS")

    assert [escape_commands(text) for text in COMMANDS] == COMMANDS


@pytest.mark.parametrize(
    "text", [" " * 200_000, "\x1b" * 200_000, "\x0b" * 200_000, "#" * 200_000, ":" * 200_000]
)
def test_time_in_proportion(text):
    """
    No text makes the search slow.
    """
    begun = time.process_time()
    escape_commands(text)
    assert time.process_time() - begun < 1


def sent(fill):
    """What an output sends after it was filled."""
    stream = StringIO()
    output = Output(stream, "utf-8")
    fill(output)
    output.send()
    return stream.getvalue()


@pytest.mark.parametrize("text", COMMANDS)
def test_standard_output(text):
    """
    All text of a command but its own annotations is escaped, and JSON is the same data.
    """
    assert not obeyed(sent(lambda output: output.print_lines([text])))
    assert not obeyed(sent(lambda output: output.print_content(text)))
    printed = sent(lambda output: output.print_json({"text": text}))
    assert not obeyed(printed)
    assert json.loads(printed) == {"text": text}


@pytest.mark.parametrize("text", COMMANDS)
def test_an_annotation(text):
    """
    It is one command, whatever is in its text and its properties.
    """
    where = {"file": text, "line": 3, "title": text}
    printed = sent(lambda output: print_annotation("error", text, output, where))

    assert re.fullmatch(r"::error file=[^\n:,]*,line=3,title=[^\n:,]*::[^\r\n]*\n", printed)


@pytest.mark.parametrize("colour", [True, False])
@pytest.mark.parametrize("text", COMMANDS)
def test_standard_error(text, colour, monkeypatch, capsys):
    """
    Errors, lines and diagnostics are escaped alike.
    """
    if colour:
        monkeypatch.setenv("FORCE_COLOR", "1")
    print_error(text)
    print_text(f"{text}\n")
    stream = StringIO()
    print_diagnostics([Diagnostic(Rule.NO_PROMPTS, text, text, Location(text.replace("\0", "")))], stream)

    assert not obeyed(capsys.readouterr().err)
    assert not obeyed(stream.getvalue())


def test_a_file_is_written_as_it_is(tmp_path):
    """
    The runner reads pipes alone: what the shell sends to a file is data.
    """
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "a.py").write_text(
        "from promptkit import prompt\n\n@prompt\ndef a():\n    return '::add-mask::x'\n"
    )
    with (tmp_path / "out.txt").open("wb") as file:
        command("render", "a", cwd=tmp_path, stdout=file)
    _, printed, _ = command("render", "a", cwd=tmp_path)

    assert "\n::add-mask::x" in (tmp_path / "out.txt").read_text()
    assert rb"\u003a:add-mask::x" in printed
