"""Suggestions for misspelt names, and the length of the common start of two sequences."""

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from operator import itemgetter
from typing import Final

#: The minimum share of the longer name's letters that two names must have in common, in the same order.
_MIN_SHARE: Final = 2 / 3

#: The minimum ratio that difflib must compute for two names to count as a misspelling.
_MIN_RATIO: Final = 0.8

#: The minimum length of a name for which longer names that contain it are suggested.
_MIN_LENGTH: Final = 3


def nearest(name: str, names: Iterable[str]) -> str | None:
    """
    Return the name in *names* that was probably meant.

    A name that differs only in case is preferred, then a name with few different letters, then a name that
    starts with *name* or contains it as a word in the same case. Ambiguous matches are not suggested.

    Args:
        name:
            The unknown name.

        names:
            The known names.

    Returns:
        The suggestion; None if no name is similar, or if several are equally similar.
    """
    candidates = similar_names(name, names)
    return candidates[0] if len(candidates) == 1 else None


def similar_names(name: str, names: Iterable[str]) -> list[str]:
    """Return the names most similar to *name*, by the rules of `nearest`; empty if no name is similar."""
    names = list(names)
    # A name more than three times as long as the others is not similar. Clients can send names of any length.
    if len(name) > 3 * max(map(len, names), default=0):
        return []
    folded = {candidate.casefold(): candidate for candidate in names}
    word = name.casefold()
    if word in folded:
        return [folded[word]]
    similarities = _similarities(word, folded)
    best = max(similarities.values(), default=None)
    misspelt = [folded[candidate] for candidate, similarity in similarities.items() if similarity == best]
    return misspelt or _longer_names(name, folded.values())


def is_misspelling_of(name: str, other: str) -> bool:
    """
    Return whether *name* is probably a misspelling of *other*: reordered letters, or about one wrong letter.
    """
    first, second = name.casefold(), other.casefold()
    if abs(len(first) - len(second)) > 1:
        return False
    return sorted(first) == sorted(second) or SequenceMatcher(None, first, second).ratio() >= _MIN_RATIO


def _similarities(word: str, candidates: Iterable[str]) -> dict[str, tuple[float, float]]:
    """
    Return how similar each candidate is to *word*: with its letters in order, and with them in any order.

    Candidates with many different letters are omitted.
    """
    similarities, matcher = dict[str, tuple[float, float]](), SequenceMatcher(None, "", word)
    for candidate in candidates:
        shorter, longer = sorted((len(word), len(candidate)))
        if shorter < _MIN_SHARE * longer:
            continue
        matcher.set_seq1(candidate)
        if (in_any_order := matcher.quick_ratio()) >= _MIN_SHARE:  # ten times as fast as the next check
            share = sum(map(itemgetter(2), matcher.get_matching_blocks())) / longer
            if share >= _MIN_SHARE:
                similarities[candidate] = share, in_any_order
    return similarities


def _longer_names(name: str, candidates: Iterable[str]) -> list[str]:
    """Return the candidates that start with *name*, or contain it as a word."""
    if len(name) < _MIN_LENGTH:
        return []
    word = re.compile(rf"^{re.escape(name)}|(?<![^\W_]){re.escape(name)}(?![^\W_])")
    return list(filter(word.search, candidates))


def common_length(first: Sequence[object], second: Sequence[object]) -> int:
    """Return the number of items that two sequences have in common at their start."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))
