"""Values that a client chose so that a hash table takes long over them."""

import datetime as dt
import json
from collections.abc import Mapping, MutableSet
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import count
from typing import Annotated, Any, NamedTuple
from uuid import UUID

import attrs
import msgspec
import pytest

from promptkit import register_type
from promptkit.conversion.collisions import FEW, dict_of, set_of
from promptkit.conversion.errors import ConversionError
from promptkit.conversion.readers import reader_of
from tests.wire import Client

pytestmark = pytest.mark.timeout(60)

#: What a whole number's hash is the remainder of.
P = 2**61 - 1
MANY = 20_000
REFUSED = "has too many values that collide when they are hashed: send fewer of them"

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


class Line(msgspec.Struct, array_like=True):
    numbers: set[Decimal]
    name: str = ""


@dataclass
class Board:
    marks: AbstractSet[Decimal]
    sizes: Mapping[Decimal, int]
    names: MutableSet[Decimal] | None = None


NUMBERS = [str(P * n) for n in range(1, MANY)]
JSON_NUMBERS = [P * n for n in range(1, 100)]
BOARD = {"marks": [], "sizes": {}}

#: A type, and what a client sends for it: more than a few values of one hash.
COLLIDING: dict[str, tuple[Any, Any]] = {
    "set of numbers": (set[int], ",".join(NUMBERS)),
    "set of numbers, one a line": (set[int], "\n".join(NUMBERS)),
    "set of numbers in JSON": (set[int], f"[{','.join(NUMBERS)}]"),
    "numbers in a list": (set[int], list(map(int, NUMBERS))),
    "frozenset of Decimals": (frozenset[Decimal], ",".join(NUMBERS)),
    "set of Decimals as JSON numbers": (set[Decimal], f"[{','.join(NUMBERS)}]"),
    "set of fractions of points": (
        set[Decimal],
        ",".join(f"{P * n}e-{P.bit_length()}" for n in range(1, MANY)),
    ),
    "set of floats": (set[float], ",".join(repr(2.0 ** (61 * n - 1000)) for n in range(FEW + 1))),
    "set of UUIDs": (set[UUID], ",".join(str(UUID(int=P * n)) for n in range(1, MANY))),
    "set of a registered type": (set[Fraction], ",".join(NUMBERS)),
    "set of a union": (set[int | Decimal], ",".join(NUMBERS)),
    "set of text or numbers": (set[int | str], ",".join(NUMBERS)),
    "set of what may be null": (set[int | None], ",".join(NUMBERS)),
    "set of bounded numbers": (set[Annotated[int, msgspec.Meta(ge=0)]], ",".join(NUMBERS)),
    "set of bounded size": (Annotated[set[int], msgspec.Meta(max_length=10**6)], ",".join(NUMBERS)),
    "set of tuples": (set[tuple[int, ...]], json.dumps([[P * n] for n in range(1, MANY // 10)])),
    "set of tuples of two": (set[tuple[str, Decimal]], json.dumps([["a", n] for n in NUMBERS])),
    "set of named tuples": (set[Pair], json.dumps([[1, n] for n in NUMBERS])),
    "set of data classes": (set[Point], json.dumps([{"x": 1, "y": n} for n in NUMBERS])),
    "set of attrs classes": (frozenset[Mark], json.dumps([{"at": P * n} for n in JSON_NUMBERS])),
    "set of structs": (set[Row], json.dumps([{"number": P * n} for n in JSON_NUMBERS])),
    "set of sets": (set[frozenset[Decimal]], json.dumps([[n] for n in NUMBERS])),
    "set of anything": (set, json.dumps([P * n for n in range(1, 100)])),
    "set in a list": (list[set[Decimal]], json.dumps([NUMBERS])),
    "set in a union": (set[Decimal] | dict[str, int], json.dumps(NUMBERS)),
    "set in an array of a struct": (Line, json.dumps([NUMBERS])),
    "abstract set": (Board, json.dumps({**BOARD, "marks": NUMBERS})),
    "abstract set that can be changed": (Board, json.dumps({**BOARD, "names": NUMBERS})),
    "abstract mapping": (Board, json.dumps({**BOARD, "sizes": dict.fromkeys(NUMBERS, 1)})),
    "dict by Decimal": (dict[Decimal, str], json.dumps(dict.fromkeys(NUMBERS, "x"))),
    "dict by float": (
        dict[float, str],
        json.dumps({repr(2.0 ** (61 * n - 1000)): "x" for n in range(FEW + 1)}),
    ),
    "dict by UUID": (dict[UUID, int], json.dumps({str(UUID(int=P * n)): 1 for n in range(1, MANY)})),
    "dict by a registered type": (dict[Fraction, int], json.dumps(dict.fromkeys(NUMBERS, 1))),
    "dict by one number spelt otherwise": (
        dict[Decimal, int],
        json.dumps({f"1.{'0' * n}": n for n in range(1, 1000)}),
    ),
    "dict in a dict": (dict[str, dict[Decimal, int]], json.dumps({"a": dict.fromkeys(NUMBERS, 1)})),
    "dict of a bounded size": (
        Annotated[dict[Decimal, int], msgspec.Meta(min_length=1)],
        json.dumps(dict.fromkeys(NUMBERS, 1)),
    ),
}


@pytest.mark.parametrize(("annotation", "sent"), COLLIDING.values(), ids=COLLIDING)
def test_values_that_collide_are_refused(annotation, sent):
    """
    In whatever a hash table is made of what a client chose, values of one hash are few.
    """
    with pytest.raises(ConversionError) as refused:
        reader_of(annotation).read(sent)

    assert {part.reason for part in refused.value.parts} == {REFUSED}


#: A type, what a client sends, and how many of it there are: many, and nobody means harm.
HARMLESS: dict[str, tuple[Any, Any, int]] = {
    "numbers": (set[int], ",".join(map(str, range(MANY))), MANY),
    "multiples of a power of two": (set[int], ",".join(str(n << 40) for n in range(MANY)), MANY),
    "one number": (set[int], "5," * MANY, 1),
    "two spellings": (set[Decimal], "1.0,1.00," * MANY, 1),
    "a few that collide": (set[int], ",".join(NUMBERS[:FEW]) + ",5" * MANY, FEW + 1),
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
def test_many_values_make_a_real_set_or_dict(annotation, sent, size):
    """
    Values that were not chosen for their hashes may be as many as a client can send.
    """
    found = reader_of(annotation).read(sent)

    assert type(found) in (set, frozenset, dict)
    assert len(found) == size


def walkers(size: int, filled: int, walks: int) -> list[int]:
    """
    Whole numbers, no two of one hash, that a dict of so many slots finds after long walks.

    The first fill the slots that every walk ends in, one after the other; the others begin there.
    """
    mask, taken = size - 1, set()
    at = 1
    for _ in range(filled):
        taken.add(at)
        at = (5 * at + 1) & mask
    found = sorted(taken)
    numbers = count(1)
    while len(found) < filled + walks:
        number = next(numbers)
        at, perturb, steps = (number << 38) & mask, number << 38, 0
        while at in taken:
            perturb >>= 5
            at = (5 * at + perturb + 1) & mask
            steps += 1
        if steps > filled // 4 or number == 1:
            taken.add(at)
            found.append(number << 38)
    return found


class TestWalks:
    NUMBERS = walkers(1024, 500, 150)

    def test_no_two_of_them_share_a_hash(self):
        """
        So that counting hashes does not tell them.
        """
        assert len(set(map(hash, self.NUMBERS))) == len(self.NUMBERS)

    def test_long_walks_are_refused(self):
        """
        Values whose hashes differ, and that a dict of their number still walks far for.
        """
        with pytest.raises(ConversionError) as refused:
            dict_of(self.NUMBERS, self.NUMBERS)

        assert refused.value.reason == REFUSED

    def test_in_other_tables_they_are_harmless(self):
        """
        What is counted are the walks in the very table that is made, not what the values look like.
        """
        assert set_of(set, self.NUMBERS) == set(self.NUMBERS)


def test_of_equal_keys_the_last_counts():
    """
    As in any dict.
    """
    keys = [Decimal("1.0"), *map(Decimal, range(100, 200)), Decimal("1.00")]

    assert dict_of(keys, list(range(102)))[Decimal(1)] == 101


@pytest.mark.parametrize("revision", ["2024-11-05", "2026-07-28"])
def test_the_server_answers_and_goes_on(revision):
    """
    The error says what to do, and the next request is served.
    """
    from promptkit import prompt
    from promptkit.compiler.compilation import compile
    from promptkit.compiler.loading.loader import Recipes

    @prompt
    def add(numbers: set[int]) -> str:
        return str(sum(numbers))

    client = Client(compile(Recipes(prompts=(add,))), revision)

    error = client.get("add", numbers=",".join(NUMBERS))["error"]

    assert error["code"] == -32602
    assert error["message"] == f"prompt 'add': 'numbers' {REFUSED}"
    assert "result" in client.get("add", numbers="1, 2")
