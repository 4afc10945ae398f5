"""Tests of `analyze_code`."""

import pytest

from promptkit import ArgumentsError, PromptError
from promptkit.testing import Client
from recipes.analyze_code import QUESTIONS, analyze_code


@pytest.mark.parametrize("aspect", QUESTIONS)
def test_each_aspect_asks_its_own_questions(aspect: str) -> None:
    """The prompt contains all questions about the chosen aspect, and none about other aspects."""
    rendering = str(analyze_code.render_wire({"code": "x = 1", "aspect": aspect}))

    all_questions = {question for questions in QUESTIONS.values() for question in questions}
    assert {question for question in all_questions if question in rendering} == set(QUESTIONS[aspect])


def test_code_block_names_the_language() -> None:
    """The fence of the code block names the language only if it is given."""
    assert "```go\nx := 1\n```" in str(analyze_code("x := 1", language="go"))
    assert "```\nx := 1\n```" in str(analyze_code("x := 1"))


def test_misspelled_aspect_suggests_the_nearest() -> None:
    """An unknown aspect is rejected, and the error suggests the nearest valid one."""
    with pytest.raises(ArgumentsError, match="did you mean 'security'"):
        analyze_code.render_wire({"code": "x = 1", "aspect": "securty"})


def test_aspects_are_completed() -> None:
    """Completion returns the aspects that start with the input, and all aspects for empty input."""
    client = Client(analyze_code)

    assert client.complete("analyze_code", "aspect", "perf").values == ("performance",)
    assert client.complete("analyze_code", "aspect").values == tuple(QUESTIONS)


def test_blank_code_is_rejected() -> None:
    """Code that consists of white space is rejected."""
    with pytest.raises(PromptError, match="code is empty"):
        analyze_code(" \n")
