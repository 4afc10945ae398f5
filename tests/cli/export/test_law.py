"""Importing an export restores the exported text."""

import re

import pytest
from hypothesis import given

from promptkit.cli import main
from promptkit.clients.slash_commands.claude import read_claude_command
from promptkit.clients.slash_commands.command import ArgumentPart, TextPart
from promptkit.clients.slash_commands.gemini import read_gemini_command
from promptkit.exports.client_files import claude_command, gemini_command
from promptkit.testing import Client
from tests.cli.export.test_frozen import TEXTS, file_of, make_prompt


def render(command, *values):
    """Return the text of an imported command with these values; the command has only text and arguments."""
    names = [parameter.name for parameter in command.parameters]
    given_values = dict(zip(names, values, strict=True))
    assert {type(part) for part in command.parts} <= {TextPart, ArgumentPart}
    return "".join(
        part.text if isinstance(part, TextPart) else given_values[part.name] for part in command.parts
    )


@given(TEXTS, TEXTS)
def test_claude_code_command(before, after):
    """A command with one argument is restored."""
    source = make_prompt(f"Say {before}", f"{after} now.")
    if (file := file_of(claude_command, source)) is None:
        return
    command = read_claude_command("saying", file.decode())

    assert render(command, "it") == source.render({"topic": "it"}).text
    assert command.description == "Repeat it."
    assert command.losses == ()


@given(TEXTS, TEXTS)
def test_claude_code_command_with_two_arguments(before, between):
    """Two arguments keep their order, and their names from the hint."""
    source = make_prompt(f"Say {before}", between, " now.")
    if (file := file_of(claude_command, source)) is None:
        return
    command = read_claude_command("saying", file.decode())

    assert render(command, "one", "two") == source.render({"topic": "one", "second": "two"}).text
    assert [parameter.name for parameter in command.parameters] == ["topic", "second"]


@given(TEXTS, TEXTS)
def test_gemini_cli_command(before, after):
    """A command with its placeholder is restored."""
    source = make_prompt(f"Say {before}", f"{after} now.")
    if (file := file_of(gemini_command, source)) is None:
        return
    command = read_gemini_command("saying", file.decode())

    assert render(command, "it") == source.render({"topic": "it"}).text
    assert command.description == "Repeat it."


@pytest.mark.parametrize("form", ["claude-commands", "gemini-commands"])
def test_round_trip(project, form):
    """An imported export is served with the same text."""
    assert main(["export", form, "out", "explain", "greet"]) == 0
    main(["import", form, "out", "-o", "back"])

    before, after = Client("recipes"), Client("back")
    assert [parameter.name for parameter in after.list_prompts()] == ["explain", "greet"]
    (argument,) = after.list_prompts()[0].arguments
    text = before.get_prompt("explain", {"topic": "it's"}).text
    assert after.get_prompt("explain", {argument.name: "it's"}).text == text
    assert after.get_prompt("greet").text == before.get_prompt("greet").text


#: Commands by their format: files whose placeholders, lines and optional arguments all survive.
COMMANDS = {
    "claude-commands": {
        "issue.md": "---\nargument-hint: [issue] [priority]\n---\nFix $1 with $2.\n\n- See: $1\n  1. $2\n",
        "all.md": "Review $ARGUMENTS.\n\n  - $ARGUMENTS\n",
        "named.md": "---\narguments: [issue, priority]\n---\nFix $issue ($priority) for $HOME.\n",
        "none.md": "Say hello.\n",
        "indexed.md": "First $ARGUMENTS[0], then $ARGUMENTS[1].\n",
    },
    "gemini-commands": {
        "all.toml": 'prompt = """\nReview {{args}}.\n\n- {{args}}\n"""\n',
        "none.toml": 'prompt = "Say hello."\n',
    },
}


@pytest.mark.parametrize(
    ("form", "name"), [(form, name) for form, files in COMMANDS.items() for name in files], ids=str
)
def test_round_trip_of_an_import(form, name, tmp_path, monkeypatch):
    """Recipes that `import` has written can be exported, and importing the export gives the same text."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / name).write_text(COMMANDS[form][name])
    assert main(["import", form, "given", "-o", "recipes"]) == 0
    assert main(["export", form, "out"]) == 0
    assert main(["import", form, "out", "-o", "back"]) == 0

    before, after = Client("recipes"), Client("back")
    (listed,), (listed_after,) = before.list_prompts(), after.list_prompts()
    names = [argument.name for argument in listed.arguments]
    values = {argument: f"{argument} or so" for argument in names}
    assert [argument.name for argument in listed_after.arguments] == names
    assert after.get_prompt(listed.name, values) == before.get_prompt(listed.name, values)
    text = after.get_prompt(listed.name).text
    assert re.sub(r"\$ARGUMENTS\[\d\]", "$N", text) == re.sub(
        r"\$(?:[12]|issue|priority|ARGUMENTS\[\d\])", "$N", before.get_prompt(listed.name).text
    )
