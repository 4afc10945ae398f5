"""Types of several kinds, which tests of more than one package use."""

import enum
from dataclasses import dataclass


class Tone(enum.Enum):
    WARM = "warm"
    COLD = "Cold"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Corner(enum.Enum):
    LEFT = (0, 0)
    RIGHT = (1, 0)


@dataclass
class Point:
    x: int
    y: float = 0.0
