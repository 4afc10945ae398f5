"""
The checkpoint of an unfinished batch, and the names and sizes of the files next to it.

A folder can come with another author's repository, so a checkpoint is trusted only as far as the files agree:
names, sizes, counts, and the lines of the file to continue are compared. The lines of earlier files are not
compared, because that would require reading them all.
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

#: The end of every error message about a folder.
ANOTHER_FOLDER: Final = "name another folder with -o"

#: The reason why a batch cannot be resumed.
OTHER_BATCH: Final = (
    "the folder holds the batch of another command, of other rows, or of a prompt "
    "that has changed since: repeat that command, or name another folder with -o"
)

_Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class UnfinishedBatchError(PromptkitError):
    """
    A folder has files of another batch, or of an unfinished batch that cannot be resumed.

    Args:
        message:
            The problem, and how to fix it.
    """


class Checkpoint(Struct, forbid_unknown_fields=True):
    """
    The progress of a batch.

    Args:
        command:
            The command that the batch belongs to; another command cannot resume it.

        rows:
            The number of rows that are done.

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
            The digest of the last chunk, which must be the same on resuming.
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
    Return the size of each file in *folder* that is named like a file of a batch.

    Raises:
        UnfinishedBatchError: If the folder is a link or cannot be read, or one of the files is a link, a
            pipe, a device or a folder, or has other hard links.
    """
    path, sizes = folder.path.name, dict[str, int]()
    try:
        for name, status in folder.entries():
            if name in (CHECKPOINT, REJECTED) or _has_requests(name):
                path = f"{folder.path.name}/{name}"
                _check_own(status, name)
                sizes[name] = status.st_size
    except FileNotFoundError:
        return {}
    except OSError as error:
        msg = f"{path!r} cannot be used: {error.strerror}; or {ANOTHER_FOLDER}"
        raise UnfinishedBatchError(msg) from None
    return sizes


def _check_own(status: os.stat_result, name: str) -> None:
    check_regular(status, name)
    if status.st_nlink > 1:
        raise OSError(errno.EMLINK, "it has other names (hard links)", name)


def is_whole(files: Collection[str]) -> bool:
    """Whether *files*, the files of a batch, belong to a finished batch."""
    return bool(files) and CHECKPOINT not in files


def shards_in(files: Iterable[str]) -> int:
    """Return the number of request files in *files*."""
    return sum(map(_has_requests, files))


def is_scratch(name: str, status: os.stat_result) -> bool:
    """Whether a file is an incomplete checkpoint that a killed command has left."""
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
            The vendor's format, with its limits.

        command:
            The command that the batch belongs to.

    Raises:
        UnfinishedBatchError: If the checkpoint belongs to another command, is invalid, or does not agree with
            the files.

        OSError: If a file cannot be read.
    """
    try:
        checkpoint = msgspec.json.decode(folder.read(CHECKPOINT, CHECKPOINT_SIZE), type=Checkpoint)
    except (OSError, ValueError, RecursionError):
        msg = f"'{folder.path.name}/{CHECKPOINT}' is not a checkpoint: {ANOTHER_FOLDER}"
        raise UnfinishedBatchError(msg) from None
    if checkpoint.command != command:
        raise UnfinishedBatchError(OTHER_BATCH)
    _check_files(checkpoint, files, folder)
    if not (_has_plausible_counts(checkpoint, files, form) and _has_whole_lines(checkpoint, folder)):
        raise contradiction(folder)
    return checkpoint


def contradiction(folder: Folder) -> UnfinishedBatchError:
    """Return the error for a checkpoint that does not agree with the files of its folder."""
    return UnfinishedBatchError(
        f"'{folder.path.name}/{CHECKPOINT}' does not agree with the files: {ANOTHER_FOLDER}"
    )


def _check_files(checkpoint: Checkpoint, files: Mapping[str, int], folder: Folder) -> None:
    """Raise UnfinishedBatchError unless the files exist, are long enough, and are numbered without gaps."""
    for number in range(1, checkpoint.shard + 1):
        name = shard_name(number)
        if files.get(name, 0) < (checkpoint.size if number == checkpoint.shard else 1):
            raise UnfinishedBatchError(_describe_lost_data(name))
    if files.get(REJECTED, 0) < checkpoint.rejected_size:
        raise UnfinishedBatchError(_describe_lost_data(REJECTED))
    expected = set(map(shard_name, range(1, shards_in(files) + 1)))
    unexpected = next((name for name in files if _has_requests(name) and name not in expected), None)
    if unexpected is not None:
        msg = f"{unexpected!r} is not a file of the batch in {folder.path.name!r}: {ANOTHER_FOLDER}"
        raise UnfinishedBatchError(msg)


def _describe_lost_data(name: str) -> str:
    return f"{name!r} has lost files of the batch: {ANOTHER_FOLDER}"


def _has_plausible_counts(checkpoint: Checkpoint, files: Mapping[str, int], form: LineFormat) -> bool:
    """Whether the numbers of a checkpoint agree with each other, the sizes and the vendor's limits."""
    earlier = [files[shard_name(number)] for number in range(1, checkpoint.shard)]
    return (
        max(checkpoint.size, *earlier, 0) <= form.most_bytes
        and sum(earlier) + checkpoint.size == checkpoint.bytes
        and len(earlier) <= checkpoint.requests - checkpoint.lines <= len(earlier) * form.most_lines
        and bool(checkpoint.size) == bool(checkpoint.lines)
        and (checkpoint.lines > 0 or not earlier)  # a new file is only created for a line
        and bool(checkpoint.rejected) == bool(checkpoint.rejected_size)
        and checkpoint.requests + checkpoint.rejected <= checkpoint.rows
        and bool(checkpoint.rows) == bool(checkpoint.last)
    )


def _has_whole_lines(checkpoint: Checkpoint, folder: Folder) -> bool:
    """Whether the files have line ends at the sizes in a checkpoint, and the number of lines agrees."""
    lines = _lines_in(folder, shard_name(checkpoint.shard), 0, checkpoint.size) if checkpoint.size else 0
    is_rejected_whole = (
        not checkpoint.rejected_size or _lines_in(folder, REJECTED, checkpoint.rejected_size - 1, 1) == 1
    )
    return lines == checkpoint.lines and is_rejected_whole


def _lines_in(folder: Folder, name: str, start: int, size: int) -> int:
    """Return the number of lines in a part of a file; 0 if it does not end with a line end."""
    lines, data = 0, b""
    with folder.open_for_reading(name) as file:
        file.seek(start)
        while size and (data := file.read(min(size, _BLOCK_BYTES))):
            lines += data.count(b"\n")
            size -= len(data)
    return lines if data.endswith(b"\n") else 0
