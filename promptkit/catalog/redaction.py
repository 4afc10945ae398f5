"""
Redaction: hides the values of secret arguments in text that is shown or stored.

A value is hidden in the form in which it was sent, in its converted form, and as Python, JSON, URLs and
base64 spell it.
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
from promptkit.catalog.arguments import Arguments
from promptkit.language.annotations import NO_DEFAULT
from promptkit.types.kinds import unwrap_type
from promptkit.types.unstructuring import json_of

#: Replaces a secret.
HIDDEN: Final = "<secret>"

#: Any sequence of this many characters of a secret is hidden, wherever it is in the secret.
STRETCH: Final = 8

#: Minimum length of hidden strings. Otherwise, a secret "1" would hide every 1.
_SHORTEST: Final = 4

#: Limits for hiding secrets in printed text: the number of recent requests, the characters per value, and the
#: characters of all hidden strings together.
_MAX_REQUESTS: Final = 256
_MAX_VALUE_CHARACTERS: Final = 16 * 1024
_MAX_CHARACTERS: Final = 128 * 1024

#: Fields of a result, or of a provider's request, whose values are technical and contain no secrets.
_PROTOCOL_MEMBERS: Final = ("type", "role", "mimeType", "mime_type", "media_type", "format", "detail")


@attrs.frozen
class Redactor:
    """
    Hides certain strings.

    Args:
        texts:
            The strings. Any `STRETCH` consecutive characters of a string are hidden; shorter strings are
            hidden as a whole.
    """

    texts: frozenset[str] = attrs.field(default=frozenset(), repr=False)

    @classmethod
    def of(cls, arguments: Arguments, sent: Mapping[str, Any] | None) -> Self:
        """
        Return a redactor for the secrets of one request.

        Args:
            arguments:
                The arguments; those marked ``Arg(secret=True)`` are secret.

            sent:
                The values by name, as a client sends them. Defaults are hidden as well.
        """
        sent, read = sent or {}, {}
        for name in arguments.secret & sent.keys():
            with suppress(Exception):  # an author's own type can raise any exception
                read[name] = arguments.by_name[name].reader.read(sent[name])
        sent_texts = _secrets(arguments, sent, sys.maxsize, read=False)
        return cls(sent_texts | _secrets(arguments, read, sys.maxsize, read=True))

    @classmethod
    def of_values(cls, arguments: Arguments, values: Mapping[str, Any], *, read: bool = False) -> Self:
        """
        Return a redactor for the secrets of one request, to apply to everything that is printed.

        The number of hidden strings is bounded, and no author's code is called to convert values.

        Args:
            arguments:
                The arguments; those marked ``Arg(secret=True)`` are secret.

            values:
                The values by name.

            read:
                Whether *values* are already converted, instead of in the form that a client sends.
        """
        return cls(_secrets(arguments, values, _MAX_VALUE_CHARACTERS, read=read))

    def redacted(self, text: str) -> str:
        """Return *text* with every secret replaced by `HIDDEN`."""
        return _redact(text, (self,))

    def redacted_json(self, value: Any) -> Any:
        """Return the JSON of a result, or of a provider's request, with every secret replaced by `HIDDEN`."""
        if isinstance(value, dict):
            return {
                key: item if key in _PROTOCOL_MEMBERS and isinstance(item, str) else self.redacted_json(item)
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [self.redacted_json(item) for item in value]
        return self.redacted(value) if isinstance(value, str) else value

    @cached_property
    def hidden_windows(self) -> frozenset[str]:
        """All hidden sequences of `STRETCH` characters."""
        return frozenset(window for text in self.texts for window in _iterate_windows(text) if window.strip())

    @cached_property
    def short_secrets(self) -> tuple[str, ...]:
        """The secrets shorter than `STRETCH`, longest first."""
        return tuple(sorted((text for text in self.texts if len(text) < STRETCH), key=len, reverse=True))


def _secrets(arguments: Arguments, values: Mapping[str, Any], limit: int, *, read: bool) -> frozenset[str]:
    """Return the possible spellings of the secrets among *values*, and of their defaults."""
    texts: set[str] = set()
    for name in arguments.secret:
        argument = arguments.by_name[name]
        has_keys = not is_typeddict(unwrap_type(argument.annotation))  # field names are not secret
        default = None if argument.default is NO_DEFAULT else argument.default
        for value, is_read in ((values.get(name), read), (default, True), (argument.default_text, False)):
            parsed = value
            if argument.reader.is_json and not is_read and isinstance(value, str) and len(value) <= limit:
                with suppress(ValueError, RecursionError):
                    parsed = json.loads(value)
            texts |= _spellings(parsed, limit, keys=is_read and has_keys)
    return frozenset(text for text in texts if len(text.strip()) >= _SHORTEST)


def _spellings(value: Any, limit: int, *, keys: bool) -> set[str]:
    """Return the strings in a value as they are, and as Python, JSON, URLs and base64 spell them."""
    spellings: set[str] = set()
    for part in _parts(value, keys=keys):
        for text in (spelling[: max(limit, 0)] for spelling in _display_texts(part)):
            limit -= len(text) + 1
            data = text.encode(errors="replace")
            spellings |= {text, repr(text)[1:-1], ascii(text)[1:-1], quote(data, safe=""), quote_plus(data)}
            spellings |= {json.dumps(text, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False)}
            spellings |= {encode(data).decode().rstrip("=") for encode in (b64encode, urlsafe_b64encode)}
        if limit <= 0:
            break
    return spellings


def _parts(value: Any, *, keys: bool) -> Iterator[Any]:
    """Yield the innermost parts of a value, except for None, true and false."""
    if isinstance(value, Mapping):
        value = [*value.keys(), *value.values()] if keys else list(value.values())
    if isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _parts(item, keys=keys)
    elif value is not None and not isinstance(value, bool):
        yield value


def _display_texts(part: Any) -> list[str]:
    """Return the `str` of a value, the content of its `repr`, and the strings in its JSON."""
    if isinstance(part, str):
        return [part]
    try:
        texts = [str(part), repr(part).partition("(")[2][:-1]]
        if isinstance(part, bytes):
            texts = [part.decode(errors="replace"), repr(part)[2:-1]]
        return texts + [text for text in _parts(json_of(part), keys=False) if isinstance(text, str)]
    except Exception:  # noqa: BLE001 (an author's class can raise any exception here)
        return []


class RecentSecrets:
    """
    The secrets of recent requests, which threads that prompts started might print later.

    Their number and size are bounded; the oldest are dropped.
    """

    def __init__(self) -> None:
        self.redactors: tuple[Redactor, ...] = ()
        self._lock = Lock()

    def add(self, redactor: Redactor) -> None:
        """Add the secrets of the newest request."""
        with self._lock:
            redactors = [*(known for known in self.redactors if known != redactor), redactor][-_MAX_REQUESTS:]
            sizes = accumulate(sum(map(len, known.texts)) for known in reversed(redactors))
            count = sum(size <= _MAX_CHARACTERS for size in sizes)
            self.redactors = tuple(redactors[-max(count, 1) :])

    def redacted(self, text: str) -> str:
        """Return *text* with every secret replaced by `HIDDEN`."""
        return _redact(text, self.redactors)


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
            Whether *values* are already converted, instead of in the form that a client sends.
    """
    redactor = Redactor.of_values(arguments, values or {}, read=read)
    if redactor.texts:
        _RECENT.add(redactor)
        standard_error.redact_with(_RECENT.redacted)


def _redact(text: str, redactors: tuple[Redactor, ...]) -> str:
    windows = set(_iterate_windows(text))
    hidden = set[str]().union(*(windows & redactor.hidden_windows for redactor in redactors))
    parts, end = [], 0
    for start, window in enumerate(_iterate_windows(text)) if hidden else ():
        if window in hidden:
            if start >= end:
                parts += [text[end:start], HIDDEN]
            end = start + STRETCH
    text = "".join((*parts, text[end:]))
    for redactor in redactors:
        for secret in redactor.short_secrets:
            text = text.replace(secret, HIDDEN)
    return text


def _iterate_windows(text: str) -> Iterator[str]:
    """Return all sequences of `STRETCH` characters."""
    return (text[start : start + STRETCH] for start in range(len(text) - STRETCH + 1))
