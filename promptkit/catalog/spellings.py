"""Spellings: the texts that may stand for the value of a secret argument, in a log or in an error."""

import json
import sys
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from reprlib import repr as short_repr
from typing import Any, Final, is_typeddict
from urllib.parse import quote, quote_plus

import attrs

from promptkit.catalog.arguments import Argument
from promptkit.conversion.kinds import plain
from promptkit.conversion.unstructuring import json_of
from promptkit.language.arg import NO_DEFAULT

__all__ = ["SHORT", "STRETCH", "Spellings"]

#: How many characters of a secret in a row are never shown, wherever they stand in it.
STRETCH: Final = 8

#: What is shorter than this is hidden only where it stands as a word: else every "1" would be.
SHORT: Final = 4

#: How long a text may be of which base64 and hexadecimal digits are looked for, too.
_ENCODED: Final = 512


@attrs.define
class Spellings:
    """
    The texts that may stand for secrets.

    Args:
        room:
            How many characters of values are looked at.

        whole:
            Texts that are hidden where they stand whole.

        parts:
            Texts that are hidden in part, too.
    """

    room: int = sys.maxsize
    whole: set[str] = attrs.field(init=False, factory=set)
    parts: set[str] = attrs.field(init=False, factory=set)

    def add_argument(self, argument: Argument, sent: Any) -> None:
        """
        Add an argument of one request, as it was sent and as it is read.
        """
        self.add_default(argument)
        sent = argument.default_text if sent is None else sent
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
        if (text := argument.default_text) is not None:
            self.add_sent(argument, text)

    def add_sent(self, argument: Argument, value: Any) -> None:
        """
        Add an argument of one request as it was sent.
        """
        if argument.reader.is_json and isinstance(value, str) and len(value) <= self.room:
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
        """Add what was sent. Of JSON only the values: its braces and names are no secret."""
        if argument.reader.is_json and isinstance(sent, str):
            self.whole |= self._spellings(sent[: self.room])
        elif not (argument.reader.is_json and isinstance(sent, dict)):
            self.add(sent)

    def _add_leaves(self, value: Any) -> None:
        """Add the values in JSON, without the names of members: these may be names of fields."""
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
        if self.room <= 0:
            return
        if isinstance(value, str):
            value = value[: self.room]
            self.room -= len(value) + 1
            self._add_text(value)
        elif isinstance(value, bytes | bytearray):
            data = bytes(value[: self.room])
            self.room -= len(data) + 1
            self.parts |= {data.decode(errors="replace"), repr(data)[2:-1]} | _encoded(data)
        elif isinstance(value, Mapping):
            for item in (*value.keys(), *value.values()):
                self.add(item)
        elif isinstance(value, list | tuple | set | frozenset):
            for item in value:
                self.add(item)
        elif value is not None:
            self._add_object(value)

    def _add_text(self, value: str) -> None:
        """Add a text, also in lower and upper case, its lines, and its encodings."""
        self.parts |= self._spellings(value) | {value.lower(), value.upper()}
        self.parts |= {line for line in value.splitlines() if len(line.strip()) >= SHORT}
        self.parts |= _encoded(value.encode(errors="replace"))

    def _spellings(self, value: str) -> set[str]:
        """A text as it is, and as Python, JSON and URLs write it."""
        escaped = {json.dumps(value, ensure_ascii=escaped)[1:-1] for escaped in (True, False)}
        quoted = {quote(value, safe="", errors="replace"), quote_plus(value, errors="replace")}
        return {value, repr(value)[1:-1], ascii(value)[1:-1]} | escaped | quoted

    def _add_object(self, value: Any) -> None:
        """Add a number, a date, a member of an enumeration, or an object with fields."""
        with suppress(Exception):  # an author's class may be unable to show itself
            shown = {str(value), repr(value), short_repr(value)}
            self.whole |= {text[: self.room] for text in shown}
            self.room -= max(map(len, shown))
        if isinstance(value, Enum):
            self.whole.add(value.name)
        with suppress(Exception):  # nor need it be written as JSON
            written = json_of(value)
            if not isinstance(written, bool | int | float):
                # The names of fields are the author's, and no secrets.
                self.add(list(written.values()) if isinstance(written, dict) else written)


def _encoded(data: bytes) -> set[str]:
    """*data* in hex, and the part of it that any base64 with *data* inside must hold."""
    # Its base64 depends on how many bytes stand before it, as in the header of a request.
    if not STRETCH <= len(data) <= _ENCODED:
        return set()
    found = {data.hex()}
    for before in range(3):
        for encode in (b64encode, urlsafe_b64encode):
            # What the first and the last character say depends on what is beside.
            encoded = encode(bytes(before) + data).decode().rstrip("=")
            found.add(encoded[2 * before - (before == 2) : -1])
    return found
