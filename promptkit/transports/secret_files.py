"""Reads files of secrets, unless others have access to them."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from promptkit.errors.regular_files import is_another_user, read_regular_file

__all__ = ["InvalidSecrets", "read_secret_file", "read_secrets"]

_Secrets = TypeVar("_Secrets")

#: A larger file holds something else.
_MAX_FILE_BYTES: Final = 65536


class InvalidSecrets(ValueError):
    """
    Keys or tokens that cannot be read. The message says where and why, and never shows one.
    """


def read_secrets(origin: str, text: str, read: Callable[[str], _Secrets]) -> _Secrets:
    """
    Return what *read* makes of a text.

    Args:
        origin:
            Where the text is from.

        text:
            The text.

        read:
            Returns the secrets in it.

    Raises:
        InvalidSecrets: If *read* does. The message begins with the origin.
    """
    try:
        return read(text)
    except InvalidSecrets as error:
        msg = f"{origin}: {error}"
        raise InvalidSecrets(msg) from None


def read_secret_file(path: str, holds: str) -> str:
    """
    Return the text of a file. What is no UTF-8 in it comes as halves of surrogates, which are in no secret.

    Args:
        path:
            The file. On POSIX, it belongs to the user or to root, nobody but its owner and group may have
            access, and its group may only read. The same users alone may change the folder that it is in, and
            that of the file a link leads to. Folders above these are not looked at.

        holds:
            What it holds, one a line, such as ``keys``.

    Raises:
        InvalidSecrets: If it cannot be read, is no regular file, is too large, or if others may read,
            change or replace it.
    """

    def check(found: os.stat_result) -> None:
        if (fault := _fault(path, found)) is not None:
            what, remedy = fault
            msg = f"{path}: {what}: make new {holds}{remedy}"
            raise InvalidSecrets(msg)

    try:
        data = read_regular_file(path, _MAX_FILE_BYTES, check if os.name == "posix" else bool)
    except OSError as error:
        msg = f"{path}: cannot be read: {error.strerror}"
        raise InvalidSecrets(msg) from None
    # Comments may be in any encoding.
    return data.removeprefix(b"\xef\xbb\xbf").decode(errors="surrogateescape")


def _fault(path: str, found: os.stat_result) -> tuple[str, str] | None:
    """What is wrong with the owner, the mode or the folder of a file, and what to do; None if nothing is."""
    if is_another_user(found.st_uid):
        return f"it belongs to another user ({found.st_uid})", " in a file of your own"
    mode = f"(mode {stat.S_IMODE(found.st_mode):04o})"
    if found.st_mode & stat.S_IROTH:
        return f"everybody can read it {mode}", f", and chmod 600 {path}"
    if found.st_mode & (stat.S_IWOTH | stat.S_IWGRP):
        return f"others can change it {mode}", f", and chmod 600 {path}"
    file = Path(path)  # a link can be replaced, and what it leads to
    for folder in (file.absolute().parent, file.resolve().parent):
        if _is_shared(folder):
            return (
                f"others can replace it, as they can change {folder}",
                " in a folder that only you can change",
            )
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
