"""Text that fits into a budget, with all required parts and as many optional parts as possible."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from operator import attrgetter, index
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from promptkit.errors.exceptions import BudgetError
from promptkit.fragments.text import Keep, Part, shorten
from promptkit.language.content import record_repr
from promptkit.language.text import Text, plain_string
from promptkit.language.validation import checked_priority

#: A function that returns the size of a string, in tokens or other units.
Counter: TypeAlias = Callable[[str], float]

#: The end of the text that `shorten` keeps, keyed by where `optional` trims the text.
_KEEP: Final[dict[str, Keep]] = {"start": "tail", "end": "head", "middle": "both"}

_GAP: Final = "\n\n"

#: The average length of a token of English text, in characters.
CHARACTERS_PER_TOKEN: Final = 4

#: How often a part is measured to find its longest version that fits. After that, the whole text is measured.
_MAX_TRIALS: Final = 19


class OptionalPart(Struct, frozen=True):
    """
    A part for `fit` that can be dropped, as created by `optional`.

    Args:
        text:
            The text.

        priority:
            The importance, from 0 to 1.

        trim:
            Where to cut the text if it does not fit; None to drop the whole text.
    """

    text: str
    priority: float
    trim: str | None

    def __repr__(self) -> str:
        trim = "" if self.trim is None else f", trim={self.trim!r}"
        return record_repr(f"optional({self.text!r}, priority={self.priority!r}{trim})")


class Candidate(Struct, frozen=True, eq=False):
    """
    A part that was passed to `fit` and is not blank.

    Args:
        position:
            The part's position among the arguments, starting at 1.

        text:
            The part's text.

        optional:
            The part as returned by `optional`; None if the part is required.

        cut_length:
            The number of characters that remain of a part that was cut; None if the part was not cut.
    """

    position: int
    text: str
    optional: OptionalPart | None
    cut_length: int | None = None

    @property
    def priority(self) -> float:
        """The part's importance, which is higher for a required part than for any optional part."""
        return 2 if self.optional is None else self.optional.priority


class FitReport(Struct, frozen=True):
    """
    The result of a `fit` call that dropped or cut parts.

    Args:
        budget:
            The maximum size of the text.

        size:
            The size of the text, as measured by the counter.

        dropped:
            The parts that were dropped, in the order of the arguments.

        cut:
            The parts that were cut.
    """

    budget: int
    size: float
    dropped: Sequence[Candidate]
    cut: Sequence[Candidate]


#: A list of the results of `fit` calls that dropped or cut parts, set by tools that show them.
fit_reports: Final[ContextVar[list[FitReport] | None]] = ContextVar("fit_reports", default=None)


def estimate_tokens(text: str) -> int:
    """Estimate the number of tokens in *text*."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def optional(
    text: Part, *, priority: float = 0.5, trim: Literal["start", "end", "middle"] | None = None
) -> OptionalPart:
    """
    Mark a part for `fit` as optional: it is dropped if it does not fit into the budget.

    Args:
        text:
            A string or a `Text`. None, False and blank text are omitted.

        priority:
            The importance, from 0 to 1. Parts with a lower priority are dropped first. If several parts have
            the same priority, the last one is dropped first.

        trim:
            Where to cut the text if only a part of it fits: at the ``"start"``, at the ``"end"`` or in the
            ``"middle"``. The notice of `truncate` is inserted there. If None, the text is dropped as a whole.
            Do not cut text with delimiters, such as the result of `untrusted` or `code_block`, because it
            would lose one of its delimiters.

    Returns:
        The optional part, which only `fit` accepts.

    Raises:
        TypeError: If *text* is not text, or *priority* is not a number.

        ValueError: If *priority* is not between 0 and 1, or *trim* is not one of the three values.
    """
    full_text = "" if text is None or text is False else plain_string(text, "optional(text)")
    if trim is not None and trim not in _KEEP:
        msg = f"optional(trim={trim!r}): pass one of {', '.join(map(repr, _KEEP))}, or None"
        raise ValueError(msg)
    checked = checked_priority(priority)
    if checked is None:
        msg = "optional(priority=None): pass a number from 0 to 1"
        raise TypeError(msg)
    return OptionalPart(full_text, checked, trim)


def fit(*parts: Part | OptionalPart, tokens: int, count: Callable[[str], float] | None = None) -> Text:
    """
    Join parts with blank lines between them, and drop optional parts so that the text fits into a budget.

    Required parts are always kept. Optional parts are added by descending priority until a part does not fit.
    That part is cut if *trim* was given for it. Therefore, a larger budget never removes anything. The parts
    keep the order of the arguments.

    Args:
        *parts:
            Strings and `Text`, which are required, and parts created by `optional`. None, False and blank
            parts are omitted.

        tokens:
            The maximum size of the text.

        count:
            A function that returns the size of a string, for example with a tokenizer:
            ``lambda text: len(encoding.encode(text))``. It is called at most twice per part, and 20 more
            times if a part is cut. By default, one token is estimated for every 4 characters, which suits
            English text.

    Returns:
        The text, without the annotations of its parts.

    Raises:
        BudgetError: If the required parts alone exceed the budget; the message contains the excess. It is a
            `PromptError`: the client sees the message, because the length of required parts usually depends
            on arguments.

        TypeError: If a part is not text (the message names the part), *tokens* is not a whole number, or
            *count* does not return a number.
    """
    budget, measure = index(tokens), count or estimate_tokens
    candidates = list(_candidates(parts))
    text = _join(candidates)
    size = measure(text)
    if not isinstance(size, int | float):
        returned = type(size).__name__
        msg = f"fit(count) returned {returned}: it must return a number of tokens, for example len(...)"
        raise TypeError(msg)
    if size <= budget:
        return Text(text)
    ranked = sorted(candidates, key=attrgetter("priority"), reverse=True)  # equal priorities stay in order
    required = sum(candidate.optional is None for candidate in ranked)
    if required == len(ranked):
        raise BudgetError(budget, size - budget)
    selected = _select(ranked, required, budget, measure)
    ordered = sorted(selected, key=attrgetter("position"))
    while (size := measure(text := _join(ordered))) > budget:  # the sizes of the parts may not add up
        if len(selected) == required:
            raise BudgetError(budget, size - budget)
        ordered.remove(selected.pop())
    if (reports := fit_reports.get()) is not None:
        positions = {candidate.position for candidate in selected}
        dropped = [candidate for candidate in candidates if candidate.position not in positions]
        reports.append(
            FitReport(budget, size, dropped, [part for part in ordered if part.cut_length is not None])
        )
    return Text(text)


def _select(ranked: list[Candidate], required: int, budget: int, measure: Counter) -> list[Candidate]:
    """
    Select the parts to keep if not all parts fit. Each part is measured separately.

    Args:
        ranked:
            The parts, sorted by descending priority.

        required:
            The number of required parts, which come first.

        budget:
            The maximum size of the text.

        measure:
            A function that returns the size of a string.
    """
    gap = measure(_GAP) if len(ranked) > 1 else 0
    selected, remaining = ranked[:required], budget + gap
    for candidate in selected:
        remaining -= measure(candidate.text) + gap
    for candidate in ranked[required:-1]:  # the last part cannot fit, because not all parts do
        size = measure(candidate.text) + gap
        if size > remaining:
            break
        selected.append(candidate)
        remaining -= size
    if (cut := _cut(ranked[len(selected)], remaining - gap, measure)) is not None:
        selected.append(cut)
    return selected


def _cut(candidate: Candidate, remaining: float, measure: Counter) -> Candidate | None:
    """Return the longest version of a part that fits; None if it must not be cut or nothing would remain."""
    if candidate.optional is None or candidate.optional.trim is None:
        return None
    longest = None
    # The steps of this binary search depend only on the length. Therefore, more space never results in a
    # shorter version, even if a longer text has a smaller size.
    low, high = 0, len(candidate.text)
    for _ in range(_MAX_TRIALS):
        if high - low <= 1:
            break
        middle = (low + high) // 2
        text, content = shorten(candidate.text, middle, _KEEP[candidate.optional.trim])
        if measure(text) <= remaining:
            low, longest = (
                middle,
                Candidate(candidate.position, text, candidate.optional, len(content.strip())),
            )
        else:
            high = middle
    return longest if longest and longest.cut_length else None


def _candidates(parts: Iterable[object]) -> Iterator[Candidate]:
    """Yield the parts that are not blank. Raises TypeError if a part is not text."""
    for position, part in enumerate(parts, 1):
        options = part if isinstance(part, OptionalPart) else None
        text = part if options is None else options.text
        if text is not None and text is not False:
            plain = plain_string(text, f"fit(...): part {position}")
            if not plain.isspace() and plain:
                yield Candidate(position, plain, options)


def _join(candidates: Iterable[Candidate]) -> str:
    return _GAP.join([candidate.text for candidate in candidates])
