"""
Redaction: text that is shown to people or kept, without the values of arguments that are secret.

A value is hidden as it was sent and as it was read, whole or in part: quoted, escaped, shortened.
"""

import json
import re
import sys
from base64 import b64encode, urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from itertools import chain
from reprlib import repr as short_repr
from threading import Lock
from typing import Any, Final, Self, is_typeddict
from urllib.parse import quote, quote_plus

import attrs

from promptkit import standard_error
from promptkit.arguments import Argument, Arguments
from promptkit.readers import plain
from promptkit.signature import NO_DEFAULT
from promptkit.writing import json_of

__all__ = ["HIDDEN", "SHORT", "STRETCH", "RecentSecrets", "Redactor", "hide"]

#: What stands in the place of a secret.
HIDDEN: Final = "<secret>"

#: How many characters of a secret in a row are never shown, wherever they stand in it.
STRETCH: Final = 8

#: What is shorter than this is hidden only where it stands as a word: else every "1" would be.
SHORT: Final = 4

#: How long a text may be of which base64 is looked for, too.
_ENCODED: Final = 512

#: Of what was printed, how much is looked for: requests, texts of one of them, characters of one text and
#: of all.
_MOST_REQUESTS: Final = 256
_MOST_TEXTS: Final = 1024
_LONGEST: Final = 16 * 1024
_MOST_CHARACTERS: Final = 256 * 1024

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
    """

    whole: tuple[str, ...] = attrs.field(default=(), repr=False)
    parts: tuple[str, ...] = attrs.field(default=(), repr=False)

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
        texts = _Texts()
        for argument in arguments.ordered:
            if argument.arg.secret:
                texts.add_argument(argument, (given or {}).get(argument.name))
        return cls.joined((texts.whole, texts.parts))

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
        texts = _Texts(_LONGEST, _MOST_TEXTS)
        for argument in arguments.ordered:
            if argument.arg.secret:
                texts.add_default(argument)
                add = texts.add_read if read else texts.add_sent
                add(argument, values.get(argument.name))
        found = (texts.whole, texts.parts)
        return cls.joined(tuple({text for text in each if _is_rare(text)} for each in found))

    @classmethod
    def joined(cls, *texts: Iterable[Iterable[str]]) -> Self:
        """
        Return what hides all of *texts*, pairs of those that are hidden whole and those hidden in part.
        """
        whole, parts = (set(chain.from_iterable(each)) for each in zip(*texts, strict=True))
        return cls(_longest_first(whole | parts), _longest_first(parts))

    @property
    def size(self) -> int:
        """
        How many characters are looked for.
        """
        return sum(map(len, self.whole))

    def redacted(self, text: str) -> str:
        """
        Return *text* with `HIDDEN` in the place of every secret.
        """
        for secret in self.whole:
            if len(secret) >= SHORT:
                text = text.replace(secret, HIDDEN)
            else:
                text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", HIDDEN, text)
        return _without_stretches(text, self.parts) if self.parts else text


class RecentSecrets:
    """
    The secrets of the latest requests: threads and objects that one has left behind may print them later.

    What is looked for is bounded; of what is too much the oldest is forgotten.
    """

    def __init__(self) -> None:
        self._redactors: OrderedDict[Redactor, None] = OrderedDict()
        self._lock = Lock()

    def add(self, redactor: Redactor) -> Redactor | None:
        """
        Return what hides the secrets of all of them; None if it is what it was before.
        """
        if not redactor.whole:
            return None
        with self._lock:
            known = redactor in self._redactors
            self._redactors[redactor] = None
            self._redactors.move_to_end(redactor)
            if known:
                return None
            size = sum(each.size for each in self._redactors)
            while len(self._redactors) > _MOST_REQUESTS or (
                size > _MOST_CHARACTERS and len(self._redactors) > 1
            ):
                size -= self._redactors.popitem(last=False)[0].size
            return Redactor.joined(*((each.whole, each.parts) for each in self._redactors))


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


def _without_stretches(text: str, secrets: tuple[str, ...]) -> str:
    """
    Return *text* without any `STRETCH` characters that follow each other in one of *secrets*, too.
    """
    few, many = sorted(((text,), secrets), key=lambda texts: sum(map(len, texts)))
    found = set(chain.from_iterable(map(_windows, few)))
    shared = {w for w in found.intersection(chain.from_iterable(map(_windows, many))) if w.strip()}
    if not shared:
        return text
    kept, end = [], 0
    for start, window in enumerate(_windows(text)):
        if window in shared:
            if start > end or not start:
                kept += [text[end:start], HIDDEN]
            end = start + STRETCH
    return "".join((*kept, text[end:]))


def _windows(text: str) -> Iterator[str]:
    """
    Yield every `STRETCH` characters that follow each other in *text*.
    """
    return (text[start : start + STRETCH] for start in range(len(text) - STRETCH + 1))


@attrs.define
class _Texts:
    """
    The texts that may stand for secrets.

    Args:
        longest:
            How many characters of a text count.

        most:
            How many texts there may be, about.

        whole:
            Texts that are hidden where they stand whole.

        parts:
            Texts that are hidden in part, too.
    """

    longest: int = sys.maxsize
    most: int = sys.maxsize
    whole: set[str] = attrs.field(init=False, factory=set)
    parts: set[str] = attrs.field(init=False, factory=set)

    def add_argument(self, argument: Argument, sent: Any) -> None:
        """
        Add an argument of one request, as it was sent and as it is read.
        """
        self.add_default(argument)
        if sent is None:
            return
        try:
            self.add(argument.reader.read(sent))
        except Exception:  # noqa: BLE001 (it is refused with anything, if an author's own code reads it)
            self.add(sent)
        else:
            self._add_text_of(argument, sent)

    def add_default(self, argument: Argument) -> None:
        """
        Add what counts if an argument is not given.
        """
        self.add(None if argument.default is NO_DEFAULT else argument.default)

    def add_sent(self, argument: Argument, value: Any) -> None:
        """
        Add an argument of one request as it was sent.
        """
        if argument.reader.is_json and isinstance(value, str):
            with suppress(ValueError, RecursionError):
                self._add_leaves(json.loads(value))
        elif isinstance(value, dict):
            self._add_leaves(value)
        self._add_text_of(argument, value)

    def add_read(self, argument: Argument, value: Any) -> None:
        """
        Add an argument of one request as it was read.
        """
        if is_typeddict(plain(argument.annotation)):
            self._add_leaves(value)
        else:
            self.add(value)

    def _add_text_of(self, argument: Argument, sent: Any) -> None:
        """
        Add what was sent. JSON shares its braces and names with much that is no secret.
        """
        if argument.reader.is_json and isinstance(sent, str):
            self.whole |= self._spellings(sent[: self.longest])
        elif not (argument.reader.is_json and isinstance(sent, dict)):
            self.add(sent)

    def _add_leaves(self, value: Any) -> None:
        """
        Add what JSON holds, without the names of its members: they may be those of fields.
        """
        for item in value.values() if isinstance(value, dict) else [value]:
            if isinstance(item, dict):
                self._add_leaves(item)
            elif isinstance(item, list):
                for each in item:
                    self._add_leaves(each)
            else:
                self.add(item)

    def add(self, value: Any) -> None:
        """
        Add a value, and what is in it.
        """
        if len(self.parts) + len(self.whole) > self.most:
            return
        if isinstance(value, str):
            self._add_text(value[: self.longest])
        elif isinstance(value, bytes | bytearray):
            data = bytes(value[: self.longest])
            self.parts |= {data.decode(errors="replace"), repr(data)[2:-1]} | _base64(data)
        elif isinstance(value, Mapping):
            for item in (*value.keys(), *value.values()):
                self.add(item)
        elif isinstance(value, list | tuple | set | frozenset):
            for item in value:
                self.add(item)
        elif value is not None:
            self._add_object(value)

    def _add_text(self, value: str) -> None:
        """
        Add a text, each of its lines, and what it is in base64.
        """
        self.parts |= self._spellings(value)
        self.parts |= {line for line in value.splitlines() if len(line.strip()) >= SHORT}
        self.parts |= _base64(value.encode(errors="replace"))

    def _spellings(self, value: str) -> set[str]:
        """
        Return a text as it is, and as Python, JSON and URLs write it.
        """
        escaped = {json.dumps(value, ensure_ascii=escaped)[1:-1] for escaped in (True, False)}
        quoted = {quote(value, safe="", errors="replace"), quote_plus(value, errors="replace")}
        return {value, repr(value)[1:-1], ascii(value)[1:-1]} | escaped | quoted

    def _add_object(self, value: Any) -> None:
        """
        Add a number, a date, a member, or an object with fields.
        """
        with suppress(Exception):  # an author's class may be unable to show itself
            shown = {str(value), repr(value), short_repr(value)}
            self.whole |= {text[: self.longest] for text in shown}
        if isinstance(value, Enum):
            self.whole.add(value.name)
        with suppress(Exception):  # nor need it be written as JSON
            written = json_of(value)
            if not isinstance(written, bool | int | float):
                # The names of fields are the author's, and no secrets.
                self.add(list(written.values()) if isinstance(written, dict) else written)


def _base64(data: bytes) -> set[str]:
    """
    Return what of *data* is the same in any base64 that holds it, as the header of a request may.

    Which that is depends on how many bytes stand before it.
    """
    if not STRETCH <= len(data) <= _ENCODED:
        return set()
    found = set()
    for before in range(3):
        for encode in (b64encode, urlsafe_b64encode):
            # What the first and the last character say depends on what is beside.
            encoded = encode(bytes(before) + data).decode().rstrip("=")
            found.add(encoded[2 * before - (before == 2) : -1])
    return found
