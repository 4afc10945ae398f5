# ruff: noqa: UP045 (people write types in every spelling)
"""The fast path and structuring: the same values and the same errors."""

import datetime as dt
import enum
import json
from collections.abc import Callable, Mapping, MutableSequence, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import InitVar, dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import NoneType
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    Optional,
    TypedDict,
    TypeVar,
    get_args,
    is_typeddict,
)
from uuid import UUID

import attrs
import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import Meta

from promptkit import register_type
from promptkit.types.constraints import InZone
from promptkit.types.errors import ABSENT, MAX_FAULTS, ConversionError
from promptkit.types.fast_path import fast_path
from promptkit.types.kinds import (
    is_constrained,
    is_enum,
    is_literal,
    is_mapping,
    is_record,
    is_sequence,
    is_union,
    plain,
)
from promptkit.types.readers import reader_of
from promptkit.types.structuring import structurer

T = TypeVar("T")
UserId = NewType("UserId", int)
Depth = Annotated[int, Meta(ge=1, le=9)]
Slug = Annotated[str, Meta(pattern="^[a-z]+$", min_length=2)]

register_type(Fraction, Fraction, expected="a fraction, as in 1/3")


class Tone(enum.Enum):
    WARM = "warm"
    COLD = "Cold"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Color(enum.StrEnum):
    RED = "red"


class Mixed(int, enum.Enum):
    ONE = 1


@dataclass
class Point:
    x: int
    y: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Slotted:
    name: str = "n"
    points: list[Point] = field(default_factory=lambda: [Point(1)])
    seen: bool = field(default=False, init=False)


@dataclass
class Checked:
    low: int
    high: int = 9

    def __post_init__(self) -> None:
        if self.low > self.high:
            msg = "low is above high"
            raise ValueError(msg)
        self.width = self.high - self.low


@dataclass(init=False)
class Own:
    text: str

    def __init__(self, text: str) -> None:
        self.text = text.upper()


@attrs.frozen(cache_hash=True)
class Mark:
    at: int
    tone: Tone = Tone.WARM


@attrs.define
class Strict:
    _n: int = attrs.field(validator=attrs.validators.lt(5))
    words: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    renamed: str = attrs.field(default="r", alias="other")
    twice: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.twice = 2 * self._n


class Circle(msgspec.Struct, rename="camel", kw_only=True):
    radius_size: Depth
    title: Optional[str] = None
    parts: list[int] = []

    def __post_init__(self) -> None:
        if self.title == "":
            msg = "no title"
            raise ValueError(msg)


class Closed(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    name: Slug


class Drawing(msgspec.Struct):
    first: Circle
    others: dict[str, list[Circle]] = {}
    size: Closed | None = None


@dataclass
class Scalars:
    whole: int = 0
    number: float = 0.0
    yes: bool = False
    data: bytes = b""
    day: dt.date | None = None
    moment: Annotated[dt.datetime, Meta(tz=True)] | None = None
    clock: dt.time | None = None
    span: dt.timedelta | None = None
    key: UUID | None = None
    level: Level = Level.LOW
    color: Color = Color.RED
    mixed: Mixed = Mixed.ONE
    choice: Literal["a", 1] | None = None
    exact: Decimal | None = None
    path: Path | None = None
    half: Fraction | None = None
    local: Annotated[dt.datetime, InZone(dt.UTC)] | None = None


@dataclass
class Containers:
    names: set[str] = field(default_factory=set)
    files: Sequence[Path] = ()
    marks: "tuple[Mark, ...]" = ()
    pair: tuple[int, str] = (0, "")
    by_name: Mapping[str, Point] = field(default_factory=dict)
    blobs: frozenset[bytes] = frozenset()
    few: Annotated[list[Point], Meta(max_length=1)] = field(default_factory=list)
    anything: Any = None
    some: MutableSequence[UserId] = field(default_factory=list)
    bare: list = field(default_factory=list)
    table: dict = field(default_factory=dict)
    nothing: None = None
    shapes: "Sequence[Circle]" = ()


class Steps(msgspec.Struct):
    names: Sequence[str]


class Holds(msgspec.Struct):
    point: Point


@dataclass
class Box(Generic[T]):
    held: T


#: Types with a fast path.
FAST: dict[str, Any] = {
    each.__name__: each
    for each in (Point, Slotted, Checked, Own, Mark, Strict, Circle, Closed, Scalars, Containers)
} | {
    "list of records": list[Point],
    "optional record": Optional[Mark],
    "records by name": dict[str, Slotted],
    "record or nothing, by name": dict[str, Point | None],
    "list of bounded lists": list[Annotated[list[int], Meta(min_length=1)]],
    "tuple of two": tuple[int, Tone],
    "list of anything": list[Any],
    "dict": dict,
    "set of text in a list": list[set[str]],
    "tuple of structs": tuple[Circle, ...],
    "structs in a struct": Drawing,
    "sequence": Sequence[str],
    "sequence of records": Sequence[Point],
    "set of numbers": set[int],
    "set of records": frozenset[Mark],
    "struct of a sequence, of which msgspec makes a list": Steps,
    "struct of a record": Holds,
    "type parameter": Box,
    "set deep inside": list[dict[str, set[Decimal]]],
    "abstract set": AbstractSet[UUID],
    "so many sets": Annotated[dict[str, set[float]], Meta(max_length=1)],
}


class Options(TypedDict, total=False):
    depth: int


class Pair(NamedTuple):
    left: int
    right: str = "r"


class Row(msgspec.Struct, array_like=True):
    number: int


class Tagged(msgspec.Struct, tag=True):
    number: int


class Labelled(msgspec.Struct, Generic[T]):
    held: T


@dataclass
class Tree:
    name: str
    children: "list[Tree]"


@dataclass
class Late:
    now: InitVar[int]


#: Types for which msgspec would produce different values, or could.
SLOW: dict[str, Any] = {
    "keys that are no text": dict[int, str],
    "bound on a set": Annotated[set[int], Meta(max_length=1)],
    "the first member that fits": list[float | int],
    "members that are kept": Options,
    "named tuple": Pair,
    "array": Row,
    "tag": Tagged,
    "struct with a type parameter": Labelled[int],
    "bound on depth": Tree,
}

INTEGERS = st.integers(-3, 12) | st.sampled_from([1.0, -0.0, 2.5, 1e30, 2**70, True])
MOMENTS = ["2026-01-31T12:00:00", "2026-01-31T12:00:00Z", "2026-01-31", "12:00:00", "12:00", "PT1H", "5"]
TEXTS = [
    "",
    "warm",
    "WARM",
    "cold",
    "Cold",
    "red",
    "ab",
    "A",
    "a",
    "1",
    "yes",
    "1.5",
    "NaN",
    "1/2",
    "aGk=",
    "x",
]
SCALARS = (
    st.sampled_from([None, True, False, *TEXTS, *MOMENTS, str(UUID(int=5)), "a\0b"])
    | INTEGERS
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.integers()
    | st.text(max_size=3)
)
NAMES = st.sampled_from(["x", "y", "n", "other", "_n", "type", "radius_size", "unknown"])
JUNK = st.recursive(
    SCALARS,
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(NAMES, parts, max_size=3),
    max_leaves=5,
)


def fitting(annotation: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for JSON values that mostly fit a type."""
    annotation = plain(annotation)
    arguments = get_args(annotation)
    return next((make(annotation, arguments) for recognises, make in FITTING if recognises(annotation)), JUNK)


#: A test for the kind of type, and a function that makes a strategy from a type and its arguments.
FITTING: list[tuple[Callable[[Any], bool], Callable[[Any, Any], st.SearchStrategy[Any]]]] = [
    (is_constrained, lambda t, _: near(t.__origin__)),
    (is_union, lambda _, members: st.one_of([near(member) for member in members])),
    (is_literal, lambda _, values: st.sampled_from(values)),
    (is_enum, lambda t, _: st.sampled_from([member.value for member in t])),
    (is_sequence, lambda _, items: st.lists(near((*items, Any)[0]), max_size=3)),
    (is_mapping, lambda _, types: st.dictionaries(NAMES, near((*types, Any, Any)[1]), max_size=3)),
    (lambda t: bool(get_args(t)), lambda _, items: st.tuples(*map(near, items)).map(list)),
    (is_typeddict, lambda _, __: JUNK),
    (lambda t: is_record(t) or t in (Circle, Closed), lambda t, _: members(t)),
    (lambda t: t in WRITTEN, lambda t, _: WRITTEN[t]),
]

WRITTEN: dict[Any, st.SearchStrategy[Any]] = {
    str: st.sampled_from(TEXTS),
    int: INTEGERS,
    float: INTEGERS,
    bool: st.booleans(),
    NoneType: st.none(),
    bytes: st.sampled_from(["", "aGk="]),
    Decimal: st.sampled_from(["1.5", 2, 2.5, "1e3"]),
    Path: st.sampled_from(["a/b"]),
    Fraction: st.sampled_from(["1/2"]),
    UUID: st.uuids().map(str),
    **dict.fromkeys((dt.date, dt.datetime, dt.time, dt.timedelta), st.sampled_from(MOMENTS)),
}


def members(annotation: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for JSON objects with most fields of a record and some unknown ones."""
    if issubclass(annotation, msgspec.Struct):
        types = {each.encode_name: each.type for each in msgspec.structs.fields(annotation)}
    elif attrs.has(annotation):
        types = {each.name: each.type for each in attrs.fields(annotation)}
    else:
        types = {name: each.type for name, each in annotation.__dataclass_fields__.items()}
    types = {name: tuple[Mark, ...] if isinstance(kind, str) else kind for name, kind in types.items()}
    known = st.fixed_dictionaries({}, optional={name: near(kind) for name, kind in types.items()})
    return st.builds(
        lambda first, second: {**first, **second}, st.dictionaries(NAMES, JUNK, max_size=1), known
    )


def near(annotation: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for JSON values that fit a type, with occasional other values."""
    fits = fitting(annotation)
    return st.integers(0, 15).flatmap(lambda chance: fits if chance else JUNK)


def shape(value: Any) -> Any:
    """Return everything observable about a value: types, the order of attributes, and the sign of zeros."""
    kind = type(value)
    if isinstance(value, dict):
        return kind, [(key, shape(part)) for key, part in value.items()]
    if isinstance(value, list | tuple):
        return kind, [shape(part) for part in value]
    if isinstance(value, set | frozenset):
        return kind, sorted(map(repr, value))
    if hasattr(value, "__dict__") and not isinstance(value, enum.Enum):
        return kind, shape(vars(value))
    if isinstance(value, msgspec.Struct) or attrs.has(kind) or hasattr(kind, "__dataclass_fields__"):
        names = getattr(kind, "__struct_fields__", None) or kind.__slots__
        return kind, [(name, shape(getattr(value, name, None))) for name in names if name != "__weakref__"]
    return kind, repr(value)


def outcome(read: Any, value: Any) -> Any:
    """Return the shape of the converted value, or all its errors."""
    try:
        return shape(read(value))
    except ConversionError as error:
        return [
            (each.expected, each.got is ABSENT, each.nearest, each.path, each.reason) for each in error.parts
        ]


@pytest.mark.parametrize("annotation", FAST.values(), ids=FAST)
def test_what_is_read_is_what_structuring_makes(annotation):
    """
    For every JSON value, reading returns the same value or errors as structuring.

    The fast path alone accepts nothing that structuring rejects.
    """
    holding = dict[str, annotation]
    read, convert, structure = reader_of(holding).read, fast_path(holding), structurer(holding)

    @settings(deadline=None)
    @given(value=near(annotation).map(lambda part: {"a": part}))
    def law(value):
        structured = outcome(structure, value)
        assert outcome(read, json.dumps(value)) == structured
        try:
            made = convert(value)
        except Exception:  # noqa: BLE001 (structuring reported the error)
            return
        assert shape(made) == structured

    law()


@given(first=st.integers(), second=st.integers() | st.text())
@example(first=1, second=1.0)
def test_of_members_with_one_name_the_last_counts(first, second):
    """Of duplicate members, the last one is used on both paths."""
    text = f'{{"x": {first}, "x": {json.dumps(second)}}}'

    assert outcome(reader_of(Point).read, text) == outcome(structurer(Point), json.loads(text))


@pytest.mark.parametrize(
    "other",
    ["1e999", "NaN", '"\\ud800"', "[" * 10**6, "1" * 5000, "01", '"\x01"'],
    ids=range(7),
)
def test_what_nobody_asks_for_has_to_be_json_too(other):
    """Invalid JSON is rejected even inside a member of type Any."""
    assert reader_of(Containers).read('{"anything": [1, null]}').anything == [1, None]
    with pytest.raises(ConversionError) as refused:
        reader_of(Containers).read(f'{{"anything": {other}}}')

    assert refused.value.parts == (refused.value,)


@pytest.mark.parametrize(
    ("annotation", "value", "place", "near"),
    [
        (Point, {"x": 1, "yy": 2}, ".yy", None),
        (Mark, {"at": 1, "tune": "warm"}, ".tune", "tone"),
        (Circle, {"radiusSize": 1, "title ": ""}, ".title ", "title"),
        (Drawing, {"first": {"radiusSize": 1, "part": []}}, ".first.part", "parts"),
        (Containers, {"shapes": [{"radiusSize": 1, "part": []}]}, ".shapes[0].part", "parts"),
        (dict[str, list[Point | None]], {"a": [None, {"x": 1, "X": 1}]}, "['a'][1].X", "x"),
        (Options, {"dept": 1}, ".dept", "depth"),
        (Tagged, {"type": "Tagged", "number": 1, "numbr": 1}, ".numbr", "number"),
        (Holds, {"point": {"x": 1, "yy": 2}}, ".point.yy", None),
        (Box[int], {"held": 1, "hold": 1}, ".hold", "held"),
        (Labelled[int], {"held": 1, "hold": 1}, ".hold", "held"),
        (tuple[int, Point], [1, {"x": 1, "yy": 2}], "[1].yy", None),
        (Strict, {"_n": 1, "twice": 2}, ".twice", None),  # which `__init__` does not take
        (int | Point, {"x": 1, "yy": 2}, ".yy", None),
    ],
    ids=lambda part: getattr(part, "__name__", None) or str(part)[:40],
)
def test_no_member_is_dropped(annotation, value, place, near):
    """An unknown member of a record is rejected at any depth, with its path and the nearest name."""
    with pytest.raises(ConversionError) as refused:
        reader_of(annotation).read(value)

    assert [(part.path, part.nearest) for part in refused.value.parts] == [(place, near)]


def test_of_many_unknown_members_some_are_told():
    """The number of reported unknown members is limited, because a client can send millions."""
    with pytest.raises(ConversionError) as refused:
        reader_of(Point).read({"x": 1} | {f"more {number}": 0 for number in range(2 * MAX_FAULTS)})

    assert len(refused.value.parts) == MAX_FAULTS


def test_a_struct_with_a_type_parameter_is_read():
    """A struct with a type parameter is read."""
    assert reader_of(Labelled[int]).read({"held": 1}) == Labelled(1)


#: A valid value for each type with a fast path.
FITS: dict[str, Any] = {
    "Point": {"x": 1, "y": 2},
    "Slotted": {"points": [{"x": 1}]},
    "Checked": {"low": 1},
    "Own": {"text": "a"},
    "Mark": {"at": 1, "tone": "Cold"},
    "Strict": {"_n": 1, "words": ["a"], "renamed": "b"},
    "Circle": {"radiusSize": 1, "title": None},
    "Closed": {"name": "ab"},
    "Scalars": {"day": "2026-01-31", "exact": "1.5", "path": "a", "half": "1/2", "level": 2, "color": "red"},
    "Containers": {"files": ["a"], "marks": [{"at": 1}], "by_name": {"a": {"x": 1}}, "few": [{"x": 1}]},
    "list of records": [{"x": 1}],
    "optional record": {"at": 1},
    "records by name": {"a": {}},
    "record or nothing, by name": {"a": None, "b": {"x": 1}},
    "list of bounded lists": [[1]],
    "tuple of two": [1, "warm"],
    "list of anything": [1, "a", {}],
    "dict": {"a": [1]},
    "set of text in a list": [["a"]],
    "tuple of structs": [{"radiusSize": 1}],
    "structs in a struct": {"first": {"radiusSize": 1}, "others": {"a": []}, "size": {"name": "ab"}},
    "sequence": ["a"],
    "sequence of records": [{"x": 1}],
    "set of numbers": [1, 2, 1],
    "set of records": [{"at": 1}],
    "struct of a sequence, of which msgspec makes a list": {"names": ["a"]},
    "struct of a record": {"point": {"x": 1}},
    "type parameter": {"held": [1]},
    "set deep inside": [{"a": ["1.5"]}],
    "abstract set": [str(UUID(int=5))],
    "so many sets": {"a": [1.5]},
}


@pytest.mark.parametrize("name", FAST)
def test_what_fits_takes_the_fast_path(name):
    """A valid value takes the fast path, so that the tests above exercise it."""
    assert shape(fast_path(FAST[name])(FITS[name])) == shape(structurer(FAST[name])(FITS[name]))


@pytest.mark.parametrize("annotation", SLOW.values(), ids=SLOW)
def test_where_values_might_differ_there_is_no_fast_path(annotation):
    """Types whose values might differ have no fast path."""
    assert fast_path(annotation) is None


@pytest.mark.parametrize(("kind", "value"), [(Level, 1), (Color, "red"), (Mixed, 1), (Tone, "warm")])
def test_an_enumeration_is_one_inside_of_a_list_too(kind, value):
    """A member of an enumeration inside a list is converted, and an unknown value is rejected."""
    structure = structurer(list[kind])

    assert type(structure([value])[0]) is kind
    with pytest.raises(ConversionError):
        structure([7])


def test_the_class_itself_is_called():
    """The fast path calls `__init__`, with converters and validators, and keeps attributes in order."""
    read = fast_path(Strict)

    assert read({"_n": 1, "words": ["a"]}) == Strict(1, ("a",))
    assert list(vars(fast_path(Point)({"y": 1, "x": 2}))) == ["x", "y"]
    assert hash(fast_path(Mark)({"at": 1})) == hash(Mark(1))
    with pytest.raises(ValueError, match="must be < 5"):
        read({"_n": 5})


def test_of_equal_unions_each_has_its_own_order():
    """Each union tries its own members in order, even if an equal union was read before."""
    found = [structurer(list[int | float])([1]), structurer(list[float | int])([1])]

    assert [type(items[0]) for items in found] == [int, float]
