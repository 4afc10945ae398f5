"""Fixtures with recipes and their exports."""

import pytest

from promptkit.cli import main

WORDS = '''
from typing import Annotated, Literal

from promptkit import Arg, Image, assistant, prompt, skill, user
from promptkit.fragments import code_block

@prompt
def explain(topic: Annotated[str, Arg("What to explain")]):
    """Explain something: to a child."""
    return f"Explain {topic} to a child, for $100. {topic}!"

@prompt
def compare(first: str, second: str):
    """Compare two things."""
    return f"Compare {first} with {second}.\\n\\nBegin with {first}."

@prompt
def greet():
    """Say hello."""
    return user("Hello."), user("Who are you?")

@prompt
def translate(text: str, language: Literal["German", "French"] = "German", tone: str = "plain"):
    """Translate a text."""
    return f"Translate into {language}, in a {tone} tone:\\n\\n{text}"

@prompt
def review(code: str):
    """Review code."""
    return user("Review this.", code_block(code))

@prompt
def debug(error: str):
    """Debug an error."""
    return user(f"I see {error}."), assistant("What have you tried?")

@prompt
def count(number: int):
    """Count."""
    return f"Count to {number}."

@prompt
def unlock(key: Annotated[str, Arg(secret=True)]):
    """Unlock."""
    return f"Unlock {key}."

@skill
def notes():
    """Write notes."""
    return "Write them."
'''


@pytest.fixture
def project(recipes, tmp_path, monkeypatch):
    """A folder of recipes in the current folder."""
    monkeypatch.chdir(tmp_path)
    return recipes(words=WORDS)


@pytest.fixture
def export(project, tmp_path, capsys):
    """A function that exports one prompt and returns the content of its file."""

    def run(form, name, *options):
        code = main(["export", form, "out", name, *options])
        captured = capsys.readouterr()
        assert code == 0, captured.err
        paths = [*(tmp_path / "out").glob(f"{name}.*"), *(tmp_path / "out").glob(f"{name}/SKILL.md")]
        (path,) = paths
        return path.read_bytes()

    return run


@pytest.fixture
def export_error(project, capsys):
    """A function that tries to export a prompt that cannot be exported, and returns the error."""

    def run(form, name, *options):
        assert main(["export", form, "out", name, *options]) == 1
        return capsys.readouterr().err

    return run
