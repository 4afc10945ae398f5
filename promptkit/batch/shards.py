"""
The files of a batch: requests, cut where the vendor's limits are, and the rows that were rejected.

Beside them lies a checkpoint for as long as the batch is unfinished. It says how long the files were after
which row, so that a batch that was killed goes on from there.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from io import BufferedWriter
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec
from msgspec import Struct

from promptkit.batch.chunks import Rejected, RenderedChunk
from promptkit.batch.line_formats import LineFormat
from promptkit.errors.exceptions import PromptkitError
from promptkit.files.regular import replace_regular_file

__all__ = ["Checkpoint", "Shards", "Tally", "UnfinishedBatch", "is_whole", "rejected_file"]

_CHECKPOINT: Final = ".promptkit-batch.json"
_CHECKPOINT_SIZE: Final = 512
_REJECTED: Final = "rejected.jsonl"
_REQUESTS: Final = "requests-*.jsonl"

#: Why a batch cannot go on.
_OTHERS: Final = (
    "what lies in the folder is of another command, of other rows, or of a prompt that has changed since: "
    "give the same, or name another folder with -o"
)


class UnfinishedBatch(PromptkitError):
    """
    A folder has files of a batch that are in the way, or of which another command has written a part.

    Args:
        message:
            What lies there, and what to do.
    """


class Checkpoint(Struct):
    """
    How far a batch has come.

    Args:
        command:
            What the batch is of: another command cannot go on with it.

        rows:
            How many rows are done.

        shard:
            The number of the file that is being written.

        lines:
            How many lines that file has.

        size:
            How long it is, in bytes.

        rejected_size:
            How long the file of rejected rows is, in bytes.

        rejected:
            How many rows were rejected.

        requests:
            How many requests there are, in all files.

        bytes:
            How long they are, in all files.

        last:
            Tells what became of the last rows: who goes on finds the same, or reads something else.
    """

    command: str
    rows: int = 0
    shard: int = 1
    lines: int = 0
    size: int = 0
    rejected_size: int = 0
    rejected: int = 0
    requests: int = 0
    bytes: int = 0
    last: str = ""


def _lock(folder: Path, held: ExitStack) -> None:
    """Keep other runs out of a folder."""
    if sys.platform == "win32":  # where open files keep others out
        return
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    held.callback(os.close, descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        msg = f"{folder.name!r} has a batch that is being written: wait for its end"
        raise UnfinishedBatch(msg) from None
    except OSError:  # not every file system can
        pass


def is_whole(folder: Path) -> bool:
    """Whether a batch lies in a folder that was finished."""
    has_files = any(folder.glob(_REQUESTS)) or (folder / _REJECTED).exists()
    return has_files and not (folder / _CHECKPOINT).exists()


def rejected_file(folder: Path) -> Path:
    """Return where the rows are that were rejected."""
    return folder / _REJECTED


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
        """Check that the last chunk that was done before is this one. Raises UnfinishedBatch if it is not."""
        if chunk.first + chunk.rows - 1 != self.done.rows or chunk.digest != self.done.last:
            raise UnfinishedBatch(_OTHERS)

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
        UnfinishedBatch: If files of a batch lie there, and *resume* is false or they are of another command.

        OSError: If a file cannot be written.
    """

    def __init__(self, folder: Path, form: LineFormat, command: str, *, resume: bool) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as held:
            _lock(folder, held)
            for litter in folder.glob(f"{_CHECKPOINT}.*"):  # of one that was killed while it wrote
                litter.unlink()
            super().__init__(form, self._begun(command, resume=resume))
            replace_regular_file(folder / _CHECKPOINT, self._kept())
            self._checkpoint = held.enter_context((folder / _CHECKPOINT).open("r+b", buffering=0))
            self._rejected = self._open(folder / _REJECTED, self.done.rejected_size)
            held.callback(self._rejected.raw.close)
            self._requests = self._open(self._shard(self.done.shard), self.done.size)
            self._held = held.pop_all()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in (self._requests, self._rejected):
            file.raw.close() if kind else file.close()  # what could not be written would fail once more
        self._held.close()

    def _begun(self, command: str, *, resume: bool) -> Checkpoint:
        try:
            data = (self._folder / _CHECKPOINT).read_bytes()
        except FileNotFoundError:
            if is_whole(self._folder):
                msg = f"{self._folder.name!r} has a whole batch: name another folder with -o"
                raise UnfinishedBatch(msg) from None
            return Checkpoint(command)
        if not resume:
            msg = (
                f"{self._folder.name!r} has a batch that was not finished: go on with --resume, "
                "or name another folder with -o"
            )
            raise UnfinishedBatch(msg)
        try:
            found = msgspec.json.decode(data, type=Checkpoint)
        except (msgspec.DecodeError, UnicodeDecodeError):
            found = Checkpoint("")
        if found.command != command:
            raise UnfinishedBatch(_OTHERS)
        later = found.shard + 1
        while (path := self._shard(later)).exists():
            path.unlink()
            later += 1
        return found

    @property
    def files(self) -> list[Path]:
        """The files of requests, in order."""
        return sorted(self._folder.glob(_REQUESTS))

    def _shard(self, number: int) -> Path:
        return self._folder / f"requests-{number:05}.jsonl"

    def _open(self, path: Path, size: int) -> BufferedWriter:
        """Open a file that is written on from *size*: what is behind was written after the checkpoint."""
        file = path.open("ab")
        if file.tell() < size:
            file.close()
            msg = f"{path.name!r} has lost what was written: name another folder with -o"
            raise UnfinishedBatch(msg)
        file.truncate(size)
        file.seek(size)
        return file

    def _write(self, data: bytes) -> None:
        if data and not self.done.lines:  # the last one is full, or this is the first
            self._requests.close()
            self._requests = self._open(self._shard(self.done.shard), 0)
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
        return msgspec.json.encode(self.done).ljust(_CHECKPOINT_SIZE)

    def identifiers(self) -> Iterator[str]:  # noqa: D102 (as of a tally)
        for path in self.files:
            with path.open("rb") as file:
                for line in file:
                    yield str(msgspec.json.decode(line)[self._form.identifier])

    def finish(self) -> None:
        """End the batch: what lies in the folder is whole."""
        self._requests.close()
        self._rejected.close()
        if not self.done.rejected:
            (self._folder / _REJECTED).unlink()
        if not self.done.lines:  # there were no requests
            self._shard(self.done.shard).unlink()
        self._checkpoint.close()
        (self._folder / _CHECKPOINT).unlink()
