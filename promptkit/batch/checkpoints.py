"""
The checkpoint of an unfinished batch, and the names and sizes of the files next to it.

A folder can come with someone else's repository, so a checkpoint is believed only as far as the files agree.
Names, sizes, the lines of the file that is continued, and the counts are compared. The lines of earlier files
are not, because that would read them all.
"""

import errno
import os
import re
import stat
from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta, Struct

from promptkit.batch.request_lines import LineFormat
from promptkit.errors.exceptions import PromptkitError
from promptkit.files.folder import Folder
from promptkit.files.reading import check_regular

#: The names of the checkpoint, and of the file of rejected rows.
CHECKPOINT: Final = ".promptkit-batch.json"
REJECTED: Final = "rejected.jsonl"

#: The size of a checkpoint, in bytes.
CHECKPOINT_SIZE: Final = 512

#: The files that `Folder.write` leaves if it is killed while it writes a checkpoint.
_SCRATCH: Final = re.compile(re.escape(CHECKPOINT) + r"\.[0-9]+-[0-9a-f]{8}")

#: How much of a file is read at a time to count its lines, in bytes.
_BLOCK_BYTES: Final = 1024 * 1024

#: The end of each error about a folder.
ANOTHER_FOLDER: Final = "name another folder with -o"

#: Why a batch cannot go on.
OTHER_BATCH: Final = (
    "what lies in the folder is of another command, of other rows, or of a prompt that has changed since: "
    "give the same, or name another folder with -o"
)

_Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class UnfinishedBatchError(PromptkitError):
    """
    A folder has files of a batch that are in the way, or of which another command has written a part.

    Args:
        message:
            What lies there, and what to do.
    """


class Checkpoint(Struct, forbid_unknown_fields=True):
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
    rows: _Count = 0
    shard: Annotated[int, Meta(ge=1)] = 1
    lines: _Count = 0
    size: _Count = 0
    rejected_size: _Count = 0
    rejected: _Count = 0
    requests: _Count = 0
    bytes: _Count = 0
    last: str = ""


def batch_files(folder: Folder) -> dict[str, int]:
    """
    Return the size of each file in *folder* that has the name of a file of a batch.

    Raises:
        UnfinishedBatchError: If the folder is a link or cannot be read, or one of the files is a link, a
            pipe, a device or a folder, or has other names.
    """
    place, sizes = folder.path.name, dict[str, int]()
    try:
        for name, status in folder.entries():
            if name in (CHECKPOINT, REJECTED) or _has_requests(name):
                place = f"{folder.path.name}/{name}"
                _check_own(status, name)
                sizes[name] = status.st_size
    except FileNotFoundError:
        return {}
    except OSError as error:
        msg = f"{place!r} cannot be used: {error.strerror}; or {ANOTHER_FOLDER}"
        raise UnfinishedBatchError(msg) from None
    return sizes


def _check_own(status: os.stat_result, name: str) -> None:
    check_regular(status, name)
    if status.st_nlink > 1:
        raise OSError(errno.EMLINK, "it has other names (hard links)", name)


def is_whole(files: Collection[str]) -> bool:
    """Return whether *files*, those of a batch, are of one that was finished."""
    return bool(files) and CHECKPOINT not in files


def shards_in(files: Iterable[str]) -> int:
    """Return how many of *files* are files of requests."""
    return sum(map(_has_requests, files))


def is_scratch(name: str, status: os.stat_result) -> bool:
    """Return whether a file is what a command that was killed left of a checkpoint."""
    return stat.S_ISREG(status.st_mode) and _SCRATCH.fullmatch(name) is not None


def _has_requests(name: str) -> bool:
    return name.startswith("requests-") and name.endswith(".jsonl")


def shard_name(number: int) -> str:
    """Return the name of a file of requests."""
    return f"requests-{number:05}.jsonl"


def checkpoint_of(folder: Folder, files: Mapping[str, int], form: LineFormat, command: str) -> Checkpoint:
    """
    Return the checkpoint of an unfinished batch of *command*.

    Args:
        folder:
            The folder of the batch.

        files:
            The names and sizes of its files.

        form:
            The vendor's limits.

        command:
            What the batch is of.

    Raises:
        UnfinishedBatchError: If it is of another command, is not a checkpoint, or does not agree with the
            files.

        OSError: If a file cannot be read.
    """
    try:
        done = msgspec.json.decode(folder.read(CHECKPOINT, CHECKPOINT_SIZE), type=Checkpoint)
    except (OSError, ValueError, RecursionError):
        msg = f"'{folder.path.name}/{CHECKPOINT}' is not a checkpoint: {ANOTHER_FOLDER}"
        raise UnfinishedBatchError(msg) from None
    if done.command != command:
        raise UnfinishedBatchError(OTHER_BATCH)
    _check_files(done, files, folder)
    if not (_has_plausible_counts(done, files, form) and _has_whole_lines(done, folder)):
        raise contradiction(folder)
    return done


def contradiction(folder: Folder) -> UnfinishedBatchError:
    """Return the error of a checkpoint that does not agree with the files of its folder."""
    return UnfinishedBatchError(
        f"'{folder.path.name}/{CHECKPOINT}' does not agree with the files: {ANOTHER_FOLDER}"
    )


def _check_files(done: Checkpoint, files: Mapping[str, int], folder: Folder) -> None:
    """Raise UnfinishedBatchError unless the files exist, are long enough, and are numbered without gaps."""
    for number in range(1, done.shard + 1):
        name = shard_name(number)
        if files.get(name, 0) < (done.size if number == done.shard else 1):
            raise UnfinishedBatchError(_lost(name))
    if files.get(REJECTED, 0) < done.rejected_size:
        raise UnfinishedBatchError(_lost(REJECTED))
    expected = set(map(shard_name, range(1, shards_in(files) + 1)))
    strange = next((name for name in files if _has_requests(name) and name not in expected), None)
    if strange is not None:
        msg = f"{strange!r} is not a file of the batch in {folder.path.name!r}: {ANOTHER_FOLDER}"
        raise UnfinishedBatchError(msg)


def _lost(name: str) -> str:
    return f"{name!r} has lost what was written: {ANOTHER_FOLDER}"


def _has_plausible_counts(done: Checkpoint, files: Mapping[str, int], form: LineFormat) -> bool:
    """Return whether the numbers of a checkpoint agree with each other, the sizes and the vendor's limits."""
    earlier = [files[shard_name(number)] for number in range(1, done.shard)]
    return (
        max(done.size, *earlier, 0) <= form.most_bytes
        and sum(earlier) + done.size == done.bytes
        and len(earlier) <= done.requests - done.lines <= len(earlier) * form.most_lines
        and bool(done.size) == bool(done.lines)
        and (done.lines > 0 or not earlier)  # a new file begins with a line
        and bool(done.rejected) == bool(done.rejected_size)
        and done.requests + done.rejected <= done.rows
        and bool(done.rows) == bool(done.last)
    )


def _has_whole_lines(done: Checkpoint, folder: Folder) -> bool:
    """Return whether lines end where a checkpoint has the ends of its files, and are as many."""
    lines = _lines_in(folder, shard_name(done.shard), 0, done.size) if done.size else 0
    is_rejected_whole = not done.rejected_size or _lines_in(folder, REJECTED, done.rejected_size - 1, 1) == 1
    return lines == done.lines and is_rejected_whole


def _lines_in(folder: Folder, name: str, start: int, size: int) -> int:
    """Return how many lines a part of a file has; 0 if the part does not end with one."""
    lines, data = 0, b""
    with folder.open_for_reading(name) as file:
        file.seek(start)
        while size and (data := file.read(min(size, _BLOCK_BYTES))):
            lines += data.count(b"\n")
            size -= len(data)
    return lines if data.endswith(b"\n") else 0
