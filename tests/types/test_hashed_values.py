"""Sets and dicts from a client: limits on their size and on hash collisions."""

import datetime as dt
import json
from collections.abc import Mapping, MutableSet
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, NamedTuple
from uuid import UUID

import attrs
import msgspec
import pytest

from promptkit import register_type
from promptkit.types.errors import ConversionError
from promptkit.types.parsing import reader_for
from tests.wire import Client

pytestmark = pytest.mark.timeout(60)

#: Python's hash of an integer is its remainder modulo this prime.
P = 2**61 - 1
MANY = 10_000
FEW = 32
COLLISIONS = "has too many values with the same hash: send fewer"

register_type(Fraction, Fraction, expected="a fraction, as in 1/3")


@dataclass(frozen=True)
class Point:
    x: int
    y: Decimal = Decimal(0)


@attrs.frozen
class Mark:
    at: int


class Pair(NamedTuple):
    left: int
    right: Decimal


class Row(msgspec.Struct, frozen=True):
    number: int


class Line(NamedTuple):
    numbers: set[Decimal]
    name: str = ""


@dataclass
class Board:
    marks: AbstractSet[Decimal]
    sizes: Mapping[Decimal, int]
    names: MutableSet[Decimal] | None = None


NUMBERS = [str(P * n) for n in range(1, 200)]
JSON_NUMBERS = [P * n for n in range(1, 200)]
BOARD = {"marks": [], "sizes": {}}

#: A type, and a value from a client with too many hash collisions.
COLLIDING: dict[str, tuple[Any, Any]] = {
    "set of numbers": (set[int], ",".join(NUMBERS)),
    "set of numbers, one a line": (set[int], "\n".join(NUMBERS)),
    "set of numbers in JSON": (set[int], f"[{','.join(NUMBERS)}]"),
    "numbers in a list": (set[int], list(map(int, NUMBERS))),
    "frozenset of Decimals": (frozenset[Decimal], ",".join(NUMBERS)),
    "set of Decimals as JSON numbers": (set[Decimal], f"[{','.join(NUMBERS)}]"),
    "set of fractions of points": (
        set[Decimal],
        ",".join(f"{P * n}e-{P.bit_length()}" for n in range(1, 200)),
    ),
    "set of floats": (set[float], ",".join(repr(2.0 ** (61 * n - 1000)) for n in range(FEW + 1))),
    "set of UUIDs": (set[UUID], ",".join(str(UUID(int=P * n)) for n in range(1, 200))),
    "set of a registered type": (set[Fraction], ",".join(NUMBERS)),
    "set of a union": (set[int | Decimal], ",".join(NUMBERS)),
    "set of text or numbers": (set[int | str], ",".join(NUMBERS)),
    "set of nullable numbers": (set[int | None], ",".join(NUMBERS)),
    "set of bounded numbers": (set[Annotated[int, msgspec.Meta(ge=0)]], ",".join(NUMBERS)),
    "set of bounded size": (Annotated[set[int], msgspec.Meta(max_length=10**6)], ",".join(NUMBERS)),
    "set of tuples": (set[tuple[int, ...]], json.dumps([[P * n] for n in range(1, 200)])),
    "set of tuples of two": (set[tuple[str, Decimal]], json.dumps([["a", n] for n in NUMBERS])),
    "set of named tuples": (set[Pair], json.dumps([[1, n] for n in NUMBERS])),
    "set of data classes": (set[Point], json.dumps([{"x": 1, "y": n} for n in NUMBERS])),
    "set of attrs classes": (frozenset[Mark], json.dumps([{"at": P * n} for n in JSON_NUMBERS])),
    "set of structs": (set[Row], json.dumps([{"number": P * n} for n in JSON_NUMBERS])),
    "set of sets": (set[frozenset[Decimal]], json.dumps([[n] for n in NUMBERS])),
    "set of anything": (set, json.dumps([P * n for n in range(1, 200)])),
    "set in a list": (list[set[Decimal]], json.dumps([NUMBERS])),
    "set in a union": (set[Decimal] | dict[str, int], json.dumps(NUMBERS)),
    "set in a named tuple": (Line, json.dumps([NUMBERS])),
    "abstract set": (Board, json.dumps({**BOARD, "marks": NUMBERS})),
    "abstract set that can be changed": (Board, json.dumps({**BOARD, "names": NUMBERS})),
    "abstract mapping": (Board, json.dumps({**BOARD, "sizes": dict.fromkeys(NUMBERS, 1)})),
    "dict by Decimal": (dict[Decimal, str], json.dumps(dict.fromkeys(NUMBERS, "x"))),
    "dict by float": (
        dict[float, str],
        json.dumps({repr(2.0 ** (61 * n - 1000)): "x" for n in range(FEW + 1)}),
    ),
    "dict by UUID": (dict[UUID, int], json.dumps({str(UUID(int=P * n)): 1 for n in range(1, 200)})),
    "dict by a registered type": (dict[Fraction, int], json.dumps(dict.fromkeys(NUMBERS, 1))),
    "dict in a dict": (dict[str, dict[Decimal, int]], json.dumps({"a": dict.fromkeys(NUMBERS, 1)})),
    "dict of a bounded size": (
        Annotated[dict[Decimal, int], msgspec.Meta(min_length=1)],
        json.dumps(dict.fromkeys(NUMBERS, 1)),
    ),
}


@pytest.mark.parametrize(("annotation", "sent"), COLLIDING.values(), ids=COLLIDING)
def test_colliding_values_are_rejected(annotation, sent):
    """Too many values with the same hash are rejected, wherever a hash table would be built from them."""
    with pytest.raises(ConversionError) as caught:
        reader_for(annotation).read(sent)

    assert {part.reason for part in caught.value.parts} == {COLLISIONS}


#: A type, a large value without an attack, and its expected size.
HARMLESS: dict[str, tuple[Any, Any, int]] = {
    "numbers": (set[int], ",".join(map(str, range(MANY))), MANY),
    "multiples of a power of two": (set[int], ",".join(str(n << 40) for n in range(MANY)), MANY),
    "one number": (set[int], "5," * MANY, 1),
    "two spellings": (set[Decimal], "1.0,1.00," * (MANY // 2), 1),
    "keys of one number": (dict[Decimal, int], json.dumps({f"1.{'0' * n}": n for n in range(1, 1000)}), 1),
    "a few that collide": (set[int], ",".join(NUMBERS[:FEW]) + ",5" * 999, FEW + 1),
    "prices": (frozenset[Decimal], ",".join(f"{n / 100:.2f}" for n in range(MANY)), MANY),
    "names": (set[str], ",".join(map(str, range(MANY))), MANY),
    "days": (set[dt.date], ",".join(str(dt.date.fromordinal(n)) for n in range(1, MANY)), MANY - 1),
    "times": (set[dt.timedelta], ",".join(f"{n}s" for n in range(MANY)), MANY),
    "ids": (set[UUID], ",".join(str(UUID(int=n << 64)) for n in range(MANY)), MANY),
    "by number": (dict[int, str], json.dumps({str(n): "x" for n in range(MANY)}), MANY),
    "by price": (dict[Decimal, str], json.dumps({f"{n / 100:.2f}": "x" for n in range(MANY)}), MANY),
    "by name": (dict[str, str], json.dumps({str(n): "x" for n in range(MANY)}), MANY),
}


@pytest.mark.parametrize(("annotation", "sent", "size"), HARMLESS.values(), ids=HARMLESS)
def test_large_sets_and_dicts_are_accepted(annotation, sent, size):
    """Large sets and dicts are accepted if their hashes do not collide."""
    collection = reader_for(annotation).read(sent)

    assert type(collection) in (set, frozenset, dict)
    assert len(collection) == size


@pytest.mark.parametrize(
    ("annotation", "sent"),
    [
        (set[int], ",".join(map(str, range(MANY + 1)))),
        (frozenset[str], json.dumps([str(n) for n in range(MANY + 1)])),
        (list[set[int]], json.dumps([list(range(MANY + 1))])),
        (dict[int, str], json.dumps({str(n): "x" for n in range(MANY + 1)})),
        (dict[str, dict[Decimal, int]], json.dumps({"a": {str(n): n for n in range(MANY + 1)}})),
    ],
    ids=["set", "frozenset", "set in a list", "dict", "dict in a dict"],
)
def test_sets_and_dicts_are_limited(annotation, sent):
    """Sets, and dicts without string keys, are limited to 10,000 values."""
    with pytest.raises(ConversionError) as caught:
        reader_for(annotation).read(sent)

    assert [part.reason for part in caught.value.parts] == ["has more than 10,000 values: send fewer"]


def test_dicts_with_string_keys_are_not_limited():
    """A dict with string keys has no limit, because Python randomizes the hashes of strings."""
    assert len(reader_for(dict[str, int]).read(json.dumps({str(n): n for n in range(2 * MANY)}))) == 2 * MANY


def test_the_last_of_equal_keys_is_used():
    """Of equal keys, the last one is used."""
    sent = {"1.0": 0, **{str(n): n for n in range(100, 200)}, "1.00": 101}

    assert reader_for(dict[Decimal, int]).read(json.dumps(sent))[Decimal(1)] == 101


@pytest.mark.parametrize("revision", ["2024-11-05", "2026-07-28"])
def test_the_server_reports_collisions_and_continues(revision):
    """The server returns an error for colliding values and continues to serve."""
    from promptkit import prompt
    from promptkit.compiler.compilation import compile
    from promptkit.loader.recipes import Recipes

    @prompt
    def add(numbers: set[int]) -> str:
        return str(sum(numbers))

    client = Client(compile(Recipes(prompts=(add,))), revision)

    error = client.get("add", numbers=",".join(NUMBERS))["error"]

    assert error["code"] == -32602
    assert error["message"] == f"prompt 'add': 'numbers' {COLLISIONS}"
    assert "result" in client.get("add", numbers="1, 2")
