"""Keys that seal session ids and request states: from a file, the environment or the user's cache folder."""

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
from promptkit.transports.secret_files import (
    InvalidSecretsError,
    SecretFile,
    parse_secrets_from,
    read_secret_file,
)

#: The environment variable that contains the keys.
VARIABLE: Final = "PROMPTKIT_STATE_KEYS"

#: What happens while a key file cannot be read, logged with each error.
_CONSEQUENCE: Final = "the keys from the last successful read stay in use until this is fixed"

#: A command that prints a new key.
NEW_KEY_COMMAND: Final = f'python -c "import secrets; print(secrets.token_urlsafe({MIN_KEY_BYTES}))"'

_HEX: Final = re.compile(r"[0-9A-Fa-f]+")


def parse_keys(text: str) -> tuple[bytes, ...]:
    """
    Parse keys and return them in order.

    Args:
        text:
            One key per line, or several keys separated by commas, in base64 or hexadecimal. Text after a
            ``#`` is a comment.

    Raises:
        InvalidSecretsError: If there are no keys, or if a key is shorter than 32 bytes, or neither base64 nor
            hexadecimal.
    """
    keys = list[bytes]()
    for number, line in enumerate(text.split("\n"), start=1):
        for word in filter(None, map(str.strip, line.partition("#")[0].split(","))):
            key = _decode(word)
            if len(key) < MIN_KEY_BYTES:
                problem = f"a key must be at least {MIN_KEY_BYTES} bytes long, in base64 or hexadecimal"
                msg = f"line {number}: {problem}; to generate one, run: {NEW_KEY_COMMAND}"
                raise InvalidSecretsError(msg)
            keys.append(key)
    if not keys:
        msg = f"there are no keys; to generate one, run: {NEW_KEY_COMMAND}"
        raise InvalidSecretsError(msg)
    return tuple(keys)


def _decode(text: str) -> bytes:
    """Return the bytes of a key, or ``b""`` if the text is neither base64 nor hexadecimal."""
    digits = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        # Never decode hexadecimal text as base64, because a short key would then pass for a longer one.
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
            The path of the file. On POSIX, only the file's owner and group may have access, and the group
            must not have write access.

    Raises:
        InvalidSecretsError: If the file cannot be read, if other users can read, change or replace it, or if
            it contains no keys or an invalid key.
    """
    return read_secret_file(path, "keys", parse_keys)


def state_keys(
    file: str | None, environment: Mapping[str, str] = os.environ
) -> tuple[bytes, ...] | Callable[[], tuple[bytes, ...]]:
    """
    Return the configured keys, or ``()`` if there are none.

    If *file* is given, return a function that returns the current keys in that file.

    Args:
        file:
            The path of a key file, which is reread while its keys are in use. If it is None, the keys come
            from the environment variable PROMPTKIT_STATE_KEYS.

        environment:
            The environment variables.

    Raises:
        InvalidSecretsError: If the configured keys cannot be read.
    """
    if file is not None:
        return SecretFile(file, "keys", parse_keys, _CONSEQUENCE).current
    text = environment.get(VARIABLE)
    return () if text is None else parse_secrets_from(VARIABLE, text, parse_keys)


def own_key(target: Targets) -> bytes:
    """
    Return the default key for a server without configured keys.

    The key is derived from a key in the user's cache folder. It stays the same across restarts, and is shared
    by all servers that this user runs for the same target on this machine. If the folder cannot be used, the
    key is random.

    Args:
        target:
            The target, or several targets. Servers for different targets have different keys.
    """
    key = _user_key()
    paths = "\0".join(map(_make_absolute, targets_of(target)))
    return os.urandom(MIN_KEY_BYTES) if key is None else hmac.digest(key, os.fsencode(paths), "sha256")


def _make_absolute(target: str) -> str:
    path, _ = split_target(target)  # a target can also be the name of a module
    return with_path(target, os.path.abspath(path))  # noqa: PTH100 (text)


def _user_key() -> bytes | None:
    """Return the key in the user's cache folder, creating it if needed, or None if this is not possible."""
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
        say(f"{error}; until this is fixed, sessions end when the server stops")
        return None


def _check_owner(folder: Path) -> None:
    """
    Raise PermissionError if another user owns a folder.

    If the folder does not exist, check its nearest parent that does.
    """
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if hasattr(os, "geteuid") and existing.stat().st_uid != os.geteuid():
        raise PermissionError
