"""Reads files of secrets, unless others have access to them."""

import os
import stat
from pathlib import Path
from typing import Final

__all__ = ["InvalidSecretFile", "read_secret_file"]

#: A larger file holds something else.
_MAX_FILE_BYTES: Final = 65536


class InvalidSecretFile(ValueError):
    """
    A file of secrets that is not read. The message says why, and never shows one.
    """


def read_secret_file(path: str, holds: str) -> str:
    """
    Return the text of a file. What is no ASCII in it is replaced.

    Args:
        path:
            The file. On POSIX, nobody but its owner and group may have access, and its group may only read.

        holds:
            What it holds, one a line, such as ``keys``.

    Raises:
        InvalidSecretFile: If it cannot be opened, is too large, or if others may read or change it.
    """
    try:
        with Path(path).open("rb") as file:
            _check_mode(path, os.fstat(file.fileno()).st_mode, holds)
            data = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        msg = f"{path}: cannot be read: {error.strerror}"
        raise InvalidSecretFile(msg) from None
    if len(data) > _MAX_FILE_BYTES:
        msg = f"{path}: has more than {_MAX_FILE_BYTES:,} bytes: it should hold {holds}, one a line"
        raise InvalidSecretFile(msg)
    # What is no ASCII is in no secret, and may be in comments of any encoding.
    return data.removeprefix(b"\xef\xbb\xbf").decode("ascii", "replace")


def _check_mode(path: str, mode: int, holds: str) -> None:
    if os.name != "posix" or not mode & (stat.S_IROTH | stat.S_IWOTH | stat.S_IWGRP):
        return
    can = "everybody can read it" if mode & stat.S_IROTH else "others can change it"
    msg = f"{path}: {can} (mode {stat.S_IMODE(mode):04o}): make new {holds}, and chmod 600 {path}"
    raise InvalidSecretFile(msg)
