"""Writes what was rendered of the rows of a table, each key once."""

from collections.abc import Callable, Iterable
from itertools import compress
from typing import TYPE_CHECKING

from promptkit.batch.checkpoints import ANOTHER_FOLDER, UnfinishedBatchError
from promptkit.batch.chunks import Rejected, RenderedChunk
from promptkit.batch.shards import Tally
from promptkit.errors.exceptions import PromptkitError

if TYPE_CHECKING:
    from sqlite3 import Cursor

__all__ = ["Keys", "KeysError", "write"]


class KeysError(PromptkitError):
    """
    The keys of rows cannot be kept on disk.

    Args:
        message:
            The reason.
    """


class Keys:
    """The keys that there were, and where: on disk, so that memory does not grow with them."""

    def __init__(self) -> None:
        import sqlite3  # only where a column has keys

        self._error = sqlite3.Error
        self._database = sqlite3.connect("", isolation_level=None)  # a file of its own, which goes with it
        self._execute("CREATE TABLE keys (key TEXT PRIMARY KEY, place INTEGER) WITHOUT ROWID")
        self._execute("BEGIN")

    def _execute(self, statement: str, *values: str | int) -> "Cursor":
        try:
            return self._database.execute(statement, values)
        except self._error as error:
            msg = f"keys cannot be kept: {error}"
            raise KeysError(msg) from None

    def add(self, key: str, place: int = 0) -> bool:
        """Keep a key; return whether it is new. Raises KeysError if the disk is full."""
        return self._execute("INSERT OR IGNORE INTO keys VALUES (?, ?)", key, place).rowcount == 1

    def replace(self, key: str, place: int) -> None:
        """Keep another place for a key."""
        self._execute("UPDATE keys SET place = ? WHERE key = ?", place, key)

    def add_all(self, keys: Iterable[str]) -> None:
        """Keep many keys. Raises KeysError if the disk is full."""
        for key in keys:
            self.add(key)

    def place(self, key: str) -> int | None:
        """Return where a key was first; None if there is no such key."""
        found = self._execute("SELECT place FROM keys WHERE key = ?", key).fetchone()
        return None if found is None else int(found[0])

    def close(self) -> None:
        """Forget them."""
        self._database.close()


def write(
    chunks: Iterable[RenderedChunk],
    files: Tally,
    keys: Keys | None,
    told: Callable[[RenderedChunk], object],
) -> None:
    """
    Write what was rendered, and a checkpoint behind each chunk.

    Args:
        chunks:
            What was rendered: the last chunk that was written before, if any was, and all behind it.

        files:
            Where to.

        keys:
            The keys that there were, if identifiers are keys: none may come twice.

        told:
            Called with each chunk that is written.

    Raises:
        UnfinishedBatchError: If what was written before is of something else.

        OSError: If a file cannot be written.
    """
    is_checked = not files.done.rows
    for chunk in chunks:
        if not is_checked:
            files.check(chunk)
            is_checked = True
            continue
        data, count, rejected = chunk.lines, chunk.requests, list(chunk.rejected)
        if keys is not None:
            is_new = [keys.add(identifier) for _, identifier in chunk.keys]
            again = (row for (row, _), new in zip(chunk.keys, is_new, strict=True) if not new)
            rejected += (Rejected(row, None, "its key is that of an earlier row") for row in again)
            data, count = b"".join(compress(data.splitlines(keepends=True), is_new)), sum(is_new)
        files.add(data, count)
        files.reject(sorted(rejected, key=lambda one: one.line))
        files.keep(chunk)
        told(chunk)
    if not is_checked:
        msg = (
            f"{files.done.rows:,} rows were done before, and now there are fewer: give the same rows, "
            f"or {ANOTHER_FOLDER}"
        )
        raise UnfinishedBatchError(msg)
