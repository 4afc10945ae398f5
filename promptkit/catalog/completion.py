"""Completion: suggestions for the value of an argument while someone types it."""

import inspect
from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from enum import Enum
from itertools import pairwise
from operator import itemgetter
from typing import Any, Final

from msgspec import Struct, structs

from promptkit.errors.exceptions import ResultError
from promptkit.language.bounds import TooLongError, read_all, read_all_async
from promptkit.types.functions import FORWARD, is_asynchronous, run_async, with_own_defaults

#: How many values MCP allows in one completion.
MAX_VALUES: Final = 100

#: Characters. Longer texts are not looked for at word beginnings or with gaps: that takes quadratic time.
_MAX_WORD_LENGTH: Final = 200


class Completion(Struct, frozen=True):
    """
    Suggestions; by default none.

    Args:
        values:
            The best matches, best first, `MAX_VALUES` at most.

        total:
            The number of all matches.

        has_more:
            Whether *values* holds only some of them.
    """

    values: tuple[str, ...] = ()
    total: int = 0
    has_more: bool = False


def complete(candidates: Iterable[str], typed: str) -> Completion:
    """The best of *candidates* for the text that was typed."""
    ranked = rank(candidates, typed)
    return Completion(ranked[:MAX_VALUES], len(ranked), len(ranked) > MAX_VALUES)


def rank(candidates: Iterable[str], typed: str) -> tuple[str, ...]:
    """
    The candidates that match *typed*, best first, without duplicates.

    Case does not matter. The order is: equal to *typed*; beginning with it; with a word that begins
    with it; with its characters in the same order, the closer together the better. Candidates that
    match equally well keep their order, and all match ``""``.
    """
    unique = dict.fromkeys(candidates)
    if not typed:
        return tuple(unique)
    folded = typed.casefold()
    is_word = not folded[_MAX_WORD_LENGTH:]
    graded = [(found, text) for text in unique if (found := grade(text, folded, is_word=is_word)) is not None]
    return tuple(text for _, text in sorted(graded, key=itemgetter(0)))


def grade(candidate: str, typed: str, *, is_word: bool = True) -> tuple[int, int] | None:
    """How well *candidate* matches *typed*, which is casefolded. Less is better; None is no match."""
    folded = candidate.casefold()
    if folded.startswith(typed):
        return (0 if folded == typed else 1), 0
    if typed in folded:
        return (2, 0) if is_word and _starts_word(candidate, typed) else (3, len(typed))
    span = _span(folded, typed) if is_word else None
    return None if span is None else (3, span)


def _starts_word(candidate: str, typed: str) -> bool:
    """Whether a later word begins with *typed*: ``note`` in ``new-notes`` and ``newNotes``."""
    # Casefolding comes last, because it removes the capitals that words begin with. It makes no text
    # shorter, so comparing as many characters as were typed is enough.
    return any(
        candidate[at : at + len(typed)].casefold().startswith(typed)
        for at, (before, char) in enumerate(pairwise(candidate), start=1)
        if char.isalnum() and (not before.isalnum() or (before.islower() and char.isupper()))
    )


def _span(text: str, typed: str) -> int | None:
    """The length of the shortest part of *text* that has the characters of *typed* in order."""
    shortest = None
    start = end = 0
    while True:
        for char in typed:
            end = text.find(char, end) + 1
            if not end:
                return shortest
        # Going back from its end finds the latest place where this part can begin.
        start = end
        for char in reversed(typed):
            start = text.rfind(char, 0, start)
        shortest = min(end - start, shortest or len(text))
        start = end = start + 1


def _split_last(typed: str) -> tuple[str, str]:
    """Split the text of a list before its last item, as ``"red, gr"`` into ``("red, ", "gr")``."""
    start = typed.rfind(_separator(typed)) + 1
    last = typed[start:].lstrip()
    before = typed[: len(typed) - len(last)]
    return (f"{before} " if before.endswith(",") and not last else before), last


def _separator(text: str) -> str:
    """What separates the items of a list: the ends of lines, if it has any."""
    return "\n" if "\n" in text.lstrip() else ","


def _items(candidates: Iterable[str], before: str) -> list[str]:
    """Return the candidates that can follow the items of a list: one that is chosen is not offered again."""
    if before.startswith("["):
        return []  # JSON, of which nobody types a part
    separator = _separator(before)
    chosen = {item.strip().casefold() for item in before.split(separator)}
    return [
        each for each in candidates if {separator, "\n"}.isdisjoint(each) and each.casefold() not in chosen
    ]


def _texts(values: object, whose: str, hint: str) -> tuple[str, ...]:
    """The values as people would enter them, without None."""
    if isinstance(values, Coroutine):
        values.close()  # else Python would warn that nobody awaited it
    if isinstance(values, str | bytes | bytearray) or not isinstance(values, Iterable):
        msg = f"{whose} {type(values).__name__}, not several values: {hint}"
        raise ResultError(msg)
    try:
        found = read_all(values, f"{whose} ")
    except TooLongError as error:
        raise ResultError(str(error)) from None
    texts = (_text(value, whose) for value in found if value is not None)
    # The order of a set differs from one start to the next.
    return tuple(sorted(texts) if isinstance(values, set | frozenset) else texts)


def _text(value: object, whose: str) -> str:
    if isinstance(value, bytes | bytearray):
        msg = f"{whose} values that are {type(value).__name__}: decode them, with .decode()"
        raise ResultError(msg)
    if isinstance(value, Enum):
        value = value.value if isinstance(value.value, str | int) else value.name
    return str.__str__(value) if isinstance(value, str) else str(value)


def _source(source: Iterable[Any] | Callable[..., Any]) -> tuple[str, ...] | Callable[..., Any]:
    if callable(source) and not isinstance(source, Iterable):  # an enumeration is both
        return with_own_defaults(source)
    return _texts(source, "complete= is given", "write ['a', 'b'], or name a function without calling it")


def _named(function: object) -> str:
    return f"complete function {getattr(function, '__name__', type(function).__name__)!r}"


def _count_parameters(function: Callable[..., Any]) -> int:
    with suppress(ValueError):  # some functions in C have no signature
        parameters = inspect.signature(function, **FORWARD).parameters.values()
        needed = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
        # A function with *args is most often a wrapper, which hides the parameters that it needs.
        if len(needed) <= 2 and not any(p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL) for p in needed):
            return len(needed)
    takes = "does not take (), (typed) or (typed, arguments)"
    msg = f"{_named(function)} {takes}: give defaults to its other parameters, or wrap it in a lambda"
    raise TypeError(msg)


class Completer(Struct, frozen=True):
    """
    Completes the values of one argument.

    Args:
        source:
            The candidates, which are read once: text, other values, which become text with `str`,
            or members of an enumeration, by value. Or a function, ``def`` or ``async def``, that
            returns or yields such candidates, or None for no candidates.

            The function takes no arguments, or the text that was typed, or that and a mapping of
            the arguments that were chosen already, as the client sent them. Its candidates are
            ranked like fixed ones, and those that do not match are left out.

        is_list:
            Whether the text is a list, of which the last item is completed. The suggestions are whole texts.

    Raises:
        TypeError: If *source* is neither, or the function takes other arguments.

        Exception: Whatever reading the candidates raises.
    """

    source: Iterable[Any] | Callable[..., Any]
    is_list: bool = False
    is_async: bool = False
    _takes: int = 0

    def __post_init__(self) -> None:
        source = _source(self.source)
        structs.force_setattr(self, "source", source)
        if not isinstance(source, tuple):
            is_async = is_asynchronous(source, inspect.unwrap(source), type(source).__call__)
            structs.force_setattr(self, "is_async", is_async)
            structs.force_setattr(self, "_takes", _count_parameters(source))

    def complete(self, typed: str, arguments: Mapping[str, str] | None = None) -> Completion:
        """
        The suggestions for *typed*, with *arguments* chosen before.

        An asynchronous function is run on an event loop of its own.

        Raises:
            ResultError: If the function did not return candidates.

            RuntimeError: If the function is asynchronous and an event loop runs already.

            Exception: Whatever the function raises.
        """
        if not self.is_async:
            before, last = self._split(typed)
            return self._completion(self._call(last, arguments), before, last)
        name = _named(self.source)
        refusal = f"{name} is asynchronous, and an event loop runs here: await .complete_async(...)"
        return run_async(self.complete_async, (typed, arguments), {}, refusal)

    async def complete_async(self, typed: str, arguments: Mapping[str, str] | None = None) -> Completion:
        """As `complete`, on the running event loop."""
        before, last = self._split(typed)
        result = self._call(last, arguments)
        if self.is_async and isinstance(result, Awaitable):
            result = await result
        if self.is_async and isinstance(result, AsyncIterable):
            try:
                result = await read_all_async(result, f"{_named(self.source)} returned ")
            except TooLongError as error:
                raise ResultError(str(error)) from None
        return self._completion(result, before, last)

    def _split(self, typed: str) -> tuple[str, str]:
        """Return what is completed of the text that was typed, after what precedes it."""
        return _split_last(typed) if self.is_list else ("", typed)

    def _call(self, typed: str, arguments: Mapping[str, str] | None) -> Any:
        source: Any = self.source
        return source if isinstance(source, tuple) else source(*(typed, arguments or {})[: self._takes])

    def _completion(self, result: object, before: str, typed: str) -> Completion:
        if isinstance(self.source, tuple):
            candidates = self.source
        else:
            whose = f"{_named(self.source)} returned"
            hint = "return ['a', 'b']; one that awaits is `async def`"
            candidates = () if result is None else _texts(result, whose, hint)
        if not self.is_list:
            return complete(candidates, typed)
        found = complete(_items(candidates, before), typed)
        return structs.replace(found, values=tuple(before + value for value in found.values))
