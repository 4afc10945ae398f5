"""
Prompt files of VS Code: inputs, and the variables that only the editor has.

The rules are from https://code.visualstudio.com/docs/copilot/customization/prompt-files.
"""

import pytest

from promptkit.clients.slash_commands.command import CommandParameter
from promptkit.clients.slash_commands.vscode import read_vscode_prompt

FORM = """\
---
mode: agent
description: 'Make a form'
name: new form
tools: ['search']
---
Make ${input:form-name:What is it called?} for ${input:user}, as ${input:form-name} says.
Look at ${selection}, [the rules](../docs/rules.md#top) and #tool:search, not [here](https://example.org/x.md).
"""


def test_parsed_command():
    """
    Inputs are required parameters with their hints, and everything that is lost is reported with its line.
    """
    command = read_vscode_prompt("web/form", FORM)

    assert (command.name, command.description) == ("web/new form", "Make a form")
    assert command.parameters == (
        CommandParameter("form_name", "What is it called?", default=None),
        CommandParameter("user_", default=None),
    )
    assert [(loss.line, loss.description) for loss in command.losses] == [
        (2, "the field 'mode' is not imported"),
        (5, "the field 'tools' is not imported"),
        (8, "'${selection}' is kept as text: only the editor knows its value"),
        (8, "'[the rules](../docs/rules.md#top)' is kept as text: files cannot be attached"),
        (8, "'#tool:search' is kept as text: tools belong to the client"),
    ]


def test_served_prompt(import_files):
    """The text is unchanged except for the inputs."""
    result = import_files("vscode-prompts", {"web/form.prompt.md": FORM, "web/other.md": "No prompt file."})

    (listed,) = result.client.list_prompts()
    assert [(argument.name, argument.required) for argument in listed.arguments] == [
        ("form_name", True),
        ("user_", True),
    ]
    assert listed.arguments[0].description == "What is it called?"
    text = FORM.partition("---\nMake")[2].replace("${input:form-name:What is it called?}", "A ${x}")
    expected = f"Make{text}".replace("${input:form-name}", "A ${x}").replace("${input:user}", "B")
    assert result.render("web-new-form", form_name="A ${x}", user_="B") == expected.rstrip()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("${input:a b} ${input:a-b}", ["a_b", "a_b_2"]),
        ("${input:class} ${input:1st} ${input:é}", ["class_", "n1st", "e"]),
        ("${input:日本}", ["argument"]),
        ("${input} ${other} ${input:}", []),
    ],
    ids=str,
)
def test_parameter_names(text, names):
    """Each parameter has a unique name that is valid in Python."""
    assert [parameter.name for parameter in read_vscode_prompt("x", text).parameters] == names
