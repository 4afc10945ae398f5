# ruff: noqa: UP007, UP045, DTZ001 (people write types, and times, in every way)
import datetime as dt
import enum
import sys
import typing
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    Required,
    TypedDict,
    TypeVar,
    Union,
)
from uuid import UUID

import attrs
import pytest
from msgspec import Meta, Struct

from promptkit import Arg, ArgumentErrors, CompileError, prompt


class Tone(enum.Enum):
    WARM = "#f80"
    COLD = "#08f"
    HOT = "#f80"  # noqa: PIE796 (an alias on purpose)


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 10


class Word(enum.StrEnum):
    YES = "yes"
    NO = "no"


class Turn(enum.Enum):
    LEFT = enum.auto()
    RIGHT = enum.auto()


class Side(enum.Enum):
    LEFT = (1, 0)
    RIGHT = (0, 1)


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass
class Shape:
    points: list[Point]
    name: str = ""


@dataclass
class Rule:
    depth: Annotated[int, Meta(ge=1)]
    slug: Annotated[str, Meta(pattern="^[a-z]+$")] = "a"
    tags: Annotated[list[str], Meta(max_length=2)] = field(default_factory=list)
    until: dt.date | None = None


@dataclass
class Folder:
    name: str
    inside: list["Folder"] = field(default_factory=list)
    link: Optional["Folder"] = None


@dataclass
class Positive:
    n: int

    def __post_init__(self):
        if self.n <= 0:
            raise ValueError("n is not above zero")


T = TypeVar("T")


@dataclass
class Box(Generic[T]):
    item: T


@attrs.frozen
class Place:
    name: str
    at: Point
    seen: dt.date | None = None
    notes: dict[str, str] = attrs.field(factory=dict)


@attrs.frozen
class Tree:
    value: int
    branches: list["Tree"] = attrs.field(factory=list)


@attrs.frozen
class Even:
    n: int = attrs.field()

    @n.validator
    def _check(self, _, value):
        if value % 2:
            raise ValueError("n is odd")


class Size(Struct):
    width: int
    height: int = 1


class Person(Struct, rename="camel"):
    first_name: str


class Closed(Struct, forbid_unknown_fields=True):
    x: int


class Row(Struct, array_like=True):
    x: int
    y: int = 0


class Circle(Struct, tag="circle", tag_field="kind"):
    radius: Annotated[float, Meta(gt=0)]


class Square(Struct, tag="square", tag_field="kind"):
    side: float


class Chain(Struct):
    name: str
    next: Optional["Chain"] = None


class Options(TypedDict):
    depth: int
    tags: NotRequired[list[str]]


class Loose(TypedDict, total=False):
    depth: Required[int]
    dry: bool


class Menu(TypedDict):
    label: str
    items: NotRequired[list["Menu"]]


class Pair(NamedTuple):
    left: int
    right: str = "r"


UserId = NewType("UserId", int)
Admin = NewType("Admin", UserId)
Handle = NewType("Handle", str)

JAN_31 = dt.date(2026, 1, 31)
NOON = dt.datetime(2026, 1, 31, 12)
HOUR_AND_HALF = dt.timedelta(hours=1, minutes=30)
ID = UUID("12345678-1234-5678-1234-567812345678")

#: What a client is told, in the table below, where others have a value.
MISSING = "'where' is missing"


class No(str):
    """
    What a client is told, where what it sent does not fit.
    """

    __slots__ = ()


def number(sent, noun="a whole number"):
    """The fault of something that is no number."""
    return No(f"'where' is {sent}, not {noun}")


DATE = "a date, as in 2026-01-31"
MOMENT = "a date and time, as in 2026-01-31T12:00"
CLOCK = "a time of day, as in 12:00"
SPAN = "a duration, as in 1h 30m"
BASE64 = "base64 or a data: URI"

#: The table: a group of types, and for each type what a client may send and what comes of it. Text is what
#: most clients send; any other value is JSON, from those that send it.
TABLE = {
    "str": {
        str: [
            ("any text", "any text"),
            ("", ""),
            (" kept ", " kept "),
            ("null", "null"),
            ("[1]", "[1]"),
            ("5", "5"),
            (5, No("'where' is 5, not text")),
            (True, No("'where' is true, not text")),
            (["a"], No("'where' is ['a'], not text")),
            (None, No(MISSING)),
        ],
    },
    "int": {
        int: [
            ("5", 5),
            ("-5", -5),
            ("+5", 5),
            (" 5\n", 5),
            ("007", 7),
            ("1_000", 1000),
            ("9" * 40, int("9" * 40)),
            (5, 5),
            (5.0, 5),
            ("five", number("'five'")),
            ("5.0", number("'5.0'")),
            ("1,000", number("'1,000'")),
            ("1e3", number("'1e3'")),
            ("0x10", number("'0x10'")),
            (5.5, number("5.5")),
            (True, number("true")),
            ([5], number("[5]")),
            (" ", number("' '")),
            ("", No(MISSING)),
            (None, No(MISSING)),
        ],
    },
    "float": {
        float: [
            ("2.5", 2.5),
            (".5", 0.5),
            ("1e3", 1000.0),
            ("5", 5.0),
            (5, 5.0),
            (2.5, 2.5),
            ("2,5", number("'2,5'", "a number")),
            ("nan", number("'nan'", "a number")),
            ("-inf", number("'-inf'", "a number")),
            ("1e999", number("'1e999'", "a number")),
            (False, number("false", "a number")),
            ("", No(MISSING)),
        ],
    },
    "bool": {
        bool: [
            ("true", True),
            ("YES", True),
            (" On ", True),
            ("1", True),
            (True, True),
            ("False", False),
            ("no", False),
            ("off", False),
            ("0", False),
            (False, False),
            ("maybe", number("'maybe'", "yes or no")),
            ("y", number("'y'", "yes or no")),
            ("2", number("'2'", "yes or no")),
            (1, number("1", "yes or no")),
            ("", No(MISSING)),
        ],
    },
    "Decimal": {
        Decimal: [
            ("2.50", Decimal("2.50")),
            ("1e3", Decimal("1E+3")),
            (" 7 ", Decimal(7)),
            (2.5, Decimal("2.5")),
            (7, Decimal(7)),
            ("2,5", number("'2,5'", "a number")),
            ("NaN", number("'NaN'", "a number")),
            ("Infinity", number("'Infinity'", "a number")),
            (True, number("true", "a number")),
        ],
    },
    "dates and times": {
        dt.date: [
            ("2026-01-31", JAN_31),
            ("20260131", JAN_31),
            ("2026-W05-6", JAN_31),
            (" 2026-01-31 ", JAN_31),
            ("31.1.2026", number("'31.1.2026'", DATE)),
            ("2026-02-30", number("'2026-02-30'", DATE)),
            ("2026-01-31T12:00", number("'2026-01-31T12:00'", DATE)),
            (20260131, number("20260131", DATE)),
            ("", No(MISSING)),
        ],
        dt.datetime: [
            ("2026-01-31T12:00", NOON),
            ("2026-01-31 12:00:00", NOON),
            ("2026-01-31T12:00:00Z", NOON.replace(tzinfo=dt.UTC)),
            ("2026-01-31T12:00+02:00", NOON.replace(tzinfo=dt.timezone(dt.timedelta(hours=2)))),
            ("2026-01-31", NOON.replace(hour=0)),
            ("noon", number("'noon'", MOMENT)),
            (1769860800, number("1769860800", MOMENT)),
        ],
        dt.time: [
            ("12:30", dt.time(12, 30)),
            ("12:30:01.5", dt.time(12, 30, 1, 500000)),
            ("12:30Z", dt.time(12, 30, tzinfo=dt.UTC)),
            ("25:00", number("'25:00'", CLOCK)),
            (12, number("12", CLOCK)),
        ],
        dt.timedelta: [
            ("1h 30m", HOUR_AND_HALF),
            ("1h30m", HOUR_AND_HALF),
            ("90 minutes", HOUR_AND_HALF),
            ("1.5 hours", HOUR_AND_HALF),
            ("1:30", HOUR_AND_HALF),
            ("1:30:00", HOUR_AND_HALF),
            ("PT1H30M", HOUR_AND_HALF),
            ("90s", dt.timedelta(seconds=90)),
            ("2 days", dt.timedelta(days=2)),
            ("1W 2D", dt.timedelta(days=9)),
            ("P1DT12H", dt.timedelta(days=1, hours=12)),
            ("-PT1H", -dt.timedelta(hours=1)),
            (str(dt.timedelta(days=1, hours=2)), dt.timedelta(days=1, hours=2)),
            (str(dt.timedelta(seconds=-1)), dt.timedelta(seconds=-1)),
            ("soon", number("'soon'", SPAN)),
            ("90", number("'90'", SPAN)),
            ("1 month", number("'1 month'", SPAN)),
            ("1..5h", number("'1..5h'", SPAN)),
            ("99999999999 days", number("'99999999999 days'", SPAN)),
            (90, number("90", SPAN)),
            (" ", number("' '", SPAN)),
        ],
    },
    "UUID and Path": {
        UUID: [
            (str(ID), ID),
            (ID.hex.upper(), ID),
            (f"{{{ID}}}", ID),
            (ID.urn, ID),
            ("1234", number("'1234'", "a UUID")),
            (1234, number("1234", "a UUID")),
        ],
        Path: [
            ("notes/today.md", Path("notes/today.md")),
            ("../up", Path("../up")),
            ("a\0b", number(r"'a\x00b'", "a path")),
            (["a"], number("['a']", "a path")),
            ("", No(MISSING)),
        ],
        dict[str, Path]: [
            ('{"a": "b/c"}', {"a": Path("b/c")}),
            ('{"a": "", "b": 3}', No("\"where['a']\" is '', not a path; \"where['b']\" is 3, not a path")),
        ],
        dict[Path, int]: [('{"a/b": 1}', {Path("a/b"): 1})],
    },
    "Enum": {
        Tone: [
            ("#f80", Tone.WARM),
            ("#F80", Tone.WARM),
            ("warm", Tone.WARM),
            ("Cold", Tone.COLD),
            ("hot", Tone.WARM),
            ("wram", No("'where' is 'wram', not one of #f80, #08f (did you mean '#f80'?)")),
            ("tepid", No("'where' is 'tepid', not one of #f80, #08f")),
            (3, No("'where' is 3, not one of #f80, #08f")),
            ("", No(MISSING)),
        ],
        Level: [
            ("10", Level.HIGH),
            ("high", Level.HIGH),
            (10, Level.HIGH),
            (10.0, Level.HIGH),
            ("hihg", No("'where' is 'hihg', not one of 1, 10 (did you mean '10'?)")),
            (2, No("'where' is 2, not one of 1, 10")),
            (True, No("'where' is true, not one of 1, 10")),
        ],
        Word: [("YES", Word.YES), ("no", Word.NO), (True, No("'where' is true, not one of yes, no"))],
        Turn: [("left", Turn.LEFT), ("2", Turn.RIGHT), (2, Turn.RIGHT)],
        Side: [
            ("left", Side.LEFT),
            ("RIGHT", Side.RIGHT),
            ([1, 0], No("'where' is [1, 0], not one of LEFT, RIGHT")),
        ],
    },
    "Literal": {
        Literal["python", "rust", "go"]: [
            ("python", "python"),
            (" Rust ", "rust"),
            ("pyhton", No("'where' is 'pyhton', not one of python, rust, go (did you mean 'python'?)")),
            ("cobol", No("'where' is 'cobol', not one of python, rust, go")),
            (1, No("'where' is 1, not one of python, rust, go")),
            ("", No(MISSING)),
        ],
        Literal["auto"]: [("AUTO", "auto"), ("x", No("'where' is 'x', not 'auto'"))],
        Literal[1, True, "one"]: [
            ("1", 1),
            (1, 1),
            (1.0, 1),
            ("true", True),
            (True, True),
            ("One", "one"),
            (0, No("'where' is 0, not one of 1, True, one")),
        ],
        Literal[Tone.WARM]: [
            ("warm", Tone.WARM),
            ("#f80", Tone.WARM),
            ("cold", No("'where' is 'cold', not '#f80'")),
        ],
        Literal["a", None]: [("A", "a"), (None, No(MISSING)), ("None", No("'where' is 'None', not 'a'"))],  # noqa: PYI061
    },
    "Optional": {
        Optional[int]: [("5", 5), ("", No(MISSING)), ("None", number("'None'"))],
        Optional[Literal["a", "b"]]: [("B", "b"), ("c", No("'where' is 'c', not one of a, b"))],
        Optional[list[tuple[int, str]]]: [
            ('[[1, "a"]]', [(1, "a")]),
            ("[]", []),
            ('[[1, "a"], [2]]', No("'where[1]' is [2], not a list of 2 items")),
            ("", No(MISSING)),
        ],
        str | None: [("a", "a"), ("None", "None"), (None, No(MISSING))],
    },
    "Union": {
        int | str: [("5", 5), ("five", "five"), (5, 5), (5.5, number("5.5", "a whole number or text"))],
        str | int: [("5", 5), ("five", "five")],
        float | Literal["auto"]: [
            ("2.5", 2.5),
            ("auto", "auto"),
            ("AUTO", "auto"),
            ("atuo", No("'where' is 'atuo', not a number or 'auto' (did you mean 'auto'?)")),
        ],
        dt.date | Literal["today"]: [
            ("today", "today"),
            ("2026-01-31", JAN_31),
            ("2026", number("'2026'", f"{DATE} or 'today'")),
        ],
        int | list[int]: [("5", 5), ("5, 6", [5, 6]), ([5], [5])],
        bool | int: [("yes", True), ("2", 2), (1, 1)],
        Union[Point, Shape]: [
            ('{"x": 1}', Point(1)),
            ('{"points": []}', Shape([])),
            (
                "[]",
                No("'where' is '[]', not a JSON object with x, y or a JSON object with points, name"),
            ),
        ],
        Circle | Square: [
            ('{"kind": "circle", "radius": 1}', Circle(1.0)),
            ({"kind": "square", "side": 2.5}, Square(2.5)),
            ('{"kind": "circle", "radius": 0}', No("'where.radius' is 0, not a number above 0")),
            ('{"kind": "square"}', No("'where.side' is missing")),
            (
                '{"kind": "cirlce"}',
                No("'where.kind' is 'cirlce', not one of circle, square (did you mean 'circle'?)"),
            ),
            ("{}", No("'where.kind' is missing")),
        ],
    },
    "list": {
        list[str]: [
            ("a, b", ["a", "b"]),
            ("a,b,", ["a", "b"]),
            ("a\nb, c\n", ["a", "b, c"]),
            ('["a, b", ""]', ["a, b", ""]),
            (["a"], ["a"]),
            ("[]", []),
            ([], []),
            ("a", ["a"]),
            ("", No(MISSING)),
            ("[1]", No("'where[0]' is 1, not text")),
            ({"a": 1}, No("'where' is {'a': 1}, not a list")),
        ],
        list[int]: [
            ("1,2 , 3", [1, 2, 3]),
            ("1\r\n\r\n2", [1, 2]),
            ("[1, 2]", [1, 2]),
            ('["1", 2, 3.0]', [1, 2, 3]),
            ("1, x, y", No("'where[1]' is 'x', not a whole number; 'where[2]' is 'y', not a whole number")),
            ([1, None], No("'where[1]' is null, not a whole number")),
            ("[1, 2", number("'[1, 2'", "a list, each a whole number")),
            (5, number("5", "a list, each a whole number")),
        ],
        list[int | None]: [("[1, null]", [1, None]), ([None], [None])],
        list[bool]: [("yes, no, 1", [True, False, True])],
        list[dt.date]: [
            ("2026-01-31, 20260131", [JAN_31, JAN_31]),
            ("2026-01-31, soon", No(f"'where[1]' is 'soon', not {DATE}")),
        ],
        list[dt.timedelta]: [("1h 30m, 1:30", [HOUR_AND_HALF] * 2)],
        list[Tone]: [
            ("warm, #08F", [Tone.WARM, Tone.COLD]),
            ("warm, clod", No("'where[1]' is 'clod', not one of #f80, #08f (did you mean '#08f'?)")),
        ],
        list[Side]: [("left, right", [Side.LEFT, Side.RIGHT])],
        list[int | Literal["auto"]]: [("1, auto", [1, "auto"])],
        list[Path]: [("a/b, c", [Path("a/b"), Path("c")])],
        list[list[int]]: [
            ("[[1], []]", [[1], []]),
            ([[1, "2"]], No("'where[0][1]' is '2', not a whole number")),
            ("1, 2", number("'1, 2'", "a list, each a list, each a whole number")),
        ],
        list: [('[1, "a", null]', [1, "a", None]), ("a, b", number("'a, b'", "a list"))],
    },
    "tuple": {
        tuple[int, str]: [
            ('[1, "a"]', (1, "a")),
            ([1, "a"], (1, "a")),
            ("[1]", No("'where' is [1], not a list of 2 items")),
            ('[1, "a", 2]', No("'where' is [1, 'a', 2], not a list of 2 items")),
            ('["a", 1]', No("'where[0]' is 'a', not a whole number; 'where[1]' is 1, not text")),
        ],
        tuple[int, ...]: [("1, 2", (1, 2)), ("[]", ()), ([1], (1,))],
        tuple[tuple[int, int], Literal["a"]]: [
            ('[[1, 2], "a"]', ((1, 2), "a")),
            ('[[1, "b"], "b"]', No("'where[0][1]' is 'b', not a whole number; 'where[1]' is 'b', not 'a'")),
        ],
    },
    "set and frozenset": {
        set[str]: [("b, a, b", {"a", "b"}), ('["a"]', {"a"}), (["a", "a"], {"a"})],
        frozenset[int]: [
            ("[1, 2, 1]", frozenset({1, 2})),
            ("1, x", No("'where[1]' is 'x', not a whole number")),
        ],
        set[Tone]: [("warm, hot", {Tone.WARM})],
    },
    "dict": {
        dict[str, int]: [
            ('{"a": 1}', {"a": 1}),
            ({"a": 1.0}, {"a": 1}),
            ("{}", {}),
            ("a=1", number("'a=1'", "a JSON object")),
            ("[]", number("[]", "a JSON object")),
            (
                '{"a": "x", "b": true}',
                No("\"where['a']\" is 'x', not a whole number; \"where['b']\" is true, not a whole number"),
            ),
        ],
        dict[int, str]: [
            ('{"1": "a", "-2": "b"}', {1: "a", -2: "b"}),
            (
                '{"a": "x", "b": "y"}',
                No("\"where['a']\" is 'a', not a whole number; \"where['b']\" is 'b', not a whole number"),
            ),
            (
                '{"a": "x", "1": 2}',
                No("\"where['a']\" is 'a', not a whole number; \"where['1']\" is 2, not text"),
            ),
        ],
        dict[dt.date, int]: [
            ('{"2026-01-31": 1}', {JAN_31: 1}),
            ('{"soon": 1}', No(f"\"where['soon']\" is 'soon', not {DATE}")),
        ],
        dict[Tone, int]: [
            ('{"#f80": 1}', {Tone.WARM: 1}),
            ('{"#f8": 1}', No("\"where['#f8']\" is '#f8', not one of #f80, #08f (did you mean '#f80'?)")),
        ],
        dict[Literal["a", "b"], int]: [('{"b": 1}', {"b": 1})],
        dict[str, Any]: [('{"a": [1, null]}', {"a": [1, None]})],
        dict: [('{"a": 1}', {"a": 1})],
    },
    "TypedDict": {
        Options: [
            ('{"depth": 1}', {"depth": 1}),
            ('{"depth": 1, "tags": ["a"]}', {"depth": 1, "tags": ["a"]}),
            ('{"tags": "a"}', No("'where.depth' is missing; 'where.tags' is 'a', not a list")),
            ("deep", number("'deep'", "a JSON object with depth, tags")),
        ],
        Loose: [
            ('{"depth": 1}', {"depth": 1}),
            ('{"depth": 1, "dry": true}', {"depth": 1, "dry": True}),
            ('{"dry": "yes"}', No("'where.depth' is missing; 'where.dry' is 'yes', not true or false")),
        ],
        Menu: [
            (
                '{"label": "a", "items": [{"label": "b"}]}',
                {"label": "a", "items": [{"label": "b"}]},
            ),
            ('{"label": "a", "items": [{}]}', No("'where.items[0].label' is missing")),
        ],
    },
    "NamedTuple": {
        Pair: [
            ('[1, "a"]', Pair(1, "a")),
            ([1], Pair(1)),
            ('["a", 1]', No("'where.left' is 'a', not a whole number; 'where.right' is 1, not text")),
            ("[]", number("[]", "a list of left, right")),
        ],
    },
    "NewType": {
        UserId: [("5", 5), ("x", number("'x'"))],
        Admin: [("5", 5)],
        Handle: [("", ""), (" a ", " a ")],
        list[UserId]: [("1, 2", [1, 2])],
        dict[UserId, Admin]: [('{"1": 2}', {1: 2})],
    },
    "dataclass": {
        Point: [
            ('{"x": 1, "y": 2}', Point(1, 2)),
            ({"x": 1.0}, Point(1)),
            ('{"x": 1, "colour": "red"}', Point(1)),
            ("{}", No("'where.x' is missing")),
            (
                '{"x": "a", "y": null}',
                No("'where.x' is 'a', not a whole number; 'where.y' is null, not a whole number"),
            ),
            ("[1, 2]", No("'where' is [1, 2], not a JSON object with x, y")),
            ("{x: 1}", No("'where' is '{x: 1}', not a JSON object with x, y")),
            ("", No(MISSING)),
        ],
        Rule: [
            (
                '{"depth": 1, "slug": "b", "tags": ["c"], "until": "2026-01-31"}',
                Rule(1, "b", ["c"], JAN_31),
            ),
            (
                '{"depth": 0, "slug": "B", "until": "soon"}',
                No(
                    "'where.depth' is 0, not a whole number of at least 1; "
                    "'where.slug' is 'B', not text that matches ^[a-z]+$; "
                    f"'where.until' is 'soon', not {DATE}"
                ),
            ),
            (
                '{"depth": 1, "tags": ["a", "b", "c"]}',
                No("'where.tags' is ['a', 'b', 'c'], not a list of at most 2 items"),
            ),
        ],
        Positive: [('{"n": 1}', Positive(1)), ('{"n": 0}', No("'where' is refused: n is not above zero"))],
        Folder: [
            (
                '{"name": "a", "inside": [{"name": "b"}], "link": {"name": "c"}}',
                Folder("a", [Folder("b")], Folder("c")),
            ),
            (
                '{"name": "a", "inside": [{"name": 1}], "link": {}}',
                No("'where.inside[0].name' is 1, not text; 'where.link.name' is missing"),
            ),
        ],
        Box[int]: [('{"item": 1}', Box(1)), ('{"item": "a"}', No("'where.item' is 'a', not a whole number"))],
    },
    "attrs": {
        Place: [
            ('{"name": "n", "at": {"x": 1}}', Place("n", Point(1))),
            (
                '{"name": "n", "at": {"x": 1}, "seen": "2026-01-31", "notes": {"a": "b"}}',
                Place("n", Point(1), JAN_31, {"a": "b"}),
            ),
            (
                '{"at": {"x": "a"}, "notes": {"a": 1}}',
                No(
                    "'where.name' is missing; 'where.at.x' is 'a', not a whole number; "
                    "\"where.notes['a']\" is 1, not text"
                ),
            ),
        ],
        Even: [('{"n": 2}', Even(2)), ('{"n": 1}', No("'where' is refused: n is odd"))],
        Tree: [
            ('{"value": 1, "branches": [{"value": 2}]}', Tree(1, [Tree(2)])),
            (
                '{"value": 1, "branches": [{"value": 2, "branches": [{"value": "a"}]}]}',
                No("'where.branches[0].branches[0].value' is 'a', not a whole number"),
            ),
        ],
    },
    "msgspec": {
        Size: [
            ('{"width": 1}', Size(1)),
            ({"width": 2.0, "height": 3}, Size(2, 3)),
            ("{}", No("'where.width' is missing")),
            (
                '{"width": "a", "height": "b"}',
                No("'where.width' is 'a', not a whole number; 'where.height' is 'b', not a whole number"),
            ),
            ("[]", number("[]", "a JSON object with width, height")),
        ],
        Person: [('{"firstName": "a"}', Person("a")), ("{}", No("'where.firstName' is missing"))],
        Closed: [('{"x": 1}', Closed(1)), ('{"x": 1, "y": 2}', No("'where.y' is no member of Closed"))],
        Row: [("[1]", Row(1)), ([1, 2], Row(1, 2)), ('["a"]', No("'where.x' is 'a', not a whole number"))],
        Circle: [('{"kind": "circle", "radius": 1}', Circle(1.0))],
        list[Circle | Square]: [
            (
                '[{"kind": "circle", "radius": 1}, {"kind": "square", "side": 1}]',
                [Circle(1.0), Square(1.0)],
            ),
            (
                '[{"kind": "circle"}, {"kind": "square", "side": "a"}]',
                No("'where[0].radius' is missing; 'where[1].side' is 'a', not a number"),
            ),
        ],
        Chain: [
            ('{"name": "a", "next": {"name": "b"}}', Chain("a", Chain("b"))),
            ('{"name": "a", "next": {"name": 1}}', No("'where.next.name' is 1, not text")),
        ],
    },
    "bytes": {
        bytes: [
            ("aGk=", b"hi"),
            ("aG\r\nk=\n", b"hi"),
            ("data:;base64,aGk=", b"hi"),
            ("data:image/png;base64,aGk=", b"hi"),
            ("DATA:text/plain;charset=utf-8;BASE64,aGk=", b"hi"),
            ("data:,h%69%20there", b"hi there"),
            ("data:,", b""),
            ("***", number("'***'", BASE64)),
            ("aGk", number("'aGk'", BASE64)),
            ("data:aGk=", number("'data:aGk='", BASE64)),
            ("https://example.com/a.png", number("'https://example.com/a.png'", BASE64)),
            ([1, 2], number("[1, 2]", BASE64)),
            ("", No(MISSING)),
        ],
        list[bytes]: [
            ("aGk=\naG8=", [b"hi", b"ho"]),
            ("data:;base64,aGk=", [b"hi"]),
            (["aGk="], [b"hi"]),
            ("aGk=\n***", No(f"'where[1]' is '***', not {BASE64}")),
        ],
        dict[str, bytes]: [
            ('{"a": "aGk="}', {"a": b"hi"}),
            ('{"a": "***"}', No("\"where['a']\" is '***', not base64")),
        ],
    },
    "Annotated": {
        Annotated[int, Meta(ge=1, le=9)]: [
            ("9", 9),
            (1.0, 1),
            ("0", number("'0'", "a whole number from 1 to 9")),
            ("x", number("'x'", "a whole number from 1 to 9")),
            ("", No(MISSING)),
        ],
        Annotated[float, Meta(gt=0, lt=1)]: [
            ("0.5", 0.5),
            ("0", number("'0'", "a number above 0 and below 1")),
            (1, number("1", "a number above 0 and below 1")),
        ],
        Annotated[int, Meta(multiple_of=5)]: [
            ("-10", -10),
            ("4", number("'4'", "a whole number that is a multiple of 5")),
        ],
        Annotated[str, Meta(min_length=2, max_length=3)]: [
            ("ab", "ab"),
            ("", No("'where' is '', not text of at least 2 and at most 3 characters")),
            ("abcd", No("'where' is 'abcd', not text of at least 2 and at most 3 characters")),
        ],
        Annotated[str, Meta(pattern="^[a-z]+$")]: [
            ("ab", "ab"),
            ("A", No("'where' is 'A', not text that matches ^[a-z]+$")),
        ],
        Annotated[bytes, Meta(max_length=2)]: [
            ("aGk=", b"hi"),
            ("data:,hi", b"hi"),
            ("aGhp", No("'where' is 'aGhp', not base64 of at most 2 bytes")),
        ],
        Annotated[list[int], Meta(min_length=1, max_length=2)]: [
            ("1, 2", [1, 2]),
            ("1, 2, 3", number("'1, 2, 3'", "a list of at least 1 and at most 2 items, each a whole number")),
            ("[]", number("'[]'", "a list of at least 1 and at most 2 items, each a whole number")),
            ("1, x", No("'where[1]' is 'x', not a whole number")),
        ],
        list[Annotated[int, Meta(ge=1)]]: [
            ("1, 2", [1, 2]),
            (
                "0, 1, -1",
                No(
                    "'where[0]' is '0', not a whole number of at least 1; "
                    "'where[2]' is '-1', not a whole number of at least 1"
                ),
            ),
        ],
        Annotated[int, Meta(ge=1)] | None: [("1", 1), ("0", number("'0'", "a whole number of at least 1"))],
        dict[str, Annotated[int, Meta(ge=1)]]: [
            ('{"a": 1}', {"a": 1}),
            ('{"a": 0}', No("\"where['a']\" is 0, not a whole number of at least 1")),
        ],
        Annotated[dict[str, int], Meta(min_length=1)]: [
            ('{"a": 1}', {"a": 1}),
            ("{}", number("'{}'", "a JSON object of at least 1 members")),
        ],
        dict[str, Annotated[list[int], Meta(max_length=1)]]: [
            ('{"a": [1]}', {"a": [1]}),
            (
                '{"a": [1, 2]}',
                No("\"where['a']\" is [1, 2], not a list of at most 1 items, each a whole number"),
            ),
        ],
        Annotated[dt.datetime, Meta(tz=True)]: [
            ("2026-01-31T12:00Z", NOON.replace(tzinfo=dt.UTC)),
            (
                "2026-01-31T12:00",
                No("'where' is '2026-01-31T12:00', not a date and time, as in 2026-01-31T12:00:00Z"),
            ),
        ],
    },
    "nested": {
        dict[str, list[Point]]: [
            ('{"a": [{"x": 1}], "b": []}', {"a": [Point(1)], "b": []}),
            (
                '{"a": [{"x": 1}, {"x": "b"}], "c": 1}',
                No(
                    "\"where['a'][1].x\" is 'b', not a whole number; "
                    "\"where['c']\" is 1, not a list, each a JSON object with x, y"
                ),
            ),
        ],
        list[dict[str, Point]]: [
            ('[{"a": {"x": 1}}]', [{"a": Point(1)}]),
            ('[{}, {"a": {}}]', No("\"where[1]['a'].x\" is missing")),
        ],
        Shape: [
            ('{"points": [{"x": 1}], "name": "n"}', Shape([Point(1)], "n")),
            (
                '{"points": [{"x": 1}, {"x": 2}, {"x": "a"}]}',
                No("'where.points[2].x' is 'a', not a whole number"),
            ),
            (
                '{"points": [{}, {"x": "a"}], "name": 3}',
                No(
                    "'where.points[0].x' is missing; 'where.points[1].x' is 'a', not a whole number; "
                    "'where.name' is 3, not text"
                ),
            ),
        ],
        dict[str, Literal["python", "rust"]]: [
            ('{"a": "rust"}', {"a": "rust"}),
            (
                '{"a": "pyhton"}',
                No("\"where['a']\" is 'pyhton', not one of python, rust (did you mean 'python'?)"),
            ),
        ],
        dict[str, int | list[int]]: [
            ('{"a": 1, "b": [2]}', {"a": 1, "b": [2]}),
            ('{"a": [1, "x"]}', No("\"where['a'][1]\" is 'x', not a whole number")),
        ],
        dict[str, dt.date | Literal["today"]]: [
            ('{"a": "today", "b": "2026-01-31"}', {"a": "today", "b": JAN_31})
        ],
        dict[str, Side]: [('{"a": "LEFT"}', {"a": Side.LEFT})],
        dict[str, dt.datetime]: [
            ('{"a": "2026-01-31T12:00:00"}', {"a": NOON}),
            (
                '{"a": "noon"}',
                No("\"where['a']\" is 'noon', not a date and time, as in 2026-01-31T12:00:00Z"),
            ),
        ],
        dict[str, Decimal]: [
            ('{"a": "2.50", "b": 1}', {"a": Decimal("2.50"), "b": Decimal(1)}),
            ('{"a": "nan"}', No("\"where['a']\" is 'nan', not a number")),
        ],
        Optional[list[Shape | None]]: [('[null, {"points": []}]', [None, Shape([])])],
    },
}


def taking(annotation, *default):
    """A compiled prompt, ``go``, with one parameter of a type."""

    def go(where):
        return ""

    go.__annotations__ = {"where": annotation}
    go.__defaults__ = default
    return prompt(go).compiled


def typed(value):
    """A value with the types of all of its parts, so that 1, 1.0 and True are three."""
    if isinstance(value, dict):
        return dict, [(typed(key), typed(part)) for key, part in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [typed(part) for part in value]
    if isinstance(value, set | frozenset):
        return type(value), sorted(map(str, map(typed, value)))
    return type(value), str(value) if isinstance(value, Decimal) else value


CASES = [
    pytest.param(annotation, sent, outcome, id=f"{group}-{str(annotation)[-40:]}-{str(sent)[:40]!r}")
    for group, rows in TABLE.items()
    for annotation, cases in rows.items()
    for sent, outcome in cases
]


@pytest.mark.parametrize(("annotation", "sent", "outcome"), CASES)
def test_what_a_client_sends_is_a_value_or_a_fault(annotation, sent, outcome):
    """
    The table holds, to the type of every part and to the letter of every fault.
    """
    arguments = {"where": sent}

    if not isinstance(outcome, No):
        assert typed(taking(annotation).bind(arguments)["where"]) == typed(outcome)
        return
    with pytest.raises(ArgumentErrors) as refused:
        taking(annotation).bind(arguments)

    assert str(refused.value) == f"prompt 'go': {outcome}"


@pytest.mark.parametrize("annotation", {case.values[0]: None for case in CASES}, ids=str)
def test_nothing_is_not_given(annotation):
    """
    An empty field leaves the default of everything but text, and null that of text, too.
    """
    optional = taking(annotation | None, None)
    (argument,) = optional.arguments.ordered

    assert optional.bind({"where": None}) == {}
    assert optional.bind({"where": ""}) == ({"where": ""} if argument.blank_is_value else {})


def test_the_table_is_long():
    """
    It has as many cases as the types deserve.
    """
    assert len(CASES) >= 150


class TestFaults:
    def test_all_are_told_at_once(self):
        """
        Every part of every argument, what is unknown, and what is missing.
        """

        @prompt
        def go(shape: Shape, language: Literal["python", "rust"], depth: int, tags: list[int], name: str):
            return ""

        with pytest.raises(ArgumentErrors) as refused:
            go.compiled.bind(
                {
                    "shape": '{"points": [{"x": "a"}, {}], "name": 1}',
                    "language": "pyhton",
                    "tags": "1, x",
                    "dpeth": "3",
                    "depth": "",
                }
            )

        assert str(refused.value) == (
            "prompt 'go': 'shape.points[0].x' is 'a', not a whole number; 'shape.points[1].x' is missing; "
            "'shape.name' is 1, not text; "
            "'language' is 'pyhton', not one of python, rust (did you mean 'python'?); "
            "'tags[1]' is 'x', not a whole number; "
            "'dpeth' is no argument of this prompt (did you mean 'depth'?); "
            "'depth' is missing; 'name' is missing"
        )

    def test_programs_are_told_what_would_fit(self):
        """
        The path, what stands there, what should, the nearest and all of the choices.
        """
        with pytest.raises(ArgumentErrors) as refused:
            taking(Literal["python", "rust"]).bind({"where": "pyhton"})
        (choice,) = refused.value.faults
        with pytest.raises(ArgumentErrors) as refused:
            taking(Shape).bind({"where": '{"points": [{"x": "a"}]}'})
        (part,) = refused.value.faults

        assert (choice.nearest, choice.allowed, choice.got) == ("python", ("python", "rust"), "pyhton")
        assert (part.path, part.got, part.expected) == (".points[0].x", "a", "a whole number")

    @pytest.mark.parametrize(
        ("annotation", "sent"),
        [
            (int, "hunter2"),
            (Literal["hunter1", "hunter3"], "hunter2"),
            (Annotated[str, Meta(max_length=3)], "hunter2"),
            (list[int], "1, hunter2"),
            (dict[str, int], '{"a": "hunter2"}'),
            (dict[str, int], '{"hunter2": "a"}'),
            (dict[int, int], '{"hunter2": 1}'),
            (Point, '{"x": "hunter2"}'),
            (Point, "hunter2"),
            (Size, '{"width": "hunter2"}'),
            (Circle | Square, '{"kind": "hunter2"}'),
            (Even, '{"n": "hunter2"}'),
            (bytes, "hunter2*"),
            (dt.date, "hunter2"),
        ],
        ids=str,
    )
    def test_a_secret_is_not_repeated(self, annotation, sent):
        """
        Wherever it stands in what was sent, it stands nowhere in the error.
        """
        with pytest.raises(ArgumentErrors) as refused:
            taking(Annotated[annotation, Arg(secret=True)]).bind({"where": sent})

        assert "hunter2" not in str(refused.value)
        assert "hunter2" not in repr(refused.value)
        assert "hunter2" not in str([fault.as_data() for fault in refused.value.faults])
        assert refused.value.__cause__ is None
        assert refused.value.__context__ is None

    def test_a_long_value_is_shown_in_short(self):
        """
        A whole file in the wrong field does not come back, wherever it stands.
        """
        for annotation, sent in [
            (int, "x" * 9999),
            (list[int], "x" * 9999),
            (Point, {"x": "x" * 9999}),
            (Point, {"x": ["x" * 99] * 99}),
            (dict[str, int], {"x" * 9999: "x"}),
        ]:
            with pytest.raises(ArgumentErrors) as refused:
                taking(annotation).bind({"where": sent})

            assert len(str(refused.value)) < 400


class TestWhatCannotBe:
    @pytest.mark.parametrize(
        "annotation",
        [
            object,
            Any,
            complex,
            type[int],
            list[complex],
            dict[str, complex],
            int | complex,
            enum.Enum("Empty", []),
            Annotated[Decimal, Meta(ge=1)],
            Annotated[int | None, Meta(ge=1)],
            Annotated[str, Meta(ge=1)],
            dict[tuple[int, int], str],
        ],
        ids=str,
    )
    def test_it_is_a_diagnostic(self, annotation):
        """
        A type that nobody could fill, and a constraint that is none of its type, are told before serving.
        """
        with pytest.raises(CompileError) as refused:
            taking(annotation)

        (found,) = refused.value.diagnostics
        assert "'where'" in found.message


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the type statement is Python 3.12's")
class TestTypeAliases:
    def test_an_alias_is_what_it_stands_for(self):
        """
        Alone, of an alias, and inside of another type.
        """
        alias = getattr(typing, "TypeAliasType")  # noqa: B009 (type checkers of 3.11 do not know it)
        port = alias("Port", Annotated[int, Meta(ge=1)])

        assert taking(port).bind({"where": "80"}) == {"where": 80}
        assert taking(alias("Service", port)).bind({"where": "80"}) == {"where": 80}
        assert taking(list[port]).bind({"where": "80, 81"}) == {"where": [80, 81]}
        assert taking(dict[str, port]).bind({"where": '{"a": 80}'}) == {"where": {"a": 80}}
        with pytest.raises(ArgumentErrors, match="'where' is '0', not a whole number of at least 1"):
            taking(port).bind({"where": "0"})
