"""Importing an export restores the exported text."""

import pytest
from hypothesis import given

from promptkit.cli import main
from promptkit.clients.slash_commands.claude import read_claude_command
from promptkit.clients.slash_commands.command import ArgumentPart, TextPart
from promptkit.clients.slash_commands.gemini import read_gemini_command
from promptkit.exports.client_files import claude_command, gemini_command
from promptkit.testing import Client
from tests.cli.export.test_frozen import TEXTS, freeze, make_prompt


def render(command, *values):
    """Return the text of an imported command, which can only have text and arguments, for some values."""
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
    if (file := freeze(claude_command, source)) is None:
        return
    command = read_claude_command("saying", file.decode())

    assert render(command, "it") == source.render({"topic": "it"}).text
    assert command.description == "Repeat it."
    assert command.losses == ()


@given(TEXTS, TEXTS)
def test_claude_code_command_with_two_arguments(before, between):
    """Two arguments keep their order and the names of the hint."""
    source = make_prompt(f"Say {before}", between, " now.")
    if (file := freeze(claude_command, source)) is None:
        return
    command = read_claude_command("saying", file.decode())

    assert render(command, "one", "two") == source.render({"topic": "one", "second": "two"}).text
    assert [parameter.name for parameter in command.parameters] == ["topic", "second"]


@given(TEXTS, TEXTS)
def test_gemini_cli_command(before, after):
    """A command with its placeholder is restored."""
    source = make_prompt(f"Say {before}", f"{after} now.")
    if (file := freeze(gemini_command, source)) is None:
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
