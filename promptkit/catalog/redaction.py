"""
Redaction: text that is shown to people or kept, without the values of arguments that are secret.

A value is hidden as it was sent and as it was read, whole or in part: quoted, escaped, shortened.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from threading import Lock
from typing import Any, Final, Self

import attrs

from promptkit.catalog.arguments import Arguments
from promptkit.catalog.spellings import SHORT, STRETCH, Spellings
from promptkit.errors import standard_error

__all__ = ["HIDDEN", "SHORT", "STRETCH", "RecentSecrets", "Redactor", "hide"]

#: What stands in the place of a secret.
HIDDEN: Final = "<secret>"

#: How much is looked for in what is printed: requests, characters that one of them gives, and characters
#: of all their spellings.
_MOST_REQUESTS: Final = 256
_LONGEST: Final = 16 * 1024
_MOST_CHARACTERS: Final = 128 * 1024

#: What secrets may be, and most other text, too.
_COMMON: Final = frozenset({"True", "False", "None", "true", "false", "null"})


@attrs.frozen
class Redactor:
    """
    What is to be hidden, and what hides it. One without anything to hide leaves text as it is.

    Args:
        whole:
            Texts that are hidden where they stand whole.

        parts:
            Texts of which also no `STRETCH` characters in a row are left.

        spares_words:
            Whether what is shorter than `STRETCH` is left within other words and numbers: of
            "prod" in "production", say, nothing is hidden.
    """

    whole: tuple[str, ...] = attrs.field(default=(), repr=False)
    parts: tuple[str, ...] = attrs.field(default=(), repr=False)
    spares_words: bool = attrs.field(default=False, repr=False)

    @classmethod
    def of(cls, arguments: Arguments, given: Mapping[str, Any] | None) -> Self:
        """
        Return what hides the secrets of one request.

        Args:
            arguments:
                What may be given; those marked ``Arg(secret=True)`` are secret.

            given:
                What was, by name, as a client sends it. Of what was not, the default is hidden.
        """
        texts = Spellings()
        for argument in arguments.ordered:
            if argument.arg.secret:
                texts.add_argument(argument, (given or {}).get(argument.name))
        return cls.hiding(texts.whole, texts.parts)

    @classmethod
    def of_values(cls, arguments: Arguments, values: Mapping[str, Any], *, read: bool = False) -> Self:
        """
        Return what hides the secrets of one request in whatever is printed, for a while.

        It hides no text that much else holds, and no author's code reads any value.

        Args:
            arguments:
                What may be given; those marked ``Arg(secret=True)`` are secret.

            values:
                What was, by name, as it was sent.

            read:
                Whether it is what that was read as.
        """
        texts = Spellings(_LONGEST)
        for argument in arguments.ordered:
            if argument.arg.secret:
                texts.add_default(argument)
                add = texts.add_read if read else texts.add_sent
                add(argument, values.get(argument.name))
        found = ({text for text in each if _is_rare(text)} for each in (texts.whole, texts.parts))
        return cls.hiding(*found, spares_words=True)

    @classmethod
    def hiding(cls, whole: set[str], parts: set[str], *, spares_words: bool = False) -> Self:
        """
        Return what hides *whole* whole, and *parts* in part, too.
        """
        return cls(_longest_first(whole | parts), _longest_first(parts), spares_words)

    def redacted(self, text: str) -> str:
        """
        Return *text* with `HIDDEN` in the place of every secret.
        """
        return _redacted(text, (self,))

    @cached_property
    def windows(self) -> frozenset[str]:
        """
        Every `STRETCH` characters in a row that are not to be left.
        """
        return frozenset(window for part in self.parts for window in _windows(part) if window.strip())

    @cached_property
    def long(self) -> tuple[str, ...]:
        """
        What is hidden only where it stands whole.
        """
        parts = set(self.parts)
        return tuple(text for text in self.whole if len(text) >= STRETCH and text not in parts)

    @cached_property
    def short(self) -> tuple[tuple[str, re.Pattern[str]], ...]:
        """
        What is too short to have parts, and what finds it.
        """
        return tuple((text, self._pattern(text)) for text in self.whole if len(text) < STRETCH)

    def _pattern(self, text: str) -> re.Pattern[str]:
        """
        Return what finds a short *text* where it is to be hidden.
        """
        beside = r"\w" if len(text) < SHORT else ""
        if self.spares_words and text.isalpha():
            beside = r"[^\W\d_]"
        elif self.spares_words and text.isdecimal():
            beside = r"\d"
        pattern = re.escape(text)
        return re.compile(f"(?<!{beside}){pattern}(?!{beside})" if beside else pattern)


class CombinedRedactor:
    """
    What hides the secrets of several requests.

    Args:
        redactors:
            What hides those of one request each.
    """

    def __init__(self, redactors: tuple[Redactor, ...]) -> None:
        self.redactors = redactors

    def redacted(self, text: str) -> str:
        """
        Return *text* with `HIDDEN` in the place of every secret.
        """
        return _redacted(text, self.redactors)


class RecentSecrets:
    """
    The secrets of the latest requests: threads and objects that one has left behind may print them later.

    What is looked for is bounded; of what is too much the oldest is forgotten.
    """

    def __init__(self) -> None:
        self._sizes: OrderedDict[Redactor, int] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def add(self, redactor: Redactor) -> CombinedRedactor | None:
        """
        Return what hides the secrets of all of them; None if it is what it was before.
        """
        if not redactor.whole:
            return None
        with self._lock:
            if redactor in self._sizes:
                self._sizes.move_to_end(redactor)
                return None
            self._sizes[redactor] = size = sum(map(len, redactor.whole))
            self._size += size
            while len(self._sizes) > _MOST_REQUESTS or self._size > _MOST_CHARACTERS > size:
                self._size -= self._sizes.popitem(last=False)[1]
            return CombinedRedactor(tuple(self._sizes))


_RECENT: Final = RecentSecrets()


def hide(arguments: Arguments, values: Mapping[str, Any] | None, *, read: bool = False) -> None:
    """
    Have the secrets among *values* hidden in what is printed from now on, by whoever prints it.

    Args:
        arguments:
            What may be given.

        values:
            What was, by name, as it was sent.

        read:
            Whether it is what that was read as.
    """
    if (redactor := _RECENT.add(Redactor.of_values(arguments, values or {}, read=read))) is not None:
        standard_error.hide(redactor.redacted)


def _longest_first(texts: Iterable[str]) -> tuple[str, ...]:
    """
    Return *texts* that hold something, so that none is cut by a shorter one within it.
    """
    return tuple(sorted((text for text in texts if text.strip()), key=lambda text: (-len(text), text)))


def _is_rare(text: str) -> bool:
    """
    Return whether to hide *text* wherever it is printed: if it is short, too much else holds it.
    """
    return len(text.strip()) >= SHORT and text not in _COMMON


def _redacted(text: str, redactors: tuple[Redactor, ...]) -> str:
    """
    Return *text* with `HIDDEN` in the place of every secret: the longer ones first.
    """
    for redactor in redactors:
        for secret in redactor.long:
            text = text.replace(secret, HIDDEN)
    found = set(_windows(text))
    text = _without(text, set().union(*(found & redactor.windows for redactor in redactors)))
    for redactor in redactors:
        for secret, pattern in redactor.short:
            if secret in text:  # but not what was put there before
                text = HIDDEN.join(pattern.sub(HIDDEN, piece) for piece in text.split(HIDDEN))
    return text


def _without(text: str, hidden: set[str]) -> str:
    """
    Return *text* without the windows that are *hidden*.
    """
    if not hidden:
        return text
    kept, end = [], 0
    for start, window in enumerate(_windows(text)):
        if window in hidden:
            if start >= end:
                kept += [text[end:start], HIDDEN]
            end = start + STRETCH
    return "".join((*kept, text[end:]))


def _windows(text: str) -> Iterator[str]:
    """
    Yield every `STRETCH` characters that follow each other in *text*.
    """
    return (text[start : start + STRETCH] for start in range(len(text) - STRETCH + 1))
