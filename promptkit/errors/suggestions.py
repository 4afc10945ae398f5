"""Which name was probably meant by one that does not exist."""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from operator import itemgetter
from pathlib import Path
from typing import Final

#: How much of the longer of two names the other one has, in order, if it is a slip of the hand.
_SHARE: Final = 2 / 3

#: From which ratio of equal letters on a name is a misspelt one.
_ALIKE: Final = 0.8

#: A shorter beginning may be that of anything.
_SHORTEST_BEGINNING: Final = 3


def nearest(name: str, names: Iterable[str]) -> str | None:
    """
    Return the one of *names* that was probably meant.

    It is one that differs in case alone, else one that differs in few letters, else one that begins with
    *name*, or has it for a word, as it is written. Where several are as near, none is meant more than others.

    Args:
        name:
            The name that does not exist.

        names:
            Those that do.

    Returns:
        None if none of them is near, or several are equally so.
    """
    names = list(names)
    # A name of three times the length is not similar. A client may send a name of any length.
    if len(name) > 3 * max(map(len, names), default=0):
        return None
    folded = {candidate.casefold(): candidate for candidate in names}
    word = name.casefold()
    if word in folded:
        return folded[word]
    shares = _shares(word, folded)
    best = max(shares.values(), default=None)
    slips = [folded[other] for other, share in shares.items() if share == best]
    found = slips or _longer(name, folded.values())
    return found[0] if len(found) == 1 else None


def is_misspelt(name: str, other: str) -> bool:
    """Return whether *name* is probably *other*: with its letters in another order, or about one wrong."""
    one, two = name.casefold(), other.casefold()
    if abs(len(one) - len(two)) > 1:
        return False
    return sorted(one) == sorted(two) or SequenceMatcher(None, one, two).ratio() >= _ALIKE


def near_file(named: str, folder: Path = Path()) -> str:
    """
    Return the end of an error about a file that is not there: the one that was probably meant, if any.

    Args:
        named:
            Its path.

        folder:
            Where relative paths start from.
    """
    place = Path(named)
    try:
        files = list((folder / place.parent).iterdir())
    except OSError:
        return ""
    # Endings say nothing: names that are as short as a.csv and b.csv would be near.
    stems = {file.stem: file.name for file in files if file.suffix == place.suffix}
    others = [file.name for file in files if file.suffix != place.suffix]
    meant = stems.get(nearest(place.stem, stems) or "") or nearest(place.name, others)
    return f"; did you mean {str(place.with_name(meant))!r}?" if meant else ""


def _shares(word: str, others: Iterable[str]) -> dict[str, tuple[float, float]]:
    """Those that differ in few letters, each with how much the two have in common: in order, and in any."""
    found, matcher = dict[str, tuple[float, float]](), SequenceMatcher(None, "", word)
    for other in others:
        shorter, longer = sorted((len(word), len(other)))
        if shorter < _SHARE * longer:
            continue
        matcher.set_seq1(other)
        if (in_any_order := matcher.quick_ratio()) >= _SHARE:  # it takes a tenth of the time
            share = sum(map(itemgetter(2), matcher.get_matching_blocks())) / longer
            if share >= _SHARE:
                found[other] = share, in_any_order
    return found


def _longer(name: str, others: Iterable[str]) -> list[str]:
    """Those that begin with a name, or have it for a word."""
    holding = [other for other in others if name in other] if len(name) >= _SHORTEST_BEGINNING else []
    return [other for other in holding if other.startswith(name) or name in re.split(r"[\W_]+", other)]
