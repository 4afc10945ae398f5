"""Completion: suggestions for the value of an argument while a user types it."""

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
from promptkit.types.choices import member_text
from promptkit.types.functions import FORWARD_REFERENCES, copy_mutable_defaults, is_any_async, run_async

#: Maximum number of values in one completion, as MCP defines it.
MAX_VALUES: Final = 100

#: Maximum length of a typed text that is matched at word starts or with gaps, which takes quadratic time.
_MAX_WORD_LENGTH: Final = 200


class Completion(Struct, frozen=True):
    """
    The suggestions for one value; empty by default.

    Args:
        values:
            The best matches, best first, at most `MAX_VALUES`.

        total:
            The total number of matches.

        has_more:
            Whether there are more matches than *values* contains.
    """

    values: tuple[str, ...] = ()
    total: int = 0
    has_more: bool = False


def complete(candidates: Iterable[str], typed: str) -> Completion:
    """Return the candidates that best match the typed text."""
    ranked = rank(candidates, typed)
    return Completion(ranked[:MAX_VALUES], len(ranked), len(ranked) > MAX_VALUES)


def rank(candidates: Iterable[str], typed: str) -> tuple[str, ...]:
    """
    Return the candidates that match *typed*, best first, without duplicates.

    Case is ignored. The best match is a candidate that equals *typed*. Next come candidates that start with
    it, then those with a later word that starts with it, then those that contain its characters in the same
    order, the closer together the better. Candidates that match equally well keep their order. Every
    candidate matches ``""``.
    """
    unique = dict.fromkeys(candidates)
    if not typed:
        return tuple(unique)
    folded = typed.casefold()
    is_short = not folded[_MAX_WORD_LENGTH:]
    scored = [
        (score, text) for text in unique if (score := _score(text, folded, is_short=is_short)) is not None
    ]
    return tuple(text for _, text in sorted(scored, key=itemgetter(0)))


def _score(candidate: str, typed: str, *, is_short: bool) -> tuple[int, int] | None:
    """
    Return how well *candidate* matches the casefolded *typed*: the lower, the better. None means no match.
    """
    folded = candidate.casefold()
    if folded.startswith(typed):
        return (0 if folded == typed else 1), 0
    if typed in folded:
        return (2, 0) if is_short and _starts_word(candidate, typed) else (3, len(typed))
    span = _span(folded, typed) if is_short else None
    return None if span is None else (3, span)


def _starts_word(candidate: str, typed: str) -> bool:
    """Return whether a later word starts with *typed*, as with ``note`` in ``new-notes`` and ``newNotes``."""
    # Casefolding comes last, because it removes the capitals that words start with. It never shortens text,
    # so comparing as many characters as were typed is enough.
    return any(
        candidate[at : at + len(typed)].casefold().startswith(typed)
        for at, (before, char) in enumerate(pairwise(candidate), start=1)
        if char.isalnum() and (not before.isalnum() or (before.islower() and char.isupper()))
    )


def _span(text: str, typed: str) -> int | None:
    """
    Return the length of the shortest part of *text* that has the characters of *typed* in order, or None.
    """
    shortest = None
    start = end = 0
    while True:
        for char in typed:
            end = text.find(char, end) + 1
            if not end:
                return shortest
        # Searching backwards from the end finds the latest start of this part.
        start = end
        for char in reversed(typed):
            start = text.rfind(char, 0, start)
        shortest = min(end - start, shortest or len(text))
        start = end = start + 1


def _split_last(typed: str) -> tuple[str, str]:
    """Split the text of a list before its last item: ``"red, gr"`` into ``("red, ", "gr")``."""
    start = typed.rfind(_separator(typed)) + 1
    last = typed[start:].lstrip()
    before = typed[: len(typed) - len(last)]
    return (f"{before} " if before.endswith(",") and not last else before), last


def _separator(text: str) -> str:
    """Return the separator of a list's items: line breaks if the text has any, otherwise commas."""
    return "\n" if "\n" in text.lstrip() else ","


def _remaining_items(candidates: Iterable[str], before: str) -> list[str]:
    """Return the candidates for the next item of a list, without the items that are already chosen."""
    if before.startswith("["):
        return []  # JSON is pasted as a whole, not typed item by item
    separator = _separator(before)
    chosen = {item.strip().casefold() for item in before.split(separator)}
    return [
        text for text in candidates if {separator, "\n"}.isdisjoint(text) and text.casefold() not in chosen
    ]


def _candidate_texts(values: object, source_label: str, hint: str) -> tuple[str, ...]:
    """Return the values as users would enter them, without None."""
    if isinstance(values, Coroutine):
        values.close()  # otherwise Python warns that it was never awaited
    if isinstance(values, str | bytes | bytearray) or not isinstance(values, Iterable):
        msg = f"{source_label} {type(values).__name__}, not a list of values: {hint}"
        raise ResultError(msg)
    try:
        items = read_all(values, f"{source_label} ")
    except TooLongError as error:
        raise ResultError(str(error)) from None
    texts = (_text(value) for value in items if value is not None)
    # The order of a set differs between processes.
    return tuple(sorted(texts) if isinstance(values, set | frozenset) else texts)


def _text(value: object) -> str:
    if isinstance(value, Enum):
        value = member_text(value)
    return str.__str__(value) if isinstance(value, str) else str(value)


def _normalize_source(source: Iterable[Any] | Callable[..., Any]) -> tuple[str, ...] | Callable[..., Any]:
    if callable(source) and not isinstance(source, Iterable):  # an enumeration is callable and iterable
        return copy_mutable_defaults(source)
    return _candidate_texts(
        source, "complete= got", "write ['a', 'b'], or pass a function without calling it"
    )


def _describe_function(function: object) -> str:
    return f"complete function {getattr(function, '__name__', type(function).__name__)!r}"


def _count_parameters(function: Callable[..., Any]) -> int:
    with suppress(ValueError):  # some C functions have no signature
        parameters = inspect.signature(function, **FORWARD_REFERENCES).parameters.values()
        needed = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
        # A function with *args is usually a wrapper, which hides its required parameters.
        if len(needed) <= 2 and not any(p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL) for p in needed):
            return len(needed)
    takes = "must have the signature (), (typed) or (typed, arguments)"
    msg = (
        f"{_describe_function(function)} {takes}: give defaults to its other parameters, or wrap it in a "
        "lambda"
    )
    raise TypeError(msg)


class Completer(Struct, frozen=True):
    """
    A source of completions for the values of one argument.

    Args:
        source:
            The candidates: strings, enumeration members (completed as their text), or other values (converted
            with `str`). They are read once. Alternatively, a function (``def`` or ``async def``) that returns
            or yields such candidates, or returns None if there are none.

            The function can take no arguments; the typed text; or the typed text, and a mapping of the
            arguments chosen so far, as the client sent them. Its candidates are ranked like fixed ones, and
            only matching ones are returned.

        is_list:
            Whether the typed text is a list, of which the last item is completed. Each suggestion is then the
            text of the whole list.

    Raises:
        TypeError: If *source* is neither iterable nor a function, or if the function has other parameters.

        Exception: Any exception from iterating over the candidates.
    """

    source: Iterable[Any] | Callable[..., Any]
    is_list: bool = False
    is_async: bool = False
    _arity: int = 0

    def __post_init__(self) -> None:
        source = _normalize_source(self.source)
        structs.force_setattr(self, "source", source)
        if not isinstance(source, tuple):
            is_async = is_any_async(source, inspect.unwrap(source), type(source).__call__)
            structs.force_setattr(self, "is_async", is_async)
            structs.force_setattr(self, "_arity", _count_parameters(source))

    def complete(self, typed: str, arguments: Mapping[str, str] | None = None) -> Completion:
        """
        Return the suggestions for *typed*, given the *arguments* chosen so far.

        An asynchronous function is run on a new event loop.

        Raises:
            ResultError: If the function did not return candidates.

            RuntimeError: If the function is asynchronous and an event loop is running.

            Exception: Any exception from the function.
        """
        if not self.is_async:
            before, last = self._split(typed)
            return self._completion(self._call(last, arguments), before, last)
        name = _describe_function(self.source)
        message = f"{name} is asynchronous, and an event loop is already running: await .complete_async(...)"
        return run_async(self.complete_async, (typed, arguments), {}, message)

    async def complete_async(self, typed: str, arguments: Mapping[str, str] | None = None) -> Completion:
        """Return the suggestions as `complete` does, on the running event loop."""
        before, last = self._split(typed)
        result = self._call(last, arguments)
        if self.is_async and isinstance(result, Awaitable):
            result = await result
        if self.is_async and isinstance(result, AsyncIterable):
            try:
                result = await read_all_async(result, f"{_describe_function(self.source)} returned ")
            except TooLongError as error:
                raise ResultError(str(error)) from None
        return self._completion(result, before, last)

    def _split(self, typed: str) -> tuple[str, str]:
        """Split *typed* into the text before the part to complete, and that part."""
        return _split_last(typed) if self.is_list else ("", typed)

    def _call(self, typed: str, arguments: Mapping[str, str] | None) -> Any:
        source: Any = self.source
        return source if isinstance(source, tuple) else source(*(typed, arguments or {})[: self._arity])

    def _completion(self, result: object, before: str, typed: str) -> Completion:
        if isinstance(self.source, tuple):
            candidates = self.source
        else:
            source_label = f"{_describe_function(self.source)} returned"
            hint = "return ['a', 'b'], and use `async def` if it awaits"
            candidates = () if result is None else _candidate_texts(result, source_label, hint)
        if not self.is_list:
            return complete(candidates, typed)
        completion = complete(_remaining_items(candidates, before), typed)
        return structs.replace(completion, values=tuple(before + value for value in completion.values))
