"""
The files of a batch: requests, cut where the vendor's limits are, and the rows that were rejected.

Beside them lies a checkpoint for as long as the batch is unfinished. It says how long the files were after
which row, so that a batch that was killed goes on from there.
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
    Counts what files of a batch would hold. As a context, it closes them.

    Args:
        form:
            Has the vendor's limits.

        done:
            What there is already.

    Attributes:
        done:
            How far it has come.
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
        """Take so many requests, a line each, for a new file where the last one is full."""
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
        """Write to the file that is not full."""

    def reject(self, faults: Sequence[Rejected]) -> bytes:
        """Take what is wrong with rows, and return it as lines."""
        data = b"".join(msgspec.json.encode(fault) + b"\n" for fault in faults)
        self.done.rejected_size += len(data)
        self.done.rejected += len({fault.line for fault in faults})
        return data

    def keep(self, chunk: RenderedChunk) -> None:
        """Take note that a chunk is done."""
        self.done.rows += chunk.rows
        self.done.last = chunk.digest

    def check(self, chunk: RenderedChunk) -> None:
        """Raise UnfinishedBatchError unless this is the last chunk that was done before."""
        if chunk.first + chunk.rows - 1 != self.done.rows or chunk.digest != self.done.last:
            raise UnfinishedBatchError(OTHER_BATCH)

    def identifiers(self) -> Iterator[str]:
        """Return those of all requests that there are already."""
        return iter(())

    def finish(self) -> None:
        """End the batch."""


class Shards(Tally):
    """
    Writes the files of a batch.

    Args:
        folder:
            Where they are; it is made if it does not exist.

        form:
            Has the vendor's limits.

        command:
            What the batch is of.

        resume:
            Whether to go on with a batch that is unfinished.

    Raises:
        UnfinishedBatchError: If files of a batch lie there, and *resume* is false or they are of another
            command.

        OSError: If a file cannot be written.
    """

    def __init__(self, folder: Folder, form: LineFormat, command: str, *, resume: bool) -> None:
        self._folder, self._name = folder, folder.path.name
        batch_files(folder)  # a link in the folder's place is refused before anything is created
        folder.create()
        with ExitStack() as held:
            try:
                held.enter_context(folder.locked())
            except FolderLockedError:
                msg = f"{self._name!r} has a batch that is being written: wait for its end"
                raise UnfinishedBatchError(msg) from None
            files = batch_files(folder)
            super().__init__(form, self._begun(files, form, command, resume=resume))
            self._remove_rest(files)
            folder.write(CHECKPOINT, self._kept())
            self._checkpoint = held.enter_context(folder.open_for_update(CHECKPOINT)).raw
            self._rejected = self._open(REJECTED, self.done.rejected_size)
            held.callback(self._rejected.raw.close)
            self._requests = self._open(shard_name(self.done.shard), self.done.size)
            self._held = held.pop_all()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in (self._requests, self._rejected):
            file.raw.close() if kind else file.close()  # what could not be written would fail once more
        self._held.close()

    def _begun(self, files: Mapping[str, int], form: LineFormat, command: str, *, resume: bool) -> Checkpoint:
        if is_whole(files):
            msg = f"{self._name!r} has a whole batch: {ANOTHER_FOLDER}"
            raise UnfinishedBatchError(msg)
        if not files:
            return Checkpoint(command)
        if not resume:
            msg = (
                f"{self._name!r} has a batch that was not finished: go on with --resume, or {ANOTHER_FOLDER}"
            )
            raise UnfinishedBatchError(msg)
        return checkpoint_of(self._folder, files, form, command)

    def _remove_rest(self, files: Collection[str]) -> None:
        """Remove the files that a batch wrote after its checkpoint: the last first, so that no gap arises."""
        for number in range(shards_in(files), self.done.shard, -1):
            self._folder.remove(shard_name(number))
        for name, status in self._folder.entries():
            if is_scratch(name, status):
                self._folder.remove(name)

    def _open(self, name: str, size: int) -> BufferedRandom:
        """Open a file that is continued at *size*: the rest was written after the checkpoint."""
        file = self._folder.open_for_update(name)
        file.truncate(size)
        file.seek(size)
        return file

    def _write(self, data: bytes) -> None:
        if data and not self.done.lines:  # the last one is full, or this is the first
            self._requests.close()
            self._requests = self._open(shard_name(self.done.shard), 0)
        self._requests.write(data)

    def reject(self, faults: Sequence[Rejected]) -> bytes:
        """Write what is wrong with rows."""
        data = super().reject(faults)
        self._rejected.write(data)
        return data

    def keep(self, chunk: RenderedChunk) -> None:
        """Make sure of all that was written: a batch that is killed goes on behind this chunk."""
        super().keep(chunk)
        self._requests.flush()
        self._rejected.flush()
        self._checkpoint.seek(0)
        self._checkpoint.write(self._kept())

    def _kept(self) -> bytes:
        """The checkpoint, as long as any: it is written over the last one at once."""
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
        """End the batch: what lies in the folder is whole."""
        self._requests.close()
        self._rejected.close()
        if not self.done.rejected:
            self._folder.remove(REJECTED)
        if not self.done.lines:  # there were no requests
            self._folder.remove(shard_name(self.done.shard))
        self._checkpoint.close()
        self._folder.remove(CHECKPOINT)


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
