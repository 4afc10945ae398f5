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
    """A function that returns the parameters reported in the body of a prompt."""

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
    """A parameter at the start of a word is reported if the word comes before `--` or `--end-of-options`."""
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
    Not reported: commands without `--`, values after it or after other text in a word, numbers, choices, and
    values restricted by a pattern.
    """
    assert named(body) == []


def test_a_value_that_was_made_is_not_the_callers(found):
    """A parameter that is reassigned is not reported, because it might have been checked."""
    body = "    text = text.lstrip('-')\n    return run('git', text, '--')\n"

    assert "PK330" not in [one.rule.value for one in found(subject=HEAD + body)]
