from pathlib import Path
from typing import Annotated

import pytest

from promptkit import Arg, ArgumentsError, PromptError, prompt
from promptkit.compiler.compilation import compile
from promptkit.errors import EmptyPromptError
from promptkit.loader.loader import load
from promptkit.testing.checks import RenderingError, check_examples, check_generated

CATALOG = compile(load(Path(__file__).parents[2] / "recipes"), lint=True)


@pytest.mark.parametrize("name", CATALOG)
def test_every_recipe_passes(name, monkeypatch):
    """
    Each of the recipes renders for its examples, and for what is made up.
    """
    monkeypatch.setenv("CI", "true")

    assert CATALOG.diagnostics == ()
    check_examples(CATALOG[name])
    check_generated(CATALOG[name])


def failing(error):
    """A prompt that raises *error* for its example, and for all that is longer than it."""

    def ask(text: Annotated[str, Arg(examples=["sample"])]):
        if len(text) > 5:
            raise error
        return f"Say {text!r}."

    return prompt(ask).compiled


class TestExamples:
    @pytest.mark.parametrize(
        "error", [ValueError("no"), PromptError("no"), EmptyPromptError("other"), ArgumentsError("other", ())]
    )
    def test_an_example_has_to_render(self, error):
        """
        Whatever is raised, an example that people are shown does not work; what was sent is told.
        """
        with pytest.raises(RenderingError) as caught:
            check_examples(failing(error))

        assert caught.value.__cause__ is error
        assert str(caught.value) == "prompt 'ask' fails for {'text': 'sample'}"

    def test_examples_that_are_not_all_that_is_needed(self):
        """
        Where an argument is required and has no example, they say nothing by themselves.
        """

        @prompt
        def ask(text: Annotated[str, Arg(examples=["sample"])], other: str):
            raise ValueError(text)

        check_examples(ask.compiled)

    def test_defaults_may_be_refused(self):
        """
        Nobody has asked for them. Another exception is a failure.
        """

        @prompt
        def ask(text: str = ""):
            raise PromptError("there is no difference to HEAD")

        @prompt
        def fails(text: str = ""):
            raise ValueError(text)

        assert check_examples(ask.compiled) == []
        with pytest.raises(RenderingError):
            check_examples(fails.compiled)

    def test_each_is_rendered(self):
        """
        All examples are tried, asynchronous prompts too.
        """
        seen = []

        @prompt
        async def ask(text: Annotated[str, Arg(examples=["a", "b"])]):
            seen.append(text)
            return text

        check_examples(ask.compiled)

        assert seen == ["a", "b"]


class TestGenerated:
    @pytest.mark.parametrize("error", [PromptError("no"), EmptyPromptError("other")])
    def test_what_people_are_told_is_no_fault(self, error):
        """
        A prompt may refuse what it is sent, in words for whoever sent it.
        """
        assert check_generated(failing(error)) is None

    def test_what_renders_for_nothing_says_why(self):
        """
        Of what it has told people, the last.
        """

        @prompt
        def ask(text: str):
            raise PromptError("there is no difference to HEAD")

        assert check_generated(ask.compiled) == "there is no difference to HEAD"

    @pytest.mark.parametrize("error", [KeyError("no"), ArgumentsError("other", ()), SystemError("no")])
    def test_anything_else_is(self, error):
        """
        Any other exception is a fault, told for the simplest arguments that lead to it.
        """
        with pytest.raises(RenderingError) as caught:
            check_generated(failing(error))

        assert caught.value.__cause__ is error
        assert len(caught.value.arguments["text"]) == 6

    @pytest.mark.parametrize("name", ["review-code", "3d-model", "class", "-"])
    def test_a_prompt_may_have_any_name_that_clients_take(self, name):
        """
        It need be no name of Python's.
        """

        @prompt(name=name)
        def ask(text: str):
            return f"Say {text!r}."

        assert check_generated(ask.compiled) is None

    def test_what_cannot_be_sent_is(self):
        """
        So is text that no line can hold, which shows only when it is sent.
        """

        @prompt
        def say(text: str):
            return f"half of a pair: \ud83d {text}"

        with pytest.raises(RenderingError) as caught:
            check_generated(say.compiled)

        assert type(caught.value.__cause__) is UnicodeEncodeError
        assert caught.value.arguments == {"text": ""}
