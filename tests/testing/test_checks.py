from typing import Annotated

import pytest

from promptkit import Arg, ArgumentsError, Image, PromptError, prompt, user
from promptkit.errors import EmptyPromptError
from promptkit.testing.collection import RenderingError, check_examples, check_generated


def failing_prompt(error):
    """
    Return a compiled prompt that raises *error* for its example, and for any string of more than five
    characters.
    """

    def ask(text: Annotated[str, Arg(examples=["sample"])]):
        if len(text) > 5:
            raise error
        return f"Say {text!r}."

    return prompt(ask).compiled


class TestExamples:
    @pytest.mark.parametrize(
        "error", [ValueError("no"), PromptError("no"), EmptyPromptError("other"), ArgumentsError("other", ())]
    )
    def test_example_must_render(self, error):
        """
        An example must render, so any exception is reported with the arguments, even one for the caller.
        """
        with pytest.raises(RenderingError) as caught:
            check_examples(failing_prompt(error))

        assert caught.value.__cause__ is error
        assert str(caught.value) == "prompt 'ask' fails for {'text': 'sample'}"

    def test_required_argument_without_an_example(self):
        """If a required argument has no example, the examples of other arguments are not rendered."""

        @prompt
        def ask(text: Annotated[str, Arg(examples=["sample"])], other: str):
            raise ValueError(text)

        check_examples(ask.compiled)

    def test_defaults_can_be_rejected(self):
        """
        A prompt can reject its defaults with a `PromptError`, since no caller has sent them. Any other
        exception is a failure.
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

    def test_image_of_the_author(self):
        """An image that cannot be sent is a failure if no arguments were sent, because it is the author's."""

        @prompt
        def picture():
            return user("Look.", Image(bytes(20)))

        with pytest.raises(RenderingError):
            check_examples(picture.compiled)

    def test_all_examples_are_rendered(self):
        """All examples are rendered, for asynchronous prompts as well."""
        texts = []

        @prompt
        async def ask(text: Annotated[str, Arg(examples=["a", "b"])]):
            texts.append(text)
            return text

        check_examples(ask.compiled)

        assert texts == ["a", "b"]


class TestGenerated:
    @pytest.mark.parametrize("error", [PromptError("no"), EmptyPromptError("other")])
    def test_generated_arguments_can_be_rejected(self, error):
        """A prompt can reject generated arguments with an error meant for the caller."""
        assert check_generated(failing_prompt(error)) is None

    def test_reason_if_no_arguments_render(self):
        """If no generated arguments render, the last of the prompt's own error messages is returned."""

        @prompt
        def ask(text: str):
            raise PromptError("there is no difference to HEAD")

        assert check_generated(ask.compiled) == "there is no difference to HEAD"

    def test_arguments_are_reproducible_in_ci(self, monkeypatch):
        """In CI, the same arguments are generated each time."""
        monkeypatch.setenv("CI", "true")
        tried = []

        @prompt
        def ask(text: str, number: int):
            tried.append((text, number))
            return "x"

        check_generated(ask.compiled)
        first, tried[:] = list(tried), []
        check_generated(ask.compiled)

        assert tried == first
        assert len(first) >= 20

    @pytest.mark.parametrize("error", [KeyError("no"), ArgumentsError("other", ()), SystemError("no")])
    def test_other_exception_is_a_failure(self, error):
        """Any other exception is a failure, reported for the simplest arguments that cause it."""
        with pytest.raises(RenderingError) as caught:
            check_generated(failing_prompt(error))

        assert caught.value.__cause__ is error
        assert len(caught.value.arguments["text"]) == 6

    @pytest.mark.parametrize("name", ["review-code", "3d-model", "class", "-"])
    def test_name_need_not_be_an_identifier(self, name):
        """The name need not be a Python identifier."""

        @prompt(name=name)
        def ask(text: str):
            return f"Say {text!r}."

        assert check_generated(ask.compiled) is None

    def test_text_that_cannot_be_encoded_is_a_failure(self):
        """
        Text that cannot be encoded is a failure as well, although the error only occurs on serialization.
        """

        @prompt
        def ask(text: str):
            return f"half of a pair: \ud83d {text}"

        with pytest.raises(RenderingError) as caught:
            check_generated(ask.compiled)

        assert type(caught.value.__cause__) is UnicodeEncodeError
        assert caught.value.arguments == {"text": ""}
