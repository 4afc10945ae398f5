import datetime as dt
from typing import Annotated

import pytest

from promptkit import Arg, prompt, resource
from promptkit.types.unstructuring import text_of


def examples_of(function):
    """Return the arguments that a client sends for each example of a prompt."""
    return list(prompt(function).compiled.arguments.example_texts)


def test_examples_are_sent_together():
    """
    The first call has only the required arguments. The next call has the first example of each argument, and
    so on. An argument with fewer examples repeats its first.
    """

    def ask(
        name: Annotated[str, Arg(examples=["Ada", "Grace"])],
        day: Annotated[dt.date, Arg(examples=[dt.date(2026, 1, 31)])] = dt.date(2026, 1, 1),
        times: int = 1,
    ):
        return name

    assert examples_of(ask) == [
        {"name": "Ada"},
        {"name": "Ada", "day": "2026-01-31"},
        {"name": "Grace", "day": "2026-01-31"},
    ]


def test_required_argument_without_examples():
    """A prompt has no examples if a required argument has none."""

    def ask(name: str, town: Annotated[str, Arg(examples=["Oslo"])]):
        return name

    assert examples_of(ask) == []


def test_no_required_arguments():
    """If no argument is required, sending none is the first example."""

    def ask(town: Annotated[str, Arg(examples=["Oslo"])] = "Rome"):
        return town

    def greet():
        return "Hello."

    assert examples_of(ask) == [{}, {"town": "Oslo"}]
    assert examples_of(greet) == [{}]


def test_examples_are_text():
    """Each example is the text that a client sends, and parses as the example's value."""

    def ask(
        numbers: Annotated[list[int], Arg(examples=[[1, 2], "3, 4"])],
        sure: Annotated[bool, Arg(examples=[True])],
    ):
        return f"{sum(numbers)} {sure}"

    prompt_to_ask = prompt(ask)

    assert [prompt_to_ask.render_wire(sent).text for sent in examples_of(ask)] == ["3 True", "7 True"]


def test_example_that_cannot_be_written_as_text():
    """An example that cannot be written as text is skipped; other examples and defaults are still used."""
    unwritable = object()

    def required(price: Annotated[int, Arg(examples=[unwritable])]):
        return "x"

    def either(
        price: Annotated[int, Arg(examples=[5, unwritable])], note: Annotated[str, Arg(examples=["a", "b"])]
    ):
        return "x"

    def optional(price: Annotated[int | None, Arg(examples=[unwritable])] = None):
        return "x"

    @resource("prices://{price}")
    def read(price: Annotated[int, Arg(examples=[5, unwritable])]) -> str:
        return "x"

    assert [examples_of(function) for function in (required, either, optional)] == [
        [],
        [{"price": "5", "note": "a"}, {"price": "5", "note": "b"}],
        [{}],
    ]
    assert read.compile()[0].example_uris == ("prices://5",)
    assert [*map(text_of, prompt(either).compiled.arguments.by_name["price"].examples)] == ["5"]


def test_example_uris_of_a_template():
    """A template's example URIs contain the examples; reading such a URI passes them to the function."""
    received = []

    @resource("docs://{page}{?tags*,day}")
    def read(
        page: Annotated[str, Arg(examples=["two words", "end"])],
        tags: Annotated[list[str] | None, Arg(examples=[["a", "b,c"]])] = None,
        day: Annotated[dt.date | None, Arg(examples=[dt.date(2026, 1, 31)])] = None,
    ) -> str:
        received.append((page, tags, day))
        return "x"

    compiled, _ = read.compile()
    uris = compiled.example_uris
    for uri in uris:
        compiled.read(uri, compiled.match(uri))

    assert uris == (
        "docs://two%20words",
        "docs://two%20words?tags=a&tags=b%2Cc&day=2026-01-31",
        "docs://end?tags=a&tags=b%2Cc&day=2026-01-31",
    )
    complete = [(page, ["a", "b,c"], dt.date(2026, 1, 31)) for page in ("two words", "end")]
    assert received == [("two words", None, None), *complete]


@pytest.mark.parametrize(
    ("template", "examples", "uris"),
    [
        ("docs://guide", None, ("docs://guide",)),
        ("docs://{page}", (), ()),
        ("docs://all{?page}", (), ("docs://all",)),
        ("docs://all{?page}", ("x",), ("docs://all", "docs://all?page=x")),
    ],
    ids=str,
)
def test_uris_without_examples(template, examples, uris):
    """A resource without variables has one URI; a required variable without examples means none."""
    if examples is None:
        document = resource(template)(lambda: "x")
    else:

        def read(page: Annotated[str, Arg(examples=examples)]) -> str:
            return page

        read.__defaults__ = ("",) if "?" in template else None
        document = resource(template)(read)

    assert document.compile()[0].example_uris == uris
