"""Secret keys and tokens, read from environment variables and from files that no other user can access."""

import hmac
import os
import re
import stat
import time
from binascii import a2b_base64
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from promptkit.files.edits import write_new_secret
from promptkit.files.reading import is_untrusted_user, read_regular_file
from promptkit.loader.targets import Targets, split_target, targets_of, with_path
from promptkit.protocol.key_ring import MIN_KEY_BYTES
from promptkit.protocol.principals import Principal, VerifierUnavailableError
from promptkit.standard_error import say

_Secrets = TypeVar("_Secrets")

#: Maximum size of a secret file.
_MAX_FILE_BYTES: Final = 65536

#: Minimum time between two reads of a file in use, in seconds.
_READ_EVERY_S: Final = 1.0

#: The environment variable with the keys.
VARIABLE: Final = "PROMPTKIT_STATE_KEYS"

#: The log message while a file of keys cannot be read.
_STALE_KEYS: Final = "the keys that were last read are used until this is fixed"

#: A command that prints a new key.
MAKE_A_KEY: Final = f'python -c "import secrets; print(secrets.token_urlsafe({MIN_KEY_BYTES}))"'

#: The characters of a token.
_TOKEN_BYTES: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/="

_HEX: Final = re.compile(r"[0-9A-Fa-f]+")


class InvalidSecretsError(ValueError):
    """
    Keys or tokens cannot be read. The message gives the location and the reason, and never contains a secret.

    Attributes:
        valid:
            The secrets that could be read and remain in use; None if there are none.
    """

    valid: Any = None


def read_secret_file(path: str, kind: str, parse: Callable[[str], _Secrets]) -> _Secrets:
    """
    Return the secrets in a file.

    Bytes that are not UTF-8 are decoded to surrogates, which no secret contains.

    Args:
        path:
            The file. On POSIX, it must belong to the user or to root. Only its owner and its group may have
            access, and the group only to read. No other user may be able to change the folder of the file,
            nor, for a link, the folder of its target. The parent folders of these folders are not checked.

        kind:
            What each line of the file holds, such as ``keys``.

        parse:
            Returns the secrets in a text.

    Raises:
        InvalidSecretsError: If the file cannot be read, is not a regular file, is too large, or can be read,
            changed or replaced by other users, or if *parse* raises this error. The message begins with the
            path.
    """
    check = partial(_check_access, path, kind) if os.name == "posix" else bool
    try:
        data = read_regular_file(path, _MAX_FILE_BYTES, check)
    except OSError as error:
        msg = f"{path}: the file cannot be read: {error.strerror}"
        raise InvalidSecretsError(msg) from None
    # Comments can be in any encoding.
    text = data.removeprefix(b"\xef\xbb\xbf").decode(errors="surrogateescape")
    return _parse_from(path, text, parse)


def _parse_from(origin: str, text: str, parse: Callable[[str], _Secrets]) -> _Secrets:
    try:
        return parse(text)
    except InvalidSecretsError as error:
        error.args = (f"{origin}: {error}",)
        raise


def _check_access(path: str, kind: str, status: os.stat_result) -> None:
    """Raise InvalidSecretsError if other users can read, change or replace a file."""
    mode, fix = f"(mode {stat.S_IMODE(status.st_mode):04o})", f", and chmod g-w,o-rwx {path}"
    folders = (Path(path).absolute().parent, Path(path).resolve().parent)  # of a link, and of its target
    if is_untrusted_user(status.st_uid):
        problem, fix = f"it belongs to another user ({status.st_uid})", " in a file of your own"
    elif status.st_mode & stat.S_IROTH:
        problem = f"every user can read it {mode}"
    elif status.st_mode & (stat.S_IWOTH | stat.S_IWGRP):
        problem = f"others can change it {mode}"
    elif shared := [folder for folder in folders if _is_shared(folder)]:
        problem, fix = (
            f"others can replace it, because they can change {shared[0]}",
            " in a folder that only you can change",
        )
    else:
        return
    msg = f"{path}: {problem}: generate new {kind}{fix}"
    raise InvalidSecretsError(msg)


def _is_shared(folder: Path) -> bool:
    """Return whether other users can replace the files of a folder."""
    status = folder.stat()
    if is_untrusted_user(status.st_uid):
        return True
    if status.st_mode & stat.S_ISVTX:  # users can replace only their own files
        return False
    # A group with the id of its user is private: many systems create one for each user.
    write_bits = stat.S_IWOTH if status.st_gid == status.st_uid else stat.S_IWOTH | stat.S_IWGRP
    return bool(status.st_mode & write_bits)


class SecretFile(Generic[_Secrets]):
    """
    A secret file that is reread while its secrets are used.

    Args:
        path:
            The path of the file. See `read_secret_file` for the access that others may have.

        kind:
            What each line of the file holds, such as ``keys``.

        parse:
            Returns the secrets in a text.

        consequence:
            What happens while the file cannot be read, which is logged with each new error.

        clock:
            Returns a monotonic time, in seconds.

    Raises:
        InvalidSecretsError: If the first read fails.
    """

    def __init__(
        self,
        path: str,
        kind: str,
        parse: Callable[[str], _Secrets],
        consequence: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = partial(read_secret_file, path, kind, parse)
        self._recovery = f"{path}: fixed: all {kind} in it are used"
        self._consequence = consequence
        self._clock = clock
        self._secrets = self._read()
        self._read_at = self._tried_at = clock()
        self._reported: str | None = None

    @property
    def stale_for(self) -> float:
        """Time between the last successful read and the last attempt, in seconds."""
        return self._tried_at - self._read_at

    def current(self) -> _Secrets:
        """Return the secrets, which are at most a second old unless the file cannot be read."""
        if self._clock() - self._tried_at >= _READ_EVERY_S:
            self._tried_at = self._clock()  # other threads do not wait for the new secrets
            self._read_again()
        return self._secrets

    def _read_again(self) -> None:
        try:
            self._secrets = self._read()
        except InvalidSecretsError as error:
            consequence = self._consequence
            if error.valid is not None:
                self._secrets, self._read_at = error.valid, self._tried_at
                consequence = "the other lines are used"
            if (message := str(error)) != self._reported:
                self._reported = message
                say(f"{message}; {consequence}")
        else:
            if self._reported is not None:
                say(self._recovery)
            self._read_at, self._reported = self._tried_at, None


def read_keys(text: str) -> tuple[bytes, ...]:
    """
    Return the keys in a text, in order.

    Args:
        text:
            One key per line, or several separated by commas, in base64 or hexadecimal. Text after a ``#`` is
            a comment.

    Raises:
        InvalidSecretsError: If there is no key, or if a key cannot be read or has less than 32 bytes.
    """
    lines = enumerate(text.split("\n"), start=1)
    words = ((number, word.strip()) for number, line in lines for word in line.partition("#")[0].split(","))
    keys = [_read_key(word, f"line {number}") for number, word in words if word]
    if not keys:
        msg = f"there is no key; to generate one, run: {MAKE_A_KEY}"
        raise InvalidSecretsError(msg)
    return tuple(keys)


def _read_key(text: str, location: str) -> bytes:
    key = _decode(text)
    if key is None:
        msg = f"{location}: the key is neither base64 nor hexadecimal; to generate one, run: {MAKE_A_KEY}"
        raise InvalidSecretsError(msg)
    if len(key) < MIN_KEY_BYTES:
        problem = f"{location}: a key of {len(key)} bytes can be guessed"
        msg = f"{problem}; to generate one of {MIN_KEY_BYTES}, run: {MAKE_A_KEY}"
        raise InvalidSecretsError(msg)
    return key


def _decode(text: str) -> bytes | None:
    digits = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        # Text that is hexadecimal is never read as base64, where a short key would pass for a longer one.
        if _HEX.fullmatch(text):
            return bytes.fromhex(text)
        return a2b_base64(digits + "=" * (-len(digits) % 4), strict_mode=True)
    except ValueError:
        return None


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
    return () if text is None else _parse_from(VARIABLE, text, read_keys)


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
    paths = "\0".join(map(_absolute, targets_of(target)))
    return os.urandom(MIN_KEY_BYTES) if key is None else hmac.digest(key, os.fsencode(paths), "sha256")


def _absolute(target: str) -> str:
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


#: Minimum length: shorter tokens could be guessed. `secrets.token_urlsafe` makes longer ones.
MIN_TOKEN_CHARACTERS: Final = 32

#: How long tokens stay valid after the file was last read, in seconds: the file can be unreadable while it is
#: being written.
TOKENS_VALID_S: Final = 5.0


def is_token(text: bytes) -> bool:
    """Return whether a token has the syntax of RFC 6750."""
    return bool(text) and not text.translate(None, _TOKEN_BYTES)


class TokenFile:
    """
    Verifies tokens with a file, which is read again while in use, so that removed tokens lose access.

    Args:
        path:
            The file. On POSIX, only its owner and its group may have access, and the group only to read.

        clock:
            Returns a monotonic time, in seconds.

    Raises:
        InvalidSecretsError: If the file cannot be read, contains no token, or can be read, changed or
            replaced by other users.
    """

    def __init__(self, path: str, clock: Callable[[], float] = time.monotonic) -> None:
        consequence = (
            f"all requests are rejected from {TOKENS_VALID_S:g} s after the last successful read "
            "until this is fixed"
        )
        self._file = SecretFile(path, "tokens", read_tokens, consequence, clock)
        if not self._file.current():
            msg = f"{path}: the file contains no token: write a name and a token on each line"
            raise InvalidSecretsError(msg)

    def verify(self, token: str) -> Principal | None:
        """
        Return the principal of a token; None if the token is not in the file.

        Args:
            token:
                Any text.

        Raises:
            VerifierUnavailableError: If the file has been unreadable for a few seconds.
        """
        tokens = self._file.current()
        if self._file.stale_for > TOKENS_VALID_S:
            raise VerifierUnavailableError
        # The time that this takes depends on the digest, which reveals nothing about a token.
        return tokens.get(sha256(token.encode()).digest())


def read_tokens(text: str) -> dict[bytes, Principal]:
    """
    Return the principal of each token in a text, by the SHA-256 digest of the token.

    Args:
        text:
            One token per line: a name, the token and any scopes, separated by spaces. A name can have several
            lines. Text after a ``#`` is a comment.

    Raises:
        InvalidSecretsError: If a token cannot be read, could be guessed, or is repeated. Its `valid` contains
            the other tokens, so that a typo neither locks out other callers nor readmits removed ones.
    """
    principals: dict[bytes, Principal] = {}
    errors = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not (words := line.partition("#")[0].split()):
            continue
        message = _find_token_error(words)
        digest = b"" if message else sha256(words[1].encode()).digest()
        if digest in principals:
            message = "this token is also on another line: every principal needs a different one"
        if message:
            errors.append(f"line {number}: {message}")
        else:
            principals[digest] = Principal(words[0], words[2:])
    if errors:
        error = InvalidSecretsError(errors[0])
        error.valid = principals or None
        raise error
    return principals


def _find_token_error(words: list[str]) -> str | None:
    if len(words) == 1:
        return "the line has one word: write a name, a token and any scopes, separated by spaces"
    if not is_token(words[1].encode(errors="surrogateescape")):
        return "the second word is not a token: a token contains only letters, digits and -._~+/="
    if (size := len(words[1].rstrip("="))) < MIN_TOKEN_CHARACTERS:  # the padding of base64 is not secret
        return (
            f"the token has {size} characters and could be guessed: it needs at least {MIN_TOKEN_CHARACTERS}"
        )
    if any("\udc80" <= character <= "\udcff" for character in words[0]):
        return "the name is not UTF-8: save the file in that encoding"
    return None
