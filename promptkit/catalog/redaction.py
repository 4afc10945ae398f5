"""
Redaction: hides the values of secret arguments in text that is shown or stored.

A value is hidden as it was sent and as it was read, and as Python, JSON, URLs and base64 write it.
"""

import json
import sys
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from itertools import accumulate
from threading import Lock
from typing import Any, Final, Self, is_typeddict
from urllib.parse import quote, quote_plus

import attrs

from promptkit import standard_error
from promptkit.catalog.arguments import Argument, Arguments
from promptkit.language.annotations import NO_DEFAULT
from promptkit.types.kinds import plain
from promptkit.types.unstructuring import json_of

#: Replaces a secret.
HIDDEN: Final = "<secret>"

#: How many characters of a secret in a row are never shown, wherever they stand in it.
STRETCH: Final = 8

#: Length of the shortest text that is hidden: otherwise every "1" in a text would be.
_SHORTEST: Final = 4

#: Bounds on the secrets that are hidden in what is printed: the latest requests, the characters of one value,
#: and the characters of all texts together.
_MAX_REQUESTS: Final = 256
_MAX_VALUE_CHARACTERS: Final = 16 * 1024
_MAX_CHARACTERS: Final = 128 * 1024

#: Members of a result whose values come from the protocol, or from a vendor's request, and hold no secrets.
_PROTOCOL_MEMBERS: Final = ("type", "role", "mimeType", "mime_type", "media_type", "format", "detail")


@attrs.frozen
class Redactor:
    """
    Hides certain texts.

    Args:
        texts:
            Texts of which any `STRETCH` characters in a row are hidden, and shorter ones whole.
    """

    texts: frozenset[str] = attrs.field(default=frozenset(), repr=False)

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
        given, read = given or {}, {}
        for name in arguments.secret & given.keys():
            with suppress(Exception):  # an author's own type may refuse it in any way
                read[name] = arguments.by_name[name].reader.read(given[name])
        sent = _secrets(arguments, given, sys.maxsize, read=False)
        return cls(sent | _secrets(arguments, read, sys.maxsize, read=True))

    @classmethod
    def of_values(cls, arguments: Arguments, values: Mapping[str, Any], *, read: bool = False) -> Self:
        """
        A redactor for the secrets of one request, to be used on everything that is printed.

        The number of texts is bounded, and no author's code is called to read values.

        Args:
            arguments:
                The arguments; those marked ``Arg(secret=True)`` are secret.

            values:
                The values by name.

            read:
                Whether *values* have been read already, or are as a client sent them.
        """
        return cls(_secrets(arguments, values, _MAX_VALUE_CHARACTERS, read=read))

    def redacted(self, text: str) -> str:
        """*text* with `HIDDEN` in place of every secret."""
        return _redacted(text, (self,))

    def redacted_json(self, value: Any) -> Any:
        """The JSON of a result, or of a vendor's request, with `HIDDEN` in place of every secret."""
        if isinstance(value, dict):
            return {
                key: item if key in _PROTOCOL_MEMBERS and isinstance(item, str) else self.redacted_json(item)
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [self.redacted_json(item) for item in value]
        return self.redacted(value) if isinstance(value, str) else value

    @cached_property
    def windows(self) -> frozenset[str]:
        """All `STRETCH` characters in a row that are hidden."""
        return frozenset(window for text in self.texts for window in _windows(text) if window.strip())

    @cached_property
    def short(self) -> tuple[str, ...]:
        """The texts that are too short to have parts, longest first."""
        return tuple(sorted((text for text in self.texts if len(text) < STRETCH), key=len, reverse=True))


def _secrets(arguments: Arguments, values: Mapping[str, Any], most: int, *, read: bool) -> frozenset[str]:
    """The texts that may stand for the secrets among *values*, and for their defaults."""
    found: set[str] = set()
    for name in arguments.secret:
        argument = arguments.by_name[name]
        default = None if argument.default is NO_DEFAULT else argument.default
        found |= _texts(argument, default, most, read=True)
        found |= _texts(argument, argument.default_text, most, read=False)
        found |= _texts(argument, values.get(name), most, read=read)
    return frozenset(text for text in found if len(text.strip()) >= _SHORTEST)


def _texts(argument: Argument, value: Any, most: int, *, read: bool) -> set[str]:
    """The texts that may stand for a value, or for a part of it. Names of fields are no secrets."""
    if argument.reader.is_json and not read and isinstance(value, str) and len(value) <= most:
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    found: set[str] = set()
    for part in _parts(value, keys=read and not is_typeddict(plain(argument.annotation))):
        for text in _shown(part):
            found |= _forms(text[: max(most, 0)])
            most -= len(text) + 1
        if most <= 0:
            break
    return found


def _parts(value: Any, *, keys: bool) -> Iterator[Any]:
    """Yield the parts of a value that have no parts themselves, except for None, true and false."""
    if isinstance(value, Mapping):
        value = [*value.keys(), *value.values()] if keys else list(value.values())
    if isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _parts(item, keys=keys)
    elif value is not None and not isinstance(value, bool):
        yield value


def _shown(part: Any) -> list[str]:
    """What `str` shows of a value, what stands within its `repr`, and the texts in its JSON."""
    if isinstance(part, str):
        return [part]
    try:
        shown = [str(part), repr(part).partition("(")[2][:-1]]
        if isinstance(part, bytes):
            shown = [part.decode(errors="replace"), repr(part)[2:-1]]
        return shown + [text for text in _parts(json_of(part), keys=False) if isinstance(text, str)]
    except Exception:  # noqa: BLE001 (an author's class may be unable to show itself, or to be written)
        return []


def _forms(text: str) -> set[str]:
    """A text as it is, and as Python, JSON, URLs and base64 write it."""
    data = text.encode(errors="replace")
    escaped = {json.dumps(text, ensure_ascii=each)[1:-1] for each in (True, False)}
    encoded = {encode(data).decode().rstrip("=") for encode in (b64encode, urlsafe_b64encode)}
    quoted = (quote(data, safe=""), quote_plus(data))
    return {text, repr(text)[1:-1], ascii(text)[1:-1], *quoted, *escaped, *encoded}


class RecentSecrets:
    """
    The secrets of the latest requests, which threads that prompts started may print later.

    Their number and size are bounded; the oldest are forgotten.
    """

    def __init__(self) -> None:
        self.redactors: tuple[Redactor, ...] = ()
        self._lock = Lock()

    def add(self, redactor: Redactor) -> None:
        """Add the secrets of a request, as the newest."""
        with self._lock:
            known = [*(one for one in self.redactors if one != redactor), redactor][-_MAX_REQUESTS:]
            sizes = accumulate(sum(map(len, one.texts)) for one in reversed(known))
            kept = sum(size <= _MAX_CHARACTERS for size in sizes)
            self.redactors = tuple(known[-max(kept, 1) :])

    def redacted(self, text: str) -> str:
        """*text* with `HIDDEN` in place of every secret."""
        return _redacted(text, self.redactors)


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
    redactor = Redactor.of_values(arguments, values or {}, read=read)
    if redactor.texts:
        _RECENT.add(redactor)
        standard_error.redact_with(_RECENT.redacted)


def _redacted(text: str, redactors: tuple[Redactor, ...]) -> str:
    found = set(_windows(text))
    hidden = set[str]().union(*(found & redactor.windows for redactor in redactors))
    kept, end = [], 0
    for start, window in enumerate(_windows(text)) if hidden else ():
        if window in hidden:
            if start >= end:
                kept += [text[end:start], HIDDEN]
            end = start + STRETCH
    text = "".join((*kept, text[end:]))
    for redactor in redactors:
        for secret in redactor.short:
            text = text.replace(secret, HIDDEN)
    return text


def _windows(text: str) -> Iterator[str]:
    """All `STRETCH` characters in a row."""
    return (text[start : start + STRETCH] for start in range(len(text) - STRETCH + 1))
