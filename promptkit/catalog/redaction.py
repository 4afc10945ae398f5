"""
Redaction: hides the values of secret arguments in text that is shown or stored.

A value is hidden in the form in which it was sent, in its converted form, and in the forms that it has in
Python, JSON, URLs and base64.
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

#: The text that replaces a secret.
HIDDEN: Final = "<secret>"

#: Any part of a secret that has this many characters is hidden, wherever it is in the secret.
WINDOW_LENGTH: Final = 8

#: Minimum length of a string to hide. Otherwise, the secret "1" would hide every 1.
_MIN_LENGTH: Final = 4

#: Limits for hiding secrets in printed text: the number of recent requests, the characters per value, and the
#: total number of characters in all hidden strings.
_MAX_REQUESTS: Final = 256
_MAX_VALUE_CHARACTERS: Final = 16 * 1024
_MAX_CHARACTERS: Final = 128 * 1024

#: Fields of a result, or of a provider's request, whose values are technical and contain no secrets.
_PROTOCOL_MEMBERS: Final = ("type", "role", "mimeType", "mime_type", "media_type", "format", "detail")


@attrs.frozen
class Redactor:
    """
    Replaces secret strings in text.

    Args:
        texts:
            The strings. Any `WINDOW_LENGTH` consecutive characters of a string are hidden; shorter strings
            are hidden only as a whole.
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
        sent_texts = _secrets(arguments, sent, sys.maxsize, are_converted=False)
        return cls(sent_texts | _secrets(arguments, read, sys.maxsize, are_converted=True))

    @classmethod
    def of_values(
        cls, arguments: Arguments, values: Mapping[str, Any], *, are_converted: bool = False
    ) -> Self:
        """
        Return a redactor for the secrets of one request, for use on everything that is printed.

        The number of hidden strings is bounded, and no author's code is called to convert values.

        Args:
            arguments:
                The arguments; those marked ``Arg(secret=True)`` are secret.

            values:
                The values by name.

            are_converted:
                Whether *values* are already converted. Otherwise, they have the form that a client sends.
        """
        return cls(_secrets(arguments, values, _MAX_VALUE_CHARACTERS, are_converted=are_converted))

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
        """All hidden sequences of `WINDOW_LENGTH` characters."""
        return frozenset(window for text in self.texts for window in _iterate_windows(text) if window.strip())

    @cached_property
    def short_secrets(self) -> tuple[str, ...]:
        """The secrets shorter than `WINDOW_LENGTH`, longest first."""
        return tuple(
            sorted((text for text in self.texts if len(text) < WINDOW_LENGTH), key=len, reverse=True)
        )


def _secrets(
    arguments: Arguments, values: Mapping[str, Any], limit: int, *, are_converted: bool
) -> frozenset[str]:
    """Return all forms of the secret values among *values*, and of secret arguments' defaults."""
    texts: set[str] = set()
    for name in arguments.secret:
        argument = arguments.by_name[name]
        has_keys = not is_typeddict(unwrap_type(argument.annotation))  # field names are not secret
        default = None if argument.default is NO_DEFAULT else argument.default
        for value, is_converted in (
            (values.get(name), are_converted),
            (default, True),
            (argument.default_text, False),
        ):
            parsed = value
            if (
                argument.reader.is_json
                and not is_converted
                and isinstance(value, str)
                and len(value) <= limit
            ):
                with suppress(ValueError, RecursionError):
                    parsed = json.loads(value)
            texts |= _spellings(parsed, limit, keys=is_converted and has_keys)
    return frozenset(text for text in texts if len(text.strip()) >= _MIN_LENGTH)


def _spellings(value: Any, limit: int, *, keys: bool) -> set[str]:
    """Return the strings in a value, unchanged and as they are written in Python, JSON, URLs and base64."""
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
    """Yield the innermost parts of a value, except for None, True and False."""
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
    The secrets of recent requests, which threads started by prompts might still print later.

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


def hide(arguments: Arguments, values: Mapping[str, Any] | None, *, are_converted: bool = False) -> None:
    """
    Hide the secrets among *values* in everything that is printed from now on.

    Args:
        arguments:
            The arguments; those marked ``Arg(secret=True)`` are secret.

        values:
            The values by name.

        are_converted:
            Whether *values* are already converted. Otherwise, they have the form that a client sends.
    """
    redactor = Redactor.of_values(arguments, values or {}, are_converted=are_converted)
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
            end = start + WINDOW_LENGTH
    text = "".join((*parts, text[end:]))
    for redactor in redactors:
        for secret in redactor.short_secrets:
            text = text.replace(secret, HIDDEN)
    return text


def _iterate_windows(text: str) -> Iterator[str]:
    """Return all sequences of `WINDOW_LENGTH` consecutive characters in *text*."""
    return (text[start : start + WINDOW_LENGTH] for start in range(len(text) - WINDOW_LENGTH + 1))
