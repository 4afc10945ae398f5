"""Reads the keys of a key ring from the text of a file or of an environment variable."""

import os
import re
from binascii import a2b_base64
from collections.abc import Mapping
from typing import Final

from promptkit.protocol.key_ring import MIN_KEY_BYTES
from promptkit.transports.secret_files import InvalidSecretFile, read_secret_file

__all__ = ["MAKE_A_KEY", "VARIABLE", "InvalidKeys", "read_key_file", "read_keys", "state_keys"]

#: The environment variable that holds keys.
VARIABLE: Final = "PROMPTKIT_STATE_KEYS"

#: A command that prints a new key.
MAKE_A_KEY: Final = f'python -c "import secrets; print(secrets.token_urlsafe({MIN_KEY_BYTES}))"'

_HEX: Final = re.compile(r"[0-9A-Fa-f]+")

#: The alphabet of base64, or that which is safe in URLs.
_BASE64: Final = re.compile(r"([A-Za-z0-9+/_-]+)={0,2}")


class InvalidKeys(ValueError):
    """
    Keys that cannot be read. The message says where and why, and never shows one.
    """


def read_keys(text: str) -> tuple[bytes, ...]:
    """
    Return the keys of a text, in its order.

    Args:
        text:
            One key a line, or several with commas between them, in base64 or in hexadecimal digits. What
            follows a ``#`` is a comment.

    Raises:
        InvalidKeys: If there is none, if one cannot be read, or if one has less than 32 bytes.
    """
    keys = [
        _read_key(key, place)
        for number, line in enumerate(text.split("\n"), start=1)
        for place, key in _placed(line, f"line {number}")
    ]
    if not keys:
        msg = f"there is no key; a command that prints one: {MAKE_A_KEY}"
        raise InvalidKeys(msg)
    return tuple(keys)


def _placed(line: str, place: str) -> list[tuple[str, str]]:
    """The keys of a line, as text, each with its place."""
    words = [word.strip() for word in line.partition("#")[0].split(",") if word.strip()]
    if len(words) < 2:
        return [(place, word) for word in words]
    return [(f"{place}, key {nth}", word) for nth, word in enumerate(words, start=1)]


def _read_key(text: str, place: str) -> bytes:
    key = _decoded(text)
    if key is None:
        msg = f"{place}: this is neither base64 nor hexadecimal; a command that prints a key: {MAKE_A_KEY}"
        raise InvalidKeys(msg)
    if len(key) < MIN_KEY_BYTES:
        msg = (
            f"{place}: a key of {len(key)} bytes can be guessed; "
            f"a command that prints one of {MIN_KEY_BYTES}: {MAKE_A_KEY}"
        )
        raise InvalidKeys(msg)
    return key


def _decoded(text: str) -> bytes | None:
    # Digits alone are always hexadecimal: as base64, a short key in such digits would pass for a longer one.
    if _HEX.fullmatch(text):
        return None if len(text) % 2 else bytes.fromhex(text)
    found = _BASE64.fullmatch(text)
    if not found or len(found[1]) % 4 == 1:
        return None
    digits = found[1].replace("-", "+").replace("_", "/")
    return a2b_base64(digits + "=" * (-len(digits) % 4))


def read_key_file(path: str) -> tuple[bytes, ...]:
    """
    Return the keys of a file.

    Args:
        path:
            The file. On POSIX, nobody but its owner and group may have access, and its group may only read.

    Raises:
        InvalidKeys: If it cannot be opened, if others may read or write it, or if its text has no keys.
    """
    try:
        text = read_secret_file(path, "keys")
    except InvalidSecretFile as error:
        raise InvalidKeys(str(error)) from None
    return _read_from(path, text)


def state_keys(file: str | None, environment: Mapping[str, str] = os.environ) -> tuple[bytes, ...]:
    """
    Return the keys that a server was given; none if it was given none.

    Args:
        file:
            A file of keys. Without it, those of the variable PROMPTKIT_STATE_KEYS are taken.

        environment:
            The environment variables.

    Raises:
        InvalidKeys: If the keys that were given cannot be read.
    """
    if file is not None:
        return read_key_file(file)
    text = environment.get(VARIABLE)
    return () if text is None else _read_from(VARIABLE, text)


def _read_from(origin: str, text: str) -> tuple[bytes, ...]:
    try:
        return read_keys(text)
    except InvalidKeys as error:
        msg = f"{origin}: {error}"
        raise InvalidKeys(msg) from None
