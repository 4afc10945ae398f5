"""An import of an export gives the text that was exported."""

import pytest
from hypothesis import given

from promptkit.cli import main
from promptkit.clients.slash_commands.claude import read_claude_command
from promptkit.clients.slash_commands.command import ArgumentPart, TextPart
from promptkit.clients.slash_commands.gemini import read_gemini_command
from promptkit.exports.client_files import claude, gemini
from promptkit.testing import Client
from tests.cli.export.test_frozen import TEXTS, made_of, written


def said(command, *values):
    """What an imported command says for values of its arguments; it may hold nothing but text and these."""
    names = [one.name for one in command.parameters]
    given_values = dict(zip(names, values, strict=True))
    assert {type(part) for part in command.parts} <= {TextPart, ArgumentPart}
    return "".join(
        part.text if isinstance(part, TextPart) else given_values[part.name] for part in command.parts
    )


@given(TEXTS, TEXTS)
def test_a_command_of_claude_code(before, behind):
    """
    With an only argument.
    """
    source = made_of(f"Say {before}", f"{behind} now.")
    if (file := written(claude, source)) is None:
        return
    command = read_claude_command("saying", file.decode())

    assert said(command, "it") == source.render({"topic": "it"}).text
    assert command.description == "Say it."
    assert command.losses == ()


@given(TEXTS, TEXTS)
def test_a_command_of_claude_code_with_two_arguments(before, between):
    """
    They keep their order, and have the names of the hint.
    """
    source = made_of(f"Say {before}", between, " now.")
    if (file := written(claude, source)) is None:
        return
    command = read_claude_command("saying", file.decode())

    assert said(command, "one", "two") == source.render({"topic": "one", "second": "two"}).text
    assert [one.name for one in command.parameters] == ["topic", "second"]


@given(TEXTS, TEXTS)
def test_a_command_of_gemini_cli(before, behind):
    """
    With its hole.
    """
    source = made_of(f"Say {before}", f"{behind} now.")
    if (file := written(gemini, source)) is None:
        return
    command = read_gemini_command("saying", file.decode())

    assert said(command, "it") == source.render({"topic": "it"}).text
    assert command.description == "Say it."


@pytest.mark.parametrize("form", ["claude-commands", "gemini-commands"])
def test_by_the_commands(project, form):
    """
    What is imported is served, and says the same.
    """
    assert main(["export", form, "out", "explain", "greet"]) == 0
    main(["import", form, "out", "-o", "back"])

    before, after = Client("recipes"), Client("back")
    assert [one.name for one in after.list_prompts()] == ["explain", "greet"]
    (argument,) = after.list_prompts()[0].arguments
    text = before.get_prompt("explain", {"topic": "it's"}).text
    assert after.get_prompt("explain", {argument.name: "it's"}).text == text
    assert after.get_prompt("greet").text == before.get_prompt("greet").text
