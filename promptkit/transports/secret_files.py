"""Files with keys or tokens, which must be protected from other users, and are reread while in use."""

import os
import stat
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from promptkit.files.reading import is_untrusted_user, read_regular_file
from promptkit.standard_error import say

_Secrets = TypeVar("_Secrets")

#: Maximum size of a secret file.
_MAX_FILE_BYTES: Final = 65536

#: Minimum time between two reads of a file in use, in seconds.
_READ_EVERY_S: Final = 1.0


class InvalidSecretsError(ValueError):
    """
    Keys or tokens cannot be read. The message gives the location and the reason, but never a secret.

    Attributes:
        valid:
            The secrets that could be read, or None if there are none. They remain in use.
    """

    valid: Any = None


def read_secret_file(path: str, kind: str, parse: Callable[[str], _Secrets]) -> _Secrets:
    """
    Return the secrets in a file.

    Bytes that are not UTF-8 are decoded to surrogates, which are not valid in a secret.

    Args:
        path:
            The path of the file. On POSIX, the file must belong to the user or to root. Only its owner and
            group may have access, and the group must not have write access. Other users must not be able to
            change the folder that contains the file or, if the path is a symbolic link, the folder that
            contains the link's target. The parents of these folders are not checked.

        kind:
            What the file contains, as named in messages, such as ``keys``.

        parse:
            Parses the text of the file.

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
    return parse_secrets_from(path, text, parse)


def parse_secrets_from(origin: str, text: str, parse: Callable[[str], _Secrets]) -> _Secrets:
    """Parse *text*, and begin the message of an InvalidSecretsError with *origin*, such as its file."""
    try:
        return parse(text)
    except InvalidSecretsError as error:
        error.args = (f"{origin}: {error}",)
        raise


def _check_access(path: str, kind: str, status: os.stat_result) -> None:
    """Raise InvalidSecretsError if other users can read, change or replace a file."""
    mode, fix = f"(mode {stat.S_IMODE(status.st_mode):04o})", f", and run: chmod g-w,o-rwx {path}"
    # The path can be a symbolic link, so check the folder of the link and the folder of its target.
    folders = (Path(path).absolute().parent, Path(path).resolve().parent)
    if is_untrusted_user(status.st_uid):
        problem, fix = f"it belongs to another user ({status.st_uid})", " in a file of your own"
    elif status.st_mode & stat.S_IROTH:
        problem = f"every user can read it {mode}"
    elif status.st_mode & (stat.S_IWOTH | stat.S_IWGRP):
        problem = f"other users can change it {mode}"
    elif shared := [folder for folder in folders if _is_shared(folder)]:
        problem, fix = (
            f"other users can replace it, because they can change {shared[0]}",
            " in a folder that only you can change",
        )
    else:
        return
    msg = f"{path}: {problem}: generate new {kind}{fix}"
    raise InvalidSecretsError(msg)


def _is_shared(folder: Path) -> bool:
    """Return whether other users can replace the files in a folder."""
    status = folder.stat()
    if is_untrusted_user(status.st_uid):
        return True
    if status.st_mode & stat.S_ISVTX:  # users can replace only their own files
        return False
    # A group with the same id as its user is private: many systems create such a group for each user.
    write_bits = stat.S_IWOTH if status.st_gid == status.st_uid else stat.S_IWOTH | stat.S_IWGRP
    return bool(status.st_mode & write_bits)


class SecretFile(Generic[_Secrets]):
    """
    A secret file that is reread while its secrets are in use.

    Args:
        path:
            The path of the file. See `read_secret_file` for the access that other users may have.

        kind:
            What the file contains, as named in messages, such as ``keys``.

        parse:
            Parses the text of the file.

        consequence:
            What happens while the file cannot be read, logged with each new error.

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
        self._recovery = f"{path}: fixed: all {kind} in it are in use"
        self._consequence = consequence
        self._clock = clock
        self._secrets = self._read()
        self._read_at = self._tried_at = clock()
        self._reported: str | None = None

    @property
    def stale_for(self) -> float:
        """Time between the last successful read and the last attempt to read the file, in seconds."""
        return self._tried_at - self._read_at

    def current(self) -> _Secrets:
        """Return the secrets in the file, at most one second old unless the file cannot be read."""
        if self._clock() - self._tried_at >= _READ_EVERY_S:
            self._tried_at = self._clock()  # set first, so that other threads use the old secrets meanwhile
            self._read_again()
        return self._secrets

    def _read_again(self) -> None:
        try:
            self._secrets = self._read()
        except InvalidSecretsError as error:
            consequence = self._consequence
            if error.valid is not None:
                self._secrets, self._read_at = error.valid, self._tried_at
                consequence = "the other lines are in use"
            if (message := str(error)) != self._reported:
                self._reported = message
                say(f"{message}; {consequence}")
        else:
            if self._reported is not None:
                say(self._recovery)
            self._read_at, self._reported = self._tried_at, None
