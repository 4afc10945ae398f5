"""Types of several kinds, shared by the tests of more than one package."""

import enum
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple, NotRequired, TypedDict

import attrs
import msgspec


class Tone(enum.Enum):
    WARM = "warm"
    COLD = "Cold"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Urgency(enum.Enum):
    SOON = "soon"
    """Within a day."""
    LATER = "later"


class Corner(enum.Enum):
    LEFT = (0, 0)
    RIGHT = (1, 0)


@dataclass
class Point:
    x: int
    y: float = 0.0


@attrs.define
class Place:
    name: str
    points: list[Point]
    tone: Tone = Tone.WARM
    notes: dict[str, str | None] = attrs.Factory(dict)


@attrs.define
class Node:
    value: int
    children: list["Node"] = attrs.Factory(list)


class Options(TypedDict):
    depth: int
    tags: NotRequired[list[str]]


class Pair(NamedTuple):
    left: int
    right: str = "r"


class Circle(msgspec.Struct):
    radius: int
    name: str = ""


@dataclass
class Board:
    cells: dict[str, list[Point]] = field(default_factory=dict)


class Row(NamedTuple):
    numbers: set[Decimal]
    name: str = ""


@dataclass
class Shelf:
    numbers: AbstractSet[Decimal]
    sizes: Mapping[Decimal, int]
