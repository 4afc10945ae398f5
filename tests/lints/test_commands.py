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
def named(found):
    """A function that says which parameters are reported in the body of a prompt."""

    def named(body):
        reported = [one for one in found(subject=f"{HEAD}    return {body}\n") if one.rule.value == "PK330"]
        return [one.message.split("'")[3] for one in reported]

    return named


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
def test_a_value_of_a_caller_may_be_an_option(body, reported, named):
    """
    Text and paths that a word begins with, in front of the word that ends the options.
    """
    assert named(body) == reported


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
def test_no_false_alarm(body, named):
    """
    Behind that word, behind other text, of numbers and choices, or where a pattern says how values begin.
    """
    assert named(body) == []


def test_a_value_that_was_made_is_not_the_callers(found):
    """
    A parameter that is bound anew may have been checked.
    """
    body = "    text = text.lstrip('-')\n    return run('git', text, '--')\n"

    assert "PK330" not in [one.rule.value for one in found(subject=HEAD + body)]
