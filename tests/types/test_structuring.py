"""Conversion of JSON values to typed values, strictly and with the path of every error."""

import enum
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, NamedTuple, NotRequired, Required, TypedDict, TypeVar

import attrs
import msgspec
import pytest
from msgspec import Meta

from promptkit.types.errors import ABSENT, MAX_ERRORS, ConversionError
from promptkit.types.parsing import reader_for
from promptkit.types.structuring import structurer
from tests.sample_types import Level, Point, Tone

T = TypeVar("T")


class Color(enum.StrEnum):
    RED = "red"


class Mixed(int, enum.Enum):
    FIRST = 1


@dataclass
class Slotted:
    x: int
    y: int = 0
    seen: bool = field(default=False, init=False)


@dataclass(init=False)
class Uppercase:
    text: str

    def __init__(self, text: str) -> None:
        self.text = text.upper()


@attrs.define
class Strict:
    _n: int = attrs.field(validator=attrs.validators.lt(5))
    words: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    renamed: str = attrs.field(default="r", alias="other")
    twice: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.twice = 2 * self._n


class Circle(msgspec.Struct, rename="camel", kw_only=True):
    radius_size: Annotated[int, Meta(ge=1, le=9)]
    title: str | None = None
    parts: list[int] = []

    def __post_init__(self) -> None:
        if self.title == "":
            msg = "no title"
            raise ValueError(msg)


class Drawing(msgspec.Struct):
    first: Circle
    groups: dict[str, list[Circle]] = {}
    anything: Any = None


class Tagged(msgspec.Struct, tag=True):
    number: int


class Labelled(msgspec.Struct, Generic[T]):
    value: T


@dataclass
class Box(Generic[T]):
    value: T


class Pair(NamedTuple):
    left: int
    right: str = "r"


class Options(TypedDict):
    depth: "NotRequired[int]"
    name: "Required[str]"


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (Slotted, {"y": 2, "x": 1}, Slotted(1, 2)),
        (Uppercase, {"text": "a"}, Uppercase("A")),
        (Strict, {"_n": 1, "words": ["a"], "renamed": "b"}, Strict(1, ("a",), "b")),
        (Circle, {"radiusSize": 1.0, "title": None}, Circle(radius_size=1)),
        (Drawing, {"first": {"radiusSize": 1}, "anything": [1]}, Drawing(Circle(radius_size=1), {}, [1])),
        (Tagged, {"type": "Tagged", "number": 1}, Tagged(1)),
        (Labelled[int], {"value": 1}, Labelled(1)),
        (Box[int], {"value": 1}, Box(1)),
        (Box, {"value": [1]}, Box([1])),
        (Pair, [1], Pair(1)),
        (Options, {"name": "a"}, {"name": "a"}),
        (list[Point | None], [None, {"x": 1}], [None, Point(1)]),
        (list[Level], [1, 2], [Level.LOW, Level.HIGH]),
        (list[Color], ["red"], [Color.RED]),
        (list[Mixed], [1], [Mixed.FIRST]),
        (list[Tone], ["warm"], [Tone.WARM]),
    ],
    ids=str,
)
def test_constructors_are_called(annotation, value, expected):
    """A constructor is called with the fields that were sent, and runs its converters and validators."""
    structured = structurer(annotation)(value)

    assert structured == expected
    assert type(structured) is type(expected)
    assert getattr(structured, "__dict__", {}) == getattr(expected, "__dict__", {})


@pytest.mark.parametrize(
    ("annotation", "value", "path", "reason"),
    [
        (list[Level], [7], "[0]", None),
        (Strict, {"_n": 5}, "", "is invalid: "),
        (dict[str, Circle], {"a": {"radiusSize": 1, "title": ""}}, "['a']", "is invalid: no title"),
        (Drawing, {"first": {"radiusSize": 0}}, ".first.radiusSize", None),
        (Options, {"depth": 1}, ".name", None),
        (Pair, ["a"], ".left", None),
        (tuple[int, Point], [1, {}], "[1].x", None),
    ],
    ids=str,
)
def test_an_error_has_the_path_of_the_invalid_part(annotation, value, path, reason):
    """An error has the path of the invalid part, even if a class raises it."""
    with pytest.raises(ConversionError) as caught:
        structurer(annotation)(value)

    (part,) = caught.value.parts
    assert part.path == path
    assert part.reason is None if reason is None else part.reason.startswith(reason)
    assert (part.got is ABSENT) == (path in (".name", "[1].x"))


@pytest.mark.parametrize(
    ("annotation", "value", "path", "nearest"),
    [
        (Point, {"x": 1, "yy": 2}, ".yy", None),
        (Drawing, {"first": {"radiusSize": 1, "part": []}}, ".first.part", "parts"),
        (dict[str, list[Point | None]], {"a": [None, {"x": 1, "X": 1}]}, "['a'][1].X", "x"),
        (Options, {"name": "a", "dept": 1}, ".dept", "depth"),
        (Tagged, {"type": "Tagged", "number": 1, "numbr": 1}, ".numbr", "number"),
        (Labelled[int], {"value": 1, "valu": 1}, ".valu", "value"),
        (tuple[int, Point], [1, {"x": 1, "yy": 2}], "[1].yy", None),
        (Strict, {"_n": 1, "twice": 2}, ".twice", None),  # `__init__` does not take this member
        (Slotted, {"x": 1, "seen": True}, ".seen", None),
        (int | Point, {"x": 1, "yy": 2}, ".yy", None),
    ],
    ids=lambda part: getattr(part, "__name__", None) or str(part)[:40],
)
def test_unknown_fields_are_rejected(annotation, value, path, nearest):
    """An unknown field of a record is rejected at any depth, with its path and the nearest name."""
    with pytest.raises(ConversionError) as caught:
        reader_for(annotation).read(value)

    assert [(part.path, part.nearest) for part in caught.value.parts] == [(path, nearest)]


def test_the_number_of_reported_fields_is_limited():
    """The number of reported unknown fields is limited, because a client can send millions."""
    with pytest.raises(ConversionError) as caught:
        reader_for(Point).read({"x": 1} | {f"more {number}": 0 for number in range(2 * MAX_ERRORS)})

    assert len(caught.value.parts) == MAX_ERRORS


@pytest.mark.parametrize(
    ("text", "value"), [('{"x": 1, "x": 2}', Point(2)), ('{"x": "a", "x": 1.0}', Point(1))]
)
def test_the_last_of_duplicate_fields_is_used(text, value):
    """Of duplicate fields, the last one is used."""
    assert reader_for(Point).read(text) == value


@pytest.mark.parametrize(
    "value",
    ["1e999", "NaN", '"\\ud800"', "[" * 10**6, "1" * 5000, "01", '"\x01"'],
    ids=range(7),
)
def test_invalid_json_is_rejected_even_in_fields_of_any_type(value):
    """Invalid JSON is rejected even inside a field of type Any."""
    with pytest.raises(ConversionError) as caught:
        reader_for(Drawing).read(f'{{"anything": {value}}}')

    assert caught.value.parts == (caught.value,)


def test_equal_unions_keep_their_own_order():
    """Each union tries its own members in order, even if an equal union was read before."""
    lists = [structurer(list[int | float])([1]), structurer(list[float | int])([1])]

    assert [type(items[0]) for items in lists] == [int, float]
