"""
Running a command in its own process group, capturing its output, and terminating the whole group.

The command has no input and no terminal. On Windows, process groups cannot be terminated, so child processes
can outlive the command.
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

#: The interval at which to check whether the caller still needs the result of a command, in seconds.
_POLL_INTERVAL_S: Final = 0.05

#: The time that a command has to remove its locks and temporary files after SIGTERM, in seconds.
_TERMINATION_GRACE_S: Final = 0.2

#: The time to wait until a killed command has exited, in seconds. It can hang in the kernel.
_KILL_TIMEOUT_S: Final = 1.0

_CHUNK_BYTES: Final = 1 << 16

#: The number of bytes of standard error to capture, of which only the first line is used.
_ERROR_BYTES: Final = 4096

#: The time to wait for a command that is being started when this process exits, in seconds.
_START_TIMEOUT_S: Final = 0.2

#: The commands that are running or being started.
_running: Final[set["_Command"]] = set()


class Outcome(Struct, frozen=True):
    """
    The outcome of a command.

    Args:
        output:
            The command's standard output, up to the limit.

        error:
            The start of the command's standard error.

        code:
            The command's exit code; negative if a signal terminated the command.

        stopped:
            Why this process terminated the command; None if the command exited on its own.
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
            The maximum number of bytes of output to read. If there are more, the command is terminated.

        timeout:
            The maximum run time, in seconds, after which the command is terminated.

        should_stop:
            A function that returns whether the result is no longer needed. It is called repeatedly.

    Raises:
        OSError: If the command cannot be started.

        RequestCancelledError: If *should_stop* returns True.
    """
    command = _Command(words, folder)
    try:
        output, error = _OutputBuffer(command.stdout, limit), _OutputBuffer(command.stderr, _ERROR_BYTES)
        stopped = _read_output(command, output, error, time.monotonic() + timeout, should_stop)
    finally:
        command.terminate_group()
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
    """A command, registered in `_running` from before its start until its process group has exited."""

    def __init__(self, words: Sequence[str], folder: Path) -> None:
        self.pid = 0  # means that the process has not started
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
                self.terminate_group()
            _running.discard(self)
            raise

    def signal_group(self, number: int) -> None:
        """Send a signal to all processes that remain in the group."""
        if self.pid:
            with suppress(
                ProcessLookupError, PermissionError
            ):  # no processes remain, or this user is not allowed to signal them
                _signal(self.pid, number)

    def reap(self, seconds: float = 0) -> bool:
        """
        Wait at most *seconds* for the process to exit, and return whether it has exited.

        If it has exited, kill the other processes of its group before the operating system can reuse the
        group's id.
        """
        if self.returncode is None:
            with suppress(subprocess.TimeoutExpired):
                self.wait(seconds)
                self.signal_group(_KILL)
                _running.discard(self)
        return self.returncode is not None

    def terminate_group(self) -> None:
        """Terminate the process and its group, and close the pipes."""
        if not self.reap():
            self.signal_group(signal.SIGTERM)
            if not self.reap(_TERMINATION_GRACE_S):
                self.signal_group(_KILL)
                self.reap(_KILL_TIMEOUT_S)
        for pipe in filter(None, (self.stdout, self.stderr)):
            pipe.close()
        _running.discard(self)


class _OutputBuffer:
    """A buffer that stores the start of the output on a pipe."""

    def __init__(self, pipe: IO[bytes] | None, limit: int) -> None:
        self.pipe: Any = pipe
        self.limit = limit
        self.data = bytearray()
        self.is_full = self.is_closed = False

    def read(self) -> None:
        """Read the available output, and store the part of it that is within the limit."""
        data = os.read(self.pipe.fileno(), _CHUNK_BYTES)
        free = self.limit - len(self.data)
        self.data += data[:free]
        self.is_full = len(data) > free
        self.is_closed = not data


def _read_output(
    command: _Command,
    output: _OutputBuffer,
    error: _OutputBuffer,
    deadline: float,
    should_stop: Callable[[], bool],
) -> Literal["limit", "timeout"] | None:
    """
    Read a command's output until the command exits or must be terminated.

    Return why it must be terminated; None if it has exited.
    """
    while not output.is_full:
        if should_stop():
            raise RequestCancelledError
        pipes = [buffer for buffer in (output, error) if not buffer.is_closed]
        has_ended = command.reap(0 if pipes else _POLL_INTERVAL_S)
        # After a command has exited, the pipes can still contain output. Processes that have left its group
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
        poll = select.poll()  # `select` supports only descriptors below 1,024, but servers can have more
        by_descriptor = {buffer.pipe.fileno(): buffer for buffer in pipes}
        for descriptor in by_descriptor:
            poll.register(descriptor, select.POLLIN)
        return [by_descriptor[descriptor] for descriptor, _ in poll.poll(seconds * 1000)]
