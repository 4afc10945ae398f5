"""
Makes sets and dicts of a client's values, safe from attacks by hash collisions.

Python salts the hashes of strings, but not those of numbers, UUIDs, durations and tuples of these. A client
could choose values that all collide, and a set of them would take quadratic time. So only a few may share a
hash, and no more are hashed than that: Python itself keeps the hashes of fractions in a table of them (3.12
and newer). Here they are counted by their digits, whose own hashes are salted. Different hashes can collide,
too, because a table uses a part of the hash at a time. So the probes that CPython (3.11 to 3.15) would need
are counted before the set or dict is made.
"""

import sys
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from promptkit.conversion.errors import ConversionError

__all__ = ["FEW", "dict_of", "set_of"]

S = TypeVar("S", set[Any], frozenset[Any])

#: This many values may all collide: comparing them takes no longer than reading them.
FEW: Final = 32

#: How many probes a value may need, on average. Ordinary values need one or two.
_STEPS: Final = 16

_COLLIDES: Final = "has too many values that collide when they are hashed: send fewer of them"

_WORD: Final = (1 << sys.hash_info.width) - 1
_DICT_WINDOW: Final = 1
_SET_WINDOW: Final = 10  # neighbouring slots that a set probes before it jumps


def set_of(kind: Callable[[list[Any]], S], values: list[Any]) -> S:
    """
    Make a set of *values*.

    Args:
        kind:
            `set` or `frozenset`.

        values:
            What a client sent, including duplicates.

    Raises:
        ConversionError: If too many of them collide.

        TypeError: If one of them cannot be hashed.
    """
    if len(values) <= FEW:
        return kind(values)
    values = _distinct(values)
    _check_walks(list(map(hash, values)), _set_sizes(len(values)), _SET_WINDOW)
    return kind(values)


def dict_of(keys: list[Any], values: list[Any]) -> dict[Any, Any]:
    """
    Make a dict of *keys* and *values*. If keys are equal, the last one wins.

    Raises:
        ConversionError: If too many of the keys collide, or are equal.

        TypeError: If one of them cannot be hashed.
    """
    if len(keys) > FEW:
        hashes = []
        counts: dict[str, int] = {}
        for key in keys:
            hashes.append(hash(key))
            text = str(hashes[-1])
            counts[text] = counts.get(text, 0) + 1
            if counts[text] > FEW:
                raise ConversionError(reason=_COLLIDES)
        _check_walks(hashes, _dict_sizes(len(hashes)), _DICT_WINDOW)
    return dict(zip(keys, values, strict=True))


def _distinct(values: list[Any]) -> list[Any]:
    """Return *values* without duplicates. Raises `ConversionError` if many different ones share a hash."""
    by_hash: dict[str, list[Any]] = {}
    for value in values:
        alike = by_hash.setdefault(str(hash(value)), [])
        if value not in alike:
            alike.append(value)
            if len(alike) > FEW:
                raise ConversionError(reason=_COLLIDES)
    return [value for alike in by_hash.values() for value in alike]


def _check_walks(hashes: list[int], sizes: Iterator[tuple[int, int]], window: int) -> None:
    """Raise `ConversionError` if a table that grows through *sizes* needs too many probes for *hashes*."""
    for size, held in sizes:
        if held > FEW and _walks_far(hashes[:held], size, window):
            raise ConversionError(reason=_COLLIDES)


def _walks_far(hashes: list[int], size: int, window: int) -> bool:
    """Tell whether *hashes* need too many probes in a table of *size* slots."""
    mask, taken = size - 1, bytearray(size)
    left = _STEPS * len(hashes)
    for value in hashes:
        at, perturb = value & mask, value & _WORD
        if taken[at]:
            while (free := taken.find(0, at, at + (window if at + window <= size else 1))) < 0:
                perturb >>= 5
                at = (at * 5 + perturb + 1) & mask
                left -= 1
                if not left:
                    return True
            at = free
        taken[at] = 1
    return False


def _dict_sizes(count: int) -> Iterator[tuple[int, int]]:
    """Yield each size of a dict that grows to *count* items, and how many items it holds before it grows."""
    size, held = 8, 5
    while held < count:
        yield size, held
        size = 1 << (3 * held - 1).bit_length()
        held = 2 * size // 3
    yield size, count


def _set_sizes(count: int) -> Iterator[tuple[int, int]]:
    """Yield the same for a set."""
    size, held = 8, 5
    while held <= count:
        yield size, held
        size = 1 << (held * (2 if held > 50_000 else 4)).bit_length()
        held = -(-3 * (size - 1) // 5)
    yield size, count
