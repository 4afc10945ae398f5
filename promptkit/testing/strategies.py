"""Hypothesis strategies: the arguments that a client may send to a prompt, from their types."""

from typing import Any, TypeAlias

from promptkit.catalog.arguments import Argument
from promptkit.catalog.examples import example_texts
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.compiler.prompts import Prompt
from promptkit.conversion.errors import ConversionError
from promptkit.conversion.unstructuring import text_of
from promptkit.testing.extra import needed_by

with needed_by("making arguments up (wire_arguments, call_arguments, pytest --promptkit)", "hypothesis"):
    from hypothesis import strategies as st

    from promptkit.testing.json_values import json_values

__all__ = ["call_arguments", "wire_arguments"]

AnyPrompt: TypeAlias = Prompt[..., Any] | CompiledPrompt


def wire_arguments(prompt: AnyPrompt) -> st.SearchStrategy[dict[str, str]]:
    """
    Return a strategy for what a client may send to *prompt*, as text, by argument name.

    It makes values of every type that a parameter can have, among them the examples of its author. What
    has a default is also left out, or left blank as in a form. Of a type that `promptkit.register_type`
    has taught, hypothesis makes the values: teach it by ``hypothesis.strategies.register_type_strategy``
    if it cannot.

    Args:
        prompt:
            The prompt.

    Raises:
        CompileError: If the prompt cannot be served as it is written.
    """
    arguments = _compiled(prompt).arguments.ordered
    return st.fixed_dictionaries(
        {argument.name: _texts(argument) for argument in arguments if not argument.has_default},
        optional={argument.name: _texts(argument) for argument in arguments if argument.has_default},
    )


def call_arguments(prompt: AnyPrompt) -> st.SearchStrategy[dict[str, Any]]:
    """
    Return a strategy for keyword arguments to call *prompt* with: what `wire_arguments` makes, as values.

    Args:
        prompt:
            The prompt.

    Raises:
        CompileError: If the prompt cannot be served as it is written.
    """
    return wire_arguments(prompt).map(_compiled(prompt).arguments.read)


def _compiled(prompt: AnyPrompt) -> CompiledPrompt:
    return prompt.compiled if isinstance(prompt, Prompt) else prompt


def _texts(argument: Argument) -> st.SearchStrategy[str]:
    """Return a strategy for the text of one argument, which its parameter reads."""

    def is_read(text: str) -> bool:
        if not text and not argument.blank_is_value:
            return argument.has_default
        try:
            argument.reader.read(text)
        except ConversionError:
            return False
        return True

    made = json_values(argument.annotation).map(text_of)
    return st.one_of(*_people_write(argument), made).filter(is_read)


def _people_write(argument: Argument) -> list[st.SearchStrategy[str]]:
    """Return strategies for what people write otherwise than programs: choices, examples, nothing."""
    texts = [*argument.reader.values, *example_texts(argument)]
    if argument.has_default and not argument.blank_is_value:
        texts.append("")  # an empty field of a form
    return [st.sampled_from(texts)] if texts else []
