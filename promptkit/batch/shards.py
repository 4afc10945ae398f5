"""
The files of a batch: requests, which are split into several files at the vendor's limits, and rejected rows.

While the batch is unfinished, a checkpoint next to these files records their sizes after the last chunk, so
that a batch that was killed can be resumed. The folder can come from a repository by another author, so a
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

#: The names of the checkpoint file and of the file with rejected rows.
CHECKPOINT: Final = ".promptkit-batch.json"
REJECTED: Final = "rejected.jsonl"

#: The size of a checkpoint file, in bytes.
_CHECKPOINT_SIZE: Final = 512

#: The hint at the end of error messages about a folder.
_FOLDER_HINT: Final = "choose another folder with -o"

#: The hint at the end of error messages about a folder that already contains a batch.
_BATCH_HINT: Final = f"replace it with --force, or {_FOLDER_HINT}"

#: The error message if the batch to resume is not the one that the folder contains.
_DIFFERENT_BATCH: Final = (
    "the folder contains a batch from another command, from other rows, or from an older version "
    "of the prompt: repeat that command, or choose another folder with -o"
)

_Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class BatchFolderError(PromptkitError):
    """
    A batch cannot be started or resumed in a folder, for example because the folder contains another batch.

    Args:
        message:
            A description of the problem, and how to fix it.
    """


class Checkpoint(Struct, forbid_unknown_fields=True):
    """
    The progress of a batch.

    Args:
        command:
            A digest of the command and its input. Only a command with the same digest can resume the batch.

        rows:
            The number of finished rows.

        shard:
            The number of the request file that is being written.

        lines:
            The number of lines in that file.

        size:
            The size of that file, in bytes.

        rejected_size:
            The size of the file with rejected rows, in bytes.

        rejected:
            The number of rejected rows.

        requests:
            The number of requests in all files.

        bytes:
            The size of all requests, in bytes.

        last:
            The digest of the last chunk that was written. When the batch is resumed, this chunk is rendered
            again and must have the same digest.
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
    Return the sizes of the files in *folder* that are named like files of a batch, keyed by file name.

    Raises:
        BatchFolderError: If the folder is a link or cannot be read, or if one of these names belongs to a
            link, a pipe, a device or a folder.
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
        msg = f"{path!r} cannot be used: {error.strerror}; fix the problem, or {_FOLDER_HINT}"
        raise BatchFolderError(msg) from None
    return sizes


def _batch_error(path: str, problem: str, fix: str = _FOLDER_HINT) -> BatchFolderError:
    """Return an error with a message about the file or folder at *path*: the problem, and how to fix it."""
    return BatchFolderError(f"{path!r} {problem}: {fix}")


def _is_shard_name(name: str) -> bool:
    return name.startswith("requests-") and name.endswith(".jsonl")


def _shard_name(number: int) -> str:
    return f"requests-{number:05}.jsonl"


class BatchWriter:
    """
    Writes the files of a batch.

    Args:
        folder:
            The folder for the files; None to count the requests without writing them.

        line_format:
            The vendor's format, with its limits.

        progress:
            The checkpoint from which to continue.

        stack:
            The exit stack that closes the files.

    Attributes:
        progress:
            The current checkpoint.
    """

    def __init__(
        self, folder: Folder | None, line_format: LineFormat, progress: Checkpoint, stack: ExitStack
    ) -> None:
        self.progress = progress
        self._folder, self._line_format, self._stack = folder, line_format, stack
        self._is_same_batch = not progress.rows
        self._keys: sqlite3.Connection | None = None
        self._checkpoint_file = self._open(CHECKPOINT, 0)
        self._save_checkpoint()
        self._rejected_file = self._open(REJECTED, progress.rejected_size)
        self._request_file = self._open(_shard_name(progress.shard), progress.size)

    def _open(self, name: str, size: int) -> BinaryIO:
        """Open a file for writing after its first *size* bytes, and discard the rest of its content."""
        if self._folder is None:
            return self._stack.enter_context(Path(os.devnull).open("wb"))
        file = self._stack.enter_context(self._folder.open_for_update(name))
        file.truncate(size)
        file.seek(size)
        return file

    def _save_checkpoint(self) -> None:
        if self._folder is None:
            return
        self._checkpoint_file.seek(0)
        self._checkpoint_file.write(_encode_checkpoint(self.progress))
        self._checkpoint_file.flush()

    def require_unique_keys(self) -> None:
        """
        From now on, reject rows that have the same key as an earlier row, even one before the checkpoint.

        Raises:
            BatchFolderError: If a line of an existing file is not a request.

            OSError: If a file cannot be read.
        """
        # A temporary database on disk, so that memory use does not grow with the number of keys.
        self._keys = self._stack.enter_context(closing(sqlite3.connect("")))
        self._keys.execute("CREATE TABLE keys (key TEXT PRIMARY KEY) WITHOUT ROWID")
        for identifier in self._read_identifiers():
            self._add_key(identifier)

    def _add_key(self, key: str) -> bool:
        """Add a key, and return True if it is new."""
        assert self._keys is not None  # noqa: S101 (the callers check it)
        return self._keys.execute("INSERT OR IGNORE INTO keys VALUES (?)", (key,)).rowcount == 1

    def _read_identifiers(self) -> Iterator[str]:
        """Yield the identifiers of the requests in the existing files."""
        if self._folder is None:
            return
        for number in range(1, self.progress.shard + 1):
            name = _shard_name(number)
            with self._folder.open_for_reading(name) as file:
                for line in file:
                    try:
                        request = msgspec.json.decode(line, type=dict[str, Any])
                        yield msgspec.convert(request[self._line_format.identifier], str)
                    except (ValueError, RecursionError, KeyError):
                        path = f"{self._folder.path.name}/{name}"
                        raise _batch_error(path, "contains a line that is not a request") from None

    def write(self, chunk: RenderedChunk) -> None:
        """
        Write a chunk and a checkpoint, so that the batch can be resumed after this chunk if it is killed.

        When a batch is resumed, the first chunk must be the last one before the checkpoint. That chunk is
        compared with the checkpoint, but not written again.

        Raises:
            BatchFolderError: If the existing files do not belong to these rows.

            OSError: If a file cannot be written.
        """
        if not self._is_same_batch:
            if (chunk.last, chunk.digest) != (self.progress.rows, self.progress.last):
                raise BatchFolderError(_DIFFERENT_BATCH)
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
            self.progress.rejected_size += self._rejected_file.write(msgspec.json.encode(rejection) + b"\n")
        self.progress.rejected += len({rejection.line for rejection in rejected})
        self.progress.rows, self.progress.last = chunk.last, chunk.digest
        self._request_file.flush()
        self._rejected_file.flush()
        self._save_checkpoint()

    def _write_requests(self, lines: bytes, count: int) -> None:
        """Write *count* requests, one per line; start a new file if the current one would exceed a limit."""
        progress, line_format = self.progress, self._line_format
        if (
            progress.lines + count > line_format.max_lines
            or progress.size + len(lines) > line_format.max_bytes
        ):
            if count > 1:
                for line in lines.splitlines(keepends=True):
                    self._write_requests(line, 1)
                return
            progress.shard, progress.lines, progress.size = progress.shard + 1, 0, 0
            self._request_file.close()
            self._request_file = self._open(_shard_name(progress.shard), 0)
        self._request_file.write(lines)
        progress.lines, progress.size = progress.lines + count, progress.size + len(lines)
        progress.requests, progress.bytes = progress.requests + count, progress.bytes + len(lines)

    def finish(self) -> None:
        """
        Finish the batch: close the files, and remove the checkpoint and all empty files.

        Raises:
            BatchFolderError: If the table has fewer rows than the batch has already finished.
        """
        progress = self.progress
        if not self._is_same_batch:
            msg = (
                f"the batch already contains {progress.rows:,} finished rows, but the table has fewer: "
                "pass the same table, "
                f"or {_FOLDER_HINT}"
            )
            raise BatchFolderError(msg)
        if self._folder is None:
            return
        for file in (self._request_file, self._rejected_file, self._checkpoint_file):
            file.close()
        if not progress.rejected:
            self._folder.remove(REJECTED)
        if not progress.requests:
            self._folder.remove(_shard_name(progress.shard))
        self._folder.remove(CHECKPOINT)


@contextmanager
def open_batch(
    folder: Folder | None, line_format: LineFormat, command: str, *, resume: bool, force: bool = False
) -> Iterator[BatchWriter]:
    """
    Open the files of a batch, yield a writer for them, and close the files afterwards.

    Args:
        folder:
            The folder for the files, which is created if it does not exist; None to only count the requests.

        line_format:
            The vendor's format, with its limits.

        command:
            A digest of the command and its input, as described in `Checkpoint`.

        resume:
            Whether to resume an unfinished batch.

        force:
            Whether to replace an existing batch, even a finished one.

    Raises:
        BatchFolderError: If the folder contains a batch but neither *resume* nor *force* applies, if the
            batch to resume was started by another command, if unrelated files have the names of batch files,
            or if another process is writing a batch to the folder.

        OSError: If a file cannot be written.
    """
    with ExitStack() as stack:
        if folder is None:
            progress = Checkpoint(command)
        else:
            find_batch_files(folder)  # rejects a link at the folder's path before creating anything
            folder.create()
            try:
                stack.enter_context(folder.locked())
            except FolderLockedError:
                msg = f"another process is writing a batch to {folder.path.name!r}: wait until it finishes"
                raise BatchFolderError(msg) from None
            if force:
                _discard_batch(folder, command)
            progress = _load_checkpoint(folder, command, resume=resume or force)
        yield BatchWriter(folder, line_format, progress, stack)


def _discard_batch(folder: Folder, command: str) -> None:
    """Mark the files in a folder as an unfinished batch without rows, so that resuming it replaces them."""
    checkpoint = Checkpoint(command)
    if not _matches_files(checkpoint, find_batch_files(folder)):
        raise _batch_error(folder.path.name, "contains request files that do not belong to a batch")
    folder.write(CHECKPOINT, _encode_checkpoint(checkpoint))


def _encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    """Encode a checkpoint, padded to a fixed size, so that one write replaces the previous checkpoint."""
    return msgspec.json.encode(checkpoint).ljust(_CHECKPOINT_SIZE)


def _load_checkpoint(folder: Folder, command: str, *, resume: bool) -> Checkpoint:
    """Return the checkpoint from which to continue, and remove request files that were created after it."""
    files = find_batch_files(folder)
    if not any(files.values()):  # no data was written, not even a checkpoint
        return Checkpoint(command)
    if CHECKPOINT not in files:
        raise _batch_error(folder.path.name, "already contains a finished batch", _BATCH_HINT)
    if not resume:
        fix = f"continue it with --resume, {_BATCH_HINT}"
        raise _batch_error(folder.path.name, "contains an unfinished batch", fix)
    path = f"{folder.path.name}/{CHECKPOINT}"
    try:
        checkpoint = msgspec.json.decode(folder.read(CHECKPOINT, _CHECKPOINT_SIZE), type=Checkpoint)
    except (OSError, ValueError, RecursionError):
        raise _batch_error(path, "is not a valid checkpoint") from None
    if checkpoint.command != command:
        raise BatchFolderError(_DIFFERENT_BATCH)
    if not _matches_files(checkpoint, files):
        raise _batch_error(path, "does not match the files next to it")
    # Remove the last file first, so that the numbers have no gaps even if the process is killed.
    for number in range(sum(map(_is_shard_name, files)), checkpoint.shard, -1):
        folder.remove(_shard_name(number))
    return checkpoint


def _matches_files(checkpoint: Checkpoint, files: Mapping[str, int]) -> bool:
    """Return whether the request files are numbered without gaps, and have at least the recorded sizes."""
    names = [_shard_name(number) for number in range(1, sum(map(_is_shard_name, files)) + 1)]
    return (
        all(name in files for name in names)
        and checkpoint.shard <= max(len(names), 1)
        and sum(files[name] for name in names[: checkpoint.shard - 1]) + checkpoint.size == checkpoint.bytes
        and files.get(_shard_name(checkpoint.shard), 0) >= checkpoint.size
        and files.get(REJECTED, 0) >= checkpoint.rejected_size
    )
