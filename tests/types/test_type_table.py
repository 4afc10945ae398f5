# ruff: noqa: UP007, UP045 (people write types in every spelling)
import datetime as dt
import typing
from collections.abc import Collection, Mapping, MutableMapping, MutableSequence, MutableSet, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, Optional, TypedDict, Union
from uuid import UUID

import attrs
import msgspec
import pytest

from promptkit import Arg, ArgumentsError, prompt, register_type
from tests.ids import stable_repr
from tests.sample_types import Corner, Level, Point, Tone


@attrs.define
class Place:
    name: str
    points: list[Point]
    when: dt.date | None = None
    path: Path = Path("here")


@attrs.define
class Node:
    value: int
    children: list["Node"] = attrs.Factory(list)


@attrs.define
class Even:
    n: int = attrs.field()

    @n.validator
    def _check(self, _, value):
        if value % 2:
            msg = "n is odd"
            raise ValueError(msg)


class Circle(msgspec.Struct, tag="circle"):
    radius: float


class Square(msgspec.Struct, tag="square"):
    side: Annotated[float, msgspec.Meta(gt=0)]


class Options(TypedDict):
    depth: int
    tags: NotRequired[list[str]]


class Pair(NamedTuple):
    left: int
    right: str = "r"


@dataclass
class Board:
    cells: dict[str, list[Point]] = field(default_factory=dict)


class Money:
    def __init__(self, cents: int) -> None:
        self.cents = cents

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Money) and self.cents == other.cents

    __hash__ = None


register_type(
    Money,
    lambda text: Money(round(float(text.removesuffix(" EUR")) * 100)),
    expected="an amount, as in 3 EUR",
    write=lambda money: f"{money.cents / 100} EUR",
)

UserId = NewType("UserId", int)
Depth = Annotated[int, msgspec.Meta(ge=1, le=9)]
Slug = Annotated[str, msgspec.Meta(pattern="^[a-z]+$", min_length=2)]
NOON = dt.datetime(2026, 1, 31, 12)  # noqa: DTZ001 (parsed without an offset)
ID = UUID("12345678-1234-5678-1234-567812345678")

#: A type, what a client sends, and what the function receives. The variable DEPTH is 3.
VALUES = [
    (str, "text", "text"),
    (str, "", ""),
    (str, " 5 ", " 5 "),
    (str, "null", "null"),
    (int, "5", 5),
    (int, " -5 ", -5),
    (int, "1_000", 1000),
    (int, "9" * 40, int("9" * 40)),
    (int, 5, 5),
    (int, 5.0, 5),
    (float, "2.5", 2.5),
    (float, "1e3", 1000.0),
    (float, 3, 3.0),
    (float, "-0.5", -0.5),
    (bool, "yes", True),
    (bool, "ON", True),
    (bool, "1", True),
    (bool, "True", True),
    (bool, "no", False),
    (bool, "off", False),
    (bool, "0", False),
    (bool, " false ", False),
    (bool, True, True),
    (Decimal, "2.50", Decimal("2.50")),
    (Decimal, "1E+3", Decimal(1000)),
    (Decimal, 2.5, Decimal("2.5")),
    (Decimal, 3, Decimal(3)),
    (dt.date, "2026-01-31", dt.date(2026, 1, 31)),
    (dt.date, "20260131", dt.date(2026, 1, 31)),
    (dt.datetime, "2026-01-31T12:00", NOON),
    (dt.datetime, "2026-01-31 12:00:00", NOON),
    (dt.datetime, "2026-01-31T12:00:00Z", NOON.replace(tzinfo=dt.UTC)),
    (dt.datetime, "2026-01-31", NOON.replace(hour=0)),
    (dt.time, "12:30", dt.time(12, 30)),
    (dt.time, "12:30:01.5", dt.time(12, 30, 1, 500000)),
    (dt.timedelta, "1h 30m", dt.timedelta(minutes=90)),
    (dt.timedelta, "90 min", dt.timedelta(minutes=90)),
    (dt.timedelta, "1:30", dt.timedelta(minutes=90)),
    (dt.timedelta, "PT1H30M", dt.timedelta(minutes=90)),
    (dt.timedelta, "1.5 hours", dt.timedelta(minutes=90)),
    (dt.timedelta, "2 hrs", dt.timedelta(hours=2)),
    (dt.timedelta, "1 hr 5 mins 3 secs", dt.timedelta(hours=1, minutes=5, seconds=3)),
    (dt.timedelta, "2 wks", dt.timedelta(weeks=2)),
    (dt.timedelta, "90s", dt.timedelta(seconds=90)),
    (dt.timedelta, "2 days", dt.timedelta(days=2)),
    (dt.timedelta, "1 day, 2:03:04", dt.timedelta(days=1, hours=2, minutes=3, seconds=4)),
    (dt.timedelta, "-1 day, 23:59:59", dt.timedelta(seconds=-1)),
    (dt.timedelta, "-1h 30m", dt.timedelta(minutes=-90)),
    (UUID, str(ID), ID),
    (UUID, ID.hex.upper(), ID),
    (Path, "notes/today.md", Path("notes/today.md")),
    (bytes, "aGk=", b"hi"),
    (bytes, "aG\nk=", b"hi"),
    (bytes, "data:text/plain;base64,aGk=", b"hi"),
    (bytes, "data:,h%69", b"hi"),
    (Tone, "warm", Tone.WARM),
    (Tone, "WARM", Tone.WARM),
    (Tone, "cold", Tone.COLD),
    (Level, "1", Level.LOW),
    (Level, "low", Level.LOW),
    (Level, 2, Level.HIGH),
    (Corner, "left", Corner.LEFT),
    (Literal["python", "rust"], "Rust", "rust"),
    (Literal[1, "auto"], "1", 1),
    (Literal[1, "auto"], "AUTO", "auto"),
    (Literal[1, True], True, True),
    (Optional[int], "5", 5),
    (Optional[Literal["a", "b"]], "B", "b"),
    (int | str, "5", 5),
    (int | str, "five", "five"),
    (str | int, "5", 5),
    (int | str, "007", "007"),
    (int | str, " 5", " 5"),
    (int | str, 5.0, 5),
    (float | str, "1.10", "1.10"),
    (float | str, "1.5", 1.5),
    (bool | str, "no", "no"),
    (bool | str, "true", True),
    (dt.date | str, "20260131", "20260131"),
    (int | Annotated[str, msgspec.Meta(min_length=2)], "0100", "0100"),
    (list[int] | str, "1, 2", "1, 2"),
    (list[int] | str, "[1, 2]", [1, 2]),
    (Point | str, '{"x": 1}', Point(1)),
    (Point | str, "[draft] {x}", "[draft] {x}"),
    (list[int | str], "5, 007", [5, "007"]),
    (dict[str, int | str], '{"a": 5, "b": "007", "c": "5"}', {"a": 5, "b": "007", "c": "5"}),
    (dict[str, Decimal | str], '{"a": "1.10", "b": "007"}', {"a": Decimal("1.10"), "b": "007"}),
    (Optional[int], "null", None),
    (Optional[int], " None ", None),
    (Optional[int], None, None),
    (Optional[str], None, None),
    (Optional[str], "null", "null"),
    (Optional[Point], "null", None),
    (Optional[Literal["none", "all"]], "None", "none"),
    (list[Optional[int]], "1, null", [1, None]),
    (Annotated[Optional[int], msgspec.Meta(description="How deep")], "null", None),
    (float | Literal["auto"], "auto", "auto"),
    (float | Literal["auto"], "1.5", 1.5),
    (dt.date | Literal["today"], "today", "today"),
    (dt.date | Literal["today"], "2026-01-31", dt.date(2026, 1, 31)),
    (Sequence[str], "a, b", ("a", "b")),
    (Sequence[int], "[1, 2]", (1, 2)),
    (typing.Sequence[Tone], "warm", (Tone.WARM,)),
    (Collection[int], "1, 2", (1, 2)),
    (MutableSequence[int], "1, 2", [1, 2]),
    (AbstractSet[int], "1, 2, 1", {1, 2}),
    (MutableSet[str], "a", {"a"}),
    (Sequence[Point], '[{"x": 1}]', (Point(1),)),
    (Sequence[Sequence[int]], "[[1], []]", ((1,), ())),
    (Optional[Sequence[str]], "a", ("a",)),
    (Sequence, '["a", 1]', ("a", 1)),
    (Mapping[str, int], '{"a": 1}', {"a": 1}),
    (MutableMapping[str, Sequence[int]], '{"a": [1]}', {"a": (1,)}),
    (Mapping, '{"a": 1}', {"a": 1}),
    (Union[Point, Pair], '{"x": 1}', Point(1)),
    (Union[Point, Pair], '[1, "b"]', Pair(1, "b")),
    (Circle | Square, '{"type": "circle", "radius": 2}', Circle(2)),
    (Circle | Square, '{"type": "square", "side": 2}', Square(2)),
    (UserId, "5", 5),
    (Depth, "9", 9),
    (Slug, "abc", "abc"),
    (Annotated[list[int], msgspec.Meta(max_length=2)], "1, 2", [1, 2]),
    (list[str], "a, b", ["a", "b"]),
    (list[str], "a\nb, c", ["a", "b, c"]),
    (list[str], '["a", "b"]', ["a", "b"]),
    (list[str], ["a"], ["a"]),
    (list[int], "1,2 , 3", [1, 2, 3]),
    (list[Tone], "warm, cold", [Tone.WARM, Tone.COLD]),
    (list[dt.date], "2026-01-31", [dt.date(2026, 1, 31)]),
    (list[Depth], "1, 9", [1, 9]),
    (set[str], "b, a, b", {"a", "b"}),
    (frozenset[int], "[1, 2]", frozenset({1, 2})),
    (tuple[int, ...], "1, 2, 3", (1, 2, 3)),
    (tuple[int, str], '[1, "a"]', (1, "a")),
    (list[list[int]], "[[1], []]", [[1], []]),
    (list[tuple[int, str]], '[[1, "a"]]', [(1, "a")]),
    (dict[str, int], '{"a": 1}', {"a": 1}),
    (dict[int, str], '{"1": "a"}', {1: "a"}),
    (dict[dt.date, int], '{"2026-01-31": 1}', {dt.date(2026, 1, 31): 1}),
    (dict[str, Any], '{"a": [1, null]}', {"a": [1, None]}),
    (dict, '{"a": 1}', {"a": 1}),
    (list, "[1]", [1]),
    (dict[str, list[Point]], '{"a": [{"x": 1}]}', {"a": [Point(1)]}),
    (Point, '{"x": 1, "y": 2.5}', Point(1, 2.5)),
    (Point, {"x": 1.0}, Point(1)),
    (list[Point], '[{"x": 1}]', [Point(1)]),
    (Optional[list[Point]], '[{"x": 1}]', [Point(1)]),
    (Board, '{"cells": {"a": [{"x": 1}]}}', Board({"a": [Point(1)]})),
    (Place, '{"name": "n", "points": []}', Place("n", [])),
    (
        Place,
        '{"name": "n", "points": [{"x": 1}], "when": "2026-01-31", "path": "a/b"}',
        Place("n", [Point(1)], dt.date(2026, 1, 31), Path("a/b")),
    ),
    (Node, '{"value": 1, "children": [{"value": 2}]}', Node(1, [Node(2)])),
    (Options, '{"depth": 1}', {"depth": 1}),
    (Options, '{"depth": 1, "tags": ["a"]}', {"depth": 1, "tags": ["a"]}),
    (Pair, "[1]", Pair(1)),
    (Pair, '{"left": 1}', Pair(1)),
    (Pair, '{"right": "a", "left": 1.0}', Pair(1, "a")),
    (list[Pair], '[{"left": 1}, [2]]', [Pair(1), Pair(2)]),
    (Circle, '{"type": "circle", "radius": 1}', Circle(1)),
    (Even, '{"n": 2}', Even(2)),
    (Money, "3 EUR", Money(300)),
    (list[Money], "3 EUR, 4 EUR", [Money(300), Money(400)]),
    (dict[str, Money], '{"a": "3 EUR"}', {"a": Money(300)}),
    (Annotated[int, Arg(env="DEPTH")], "5", 5),
    (Annotated[int, Arg(env="DEPTH")], "", 3),
    (Annotated[list[int], Arg(env="DEPTH")], None, [3]),
    (Annotated[Literal["3", "4"], Arg(env="DEPTH")], None, "3"),
]

#: A type, what a client sends, and the error message.
FAULTS = [
    (str, 5.5, "'value' is 5.5, not text"),
    (int, "five", "'value' is 'five', not a whole number"),
    (int, "5.5", "'value' is '5.5', not a whole number"),
    (int, 5.5, "'value' is 5.5, not a whole number"),
    (int, True, "'value' is true, not a whole number"),
    (int, [5], "'value' is [5], not a whole number"),
    (float, "nan", "'value' is 'nan', not a number"),
    (float, "inf", "'value' is 'inf', not a number"),
    (bool, "maybe", "'value' is 'maybe', not yes or no"),
    (bool, 1, "'value' is 1, not yes or no"),
    (Decimal, "x", "'value' is 'x', not a number"),
    (Decimal, "NaN", "'value' is 'NaN', not a number"),
    (dt.date, "31.1.2026", "'value' is '31.1.2026', not a date such as 2026-01-31"),
    (dt.datetime, "noon", "'value' is 'noon', not a date and time such as 2026-01-31T12:00"),
    (dt.time, "25:00", "'value' is '25:00', not a time of day such as 12:00"),
    (dt.timedelta, "soon", "'value' is 'soon', not a duration such as 1h 30m"),
    (UUID, "x", "'value' is 'x', not a UUID"),
    (Path, "a\0b", "'value' is 'a\\x00b', not a path"),
    (bytes, "***", "'value' is '***', not base64 or a data: URI"),
    (Tone, "wram", "'value' is 'wram', not one of warm, Cold (did you mean 'warm'?)"),
    (Literal["a", "b"], "c", "'value' is 'c', not one of a, b"),
    (Literal["auto"], "x", "'value' is 'x', not 'auto'"),
    (int | Literal["auto"], "x", "'value' is 'x', not a whole number or 'auto'"),
    (Depth, "0", "'value' is '0', not a whole number from 1 to 9"),
    (Slug, "A", "'value' is 'A', not text of at least 2 characters that matches ^[a-z]+$"),
    (Annotated[float, msgspec.Meta(gt=0)], "0", "'value' is '0', not a number above 0"),
    (
        Annotated[int, msgspec.Meta(multiple_of=5)],
        "4",
        "'value' is '4', not a whole number that is a multiple of 5",
    ),
    (
        Annotated[list[int], msgspec.Meta(max_length=2)],
        "1, 2, 3",
        "'value' is '1, 2, 3', not a list of at most 2 items, each a whole number",
    ),
    (list[int], "1, x", "'value[1]' is 'x', not a whole number"),
    (list[int], "[1", "'value' is not valid JSON at line 1, column 3: it ends too early"),
    (list[str], "[draft] a", "'value' is not valid JSON at line 1, column 2: invalid character"),
    (
        list[Point],
        "[{x: 1}]",
        "'value' is not valid JSON at line 1, column 3: object keys must be strings",
    ),
    (
        Point,
        '{"x": 1,\n "ä": "é",\n}',
        "'value' is not valid JSON at line 3, column 1: trailing comma in object",
    ),
    (int | list[int], "[1,", "'value' is not valid JSON at line 1, column 4: it ends too early"),
    (Point | Pair, "[1,", "'value' is not valid JSON at line 1, column 4: it ends too early"),
    (
        list[str],
        '["a\\ud83d"]',
        "'value' is not valid JSON at line 1, column 4: an unpaired surrogate",
    ),
    (list[float], "[1, 1e999]", "'value' is not valid JSON: Number out of range - at `$[1]`"),
    (
        dict[str, int],
        f'{{"a": {"1" * 5000}}}',
        "'value' is not valid JSON: Integer value out of range - at `$[...]`",
    ),
    (list[int], "[" * 10**5, "'value' is nested too deeply"),
    (
        Point | Node,
        '{"value": 1, "childen": []}',
        "'value.childen' is not a member of this object (did you mean 'children'?)",
    ),
    (Circle, '{"radius": 1}', "'value.type' is missing"),
    (
        Circle | Square,
        '{"tpye": "circle", "radius": 1}',
        "'value.type' is missing; 'value.tpye' is not a member of this object (did you mean 'type'?)",
    ),
    (list[Depth], "1, 99", "'value[1]' is '99', not a whole number from 1 to 9"),
    (list[Literal["python"]], "pyton", "'value[0]' is 'pyton', not 'python' (did you mean 'python'?)"),
    (tuple[int, str], "[1]", "'value' is [1], not a list of 2 items: a whole number, text"),
    (tuple[int, str], '["a", 1]', "'value[0]' is 'a', not a whole number; 'value[1]' is 1, not text"),
    (dict[str, int], "a", "'value' is 'a', not a JSON object, each value a whole number"),
    (dict[str, int], '{"a": "x"}', "\"value['a']\" is 'x', not a whole number"),
    (
        dict[int, str],
        '{"a": "x", "1": 2}',
        "\"value['a']\" is 'a', not a whole number; \"value['1']\" is 2, not text",
    ),
    (
        dict[str, Literal["python"]],
        '{"a": "pyton"}',
        "\"value['a']\" is 'pyton', not 'python' (did you mean 'python'?)",
    ),
    (
        dict[str, Annotated[list[int], msgspec.Meta(max_length=1)]],
        '{"a": [1, 2]}',
        "\"value['a']\" is [1, 2], not a list of at most 1 items, each a whole number",
    ),
    (Circle | Square, '{"type": "square", "side": 0}', "'value.side' is 0, not a number above 0"),
    (dict[int, str], '{"a": "x"}', "\"value['a']\" is 'a', not a whole number"),
    (Point, "x", "'value' is 'x', not a JSON object with x, y"),
    (Point, "{}", "'value.x' is missing"),
    (Point, '{"x": 1, "more": 2}', "'value.more' is not a member of this object"),
    (
        Place,
        '{"name": "", "points": [], "pionts": []}',
        "'value.pionts' is not a member of this object (did you mean 'points'?)",
    ),
    (list[Point], '[{"x": 1, "Y": 2}]', "'value[0].Y' is not a member of this object (did you mean 'y'?)"),
    (
        Node,
        '{"value": 1, "children": [{"value": 2, "childen": []}]}',
        "'value.children[0].childen' is not a member of this object (did you mean 'children'?)",
    ),
    (
        Options,
        '{"depth": 1, "tag": ["a"]}',
        "'value.tag' is not a member of this object (did you mean 'tags'?)",
    ),
    (
        Options,
        '{"dept": 1}',
        "'value.depth' is missing; 'value.dept' is not a member of this object (did you mean 'depth'?)",
    ),
    (
        Circle | Square,
        '{"type": "circle", "radius": 1, "side": 2}',
        "'value.side' is not a member of this object",
    ),
    (
        dict[str, list[Circle]],
        '{"a": [{"type": "circle", "radius": 1, "radus": 2}]}',
        "\"value['a'][0].radus\" is not a member of this object (did you mean 'radius'?)",
    ),
    (Optional[Point], '{"x": 1, "z": 2}', "'value.z' is not a member of this object"),
    (Point, '{"x": "a", "y": null}', "'value.x' is 'a', not a whole number; 'value.y' is null, not a number"),
    (list[Point], '[{"x": 1}, {"x": "a"}]', "'value[1].x' is 'a', not a whole number"),
    (
        Place,
        '{"points": [{"x": 1}, {}, {"x": "a"}], "when": "soon"}',
        (
            "'value.name' is missing; 'value.points[1].x' is missing; "
            "'value.points[2].x' is 'a', not a whole number; "
            "'value.when' is 'soon', not a date such as 2026-01-31"
        ),
    ),
    (
        Node,
        '{"value": 1, "children": [{"value": "a"}]}',
        "'value.children[0].value' is 'a', not a whole number",
    ),
    (Options, '{"tags": "a"}', "'value.depth' is missing; 'value.tags' is 'a', not a list"),
    (Pair, '["a"]', "'value.left' is 'a', not a whole number"),
    (Circle, '{"type": "circle", "radius": "a"}', "'value.radius' is 'a', not a number"),
    (Even, '{"n": 1}', "'value' is invalid: n is odd"),
    (Money, "much", "'value' is 'much', not an amount, as in 3 EUR"),
    (dict[str, Money], '{"a": 3}', "\"value['a']\" is 3, not an amount, as in 3 EUR"),
    (int, "", "'value' is missing"),
    (int, None, "'value' is missing"),
    (Literal["a", "b"], "", "'value' is missing"),
    (list[int], "", "'value' is missing"),
]


def compile_arguments(annotation):
    """Return the arguments of a prompt with one parameter of the given type."""

    def typed(value) -> str:
        return str(value)

    typed.__annotations__["value"] = annotation
    return prompt(typed).compiled.arguments


@pytest.mark.parametrize(("annotation", "sent", "value"), VALUES, ids=lambda value: stable_repr(value)[:40])
def test_sent_values_are_converted(annotation, sent, value, monkeypatch):
    """Every type accepts the notations of people and of JSON."""
    monkeypatch.setenv("DEPTH", "3")

    parsed = compile_arguments(annotation).read({"value": sent})["value"]

    assert (type(parsed), parsed) == (type(value), value)


@pytest.mark.parametrize(("annotation", "sent", "message"), FAULTS, ids=lambda value: stable_repr(value)[:40])
def test_invalid_values_are_reported(annotation, sent, message):
    """One error lists all problems, each with its path, the value and the expected type."""
    with pytest.raises(ArgumentsError) as caught:
        compile_arguments(annotation).read({"value": sent})

    assert str(caught.value) == f"prompt 'typed': {message}"


def test_the_tables_are_long_enough():
    """The tables have at least 150 entries."""
    assert len(VALUES) + len(FAULTS) >= 150


@pytest.mark.parametrize("annotation", [int, Optional[int], list[int], Tone, Point, Depth, bool], ids=str)
@pytest.mark.parametrize("blank", ["", None], ids=["empty", "null"])
def test_blank_values_mean_the_default(annotation, blank):
    """An empty field or null means the default, for every type except text."""

    def typed(value=None) -> str:
        return str(value)

    typed.__annotations__["value"] = annotation | None

    assert prompt(typed).compiled.arguments.read({"value": blank}) == {}
