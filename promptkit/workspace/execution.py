"""
Execution of one command in its own process group, which captures the output and terminates the whole group.

The command has no input and no terminal. Windows has no such groups, so child processes can outlive the
command there.
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

from promptkit.language.context import RequestCancelledError

if sys.platform == "win32":
    import _winapi
    import msvcrt

    _NEW_GROUP: Final[dict[str, Any]] = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    _KILL: Final = signal.SIGTERM  # on Windows, this signal kills immediately
    _signal: Final = os.kill
else:
    import select

    _NEW_GROUP: Final[dict[str, Any]] = {"start_new_session": True}
    _KILL: Final = signal.SIGKILL
    _signal: Final = os.killpg

#: Interval in seconds for checking whether a caller still waits for a command.
_POLL_INTERVAL_S: Final = 0.05

#: Time in seconds for a command to remove its locks and temporary files after SIGTERM.
_TERMINATION_GRACE_S: Final = 0.2

#: Time in seconds to wait for a killed command, which can hang in the kernel.
_KILL_TIMEOUT_S: Final = 1.0

_CHUNK_BYTES: Final = 1 << 16

#: Number of bytes of standard error to capture. Only the first line is used.
_ERROR_BYTES: Final = 4096

#: Time in seconds to wait for a command that is being started when this process exits.
_START_TIMEOUT_S: Final = 0.2

#: The commands that are running or being started.
_running: Final[set["_Command"]] = set()


class Outcome(Struct, frozen=True):
    """
    The outcome of a command.

    Args:
        output:
            Its standard output, up to the limit.

        error:
            The start of its standard error.

        code:
            Its exit code; negative if a signal terminated it.

        stopped:
            Why the command was terminated; None if it exited by itself.
    """

    output: bytes
    error: bytes
    code: int | None
    stopped: Literal["limit", "timeout"] | None


def execute(
    words: Sequence[str], folder: Path, *, limit: int, timeout: float, should_stop: Callable[[], bool]
) -> Outcome:
    """
    Run a command, and return once all processes of its group have exited.

    Args:
        words:
            The program and its arguments.

        folder:
            The working directory.

        limit:
            The maximum number of output bytes to read. If there are more, the command is terminated.

        timeout:
            The maximum run time in seconds, after which the command is terminated.

        should_stop:
            Returns whether the result is no longer needed. It is called repeatedly.

    Raises:
        OSError: If the command cannot be started.

        RequestCancelledError: If *should_stop* returns True.
    """
    command = _Command(words, folder)
    try:
        output, error = _OutputBuffer(command.stdout, limit), _OutputBuffer(command.stderr, _ERROR_BYTES)
        stopped = _read(command, output, error, time.monotonic() + timeout, should_stop)
    finally:
        command.end()
    return Outcome(bytes(output.data), bytes(error.data), command.returncode, stopped)


def terminate_commands() -> None:
    """Terminate all running commands. Call this when the process exits."""
    deadline = time.monotonic() + _START_TIMEOUT_S
    while not all(command.pid for command in tuple(_running)) and time.monotonic() < deadline:
        time.sleep(_START_TIMEOUT_S / 100)
    for command in tuple(_running):
        command.signal_group(_KILL)


atexit.register(terminate_commands)


class _Command(subprocess.Popen[bytes]):
    """A command, registered in `_running` from before its start until its group is gone."""

    def __init__(self, words: Sequence[str], folder: Path) -> None:
        self.pid = 0  # until the process has started
        _running.add(self)
        try:
            super().__init__(
                words,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                **_NEW_GROUP,
            )
        except BaseException:
            if self.pid:  # the process has started
                self.end()
            _running.discard(self)
            raise

    def signal_group(self, number: int) -> None:
        """Send a signal to the remaining processes of the group."""
        if self.pid:
            with suppress(
                ProcessLookupError, PermissionError
            ):  # no processes are left, or this user cannot signal them
                _signal(self.pid, number)

    def reap(self, seconds: float = 0) -> bool:
        """
        Wait at most *seconds* for the process to exit, and return whether it has exited.

        If it has exited, kill the rest of its group before the group's id can be reused.
        """
        if self.returncode is None:
            with suppress(subprocess.TimeoutExpired):
                self.wait(seconds)
                self.signal_group(_KILL)
                _running.discard(self)
        return self.returncode is not None

    def end(self) -> None:
        """Terminate the process and its group."""
        if not self.reap():
            self.signal_group(signal.SIGTERM)
            if not self.reap(_TERMINATION_GRACE_S):
                self.signal_group(_KILL)
                self.reap(_KILL_TIMEOUT_S)
        for pipe in filter(None, (self.stdout, self.stderr)):
            pipe.close()
        _running.discard(self)


class _OutputBuffer:
    """A buffer for the start of the output on a pipe."""

    def __init__(self, pipe: IO[bytes] | None, limit: int) -> None:
        self.pipe: Any = pipe
        self.limit = limit
        self.data = bytearray()
        self.is_full = self.is_closed = False

    def read(self) -> None:
        """Read the available output, and store it up to the limit."""
        data = os.read(self.pipe.fileno(), _CHUNK_BYTES)
        free = self.limit - len(self.data)
        self.data += data[:free]
        self.is_full = len(data) > free
        self.is_closed = not data


def _read(
    command: _Command,
    output: _OutputBuffer,
    error: _OutputBuffer,
    deadline: float,
    should_stop: Callable[[], bool],
) -> Literal["limit", "timeout"] | None:
    """Read a command's output until it exits (return None) or must be terminated (return the reason)."""
    while not output.is_full:
        if should_stop():
            raise RequestCancelledError
        pipes = [buffer for buffer in (output, error) if not buffer.is_closed]
        has_ended = command.reap(0 if pipes else _POLL_INTERVAL_S)
        # After a command has exited, the pipes contain the rest of its output. Processes that left its group
        # can keep the pipes open.
        ready = _wait_for_output(pipes, 0 if has_ended or not pipes else _POLL_INTERVAL_S)
        for buffer in ready:
            buffer.read()
        if has_ended and (not ready or time.monotonic() > deadline):
            return None
        if time.monotonic() > deadline:
            return "timeout"
    return "limit"


if sys.platform == "win32":

    def _wait_for_output(pipes: Iterable[_OutputBuffer], seconds: float) -> list[_OutputBuffer]:
        ready = [buffer for buffer in pipes if _can_be_read(buffer)]
        if not ready:
            time.sleep(seconds / 5)
        return ready

    def _can_be_read(buffer: _OutputBuffer) -> bool:
        try:
            return _winapi.PeekNamedPipe(msvcrt.get_osfhandle(buffer.pipe.fileno()))[0] != 0
        except BrokenPipeError:  # the pipe has no writer
            return True

else:

    def _wait_for_output(pipes: Iterable[_OutputBuffer], seconds: float) -> list[_OutputBuffer]:
        poll = select.poll()  # `select` is limited to descriptors below 1,024, and servers have many
        by_descriptor = {buffer.pipe.fileno(): buffer for buffer in pipes}
        for descriptor in by_descriptor:
            poll.register(descriptor, select.POLLIN)
        return [by_descriptor[descriptor] for descriptor, _ in poll.poll(seconds * 1000)]
