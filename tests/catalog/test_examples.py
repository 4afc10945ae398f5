import datetime as dt
from typing import Annotated

from promptkit import Arg, prompt
from promptkit.catalog.examples import example_arguments


def examples_of(function):
    """What a client sends for the examples of a prompt."""
    return list(example_arguments(prompt(function).compiled.arguments))


def test_they_are_sent_together():
    """
    The first examples go together, then the second ones; an argument with fewer has its first again.
    """

    def ask(
        name: Annotated[str, Arg(examples=["Ada", "Grace"])],
        day: Annotated[dt.date, Arg(examples=[dt.date(2026, 1, 31)])] = dt.date(2026, 1, 1),
        times: int = 1,
    ):
        return name

    assert examples_of(ask) == [
        {"name": "Ada", "day": "2026-01-31"},
        {"name": "Grace", "day": "2026-01-31"},
    ]


def test_a_required_argument_has_none():
    """
    Then the examples do not say what to send.
    """

    def ask(name: str, town: Annotated[str, Arg(examples=["Oslo"])]):
        return name

    assert examples_of(ask) == []


def test_nothing_is_required():
    """
    Sending nothing is an example, too, and the first.
    """

    def ask(town: Annotated[str, Arg(examples=["Oslo"])] = "Rome"):
        return town

    def greet():
        return "Hello."

    assert examples_of(ask) == [{}, {"town": "Oslo"}]
    assert examples_of(greet) == [{}]


def test_they_are_text_as_a_client_sends_it():
    """
    Whatever the type, the text is one that the parameter reads as that value.
    """

    def ask(
        numbers: Annotated[list[int], Arg(examples=[[1, 2], "3, 4"])],
        sure: Annotated[bool, Arg(examples=[True])],
    ):
        return f"{sum(numbers)} {sure}"

    made = prompt(ask)

    assert [made.render_wire(sent).text for sent in examples_of(ask)] == ["3 True", "7 True"]
