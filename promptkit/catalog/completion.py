"""Completion: what to offer while someone types an argument's value, as data."""

import inspect
from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from enum import Enum
from itertools import pairwise
from operator import itemgetter
from typing import Any, Final

import attrs

from promptkit.catalog.rendering import is_asynchronous, run_async
from promptkit.conversion.annotations import FORWARD
from promptkit.errors.exceptions import ResultError

__all__ = ["LIMIT", "Completer", "Completion", "complete", "rank"]

#: How many values MCP allows in one completion.
LIMIT: Final = 100

#: Characters that somebody types for a word. For more, what follows takes time of their square.
_LONGEST_WORD: Final = 200


@attrs.frozen
class Completion:
    """
    What to offer; by default nothing.

    Args:
        values:
            The best matches, best first, `LIMIT` at most.

        total:
            How many match.

        has_more:
            Whether that is more than *values* holds.
    """

    values: tuple[str, ...] = attrs.field(default=(), validator=attrs.validators.max_len(LIMIT))
    total: int = 0
    has_more: bool = False


def complete(candidates: Iterable[str], typed: str) -> Completion:
    """
    Return what to offer of *candidates* to someone who typed *typed*.
    """
    ranked = rank(candidates, typed)
    return Completion(ranked[:LIMIT], len(ranked), len(ranked) > LIMIT)


def rank(candidates: Iterable[str], typed: str) -> tuple[str, ...]:
    """
    Return those of *candidates* that match *typed*, best first, each once.

    Of more than `_LONGEST_WORD` characters, none are sought at the beginnings of words or apart. Case
    does not matter. A candidate that equals *typed* comes first, then those that begin
    with it, then those with a word that does, then those with its characters in the same order,
    the closer together the better. Among equals the given order stays. ``""`` matches all alike.
    """
    unique = dict.fromkeys(candidates)
    if not typed:
        return tuple(unique)
    folded = typed.casefold()
    is_word = not folded[_LONGEST_WORD:]
    graded = [
        (grade, text) for text in unique if (grade := _grade(text, folded, is_word=is_word)) is not None
    ]
    return tuple(text for _, text in sorted(graded, key=itemgetter(0)))


def _grade(candidate: str, typed: str, *, is_word: bool) -> tuple[int, int] | None:
    """
    Return how well *candidate* matches *typed*, which is casefolded: less is better, None not at all.

    Only what may be a word is sought at the beginnings of words, and with gaps.
    """
    folded = candidate.casefold()
    if folded.startswith(typed):
        return (0 if folded == typed else 1), 0
    if typed in folded:
        return (2, 0) if is_word and _starts_word(candidate, typed) else (3, len(typed))
    span = _span(folded, typed) if is_word else None
    return None if span is None else (3, span)


def _starts_word(candidate: str, typed: str) -> bool:
    """
    Return whether *typed* matches from a word inside on: ``note`` in ``new-notes`` and ``newNotes``.
    """
    # Casefolding forgets the capitals that words begin with, so it comes last. It makes no text
    # shorter: of what follows, as many characters as were typed are enough to compare.
    return any(
        candidate[at : at + len(typed)].casefold().startswith(typed)
        for at, (before, char) in enumerate(pairwise(candidate), start=1)
        if char.isalnum() and (not before.isalnum() or (before.islower() and char.isupper()))
    )


def _span(text: str, typed: str) -> int | None:
    """
    Return the length of the shortest stretch of *text* with the characters of *typed* in order.
    """
    shortest = None
    start = end = 0
    while True:
        for char in typed:
            end = text.find(char, end) + 1
            if not end:
                return shortest
        # From where the first such stretch ends, back to the latest place where it can begin.
        start = end
        for char in reversed(typed):
            start = text.rfind(char, 0, start)
        shortest = min(end - start, shortest or len(text))
        start = end = start + 1


def _texts(values: object, whose: str, remedy: str) -> tuple[str, ...]:
    """
    Return *values* as people would enter them, None left out. Raises ResultError if they are none.
    """
    if isinstance(values, Coroutine):
        values.close()  # else Python would warn that nobody awaited it
    if isinstance(values, str | bytes | bytearray) or not isinstance(values, Iterable):
        msg = f"{whose} {type(values).__name__}, not several values: {remedy}"
        raise ResultError(msg)
    texts = (_text(value, whose) for value in values if value is not None)
    # The order of a set differs from one start to the next.
    return tuple(sorted(texts) if isinstance(values, set | frozenset) else texts)


def _text(value: object, whose: str) -> str:
    """
    Return one value as people would enter it, a member of an enumeration as its reader takes it.
    """
    if isinstance(value, bytes | bytearray):
        msg = f"{whose} values that are {type(value).__name__}: decode them, with .decode()"
        raise ResultError(msg)
    if isinstance(value, Enum):
        value = value.value if isinstance(value.value, str | int) else value.name
    return str.__str__(value) if isinstance(value, str) else str(value)


def _source(source: Iterable[Any] | Callable[..., Any]) -> tuple[str, ...] | Callable[..., Any]:
    """
    Return values as text, and a function as it is. An enumeration can be called, and is values.
    """
    if callable(source) and not isinstance(source, Iterable):
        return source
    return _texts(source, "complete= is given", "write ['a', 'b'], or name a function without calling it")


def _named(function: object) -> str:
    return f"complete function {getattr(function, '__name__', type(function).__name__)!r}"


def _count_parameters(function: Callable[..., Any]) -> int:
    """
    Return how many arguments *function* needs. Raises TypeError if it needs others than it gets.
    """
    with suppress(ValueError):  # some functions that are written in C do not tell
        parameters = inspect.signature(function, **FORWARD).parameters.values()
        needed = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
        # One that takes *args is most often a wrapper that hides what it needs.
        if len(needed) <= 2 and not any(p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL) for p in needed):
            return len(needed)
    takes = "does not take (), (typed) or (typed, arguments)"
    msg = f"{_named(function)} {takes}: give defaults to its other parameters, or wrap it in a lambda"
    raise TypeError(msg)


@attrs.frozen
class Completer:
    """
    What makes the candidates for one argument.

    Args:
        source:
            The candidates, read once: texts, other values, shown with `str`, or members of an
            enumeration, by value. Or a function, ``def`` or ``async def``, that returns or yields
            such candidates; None stands for no candidates.

            A function gets as many of these as it has positional parameters without a default:
            what was typed, and a mapping of the arguments already chosen, as the client sent
            them. It may heed what was typed or not: what it returns is ranked like fixed
            candidates, and what does not match is not offered.

    Raises:
        TypeError: If *source* is neither, or needs other arguments; the remedy follows a colon.
            Reading the candidates may raise anything.
    """

    source: tuple[str, ...] | Callable[..., Any] = attrs.field(converter=_source)
    is_async: bool = attrs.field(init=False, default=False)
    _takes: int = attrs.field(init=False, default=0, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if isinstance(self.source, tuple):
            return
        is_async = is_asynchronous(self.source, inspect.unwrap(self.source), type(self.source).__call__)
        object.__setattr__(self, "is_async", is_async)
        object.__setattr__(self, "_takes", _count_parameters(self.source))

    def complete(self, typed: str, arguments: Mapping[str, str] | None = None) -> Completion:
        """
        Return what to offer to someone who typed *typed* and chose *arguments* before.

        An asynchronous function is run on an event loop of its own.

        Raises:
            TypeError: If the function returned no values.

            RuntimeError: If the function is asynchronous and an event loop runs already.

            Exception: Whatever the function raises.
        """
        if not self.is_async:
            return self._completion(self._call(typed, arguments), typed)
        refusal = f"{_named(self.source)} is async, and an event loop runs here: await .complete_async(...)"
        return run_async(self.complete_async, (typed, arguments), {}, refusal)

    async def complete_async(self, typed: str, arguments: Mapping[str, str] | None = None) -> Completion:
        """
        Return what `complete` does, on the running event loop.
        """
        result = self._call(typed, arguments)
        if self.is_async and isinstance(result, Awaitable):
            result = await result
        if self.is_async and isinstance(result, AsyncIterable):
            result = [value async for value in result]
        return self._completion(result, typed)

    def _call(self, typed: str, arguments: Mapping[str, str] | None) -> Any:
        if isinstance(self.source, tuple):
            return self.source
        return self.source(*(typed, arguments or {})[: self._takes])

    def _completion(self, result: object, typed: str) -> Completion:
        if isinstance(self.source, tuple):
            return complete(self.source, typed)
        whose, remedy = f"{_named(self.source)} returned", "return ['a', 'b']; one that awaits is `async def`"
        return complete(() if result is None else _texts(result, whose, remedy), typed)
