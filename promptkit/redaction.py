"""
Redaction: text that is shown to people or kept, without the values of arguments that are secret.

A value is hidden as it was sent and as it was read, whole or in part: quoted, escaped, shortened.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from reprlib import repr as short_repr
from typing import Any, Final, Self
from urllib.parse import quote

import attrs

from promptkit.arguments import Argument, Arguments
from promptkit.signature import NO_DEFAULT
from promptkit.writing import json_of

__all__ = ["HIDDEN", "SHORT", "STRETCH", "Redactor"]

#: What stands in the place of a secret.
HIDDEN: Final = "<secret>"

#: How many characters of a secret in a row are never shown, wherever they stand in it.
STRETCH: Final = 8

#: What is shorter than this is hidden only where it stands as a word: else every "1" would be.
SHORT: Final = 4


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
        whole: set[str] = set()
        parts: set[str] = set()
        for argument in arguments.ordered:
            if argument.arg.secret:
                _collect_argument(argument, (given or {}).get(argument.name), whole, parts)
        return cls(_longest_first(whole | parts), _longest_first(parts))

    def redacted(self, text: str) -> str:
        """
        Return *text* with `HIDDEN` in the place of every secret.
        """
        for secret in self.whole:
            if len(secret) >= SHORT:
                text = text.replace(secret, HIDDEN)
            else:
                text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", HIDDEN, text)
        for secret in self.parts:
            text = _without_stretches(text, secret)
        return text


def _longest_first(texts: Iterable[str]) -> tuple[str, ...]:
    """
    Return *texts* that hold something, so that none is cut by a shorter one within it.
    """
    return tuple(sorted((text for text in texts if text.strip()), key=lambda text: (-len(text), text)))


def _without_stretches(text: str, secret: str) -> str:
    """
    Return *text* without any `STRETCH` characters that follow each other in *secret*, too.
    """
    few, many = sorted((text, secret), key=len)
    shared = {window for window in set(_windows(few)).intersection(_windows(many)) if window.strip()}
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


def _collect_argument(argument: Argument, sent: Any, whole: set[str], parts: set[str]) -> None:
    """
    Add the texts that may stand for an argument of one request, as it was sent and as it was read.
    """
    _collect(None if argument.default is NO_DEFAULT else argument.default, whole, parts)
    if sent is None:
        return
    try:
        _collect(argument.reader.read(sent), whole, parts)
    except Exception:  # noqa: BLE001 (it is refused with anything, if an author's own code reads it)
        _collect(sent, whole, parts)
    else:
        # JSON shares its braces and names with much that is no secret; what it holds is added already.
        is_json = argument.reader.is_json and isinstance(sent, str)
        _collect(sent, whole, whole if is_json else parts)


def _collect(value: Any, whole: set[str], parts: set[str]) -> None:
    """
    Add the texts that may stand for *value*, and for what is in it.
    """
    if isinstance(value, str):
        parts |= {value, repr(value)[1:-1], quote(value, safe="", errors="replace")}
        parts |= {json.dumps(value, ensure_ascii=escaped)[1:-1] for escaped in (True, False)}
    elif isinstance(value, bytes | bytearray):
        parts |= {bytes(value).decode(errors="replace"), repr(bytes(value))[2:-1]}
    elif isinstance(value, Mapping):
        for item in (*value.keys(), *value.values()):
            _collect(item, whole, parts)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            _collect(item, whole, parts)
    elif value is not None:
        _collect_object(value, whole, parts)


def _collect_object(value: Any, whole: set[str], parts: set[str]) -> None:
    """
    Add the texts that may stand for a number, a date, a member, or an object with fields.
    """
    with suppress(Exception):  # an author's class may be unable to show itself
        whole |= {str(value), repr(value), short_repr(value)}
    if isinstance(value, Enum):
        whole.add(value.name)
    with suppress(Exception):  # nor need it be written as JSON
        written = json_of(value)
        if not isinstance(written, bool | int | float):
            # The names of fields are the author's, and no secrets.
            _collect(list(written.values()) if isinstance(written, dict) else written, whole, parts)
