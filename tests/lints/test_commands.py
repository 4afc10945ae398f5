import pytest

HEAD = """
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

import promptkit.workspace
from promptkit import Arg, prompt
from promptkit import workspace as own
from promptkit.workspace import run, run_async


def other(*words):
    return "x"


@prompt
async def subject(
    text: Annotated[str, Arg("Any")],
    path: Path | None = None,
    paths: list[str] = [],
    count: int = 3,
    choice: Literal["a", "b"] = "a",
    checked: Annotated[str, Meta(pattern="^[^-]")] = "x",
):
"""


@pytest.fixture
def find_reported_parameters(collect_diagnostics):
    """A function that returns the parameters reported in the body of a prompt."""

    def find_reported_parameters(body):
        diagnostics = [
            diagnostic
            for diagnostic in collect_diagnostics(subject=f"{HEAD}    return {body}\n")
            if diagnostic.rule.value == "PK330"
        ]
        return [diagnostic.message.split("'")[3] for diagnostic in diagnostics]

    return find_reported_parameters


@pytest.mark.parametrize(
    ("body", "reported"),
    [
        ("run('git', 'log', text, '--', 'a')", ["text"]),
        ("await run_async('git', 'log', text, '--', 'a')", ["text"]),
        ("own.run('git', text, '--')", ["text"]),
        ("promptkit.workspace.run('git', text, '--')", ["text"]),
        ("run('git', path, *paths, '--')", ["path", "paths"]),
        ("run('git', f'{text}..HEAD', '--')", ["text"]),
        ("run('git', text or 'HEAD', '--')", ["text"]),
        ("run('git', text if count else path, '--')", ["path", "text"]),
        ("run('git', text, '--end-of-options', path, '--')", ["text"]),
    ],
)
def test_parameter_that_could_be_an_option_is_reported(body, reported, find_reported_parameters):
    """A parameter at the start of a word is reported if the word comes before `--` or `--end-of-options`."""
    assert find_reported_parameters(body) == reported


@pytest.mark.parametrize(
    "body",
    [
        "run('git', 'log', '--', text, path, *paths)",
        "run('git', '--end-of-options', text, '--', path)",
        "run('git', 'show', text)",
        "run('git', f'--author={text}', '--')",
        "run('git', '-n', str(count), choice, checked, '--')",
        "run('git', limit=3)",
        "other('git', text, '--')",
    ],
)
def test_safe_parameters_are_not_reported(body, find_reported_parameters):
    """
    Commands without `--`, values after it or after other text in a word, numbers, choices, and values
    restricted by a pattern are not reported.
    """
    assert find_reported_parameters(body) == []


def test_reassigned_parameter_is_not_reported(collect_diagnostics):
    """A parameter that is reassigned is not reported, because it might have been checked."""
    body = "    text = text.lstrip('-')\n    return run('git', text, '--')\n"

    assert "PK330" not in [diagnostic.rule.value for diagnostic in collect_diagnostics(subject=HEAD + body)]
