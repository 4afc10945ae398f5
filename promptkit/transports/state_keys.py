"""The keys of sessions and of request states, from a file, the environment or the user's cache folder."""

import hmac
import os
import re
from binascii import a2b_base64
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from promptkit.files.edits import write_new_secret
from promptkit.loader.targets import Targets, split_target, targets_of, with_path
from promptkit.protocol.key_ring import MIN_KEY_BYTES
from promptkit.standard_error import say
from promptkit.transports.secret_files import InvalidSecretsError, SecretFile, parse_from, read_secret_file

#: The environment variable with the keys.
VARIABLE: Final = "PROMPTKIT_STATE_KEYS"

#: The log message while a file of keys cannot be read.
_STALE_KEYS: Final = "the keys that were last read are used until this is fixed"

#: A command that prints a new key.
MAKE_A_KEY: Final = f'python -c "import secrets; print(secrets.token_urlsafe({MIN_KEY_BYTES}))"'

_HEX: Final = re.compile(r"[0-9A-Fa-f]+")


def read_keys(text: str) -> tuple[bytes, ...]:
    """
    Parse keys, and return them in order.

    Args:
        text:
            One key per line, or several separated by commas, in base64 or hexadecimal. Text after a ``#`` is
            a comment.

    Raises:
        InvalidSecretsError: If there is no key, or if a key cannot be read or has fewer than 32 bytes.
    """
    keys = list[bytes]()
    for number, line in enumerate(text.split("\n"), start=1):
        for word in filter(None, map(str.strip, line.partition("#")[0].split(","))):
            key = _decode(word)
            if len(key) < MIN_KEY_BYTES:
                problem = f"line {number}: a key has at least {MIN_KEY_BYTES} bytes, in base64 or hexadecimal"
                msg = f"{problem}; to generate one, run: {MAKE_A_KEY}"
                raise InvalidSecretsError(msg)
            keys.append(key)
    if not keys:
        msg = f"there is no key; to generate one, run: {MAKE_A_KEY}"
        raise InvalidSecretsError(msg)
    return tuple(keys)


def _decode(text: str) -> bytes:
    """Return the bytes of a key; none if the text is neither base64 nor hexadecimal."""
    digits = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        # Text that is hexadecimal is never read as base64, where a short key would pass for a longer one.
        if _HEX.fullmatch(text):
            return bytes.fromhex(text)
        return a2b_base64(digits + "=" * (-len(digits) % 4), strict_mode=True)
    except ValueError:
        return b""


def read_key_file(path: str) -> tuple[bytes, ...]:
    """
    Return the keys in a file.

    Args:
        path:
            The file. On POSIX, only its owner and its group may have access, and the group only to read.

    Raises:
        InvalidSecretsError: If the file cannot be opened, other users can read or write it, or it contains no
            keys.
    """
    return read_secret_file(path, "keys", read_keys)


def state_keys(
    file: str | None, environment: Mapping[str, str] = os.environ
) -> tuple[bytes, ...] | Callable[[], tuple[bytes, ...]]:
    """
    Return the configured keys, or a function that returns the current keys in *file*; ``()`` without keys.

    Args:
        file:
            A key file, which is reread while its keys are used. Without it, the variable
            PROMPTKIT_STATE_KEYS is read.

        environment:
            The environment variables.

    Raises:
        InvalidSecretsError: If the configured keys cannot be read.
    """
    if file is not None:
        return SecretFile(file, "keys", read_keys, _STALE_KEYS).current
    text = environment.get(VARIABLE)
    return () if text is None else parse_from(VARIABLE, text, read_keys)


def own_key(target: Targets) -> bytes:
    """
    Return the default key of a server without configured keys.

    The key stays the same after restarts, and all servers with the same target, user and machine share it. It
    is derived from a key in the user's cache folder. If that folder cannot be used, the key is random.

    Args:
        target:
            The target, or several targets. Servers with other targets have other keys.
    """
    key = _user_key()
    paths = "\0".join(map(_make_absolute, targets_of(target)))
    return os.urandom(MIN_KEY_BYTES) if key is None else hmac.digest(key, os.fsencode(paths), "sha256")


def _make_absolute(target: str) -> str:
    path, _ = split_target(target)  # a target can be the name of a module as well
    return with_path(target, os.path.abspath(path))  # noqa: PTH100 (text)


def _user_key() -> bytes | None:
    """Return the key in the user's cache folder, creating it if needed; None if the folder cannot be used."""
    from platformdirs import user_cache_path  # only needed if no keys are configured

    try:
        file = user_cache_path("promptkit", appauthor=False) / "state.key"
        _check_owner(file.parent)
        if not file.exists():
            write_new_secret(file, os.urandom(MIN_KEY_BYTES).hex().encode())
        return read_key_file(str(file))[0]
    except (OSError, RuntimeError):  # no such folder, or not writable
        return None
    except InvalidSecretsError as error:
        say(f"{error}; until then, sessions end when the server stops")
        return None


def _check_owner(folder: Path) -> None:
    """Raise PermissionError if a folder, or its nearest existing parent, belongs to another user."""
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if hasattr(os, "geteuid") and existing.stat().st_uid != os.geteuid():
        raise PermissionError
