"""
Redaction: hides the values of secret arguments in text that is shown or stored.

A value is hidden as it was sent and as it was read, whole and in parts, also quoted, escaped or shortened.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from threading import Lock
from typing import Any, Final, Self

import attrs

from promptkit import standard_error
from promptkit.catalog.arguments import Arguments
from promptkit.catalog.spellings import SHORT, STRETCH, Spellings

__all__ = ["HIDDEN", "SHORT", "STRETCH", "RecentSecrets", "Redactor", "hide"]

#: Replaces a secret.
HIDDEN: Final = "<secret>"

#: Bounds on the secrets that are hidden in what is printed: the latest requests, the characters of values
#: of one request, and the characters of all spellings together.
_MAX_REQUESTS: Final = 256
_MAX_REQUEST_CHARACTERS: Final = 16 * 1024
_MAX_CHARACTERS: Final = 128 * 1024

#: Values that are too common in other text to be hidden everywhere.
_COMMON: Final = frozenset({"True", "False", "None", "true", "false", "null"})

#: Members of a result whose values come from the protocol, or from a vendor's, and hold no secrets.
_PROTOCOL_MEMBERS: Final = ("type", "role", "mimeType", "mime_type", "media_type", "format", "detail")


@attrs.frozen
class Redactor:
    """
    Hides certain texts.

    Args:
        whole:
            Texts that are hidden where they occur whole.

        parts:
            Texts of which any `STRETCH` characters in a row are hidden, too.

        spares_words:
            Whether texts shorter than `STRETCH` are left within longer words and numbers, such as
            "prod" in "production".
    """

    whole: tuple[str, ...] = attrs.field(default=(), repr=False)
    parts: tuple[str, ...] = attrs.field(default=(), repr=False)
    spares_words: bool = attrs.field(default=False, repr=False)

    @classmethod
    def of(cls, arguments: Arguments, given: Mapping[str, Any] | None) -> Self:
        """
        A redactor for the secrets of one request.

        Args:
            arguments:
                The arguments; those marked ``Arg(secret=True)`` are secret.

            given:
                The values by name, as a client sends them. Defaults are hidden, too.
        """
        texts = Spellings()
        for argument in arguments.ordered:
            if argument.arg.secret:
                texts.add_argument(argument, (given or {}).get(argument.name))
        return cls.hiding(texts.whole, texts.parts)

    @classmethod
    def of_values(cls, arguments: Arguments, values: Mapping[str, Any], *, read: bool = False) -> Self:
        """
        A redactor for the secrets of one request, to be used on everything that is printed.

        Texts that are common elsewhere are not hidden. No author's code is called to read values.

        Args:
            arguments:
                The arguments; those marked ``Arg(secret=True)`` are secret.

            values:
                The values by name.

            read:
                Whether *values* have been read already, or are as a client sent them.
        """
        texts = Spellings(_MAX_REQUEST_CHARACTERS)
        for argument in arguments.ordered:
            if argument.arg.secret:
                texts.add_default(argument)
                add = texts.add_read if read else texts.add_sent
                add(argument, values.get(argument.name))
        found = ({text for text in each if _is_rare(text)} for each in (texts.whole, texts.parts))
        return cls.hiding(*found, spares_words=True)

    @classmethod
    def hiding(cls, whole: set[str], parts: set[str], *, spares_words: bool = False) -> Self:
        """A redactor for *whole*, and for *parts* whole and in parts."""
        return cls(_longest_first(whole | parts), _longest_first(parts), spares_words)

    def redacted(self, text: str) -> str:
        """*text* with `HIDDEN` in place of every secret."""
        return _redacted(text, (self,))

    def redacted_json(self, value: Any) -> Any:
        """The JSON of a result, or of a vendor's request, with `HIDDEN` in place of every secret."""
        if isinstance(value, dict):
            return {
                key: item if key in _PROTOCOL_MEMBERS else self.redacted_json(item)
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [self.redacted_json(item) for item in value]
        return self.redacted(value) if isinstance(value, str) else value

    @cached_property
    def windows(self) -> frozenset[str]:
        """All `STRETCH` characters in a row that are hidden."""
        return frozenset(window for part in self.parts for window in _windows(part) if window.strip())

    @cached_property
    def long(self) -> tuple[str, ...]:
        """Long texts that are hidden only where they occur whole."""
        parts = set(self.parts)
        return tuple(text for text in self.whole if len(text) >= STRETCH and text not in parts)

    @cached_property
    def short(self) -> tuple[tuple[str, re.Pattern[str]], ...]:
        """Texts that are too short to have parts, each with the pattern that finds it."""
        return tuple((text, self._pattern(text)) for text in self.whole if len(text) < STRETCH)

    def _pattern(self, text: str) -> re.Pattern[str]:
        beside = r"\w" if len(text) < SHORT else ""
        if self.spares_words and text.isalpha():
            beside = r"[^\W\d_]"
        elif self.spares_words and text.isdecimal():
            beside = r"\d"
        pattern = re.escape(text)
        return re.compile(f"(?<!{beside}){pattern}(?!{beside})" if beside else pattern)


class CombinedRedactor:
    """Hides the secrets of several requests."""

    def __init__(self, redactors: tuple[Redactor, ...]) -> None:
        self.redactors = redactors

    def redacted(self, text: str) -> str:
        """*text* with `HIDDEN` in place of every secret."""
        return _redacted(text, self.redactors)


class RecentSecrets:
    """
    The secrets of the latest requests, which threads that prompts started may print later.

    Their number and size are bounded; the oldest are forgotten.
    """

    def __init__(self) -> None:
        self._sizes: OrderedDict[Redactor, int] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def add(self, redactor: Redactor) -> CombinedRedactor | None:
        """Add the secrets of a request. Returns a redactor for all, or None if there are no new ones."""
        if not redactor.whole:
            return None
        with self._lock:
            if redactor in self._sizes:
                self._sizes.move_to_end(redactor)
                return None
            self._sizes[redactor] = size = sum(map(len, redactor.whole))
            self._size += size
            while len(self._sizes) > _MAX_REQUESTS or self._size > _MAX_CHARACTERS > size:
                self._size -= self._sizes.popitem(last=False)[1]
            return CombinedRedactor(tuple(self._sizes))


_RECENT: Final = RecentSecrets()


def hide(arguments: Arguments, values: Mapping[str, Any] | None, *, read: bool = False) -> None:
    """
    Hide the secrets among *values* in everything that is printed from now on.

    Args:
        arguments:
            The arguments; those marked ``Arg(secret=True)`` are secret.

        values:
            The values by name.

        read:
            Whether *values* have been read already, or are as a client sent them.
    """
    if (redactor := _RECENT.add(Redactor.of_values(arguments, values or {}, read=read))) is not None:
        standard_error.redact_with(redactor.redacted)


def _longest_first(texts: Iterable[str]) -> tuple[str, ...]:
    # A shorter text may be part of a longer one, which has to be replaced first.
    return tuple(sorted((text for text in texts if text.strip()), key=lambda text: (-len(text), text)))


def _is_rare(text: str) -> bool:
    return len(text.strip()) >= SHORT and text not in _COMMON


def _redacted(text: str, redactors: tuple[Redactor, ...]) -> str:
    for redactor in redactors:
        for secret in redactor.long:
            text = text.replace(secret, HIDDEN)
    found = set(_windows(text))
    text = _without(text, set().union(*(found & redactor.windows for redactor in redactors)))
    for redactor in redactors:
        for secret, pattern in redactor.short:
            if secret in text:  # split, so that HIDDEN itself is kept
                text = HIDDEN.join(pattern.sub(HIDDEN, piece) for piece in text.split(HIDDEN))
    return text


def _without(text: str, hidden: set[str]) -> str:
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
    """All `STRETCH` characters in a row."""
    return (text[start : start + STRETCH] for start in range(len(text) - STRETCH + 1))
