import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from promptkit import Arg, CompileError, prompt, register_type
from promptkit.testing import call_arguments, wire_arguments
from tests.ids import stable_repr
from tests.laws.test_types import TYPES, share
from tests.types.test_type_table import VALUES, Corner, Money, Node

BOUNDED = [
    Annotated[int, msgspec.Meta(gt=0, lt=3)],
    Annotated[int, msgspec.Meta(ge=10, multiple_of=7)],
    Annotated[int, msgspec.Meta(le=-10, multiple_of=7)],
    Annotated[float, msgspec.Meta(gt=0, le=1)],
    Annotated[float, msgspec.Meta(ge=0.5, multiple_of=0.5)],
    Annotated[str, msgspec.Meta(pattern="^[A-Z]{2}-[0-9]+$", max_length=6)],
    Annotated[bytes, msgspec.Meta(min_length=3, max_length=4)],
    Annotated[list[int], msgspec.Meta(min_length=6, max_length=7)],
    Annotated[set[bool], msgspec.Meta(min_length=2)],
    Annotated[dict[str, int], msgspec.Meta(min_length=1)],
    Annotated[dt.time, msgspec.Meta(tz=False)],
    list[int | None],
    set,
    tuple,
    dict[str, float | None],
]

#: Every type from the type table and the laws of types.
ANNOTATIONS = {str(kind): kind for kind in (*(kind for kind, *_ in VALUES), *TYPES, *BOUNDED)}
ALL = pytest.mark.parametrize("annotation", ANNOTATIONS.values(), ids=ANNOTATIONS)

FEW = settings(max_examples=share(8), suppress_health_check=list(HealthCheck), database=None)


def prompt_of(annotation):
    """Return a prompt with one parameter of a type."""

    def typed(value) -> str:
        return f"It is a {type(value).__name__}."

    typed.__annotations__["value"] = annotation
    return prompt(typed)


@ALL
@FEW
@given(data=st.data())
def test_generated_values_are_accepted(annotation, data):
    """For every type, clients can send the generated text, and calls take the generated values."""
    typed = prompt_of(annotation)
    sent, given_values = data.draw(wire_arguments(typed)), data.draw(call_arguments(typed))

    assert set(sent) == {"value"}
    assert type(sent["value"]) is str
    assert json.loads(json.dumps(sent).encode()) == sent
    assert typed.render_wire(sent)
    assert typed.render(**given_values)


#: Searches give the same result in each run, and do not simplify it.
SEARCH = settings(max_examples=2000, database=None, derandomize=True, phases=[Phase.generate])


def generates(annotation, condition):
    """Return whether the strategy for a parameter of a type generates a value that satisfies *condition*."""
    strategy = wire_arguments(prompt_of(annotation)).map(lambda sent: sent["value"])
    try:
        find(strategy, condition, settings=SEARCH)
    except NoSuchExample:
        return False
    return True


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (str, ""),
        (bool, "yes"),
        (bool, "false"),
        (Literal["a", "b"], "b"),
        (Corner, "RIGHT"),
        (Literal["a", "b"] | None, "a"),
        (float | Literal["auto"], "auto"),
        (list[int], "[]"),
        (Annotated[str, Arg(examples=["one of mine"])], "one of mine"),
        (Annotated[dt.date, Arg(examples=[dt.date(2026, 1, 31)])], "2026-01-31"),
    ],
)
def test_common_strings_are_generated(annotation, text):
    """Choices, both spellings of yes and no, empty lists, and the author's examples are generated."""
    assert generates(annotation, lambda generated: generated == text)


@pytest.mark.parametrize(
    ("annotation", "condition"),
    [
        (int, lambda text: int(text) < -1000),
        (Decimal, lambda text: "." in text),
        (dt.datetime, lambda text: text.endswith("+05:30")),
        (dt.datetime, lambda text: dt.datetime.fromisoformat(text).tzinfo is None),
        (Path, lambda text: text.startswith("../")),
        (Node, lambda text: json.loads(text).get("children")),
        (int | str, lambda text: not text.strip().lstrip("+-").isdecimal()),
        (dict[str, float | None], lambda text: None in json.loads(text).values()),
        (list[int | None], lambda text: None in json.loads(text)),
    ],
    ids=stable_repr,
)
def test_all_kinds_of_values_are_generated(annotation, condition):
    """Generated values cover all kinds of values of a type, not only the simplest ones."""
    assert generates(annotation, condition)


def test_optional_argument_can_be_missing_or_blank():
    """An optional argument is sometimes omitted, sometimes blank as in a form, and sometimes sent."""

    @prompt
    def count(name: str, times: int = 1):
        return name * times

    assert find(wire_arguments(count), lambda sent: "times" not in sent, settings=SEARCH).keys() == {"name"}
    assert find(wire_arguments(count), lambda sent: sent.get("times") == "", settings=SEARCH)
    assert find(call_arguments(count), lambda arguments: arguments.get("times", 0) > 5, settings=SEARCH)
    with pytest.raises(NoSuchExample):
        find(
            wire_arguments(count),
            lambda sent: "name" not in sent,
            settings=settings(SEARCH, max_examples=100),
        )


def test_compiled_prompt_is_accepted():
    """The strategies accept a prompt from a catalog as well as a decorated function."""
    sent = find(wire_arguments(prompt_of(bool).compiled), lambda _: True)

    assert sent["value"] in ("yes", "no", "true", "false")


def test_prompt_without_arguments():
    """A prompt without arguments is sent none."""
    assert find(wire_arguments(prompt(name="hello")(lambda: "Hello.")), lambda _: True) == {}


def test_invalid_prompt_is_rejected():
    """A prompt that cannot be compiled is rejected with its own diagnostics."""
    with pytest.raises(CompileError, match="PK304"):
        wire_arguments(prompt_of(memoryview))


class Colour:
    def __init__(self, shade):
        self.shade = shade


def test_type_without_a_strategy():
    """
    If hypothesis cannot generate a registered type, the error names the type; a registered strategy fixes it.
    """
    register_type(Colour, Colour, expected="a colour", write=lambda colour: colour.shade)
    with pytest.raises(Exception, match="Colour"):
        find(wire_arguments(prompt_of(Colour)), lambda _: True)

    st.register_type_strategy(Colour, st.builds(Colour, st.sampled_from(["red", "blue"])))

    assert generates(Colour, lambda text: text == "blue")
    assert generates(dict[str, Colour], lambda text: "red" in json.loads(text).values())
    assert generates(Money, lambda text: text.endswith(" EUR"))
