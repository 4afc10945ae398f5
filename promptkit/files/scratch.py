"""Temporary files and folders that only the user of this process can read."""

import atexit
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile, mkdtemp, mkstemp
from threading import RLock
from typing import IO, Any, Final
from weakref import WeakValueDictionary


def create_scratch_folder(prefix: str) -> str:
    """Create a temporary folder, and return its path. Raises OSError on failure."""
    return mkdtemp(prefix=prefix)


def remove_scratch_folder(folder: str) -> None:
    """Remove a temporary folder with its content, as far as possible."""
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def scratch_folder(prefix: str) -> Iterator[str]:
    """Create a temporary folder, yield its path, and remove it afterwards. Raises OSError on failure."""
    folder = create_scratch_folder(prefix)
    try:
        yield folder
    finally:
        remove_scratch_folder(folder)


@contextmanager
def scratch_file(text: str, prefix: str, suffix: str) -> Iterator[Path]:
    """Write a temporary file, yield its path, and remove it afterwards. Raises OSError on failure."""
    descriptor, name = mkstemp(prefix=prefix, suffix=suffix)
    file = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
        yield file
    finally:
        file.unlink(missing_ok=True)


def open_unnamed_file(prefix: str) -> IO[bytes]:
    """Open an unnamed file, which no other process can open and which is removed when this process exits."""
    return TemporaryFile(prefix=prefix)


#: Maximum number of bytes in memory; further content goes to a temporary file.
MOST_IN_MEMORY: Final = 64 * 1024 * 1024

_by_digest: Final = WeakValueDictionary[str, "SpooledBytes"]()
_lock: Final = RLock()  # reentrant, because `__del__` can run while it is held


class SpooledBytes:
    """
    Immutable content in memory or in a temporary file, identified by its digest.

    Args:
        digest:
            Its SHA-256, in lowercase hexadecimal digits.

        data:
            The bytes.

    Attributes:
        size:
            The number of bytes.
    """

    __slots__ = ("__weakref__", "_data", "_file", "_offset", "digest", "size")

    in_memory = 0

    def __init__(self, digest: str, data: bytes) -> None:
        self.digest = digest
        self.size = len(data)
        self._data: bytes | None = None
        with _lock:
            if SpooledBytes.in_memory + self.size <= MOST_IN_MEMORY:
                SpooledBytes.in_memory += self.size
                self._data = data
            else:
                self._file = _file_of(os.getpid())
                self._offset = self._file.seek(0, os.SEEK_END)
                self._file.write(data)
                self._file.flush()

    def __del__(self, lock: RLock = _lock) -> None:  # at exit, the module's globals are gone
        with lock:
            type(self).in_memory -= 0 if self._data is None else self.size

    def __reduce__(self) -> tuple[Any, ...]:
        return keep, (self.data,)

    @property
    def data(self) -> bytes:
        """The bytes."""
        if self._data is not None:
            return self._data
        if sys.platform != "win32":  # worker processes share the file position
            return os.pread(self._file.fileno(), self.size, self._offset)
        with _lock:
            self._file.seek(self._offset)
            data: bytes = self._file.read(self.size)
            return data


def keep(data: bytes) -> SpooledBytes:
    """
    Store *data* in memory, or on disk if `MOST_IN_MEMORY` is reached. Equal content is stored once.

    Raises:
        OSError: If the disk is full.
    """
    from hashlib import sha256  # imported late: OpenSSL takes 4 MiB

    digest = sha256(data).hexdigest()
    with _lock:
        if (content := _by_digest.get(digest)) is None:
            content = _by_digest[digest] = SpooledBytes(digest, data)
        return content


@cache
def _file_of(_process: int) -> IO[Any]:
    file = open_unnamed_file("promptkit-")
    atexit.register(file.close)
    return file
