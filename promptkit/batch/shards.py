"""
The files of a batch: requests, split at the vendor's limits, and rejected rows.

While the batch is unfinished, a checkpoint next to these files records their sizes after the last chunk, so
that a batch that was killed can be resumed. A folder can come with another author's repository, so a
checkpoint is trusted only if it agrees with the names and sizes of the files.
"""

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from itertools import compress
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, TypeAlias

import msgspec
from msgspec import Meta, Struct

from promptkit.batch.vendor_formats import LineFormat
from promptkit.batch.workers import Rejection, RenderedChunk
from promptkit.errors.exceptions import PromptkitError
from promptkit.files.folder import Folder, FolderLockedError
from promptkit.files.reading import check_regular

#: The names of the checkpoint, and of the file of rejected rows.
CHECKPOINT: Final = ".promptkit-batch.json"
REJECTED: Final = "rejected.jsonl"

#: The size of a checkpoint, in bytes.
_CHECKPOINT_SIZE: Final = 512

#: The last words of every error message about a folder.
_ANOTHER_FOLDER: Final = "choose another folder with -o"

#: The last words of every error message about a folder that contains a batch.
_REPLACE_IT: Final = f"replace it with --force, or {_ANOTHER_FOLDER}"

#: The reason why a batch cannot be resumed.
_OTHER_BATCH: Final = (
    "the folder has a batch of another command, of other rows, or of an older version "
    "of the prompt: repeat that command, or choose another folder with -o"
)

_Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class BatchFolderError(PromptkitError):
    """
    A batch cannot be started or resumed in a folder, for example because the folder has another batch.

    Args:
        message:
            The problem, and how to fix it.
    """


class Checkpoint(Struct, forbid_unknown_fields=True):
    """
    The progress of a batch.

    Args:
        command:
            A digest of the command and its input; a command with another digest cannot resume the batch.

        rows:
            The number of finished rows.

        shard:
            The number of the file that is being written.

        lines:
            The number of lines in that file.

        size:
            The size of that file in bytes.

        rejected_size:
            The size of the file of rejected rows in bytes.

        rejected:
            The number of rejected rows.

        requests:
            The number of requests in all files.

        bytes:
            The size of all requests in bytes.

        last:
            The digest of the last chunk. On resuming, the chunk is rendered again and must have this digest.
    """

    command: str
    rows: _Count = 0
    shard: Annotated[int, Meta(ge=1)] = 1
    lines: _Count = 0
    size: _Count = 0
    rejected_size: _Count = 0
    rejected: _Count = 0
    requests: _Count = 0
    bytes: _Count = 0
    last: str = ""


def find_batch_files(folder: Folder) -> dict[str, int]:
    """
    Return the size of each file in *folder* that is named like a file of a batch.

    Raises:
        BatchFolderError: If the folder is a link or cannot be read, or one of the files is a link, a
            pipe, a device or a folder.
    """
    path, sizes = folder.path.name, dict[str, int]()
    try:
        for name, status in folder.entries():
            if name in (CHECKPOINT, REJECTED) or _is_shard_name(name):
                path = f"{folder.path.name}/{name}"
                check_regular(status, name)
                sizes[name] = status.st_size
    except FileNotFoundError:
        return {}
    except OSError as error:
        msg = f"{path!r} cannot be used: {error.strerror}; fix this, or {_ANOTHER_FOLDER}"
        raise BatchFolderError(msg) from None
    return sizes


def _batch_error(path: str, problem: str, fix: str = _ANOTHER_FOLDER) -> BatchFolderError:
    """Return an error that describes a problem with a file or folder, and how to fix it."""
    return BatchFolderError(f"{path!r} {problem}: {fix}")


def _is_shard_name(name: str) -> bool:
    return name.startswith("requests-") and name.endswith(".jsonl")


def _shard_name(number: int) -> str:
    return f"requests-{number:05}.jsonl"


class BatchWriter:
    """
    The writer of the files of a batch.

    Args:
        folder:
            The folder of the files; None to count the requests without writing them.

        form:
            The vendor's format, with its limits.

        done:
            The checkpoint to start from.

        stack:
            Closes the files.

    Attributes:
        done:
            The current checkpoint.
    """

    def __init__(self, folder: Folder | None, form: LineFormat, done: Checkpoint, stack: ExitStack) -> None:
        self.progress = done
        self._folder, self._format, self._stack = folder, form, stack
        self._is_same_batch = not done.rows
        self._keys: sqlite3.Connection | None = None
        self._checkpoint = self._open(CHECKPOINT, 0)
        self._save()
        self._rejected = self._open(REJECTED, done.rejected_size)
        self._requests = self._open(_shard_name(done.shard), done.size)

    def _open(self, name: str, size: int) -> BinaryIO:
        """Open a file to continue at *size*, and discard data written after the checkpoint."""
        if self._folder is None:
            return self._stack.enter_context(Path(os.devnull).open("wb"))
        file = self._stack.enter_context(self._folder.open_for_update(name))
        file.truncate(size)
        file.seek(size)
        return file

    def _save(self) -> None:
        """Write the checkpoint."""
        if self._folder is None:
            return
        self._checkpoint.seek(0)
        self._checkpoint.write(_encode_checkpoint(self.progress))
        self._checkpoint.flush()

    def require_unique_keys(self) -> None:
        """
        Reject rows with the same identifier as an earlier row, including rows before the checkpoint.

        Raises:
            BatchFolderError: If an existing line is not a request.

            OSError: If a file cannot be read.
        """
        # A temporary file, so that memory does not grow with the keys.
        self._keys = self._stack.enter_context(closing(sqlite3.connect("")))
        self._keys.execute("CREATE TABLE keys (key TEXT PRIMARY KEY) WITHOUT ROWID")
        for identifier in self._identifiers():
            self._add_key(identifier)

    def _add_key(self, key: str) -> bool:
        """Add a key, and return True if it is new."""
        assert self._keys is not None  # noqa: S101 (the callers check it)
        return self._keys.execute("INSERT OR IGNORE INTO keys VALUES (?)", (key,)).rowcount == 1

    def _identifiers(self) -> Iterator[str]:
        """Yield the identifiers of the existing requests."""
        if self._folder is None:
            return
        for number in range(1, self.progress.shard + 1):
            name = _shard_name(number)
            with self._folder.open_for_reading(name) as file:
                for line in file:
                    try:
                        request = msgspec.json.decode(line, type=dict[str, Any])
                        yield msgspec.convert(request[self._format.identifier], str)
                    except (ValueError, RecursionError, KeyError):
                        path = f"{self._folder.path.name}/{name}"
                        raise _batch_error(path, "has a line that is not a request") from None

    def write(self, chunk: RenderedChunk) -> None:
        """
        Write a chunk and a checkpoint, so that a batch that is killed resumes after this chunk.

        On resuming, the first chunk must be the last one before the checkpoint. That chunk is compared with
        the checkpoint, but not written again.

        Raises:
            BatchFolderError: If the existing files do not belong to these rows.

            OSError: If a file cannot be written.
        """
        if not self._is_same_batch:
            if (chunk.last, chunk.digest) != (self.progress.rows, self.progress.last):
                raise BatchFolderError(_OTHER_BATCH)
            self._is_same_batch = True
            return
        lines, count, rejected = chunk.lines, chunk.requests, list(chunk.rejected)
        if self._keys is not None:
            is_new = [self._add_key(identifier) for _, identifier in chunk.keys]
            lines, count = b"".join(compress(lines.splitlines(keepends=True), is_new)), sum(is_new)
            reason = "an earlier row has the same key"
            for (row, identifier), new in zip(chunk.keys, is_new, strict=True):
                if not new:
                    rejected.append(Rejection(row, None, reason, identifier))
            rejected.sort(key=lambda rejection: rejection.line)
        self._write_requests(lines, count)
        for rejection in rejected:
            self.progress.rejected_size += self._rejected.write(msgspec.json.encode(rejection) + b"\n")
        self.progress.rejected += len({rejection.line for rejection in rejected})
        self.progress.rows, self.progress.last = chunk.last, chunk.digest
        self._requests.flush()
        self._rejected.flush()
        self._save()

    def _write_requests(self, lines: bytes, count: int) -> None:
        """Write requests, one per line; start a new file if the current file would exceed a limit."""
        done, form = self.progress, self._format
        if done.lines + count > form.max_lines or done.size + len(lines) > form.max_bytes:
            if count > 1:
                for line in lines.splitlines(keepends=True):
                    self._write_requests(line, 1)
                return
            done.shard, done.lines, done.size = done.shard + 1, 0, 0
            self._requests.close()
            self._requests = self._open(_shard_name(done.shard), 0)
        self._requests.write(lines)
        done.lines, done.size = done.lines + count, done.size + len(lines)
        done.requests, done.bytes = done.requests + count, done.bytes + len(lines)

    def finish(self) -> None:
        """
        Finish the batch by closing the files, and removing the checkpoint and all empty files.

        Raises:
            BatchFolderError: If the table has fewer rows than are already finished.
        """
        done = self.progress
        if not self._is_same_batch:
            msg = (
                f"the batch already has {done.rows:,} finished rows, but the table has fewer: "
                "pass the same rows, "
                f"or {_ANOTHER_FOLDER}"
            )
            raise BatchFolderError(msg)
        if self._folder is None:
            return
        for file in (self._requests, self._rejected, self._checkpoint):
            file.close()
        if not done.rejected:
            self._folder.remove(REJECTED)
        if not done.requests:
            self._folder.remove(_shard_name(done.shard))
        self._folder.remove(CHECKPOINT)


@contextmanager
def open_batch(
    folder: Folder | None, form: LineFormat, command: str, *, resume: bool, force: bool = False
) -> Iterator[BatchWriter]:
    """
    Open the files of a batch, yield their writer, and close the files afterwards.

    Args:
        folder:
            The folder of the files, which is created if it does not exist; None to write nothing.

        form:
            The vendor's format, with its limits.

        command:
            A digest of the command and its input, see `Checkpoint`.

        resume:
            Whether to resume an unfinished batch.

        force:
            Whether to replace a batch, finished or not.

    Raises:
        BatchFolderError: If the folder contains a batch that is neither resumed nor replaced, if the
            batch to resume belongs to another command, or if unrelated files have the names of batch files.

        OSError: If a file cannot be written.
    """
    with ExitStack() as stack:
        if folder is None:
            done = Checkpoint(command)
        else:
            find_batch_files(folder)  # rejects a link at the folder's path before creating anything
            folder.create()
            try:
                stack.enter_context(folder.locked())
            except FolderLockedError:
                msg = (
                    f"another process is writing a batch to {folder.path.name!r}: wait until it has finished"
                )
                raise BatchFolderError(msg) from None
            if force:
                _discard_batch(folder, command)
            done = _load_checkpoint(folder, command, resume=resume or force)
        yield BatchWriter(folder, form, done, stack)


def _discard_batch(folder: Folder, command: str) -> None:
    """Mark the files in a folder as an unfinished batch without rows, so that resuming it replaces them."""
    checkpoint = Checkpoint(command)
    if not _matches_files(checkpoint, find_batch_files(folder)):
        raise _batch_error(folder.path.name, "has other files of requests")
    folder.write(CHECKPOINT, _encode_checkpoint(checkpoint))


def _encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    """Encode a checkpoint with a fixed size, so that a single write replaces the previous checkpoint."""
    return msgspec.json.encode(checkpoint).ljust(_CHECKPOINT_SIZE)


def _load_checkpoint(folder: Folder, command: str, *, resume: bool) -> Checkpoint:
    """Return the checkpoint to start from, and remove request files that were created after it."""
    files = find_batch_files(folder)
    if not any(files.values()):  # nothing was written, not even a checkpoint
        return Checkpoint(command)
    if CHECKPOINT not in files:
        raise _batch_error(folder.path.name, "already has a finished batch", _REPLACE_IT)
    if not resume:
        fix = f"continue it with --resume, {_REPLACE_IT}"
        raise _batch_error(folder.path.name, "has an unfinished batch", fix)
    path = f"{folder.path.name}/{CHECKPOINT}"
    try:
        checkpoint = msgspec.json.decode(folder.read(CHECKPOINT, _CHECKPOINT_SIZE), type=Checkpoint)
    except (OSError, ValueError, RecursionError):
        raise _batch_error(path, "is not a checkpoint") from None
    if checkpoint.command != command:
        raise BatchFolderError(_OTHER_BATCH)
    if not _matches_files(checkpoint, files):
        raise _batch_error(path, "does not match the files next to it")
    # Remove the last file first, so that killing the process leaves no gap.
    for number in range(sum(map(_is_shard_name, files)), checkpoint.shard, -1):
        folder.remove(_shard_name(number))
    return checkpoint


def _matches_files(checkpoint: Checkpoint, files: Mapping[str, int]) -> bool:
    """Return whether a checkpoint's files are numbered without gaps, with at least the recorded sizes."""
    names = [_shard_name(number) for number in range(1, sum(map(_is_shard_name, files)) + 1)]
    return (
        all(name in files for name in names)
        and checkpoint.shard <= max(len(names), 1)
        and sum(files[name] for name in names[: checkpoint.shard - 1]) + checkpoint.size == checkpoint.bytes
        and files.get(_shard_name(checkpoint.shard), 0) >= checkpoint.size
        and files.get(REJECTED, 0) >= checkpoint.rejected_size
    )
