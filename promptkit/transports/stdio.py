"""
The stdio transport: client and server exchange one JSON message per line, and nothing else.

`redirect_stdio` must be called before any recipe is imported. It moves the connection to private descriptors,
so that ``print``, C extensions and child processes cannot write to it.

See https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio.
"""

import os
import select
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType
from typing import Final, NoReturn

from promptkit.protocol.limits import GRACE_S, CutOff
from promptkit.server import Server
from promptkit.standard_error import finish, redirect, say
from promptkit.workspace.execution import terminate_commands

#: Maximum size of a read. All requests in one read are decoded before the first is answered, and the requests
#: in a full pipe (about 500) would not fit into a CPU cache.
_CHUNK_BYTES: Final = 1 << 14

#: Default capacity of a Linux pipe, and its capacity once a reply has exceeded the default. All pipes of a
#: user share 64 MiB.
_PIPE_BYTES: Final = 1 << 16
_WIDE_PIPE_BYTES: Final = 1 << 19

#: Interval between checks that the parent process still exists, in seconds.
_CHECK_PARENT_EVERY_S: Final = 1.0

#: Time for writing the remaining output after the grace period, in seconds.
_FLUSH_S: Final = 0.3

_EXIT_SIGNALS: Final = [name for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)]


class StdioPipes:
    """
    The two private descriptors that connect the server to its client.

    Args:
        reading:
            The descriptor from which requests are read.

        writing:
            The descriptor to which replies are written.

    Attributes:
        reader_gone:
            Whether a reply could not be written, because the client no longer reads.

        ended:
            An event that is set when serving must stop, because the client has hung up or a signal asked the
            process to exit.

        was_signalled:
            Whether a signal asked the process to exit.
    """

    def __init__(self, reading: int, writing: int) -> None:
        self.reading = reading
        self.writing = writing
        self.reader_gone = self.was_signalled = False
        self.ended = threading.Event()
        self._lock = threading.Lock()
        self._is_wide = False
        self._parent = os.getppid()

    @property
    def is_orphaned(self) -> bool:
        """Whether the parent process has exited."""
        return os.getppid() != self._parent

    @property
    def has_hung_up(self) -> bool:
        """Whether the client is gone or a signal asked the process to exit. This check reads no input."""
        if self.ended.is_set() or self.is_orphaned or sys.platform == "win32":
            return self.ended.is_set() or self.is_orphaned
        poll = select.poll()
        poll.register(self.reading, 0)  # request no events, because a hangup is always reported
        return bool(poll.poll(0))

    def read(self) -> bytes:
        """Wait for the next bytes and return them, or ``b""`` at the end (a `CutOff` after a signal)."""
        try:
            data = os.read(self.reading, _CHUNK_BYTES)
        except OSError:  # the pipe is broken, or the terminal has hung up
            data = b""
        return data if data or not self.was_signalled else CutOff()

    def write(self, data: bytes) -> None:
        """Write all of *data*, or drop it if the client is gone."""
        with self._lock:
            if len(data) > _PIPE_BYTES and not self._is_wide:
                self._is_wide = True
                _widen(self.writing)
            remaining = memoryview(data)
            while remaining and not self.reader_gone:
                try:
                    remaining = remaining[os.write(self.writing, remaining) :]
                except OSError:
                    self.reader_gone = True
                    self.ended.set()

    def end(self) -> None:
        """Stop reading, even in the middle of a line."""
        self.was_signalled = True
        _redirect_to_null(self.reading, os.O_RDONLY, inheritable=False)
        self.ended.set()


def _widen(descriptor: int) -> None:
    """Enlarge a pipe on Linux, so that a long reply takes fewer switches between writer and reader."""
    if sys.platform == "linux":
        # The descriptor may not be a pipe, the user's pipes may have reached their limit, or memory may be
        # low.
        with suppress(OSError, ImportError, MemoryError):
            import fcntl  # not on Windows

            if fcntl.fcntl(descriptor, fcntl.F_GETPIPE_SZ) < _WIDE_PIPE_BYTES:
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _WIDE_PIPE_BYTES)


def _redirect_to_null(descriptor: int, flags: int, *, inheritable: bool) -> None:
    """Make *descriptor* refer to the null device."""
    null = os.open(os.devnull, flags)
    if null == descriptor:  # the descriptor was closed, and the null device got its number
        os.set_inheritable(null, inheritable)
    else:
        os.dup2(null, descriptor, inheritable=inheritable)
        os.close(null)


def redirect_stdio(grace: float = GRACE_S) -> StdioPipes:
    """
    Move standard input and output to private descriptors that child processes do not inherit.

    Afterwards, standard input is the null device, and standard output goes to standard error. Signals such as
    SIGTERM end the connection instead of the process.

    Args:
        grace:
            Maximum time for the process to exit after such a signal, in seconds.

    Returns:
        The private descriptors.

    Raises:
        OSError: If standard input or output is closed.
    """
    if sys.stderr is None:  # standard error is closed: descriptor 2 is free, and must not become private
        _redirect_to_null(2, os.O_WRONLY, inheritable=True)
        sys.stderr = os.fdopen(2, "w", closefd=False)
    for descriptor in (0, 1):
        os.fstat(descriptor)  # raise if it is closed, because a duplicate below could get its number
    pipes = StdioPipes(os.dup(0), os.dup(1))
    if sys.platform != "win32":
        for descriptor in (pipes.reading, pipes.writing):
            os.set_blocking(descriptor, True)
    sys.stdout.flush()  # earlier output must go to the original standard output
    _redirect_to_null(0, os.O_RDONLY, inheritable=True)
    os.dup2(2, 1)
    redirect()
    _end_on_signals(pipes, grace)
    return pipes


def serve(server: Server, pipes: StdioPipes, *, grace: float = GRACE_S) -> bool:
    """
    Answer one client until it hangs up or a signal asks the process to exit.

    Args:
        server:
            The server that answers the requests. It must send its replies with the `write` method of *pipes*.

        pipes:
            The result of `redirect_stdio`.

        grace:
            How long to wait for running prompts when the server closes, in seconds.

    Returns:
        True, or False if the thread that reads the requests failed or could not be started.
    """
    try:
        server.read_from(pipes.read, pipes.ended.set)
    except RuntimeError as error:  # no more threads can be started
        say(f"standard input cannot be read: {error}")
    # Signal handlers run on this thread.
    while not pipes.ended.wait(_CHECK_PARENT_EVERY_S) and server.is_reading and not pipes.is_orphaned:
        pass
    served = pipes.ended.is_set() or server.is_reading
    exit_after(grace, 0 if served else 1)
    # Do not send errors to a client that has hung up, because the official Python client fails on them.
    has_hung_up = pipes.ended.is_set() and not pipes.was_signalled
    server.close(0 if pipes.reader_gone else grace, answer_unfinished=not has_hung_up)
    return served


def exit_after(grace: float, code: int = 0) -> None:
    """
    Start a timer that exits the process after *grace* seconds, even if a prompt or the client hangs.

    Args:
        grace:
            How long the process can continue, in seconds. Writing the remaining output takes a moment longer.

        code:
            The exit code.
    """
    timer = threading.Timer(grace + _FLUSH_S, _exit, (code,))
    timer.daemon = True
    with suppress(RuntimeError):  # no more threads can be started
        timer.start()


def exit_now(code: int = 0) -> NoReturn:
    """
    Exit the process, even if prompts have left threads running.

    Printed output is flushed first if possible.

    Args:
        code:
            The exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # a recipe may have closed or replaced the stream
            stream.flush()
    _exit(code)


def _exit(code: int = 0) -> NoReturn:
    """Exit the process without running authors' code, such as exit handlers."""
    finish(_FLUSH_S)
    terminate_commands()
    os._exit(code)


def _end_on_signals(pipes: StdioPipes, grace: float) -> None:
    """Handle termination signals by ending the connection instead of the process."""

    def end(_number: int, _frame: FrameType | None) -> None:
        # Start the timer first. The import of a recipe can hang, and so can `pipes.end()`, because the
        # interrupted thread may hold the lock of `pipes.ended`.
        exit_after(grace)
        pipes.end()

    for name in _EXIT_SIGNALS:
        signal.signal(getattr(signal, name), end)
