"""
One command: a process group of its own, what is read of it, and its end.

It reads nothing, it has no terminal, and nothing that it writes goes anywhere but here. On Windows, which
has no such groups, what it has started itself is not ended with it.
"""

import atexit
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final, Literal

from msgspec import Struct

from promptkit.errors.interruptions import Abandoned

if sys.platform == "win32":
    import _winapi
    import msvcrt
else:
    import select

__all__ = ["Outcome", "end_all", "execute"]

#: How often it is looked whether anybody still waits for a command, in seconds.
_LOOK_EVERY_S: Final = 0.05

#: How long a command may take to remove its locks and temporary files, once it is told to end, in seconds.
_CLEAN_UP_S: Final = 0.2

#: How long to wait for one that was killed, in seconds: it may hang in the kernel.
_REAP_S: Final = 1.0

_CHUNK_BYTES: Final = 1 << 16

#: How much of its standard error is kept: the first line says what is wrong.
_ERROR_BYTES: Final = 4096

#: The commands that run now.
_running: Final[set[subprocess.Popen[bytes]]] = set()


class Outcome(Struct, frozen=True):
    """
    What came of a command.

    Args:
        output:
            What it has written to standard output, as far as it was read.

        error:
            The beginning of what it has written to standard error.

        code:
            Its exit code; negative if a signal ended it.

        stopped:
            Why it was ended before it was done; None if it was not.
    """

    output: bytes
    error: bytes
    code: int | None
    stopped: Literal["limit", "timeout"] | None


def execute(
    words: Sequence[str], folder: Path, *, limit: int, timeout: float, is_unwanted: Callable[[], bool]
) -> Outcome:
    """
    Run a command, and return once its process group has ended.

    Args:
        words:
            The program, and what it is given.

        folder:
            Where it runs.

        limit:
            How many bytes to read of its output. If it writes more, it is ended.

        timeout:
            How long it may take, in seconds. If it takes longer, it is ended.

        is_unwanted:
            Whether nobody waits for it any more. It is asked again and again.

    Raises:
        OSError: If it cannot be started.

        Abandoned: If it is unwanted.
    """
    process = _start(words, folder)
    try:
        output, error = _Captured(process.stdout, limit), _Captured(process.stderr, _ERROR_BYTES)
        stopped = _read(process, output, error, time.monotonic() + timeout, is_unwanted)
    finally:
        _end(process)
    return Outcome(bytes(output.kept), bytes(error.kept), process.returncode, stopped)


def end_all() -> None:
    """End the commands that run now. To be called before the process ends."""
    for process in tuple(_running):
        if process.returncode is None:
            _signal(process, _KILL)


atexit.register(end_all)


class _Captured:
    """What is kept of a pipe: its beginning."""

    def __init__(self, pipe: IO[bytes] | None, most: int) -> None:
        self.pipe: Any = pipe
        self.most = most
        self.kept = bytearray()
        self.is_full = self.is_over = False

    def read(self) -> None:
        """Read what has come."""
        data = os.read(self.pipe.fileno(), _CHUNK_BYTES)
        room = self.most - len(self.kept)
        self.kept += data[:room]
        self.is_full = len(data) > room
        self.is_over = not data


def _read(
    process: subprocess.Popen[bytes],
    output: _Captured,
    error: _Captured,
    until: float,
    is_unwanted: Callable[[], bool],
) -> Literal["limit", "timeout"] | None:
    """Read what a command writes, until it has ended or is to be ended; return why it is to be."""
    while not output.is_full:
        if is_unwanted():
            raise Abandoned
        has_ended = _has_ended(process)
        pipes = [one for one in (output, error) if not one.is_over]
        # Once it has ended, all that it wrote is in the pipes. They need not end: some may have left its group.
        ready = _ready(process, pipes, 0 if has_ended else _LOOK_EVERY_S)
        for one in ready:
            one.read()
        if has_ended and (not ready or time.monotonic() > until):
            return None
        if time.monotonic() > until:
            return "timeout"
    return "limit"


def _ready(process: subprocess.Popen[bytes], pipes: Iterable[_Captured], seconds: float) -> list[_Captured]:
    """The pipes that can be read, once there are any, or the command has ended, or time is over."""
    by_number = {one.pipe.fileno(): one for one in pipes}
    if by_number:
        return [by_number[number] for number in _readable(by_number, seconds)]
    _has_ended(process, seconds)
    return []


def _has_ended(process: subprocess.Popen[bytes], seconds: float = 0) -> bool:
    """Whether a command itself ends in time. Its group then ends at once, while its number is nobody else's."""
    if process.returncode is None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
            _signal(process, _KILL)
    return process.returncode is not None


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command and its group."""
    if not _has_ended(process):
        _signal(process, signal.SIGTERM)
        if not _has_ended(process, _CLEAN_UP_S):
            _signal(process, _KILL)
            _has_ended(process, _REAP_S)
    for pipe in filter(None, (process.stdout, process.stderr)):
        pipe.close()
    _running.discard(process)


if sys.platform == "win32":
    _KILL: Final = signal.SIGTERM  # there is no other: it ends a process at once

    def _start(words: Sequence[str], folder: Path) -> subprocess.Popen[bytes]:
        return _popen(words, folder, creationflags=subprocess.CREATE_NEW_PROCESS_GROUP)

    def _signal(process: subprocess.Popen[bytes], _number: int) -> None:
        process.kill()

    def _readable(numbers: Iterable[int], seconds: float) -> list[int]:
        found = [number for number in numbers if _can_be_read(number)]
        if not found:
            time.sleep(seconds / 5)
        return found

    def _can_be_read(number: int) -> bool:
        try:
            return _winapi.PeekNamedPipe(msvcrt.get_osfhandle(number), 0)[0] > 0
        except BrokenPipeError:  # nobody writes any more
            return True

else:
    _KILL: Final = signal.SIGKILL

    def _start(words: Sequence[str], folder: Path) -> subprocess.Popen[bytes]:
        return _popen(words, folder, start_new_session=True)

    def _signal(process: subprocess.Popen[bytes], number: int) -> None:
        # Nobody is left in it, or nobody that this user may end.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)

    def _readable(numbers: Iterable[int], seconds: float) -> list[int]:
        poll = select.poll()  # `select` itself takes no descriptor above 1,023, and servers have many
        for number in numbers:
            poll.register(number, select.POLLIN)
        return [number for number, _ in poll.poll(seconds * 1000)]


def _popen(words: Sequence[str], folder: Path, **own_group: Any) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(  # noqa: S603 (no shell: each word is one word)
        words,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        **own_group,
    )
    _running.add(process)
    return process
