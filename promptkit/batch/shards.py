"""
The files of a batch: requests, split at the vendor's limits, and rejected rows.

While the batch is unfinished, a checkpoint next to them has the sizes of the files after the last row, so
that a batch that was killed can be resumed.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from io import BufferedRandom
from itertools import compress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from promptkit.batch.checkpoints import (
    ANOTHER_FOLDER,
    CHECKPOINT,
    CHECKPOINT_SIZE,
    OTHER_BATCH,
    REJECTED,
    Checkpoint,
    UnfinishedBatchError,
    batch_files,
    checkpoint_of,
    contradiction,
    is_scratch,
    is_whole,
    shard_name,
    shards_in,
)
from promptkit.batch.chunks import Rejected, RenderedChunk
from promptkit.batch.request_lines import LineFormat
from promptkit.errors.exceptions import PromptkitError
from promptkit.files.folder import Folder, FolderLockedError

if TYPE_CHECKING:
    from sqlite3 import Cursor


class Tally:
    """
    The totals of a batch. As a context manager, it closes the files of subclasses.

    Args:
        form:
            The vendor's format, with its limits.

        done:
            The checkpoint to start from.

    Attributes:
        done:
            The current checkpoint.
    """

    def __init__(self, form: LineFormat, done: Checkpoint) -> None:
        self.done = done
        self._form = form

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def add(self, data: bytes, count: int) -> None:
        """Add requests, one per line; a new file starts when the last one is full."""
        done, form = self.done, self._form
        if done.lines + count <= form.most_lines and done.size + len(data) <= form.most_bytes:
            self._take(data, count)
            return
        for line in data.splitlines(keepends=True):
            if done.lines == form.most_lines or done.size + len(line) > form.most_bytes:
                done.shard, done.lines, done.size = done.shard + 1, 0, 0
            self._take(line, 1)

    def _take(self, data: bytes, count: int) -> None:
        self._write(data)
        done, size = self.done, len(data)
        done.lines, done.size = done.lines + count, done.size + size
        done.requests, done.bytes = done.requests + count, done.bytes + size

    def _write(self, data: bytes) -> None:
        """Write to the current file."""

    def reject(self, rejected: Sequence[Rejected]) -> bytes:
        """Add errors of rejected rows, and return them as lines."""
        data = b"".join(msgspec.json.encode(rejection) + b"\n" for rejection in rejected)
        self.done.rejected_size += len(data)
        self.done.rejected += len({rejection.line for rejection in rejected})
        return data

    def keep(self, chunk: RenderedChunk) -> None:
        """Record that a chunk is done."""
        self.done.rows += chunk.rows
        self.done.last = chunk.digest

    def check(self, chunk: RenderedChunk) -> None:
        """Raise UnfinishedBatchError unless this is the last chunk before the checkpoint."""
        if chunk.first + chunk.rows - 1 != self.done.rows or chunk.digest != self.done.last:
            raise UnfinishedBatchError(OTHER_BATCH)

    def identifiers(self) -> Iterator[str]:
        """Return the identifiers of all existing requests."""
        return iter(())

    def finish(self) -> None:
        """Finish the batch."""


class Shards(Tally):
    """
    A writer of the files of a batch.

    Args:
        folder:
            The folder of the files, which is created if it does not exist.

        form:
            The vendor's format, with its limits.

        command:
            The command that the batch belongs to.

        resume:
            Whether to resume an unfinished batch.

    Raises:
        UnfinishedBatchError: If the folder has files of a batch, and *resume* is false or they belong to
            another command.

        OSError: If a file cannot be written.
    """

    def __init__(self, folder: Folder, form: LineFormat, command: str, *, resume: bool) -> None:
        self._folder, self._name = folder, folder.path.name
        batch_files(folder)  # rejects a link in place of the folder before creating anything
        folder.create()
        with ExitStack() as stack:
            try:
                stack.enter_context(folder.locked())
            except FolderLockedError:
                msg = f"{self._name!r} has a batch that is being written: wait for its end"
                raise UnfinishedBatchError(msg) from None
            files = batch_files(folder)
            super().__init__(form, self._initial_checkpoint(files, form, command, resume=resume))
            self._remove_later_files(files)
            folder.write(CHECKPOINT, self._encode_checkpoint())
            self._checkpoint = stack.enter_context(folder.open_for_update(CHECKPOINT)).raw
            self._rejected = self._open(REJECTED, self.done.rejected_size)
            stack.callback(self._rejected.raw.close)
            self._requests = self._open(shard_name(self.done.shard), self.done.size)
            self._stack = stack.pop_all()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in (self._requests, self._rejected):
            file.raw.close() if kind else file.close()  # after an error, flushing would fail again
        self._stack.close()

    def _initial_checkpoint(
        self, files: Mapping[str, int], form: LineFormat, command: str, *, resume: bool
    ) -> Checkpoint:
        if is_whole(files):
            msg = f"{self._name!r} has a whole batch: {ANOTHER_FOLDER}"
            raise UnfinishedBatchError(msg)
        if not files:
            return Checkpoint(command)
        if not resume:
            msg = f"{self._name!r} has an unfinished batch: continue it with --resume, or {ANOTHER_FOLDER}"
            raise UnfinishedBatchError(msg)
        return checkpoint_of(self._folder, files, form, command)

    def _remove_later_files(self, files: Collection[str]) -> None:
        """Remove files that were written after the checkpoint, the last first, so that no gap arises."""
        for number in range(shards_in(files), self.done.shard, -1):
            self._folder.remove(shard_name(number))
        for name, status in self._folder.entries():
            if is_scratch(name, status):
                self._folder.remove(name)

    def _open(self, name: str, size: int) -> BufferedRandom:
        """Open a file to continue at *size*, and discard data written after the checkpoint."""
        file = self._folder.open_for_update(name)
        file.truncate(size)
        file.seek(size)
        return file

    def _write(self, data: bytes) -> None:
        if data and not self.done.lines:  # the previous file is full, or this is the first
            self._requests.close()
            self._requests = self._open(shard_name(self.done.shard), 0)
        self._requests.write(data)

    def reject(self, rejected: Sequence[Rejected]) -> bytes:
        """Write errors of rejected rows."""
        data = super().reject(rejected)
        self._rejected.write(data)
        return data

    def keep(self, chunk: RenderedChunk) -> None:
        """Flush the files and write a checkpoint: a batch that is killed resumes after this chunk."""
        super().keep(chunk)
        self._requests.flush()
        self._rejected.flush()
        self._checkpoint.seek(0)
        self._checkpoint.write(self._encode_checkpoint())

    def _encode_checkpoint(self) -> bytes:
        """Encode the checkpoint with a fixed size, so that a single write replaces the last one."""
        return msgspec.json.encode(self.done).ljust(CHECKPOINT_SIZE)

    def identifiers(self) -> Iterator[str]:
        """
        Yield the identifiers of the requests that exist already.

        Raises:
            UnfinishedBatchError: If a line is not a request, or their number is not that of the checkpoint.

            OSError: If a file cannot be read.
        """
        requests = 0
        for number in range(1, self.done.shard + 1):
            name = shard_name(number)
            with self._folder.open_for_reading(name) as file:
                for line in file:
                    yield self._identifier(line, name)
                    requests += 1
        if requests != self.done.requests:
            raise contradiction(self._folder)

    def _identifier(self, line: bytes, name: str) -> str:
        try:
            identifier = msgspec.json.decode(line, type=dict[str, Any])[self._form.identifier]
        except (ValueError, RecursionError, KeyError):
            identifier = None
        if not isinstance(identifier, str):
            msg = f"'{self._name}/{name}' has a line that is not a request: {ANOTHER_FOLDER}"
            raise UnfinishedBatchError(msg)
        return identifier

    def finish(self) -> None:
        """Finish the batch: close the files, and remove the checkpoint and empty files."""
        self._requests.close()
        self._rejected.close()
        if not self.done.rejected:
            self._folder.remove(REJECTED)
        if not self.done.lines:  # there are no requests
            self._folder.remove(shard_name(self.done.shard))
        self._checkpoint.close()
        self._folder.remove(CHECKPOINT)


class KeysError(PromptkitError):
    """
    The keys of rows cannot be stored on disk.

    Args:
        message:
            The reason.
    """


class Keys:
    """Keys of rows with locations, stored on disk, so that memory does not grow with them."""

    def __init__(self) -> None:
        import sqlite3  # only needed if a column has keys

        self._error = sqlite3.Error
        self._database = sqlite3.connect("", isolation_level=None)  # a temporary file
        self._execute("CREATE TABLE keys (key TEXT PRIMARY KEY, location INTEGER) WITHOUT ROWID")
        self._execute("BEGIN")

    def _execute(self, statement: str, *values: str | int) -> "Cursor":
        try:
            return self._database.execute(statement, values)
        except self._error as error:
            msg = f"keys cannot be stored: {error}"
            raise KeysError(msg) from None

    def add(self, key: str, location: int = 0) -> bool:
        """Add a key; return whether it is new. Raises KeysError if the disk is full."""
        return self._execute("INSERT OR IGNORE INTO keys VALUES (?, ?)", key, location).rowcount == 1

    def replace(self, key: str, location: int) -> None:
        """Replace the location of a key."""
        self._execute("UPDATE keys SET location = ? WHERE key = ?", location, key)

    def add_all(self, keys: Iterable[str]) -> None:
        """Add many keys. Raises KeysError if the disk is full."""
        for key in keys:
            self.add(key)

    def location(self, key: str) -> int | None:
        """Return the location of a key; None if it is unknown."""
        row = self._execute("SELECT location FROM keys WHERE key = ?", key).fetchone()
        return None if row is None else int(row[0])

    def close(self) -> None:
        """Delete the keys."""
        self._database.close()


def write(
    chunks: Iterable[RenderedChunk],
    files: Tally,
    keys: Keys | None,
    report: Callable[[RenderedChunk], object],
) -> None:
    """
    Write rendered chunks, and a checkpoint after each.

    Args:
        chunks:
            The rendered chunks. When resuming, the first is the last chunk before the checkpoint.

        files:
            The files of the batch.

        keys:
            The existing keys, if identifiers are keys, which must be unique.

        report:
            Called with each written chunk.

    Raises:
        UnfinishedBatchError: If the existing files do not belong to these rows.

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
            duplicates = (row for (row, _), new in zip(chunk.keys, is_new, strict=True) if not new)
            rejected += (Rejected(row, None, "its key is that of an earlier row") for row in duplicates)
            data, count = b"".join(compress(data.splitlines(keepends=True), is_new)), sum(is_new)
        files.add(data, count)
        files.reject(sorted(rejected, key=lambda rejection: rejection.line))
        files.keep(chunk)
        report(chunk)
    if not is_checked:
        msg = (
            f"{files.done.rows:,} rows were done before, and now there are fewer: give the same rows, "
            f"or {ANOTHER_FOLDER}"
        )
        raise UnfinishedBatchError(msg)
