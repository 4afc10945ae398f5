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

from promptkit.language.cancellation import RequestCancelledError

if sys.platform == "win32":
    import _winapi
    import msvcrt

    _OWN_GROUP: Final[dict[str, Any]] = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    _KILL: Final = signal.SIGTERM  # there is no other: it ends a process at once
    _signal: Final = os.kill
else:
    import select

    _OWN_GROUP: Final[dict[str, Any]] = {"start_new_session": True}
    _KILL: Final = signal.SIGKILL
    _signal: Final = os.killpg

#: How often it is looked whether anybody still waits for a command, in seconds.
_LOOK_EVERY_S: Final = 0.05

#: How long a command may take to remove its locks and temporary files, once it is told to end, in seconds.
_CLEAN_UP_S: Final = 0.2

#: How long to wait for one that was killed, in seconds: it may hang in the kernel.
_REAP_S: Final = 1.0

_CHUNK_BYTES: Final = 1 << 16

#: How much of its standard error is kept: the first line says what is wrong.
_ERROR_BYTES: Final = 4096

#: How long the end of the process waits for a command that is just being started, in seconds.
_START_S: Final = 0.2

#: The commands that run now, or are being started.
_running: Final[set["_Command"]] = set()


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

        RequestCancelledError: If it is unwanted.
    """
    command = _Command(words, folder)
    try:
        output, error = _Captured(command.stdout, limit), _Captured(command.stderr, _ERROR_BYTES)
        stopped = _read(command, output, error, time.monotonic() + timeout, is_unwanted)
    finally:
        command.end()
    return Outcome(bytes(output.kept), bytes(error.kept), command.returncode, stopped)


def end_all() -> None:
    """End the commands that run now. To be called as the process ends."""
    until = time.monotonic() + _START_S
    while not all(command.pid for command in tuple(_running)) and time.monotonic() < until:
        time.sleep(_START_S / 100)
    for command in tuple(_running):
        command.signal_group(_KILL)


atexit.register(end_all)


class _Command(subprocess.Popen[bytes]):
    """A command that is known from before it begins until its group has ended."""

    def __init__(self, words: Sequence[str], folder: Path) -> None:
        self.pid = 0  # until it has begun
        _running.add(self)
        try:
            super().__init__(
                words,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                **_OWN_GROUP,
            )
        except BaseException:
            if self.pid:  # it has begun
                self.end()
            _running.discard(self)
            raise

    def signal_group(self, number: int) -> None:
        """Send a signal to all that is left of its group."""
        if self.pid:
            with suppress(ProcessLookupError, PermissionError):  # nobody is, or nobody that this user may end
                _signal(self.pid, number)

    def has_ended(self, seconds: float = 0) -> bool:
        """Whether it ends in time. Its group is then ended at once: soon its number may be another's."""
        if self.returncode is None:
            with suppress(subprocess.TimeoutExpired):
                self.wait(seconds)
                self.signal_group(_KILL)
                _running.discard(self)
        return self.returncode is not None

    def end(self) -> None:
        """End it and its group."""
        if not self.has_ended():
            self.signal_group(signal.SIGTERM)
            if not self.has_ended(_CLEAN_UP_S):
                self.signal_group(_KILL)
                self.has_ended(_REAP_S)
        for pipe in filter(None, (self.stdout, self.stderr)):
            pipe.close()
        _running.discard(self)


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
    command: _Command,
    output: _Captured,
    error: _Captured,
    until: float,
    is_unwanted: Callable[[], bool],
) -> Literal["limit", "timeout"] | None:
    """Read what a command writes, until it has ended or is to be ended; return why it is to be."""
    while not output.is_full:
        if is_unwanted():
            raise RequestCancelledError
        pipes = [one for one in (output, error) if not one.is_over]
        has_ended = command.has_ended(0 if pipes else _LOOK_EVERY_S)
        # Once it has ended, all that it wrote is in the pipes. Who has left its group may hold them open.
        ready = _readable(pipes, 0 if has_ended or not pipes else _LOOK_EVERY_S)
        for one in ready:
            one.read()
        if has_ended and (not ready or time.monotonic() > until):
            return None
        if time.monotonic() > until:
            return "timeout"
    return "limit"


if sys.platform == "win32":

    def _readable(pipes: Iterable[_Captured], seconds: float) -> list[_Captured]:
        found = [one for one in pipes if _can_be_read(one)]
        if not found:
            time.sleep(seconds / 5)
        return found

    def _can_be_read(one: _Captured) -> bool:
        try:
            return _winapi.PeekNamedPipe(msvcrt.get_osfhandle(one.pipe.fileno()))[0] != 0
        except BrokenPipeError:  # nobody writes any more
            return True

else:

    def _readable(pipes: Iterable[_Captured], seconds: float) -> list[_Captured]:
        poll = select.poll()  # `select` itself takes no descriptor above 1,023, and servers have many
        by_number = {one.pipe.fileno(): one for one in pipes}
        for number in by_number:
            poll.register(number, select.POLLIN)
        return [by_number[number] for number, _ in poll.poll(seconds * 1000)]
