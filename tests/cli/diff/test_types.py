"""
The property that `promptkit diff` relies on: a wider type accepts every string that the narrower one accepts.
"""

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

from promptkit import compiler, prompt
from promptkit.cli.diff_changes import accepts_all
from promptkit.cli.diff_sides import build_answer
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


def prompt_with_argument(kind):
    """Return a prompt with one argument of a type."""

    def ask(value):
        return "x"

    ask.__annotations__["value"] = kind
    return prompt(ask)


PROMPTS = [prompt_with_argument(kind) for kind in TYPES]


def alternatives(asking):
    """Return the alternatives that the argument of a prompt accepts."""
    (item,) = build_answer(compiler.compile([asking])).items.values()
    return item.arguments["value"].alternatives


def is_wider(old, new):
    """Return whether the argument of *new* counts as accepting everything that *old* accepts."""
    return accepts_all(ALTERNATIVES[old], ALTERNATIVES[new])


ALTERNATIVES = {asking: alternatives(asking) for asking in PROMPTS}
WIDER = [(old, new) for old in PROMPTS for new in PROMPTS if is_wider(old, new)]


def test_wider_is_reflexive():
    """No type is narrower than itself, not even a recursive one."""
    assert all(is_wider(same, same) for same in PROMPTS)


def test_text_accepts_everything():
    """Text accepts what any type accepts, and most other pairs of types cannot be compared."""
    assert all(is_wider(old, PROMPTS[0]) for old in PROMPTS)
    assert len(WIDER) < 150


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_wider_type_accepts_every_text(data):
    """Every non-empty string that is valid for the narrower type is valid for the wider one."""
    old, new = data.draw(st.sampled_from(WIDER))
    arguments = data.draw(wire_arguments(old))
    assume("" not in arguments.values())  # which means "not given", but for strings

    new.compiled.arguments.read(arguments)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (Literal["red"], Literal["red", "blue"]),
        (Colour, Shade),
        (int, int | str),
        (Point, Point | None),
        (Tree, Tree | None),
        (Point, str),
    ],
)
def test_wider_pairs(old, new):
    """Each second type is wider than the first one, and not vice versa."""
    old, new = (alternatives(prompt_with_argument(kind)) for kind in (old, new))

    assert accepts_all(old, new)
    assert not accepts_all(new, old)
