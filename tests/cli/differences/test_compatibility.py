"""The law that `promptkit diff` rests on: what it calls wider takes every text that was taken."""

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypedDict
from uuid import UUID

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec import Meta

from promptkit import prompt
from promptkit.catalog.json_schema import schema_of
from promptkit.cli.differences.changes import takes_all
from promptkit.testing import wire_arguments


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Shade(Enum):
    RED = "red"
    BLUE = "blue"
    GREEN = "green"


@dataclass
class Point:
    x: int


@dataclass
class Wide:
    x: float
    y: int = 0


@dataclass
class Tree:
    name: str
    below: "list[Tree]"


class Pair(NamedTuple):
    a: int
    b: str


class Options(TypedDict, total=False):
    x: int


TYPES = [
    str,
    int,
    float,
    bool,
    Decimal,
    date,
    datetime,
    UUID,
    Path,
    bytes,
    Colour,
    Shade,
    Literal["red"],
    Literal["red", "blue"],
    Literal[1, 2],
    int | None,
    int | str,
    float | date,
    list[int],
    list[float],
    list[str],
    set[int],
    tuple[int, str],
    tuple[int, ...],
    dict[str, int],
    dict[str, float],
    dict[int, int],
    Point,
    Wide,
    Tree,
    Pair,
    Options,
    list[Point],
    Annotated[int, Meta(ge=0)],
    Annotated[int, Meta(ge=0, le=10)],
    Annotated[int, Meta(multiple_of=2)],
    Annotated[str, Meta(min_length=1)],
    Annotated[str, Meta(max_length=3)],
    Annotated[str, Meta(pattern="^r")],
    Annotated[list[int], Meta(max_length=2)],
]


def taking(kind):
    """A prompt with one argument of a type."""

    def ask(value):
        return "x"

    ask.__annotations__["value"] = kind
    return prompt(ask)


PROMPTS = [taking(kind) for kind in TYPES]


def is_wider(old, new):
    """Whether the argument of *new* is said to take all that the one of *old* takes."""
    before, after = (schema_of(one.compiled.arguments.ordered, places=True) for one in (old, new))
    return takes_all(before["properties"]["value"], after["properties"]["value"], before, after)


WIDER = [(old, new) for old in PROMPTS for new in PROMPTS if is_wider(old, new)]


def test_every_type_takes_all_that_it_takes():
    """
    No type is narrower than itself, also if it holds itself.
    """
    assert all(is_wider(one, one) for one in PROMPTS)


def test_many_pairs_are_told_apart():
    """
    Text takes everything, and few other types take all of another's.
    """
    assert sum(new is PROMPTS[0] for _, new in WIDER) == len(TYPES)
    assert 90 < len(WIDER) < 180


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_what_is_wider_takes_every_text(data):
    """
    Whatever a client may send for the narrower type is read by the wider one, but for the empty text.
    """
    old, new = data.draw(st.sampled_from(WIDER))
    sent = data.draw(wire_arguments(old))
    assume("" not in sent.values())  # which means "not given", but for strings

    new.compiled.arguments.read(sent)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (Literal["red"], Literal["red", "blue"]),
        (Colour, Shade),
        (int, float),
        (Annotated[int, Meta(ge=0)], int),
        (int, int | str),
        (Point, Point | None),
        (Point, str),
    ],
)
def test_pairs_of_which_one_is_wider(old, new):
    """
    Each is wider than the other, and not the other way round.
    """
    assert is_wider(taking(old), taking(new))
    assert not is_wider(taking(new), taking(old))
