"""Secrets: the keys of a key ring, and files of keys or tokens, which are refused if others have access."""

import os
import re
import stat
import time
from binascii import a2b_base64
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Final, Generic, TypeVar

from promptkit.files.reading import is_another_user, read_regular_file
from promptkit.files.writing import write_new_secret
from promptkit.loader.targets import Targets, targets_of
from promptkit.protocol.key_ring import MIN_KEY_BYTES
from promptkit.standard_error import say

_Secrets = TypeVar("_Secrets")

#: A larger file holds something else.
_MAX_FILE_BYTES: Final = 65536

#: How often a file is read while its secrets are used, in seconds.
_READ_EVERY_S: Final = 1.0

#: The environment variable that holds keys.
VARIABLE: Final = "PROMPTKIT_STATE_KEYS"

#: What holds while a file of keys cannot be read.
_UNTIL_MENDED: Final = "the keys that were read last are used until this is mended"

#: A command that prints a new key.
MAKE_A_KEY: Final = f'python -c "import secrets; print(secrets.token_urlsafe({MIN_KEY_BYTES}))"'

_HEX: Final = re.compile(r"[0-9A-Fa-f]+")

#: The alphabet of base64, or that which is safe in URLs.
_BASE64: Final = re.compile(r"([A-Za-z0-9+/_-]+)={0,2}")


class InvalidSecretsError(ValueError):
    """
    Keys or tokens that cannot be read. The message says where and why, and never shows one.

    Attributes:
        rest:
            Those that can be read and count nevertheless; None if none do.
    """

    rest: Any = None


def read_secret_file(path: str, holds: str, read: Callable[[str], _Secrets]) -> _Secrets:
    """
    Return what *read* makes of the text of a file.

    What is no UTF-8 in it comes as halves of surrogates, which are in no secret.

    Args:
        path:
            The file. On POSIX, it belongs to the user or to root, nobody but its owner and group may have
            access, and its group may only read. The same users alone may change the folder that it is in, and
            that of the file a link leads to. Folders above these are not looked at.

        holds:
            What it holds, one a line, such as ``keys``.

        read:
            Returns the secrets in a text.

    Raises:
        InvalidSecretsError: If it cannot be read, is no regular file, is too large, if others may read,
            change or replace it, or if *read* does. The message begins with the path.
    """

    def check(found: os.stat_result) -> None:
        if (fault := _fault(path, found)) is not None:
            what, hint = fault
            msg = f"{path}: {what}: make new {holds}{hint}"
            raise InvalidSecretsError(msg)

    try:
        data = read_regular_file(path, _MAX_FILE_BYTES, check if os.name == "posix" else bool)
    except OSError as error:
        msg = f"{path}: cannot be read: {error.strerror}"
        raise InvalidSecretsError(msg) from None
    # Comments may be in any encoding.
    text = data.removeprefix(b"\xef\xbb\xbf").decode(errors="surrogateescape")
    return _read_from(path, text, read)


def _read_from(origin: str, text: str, read: Callable[[str], _Secrets]) -> _Secrets:
    try:
        return read(text)
    except InvalidSecretsError as error:
        error.args = (f"{origin}: {error}",)
        raise


def _fault(path: str, found: os.stat_result) -> tuple[str, str] | None:
    """What is wrong with the owner, the mode or the folder of a file, and what to do; None if nothing is."""
    if is_another_user(found.st_uid):
        return f"it belongs to another user ({found.st_uid})", " in a file of your own"
    mode, hint = f"(mode {stat.S_IMODE(found.st_mode):04o})", f", and chmod g-w,o-rwx {path}"
    if found.st_mode & stat.S_IROTH:
        return f"everybody can read it {mode}", hint
    if found.st_mode & (stat.S_IWOTH | stat.S_IWGRP):
        return f"others can change it {mode}", hint
    file = Path(path)  # a link can be replaced, and what it leads to
    for folder in (file.absolute().parent, file.resolve().parent):
        if _is_shared(folder):
            what = f"others can replace it, as they can change {folder}"
            return what, " in a folder that only you can change"
    return None


def _is_shared(folder: Path) -> bool:
    """Whether other users may replace what is in a folder."""
    found = folder.stat()
    if is_another_user(found.st_uid):
        return True
    if found.st_mode & stat.S_ISVTX:  # there, everybody may replace their own files alone
        return False
    # A group with the number of its user is that user's own, as many systems make one for each.
    others = stat.S_IWOTH if found.st_gid == found.st_uid else stat.S_IWOTH | stat.S_IWGRP
    return bool(found.st_mode & others)


class SecretFile(Generic[_Secrets]):
    """
    A file of secrets that is read again while they are used.

    Args:
        path:
            The file, as for `read_secret_file`.

        holds:
            What it holds, one a line, such as ``keys``.

        read:
            Returns the secrets in a text.

        until_mended:
            What holds while none of it can be read: standard error is told so with each new fault.

        clock:
            Returns a time that never goes back, in seconds.

    Raises:
        InvalidSecretsError: If it cannot be read at first.
    """

    def __init__(
        self,
        path: str,
        holds: str,
        read: Callable[[str], _Secrets],
        until_mended: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = partial(read_secret_file, path, holds, read)
        self._mended = f"{path}: this is mended: all {holds} in it count"
        self._until_mended = until_mended
        self._clock = clock
        self._secrets = self._read()
        self._was_read = self._tried = clock()
        self._reported: str | None = None
        self._reading = Lock()

    @property
    def stale_for(self) -> float:
        """How long it could not be read, in seconds, when that was tried last."""
        return self._tried - self._was_read

    def current(self) -> _Secrets:
        """Return the secrets, as they were read last: a second ago at most, unless that fails."""
        # One thread reads, and no other waits for it.
        if self._clock() - self._tried >= _READ_EVERY_S and self._reading.acquire(blocking=False):
            try:
                self._read_again()
            finally:
                self._reading.release()
        return self._secrets

    def _read_again(self) -> None:
        self._tried = self._clock()
        try:
            self._secrets = self._read()
        except InvalidSecretsError as error:
            so_far = self._until_mended
            if error.rest is not None:
                self._secrets, self._was_read, so_far = error.rest, self._tried, "what other lines say counts"
            if (fault := str(error)) != self._reported:
                self._reported = fault
                say(f"{fault}; {so_far}")
        else:
            if self._reported is not None:
                say(self._mended)
            self._was_read, self._reported = self._tried, None


def read_keys(text: str) -> tuple[bytes, ...]:
    """
    Return the keys of a text, in its order.

    Args:
        text:
            One key a line, or several with commas between them, in base64 or in hexadecimal digits. What
            follows a ``#`` is a comment.

    Raises:
        InvalidSecretsError: If there is none, if one cannot be read, or if one has less than 32 bytes.
    """
    lines = enumerate(text.split("\n"), start=1)
    words = ((number, word.strip()) for number, line in lines for word in line.partition("#")[0].split(","))
    keys = [_read_key(word, f"line {number}") for number, word in words if word]
    if not keys:
        msg = f"there is no key; a command that prints one: {MAKE_A_KEY}"
        raise InvalidSecretsError(msg)
    return tuple(keys)


def _read_key(text: str, place: str) -> bytes:
    key = _decoded(text)
    if key is None:
        msg = f"{place}: this is neither base64 nor hexadecimal; a command that prints a key: {MAKE_A_KEY}"
        raise InvalidSecretsError(msg)
    if len(key) < MIN_KEY_BYTES:
        fault = f"{place}: a key of {len(key)} bytes can be guessed"
        msg = f"{fault}; a command that prints one of {MIN_KEY_BYTES}: {MAKE_A_KEY}"
        raise InvalidSecretsError(msg)
    return key


def _decoded(text: str) -> bytes | None:
    # Digits alone are always hexadecimal: as base64, a short key in such digits would pass for a longer one.
    if _HEX.fullmatch(text):
        return None if len(text) % 2 else bytes.fromhex(text)
    found = _BASE64.fullmatch(text)
    if not found or len(found[1]) % 4 == 1:
        return None
    digits = found[1].replace("-", "+").replace("_", "/")  # Python 3.15 warns of both in one
    return a2b_base64(digits + "=" * (-len(digits) % 4))


def read_key_file(path: str) -> tuple[bytes, ...]:
    """
    Return the keys of a file.

    Args:
        path:
            The file. On POSIX, nobody but its owner and group may have access, and its group may only read.

    Raises:
        InvalidSecretsError: If it cannot be opened, if others may read or write it, or if its text has no
            keys.
    """
    return read_secret_file(path, "keys", read_keys)


def state_keys(
    file: str | None, environment: Mapping[str, str] = os.environ
) -> tuple[bytes, ...] | Callable[[], tuple[bytes, ...]]:
    """
    Return the keys that a server was given, or what returns those of a file; none if it was given none.

    Args:
        file:
            A file of keys, which is read again while they are used. Without it, those of the variable
            PROMPTKIT_STATE_KEYS are taken.

        environment:
            The environment variables.

    Raises:
        InvalidSecretsError: If the keys that were given cannot be read.
    """
    if file is not None:
        return SecretFile(file, "keys", read_keys, _UNTIL_MENDED).current
    text = environment.get(VARIABLE)
    return () if text is None else _read_from(VARIABLE, text, read_keys)


def own_key(target: Targets) -> bytes:
    """
    Return the key of a server that was given none.

    It is the same after a restart, and for all servers of one target that one user has on a machine. It is
    made of a key in the user's cache; if that cannot be kept there, it is random.

    Args:
        target:
            What is served, or each of several. Servers of other targets have other keys.
    """
    import hmac

    key = _key_of_user()
    places = "\0".join(map(os.path.abspath, targets_of(target)))  # one may be no path, but a module's name
    return os.urandom(MIN_KEY_BYTES) if key is None else hmac.digest(key, os.fsencode(places), "sha256")


def _key_of_user() -> bytes | None:
    """The key in the user's cache, where it is made if there is none; None if it cannot be kept there."""
    from platformdirs import user_cache_path  # only who is given no keys needs it

    try:
        file = user_cache_path("promptkit", appauthor=False) / "state.key"
        _check_owner(file.parent)
        if not file.exists():
            write_new_secret(file, os.urandom(MIN_KEY_BYTES).hex().encode())
    except (OSError, RuntimeError):  # there is no such folder, or nothing may be written into it
        return None
    try:
        return read_key_file(str(file))[0]
    except InvalidSecretsError as error:
        say(f"{error}; until then, sessions end with the server")
        return None


def _check_owner(folder: Path) -> None:
    """Raise PermissionError if a folder, or the one that it would be made in, is somebody else's."""
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if hasattr(os, "geteuid") and there.stat().st_uid != os.geteuid():
        raise PermissionError
