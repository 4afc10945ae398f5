"""Tests of `analyze_code`."""

import pytest

from promptkit import ArgumentsError, PromptError
from promptkit.testing import Client
from recipes.analyze_code import QUESTIONS, analyze_code


@pytest.mark.parametrize("aspect", QUESTIONS)
def test_each_aspect_asks_its_own_questions(aspect: str) -> None:
    """Every aspect can be chosen, and asks all of its questions and none of another's."""
    shown = str(analyze_code.render_wire({"code": "x = 1", "aspect": aspect}))

    asked = {question for questions in QUESTIONS.values() for question in questions if question in shown}
    assert asked == set(QUESTIONS[aspect])


def test_language_is_named_on_the_block() -> None:
    """The language, if it is known, marks the block of code."""
    assert "```go\nx := 1\n```" in str(analyze_code("x := 1", language="go"))
    assert "```\nx := 1\n```" in str(analyze_code("x := 1"))


def test_typo_in_the_aspect_gets_a_hint() -> None:
    """An aspect that does not exist is refused with the one that was probably meant."""
    with pytest.raises(ArgumentsError, match="did you mean 'security'"):
        analyze_code.render_wire({"code": "x = 1", "aspect": "securty"})


def test_aspects_are_offered_while_one_types() -> None:
    """A client completes the aspect, and offers all of them where nothing was typed."""
    client = Client(analyze_code)

    assert client.complete("analyze_code", "aspect", "perf").values == ("performance",)
    assert client.complete("analyze_code", "aspect").values == tuple(QUESTIONS)


def test_blank_code_is_refused() -> None:
    """There is nothing to analyse in white space."""
    with pytest.raises(PromptError, match="no code"):
        analyze_code(" \n")
