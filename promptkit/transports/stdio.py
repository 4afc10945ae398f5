"""
The stdio transport: one JSON message per line, and nothing else between client and server.

`redirect_stdio` must be called before any recipe is imported: it moves the connection to private
descriptors, so that no ``print``, C extension or child process can write to it.

See https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio.
"""

import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Final, NoReturn

from promptkit.protocol.limits import GRACE_S, CutOff
from promptkit.server import Server
from promptkit.standard_error import finish, redirect, say
from promptkit.workspace.execution import end_all

#: The most that one read returns. All its requests are decoded before the first is answered: those of a full
#: pipe, some 500, would not fit into a processor's cache.
_CHUNK_BYTES: Final = 1 << 14

#: What a pipe of Linux holds, and what it holds once a reply was longer. All pipes of a user may hold 64 MiB.
_PIPE_BYTES: Final = 1 << 16
_WIDE_PIPE_BYTES: Final = 1 << 19

#: How often to look whether the parent process still exists.
_LOOK_FOR_PARENT_EVERY_S: Final = 1.0

#: How long writing the remaining output may take, after the grace period.
_WRITE_REST_S: Final = 0.3

_ENDING_SIGNALS: Final = [name for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)]


class StdioPipes:
    """
    The two private descriptors between the client and the server.

    Args:
        reading:
            Where the client's bytes arrive.

        writing:
            Where the replies go.

    Attributes:
        reader_gone:
            Whether the client has stopped reading.

        ended:
            Set when serving ends: the client has hung up, or the process was told to end.

        told_to_end:
            Whether the process was told to end.
    """

    def __init__(self, reading: int, writing: int) -> None:
        self.reading = reading
        self.writing = writing
        self.reader_gone = self.told_to_end = False
        self.ended = threading.Event()
        self._lock = threading.Lock()
        self._is_wide = False
        self._parent = os.getppid()

    @property
    def is_orphaned(self) -> bool:
        """Whether the parent process has ended."""
        return os.getppid() != self._parent

    @property
    def has_hung_up(self) -> bool:
        """Whether the client has gone, or the process was told to end, though nothing is being read."""
        if self.ended.is_set() or self.is_orphaned or sys.platform == "win32":
            return self.ended.is_set() or self.is_orphaned
        poll = select.poll()
        poll.register(self.reading, 0)  # which still reports the end of a pipe
        return bool(poll.poll(0))

    def read(self) -> bytes:
        """Return what has arrived, waiting for the first byte; ``b""`` at the end."""
        try:
            data = os.read(self.reading, _CHUNK_BYTES)
        except OSError:  # the client's end broke, or a terminal hung up
            data = b""
        return data if data or not self.told_to_end else CutOff()

    def write(self, data: bytes) -> None:
        """Write all of *data*; drop it if the client is gone."""
        with self._lock:
            if len(data) > _PIPE_BYTES and not self._is_wide:
                self._is_wide = True
                _widen(self.writing)
            rest = memoryview(data)
            while rest and not self.reader_gone:
                try:
                    rest = rest[os.write(self.writing, rest) :]
                except OSError:
                    self.reader_gone = True
                    self.ended.set()

    def end(self) -> None:
        """Read nothing more, not even the rest of a line."""
        self.told_to_end = True
        _silence(self.reading, os.O_RDONLY, inheritable=False)
        self.ended.set()


def _widen(descriptor: int) -> None:
    """Have a pipe hold more, on systems that can: for a long reply, writer and reader take fewer turns."""
    if sys.platform == "linux":
        # It is no pipe, or the user's pipes hold too much already, or memory is short.
        with suppress(OSError, ImportError, MemoryError):
            import fcntl  # Windows has none

            if fcntl.fcntl(descriptor, fcntl.F_GETPIPE_SZ) < _WIDE_PIPE_BYTES:
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _WIDE_PIPE_BYTES)


def _silence(descriptor: int, flags: int, *, inheritable: bool) -> None:
    """Point *descriptor* at the null device."""
    null = os.open(os.devnull, flags)
    if null == descriptor:  # it was closed, so the null device got its number
        os.set_inheritable(null, inheritable)
    else:
        os.dup2(null, descriptor, inheritable=inheritable)
        os.close(null)


def redirect_stdio(grace: float = GRACE_S) -> StdioPipes:
    """
    Move standard input and output to private descriptors that no child process inherits.

    Standard input becomes the null device, and standard output becomes standard error. From now on,
    signals such as SIGTERM end the wire instead of the process.

    Args:
        grace:
            How long the process may take to end after such a signal, in seconds.

    Raises:
        OSError: If standard input or output is closed.
    """
    if sys.stderr is None:  # it is closed: descriptor 2 is free, and must not become the wire
        _silence(2, os.O_WRONLY, inheritable=True)
        sys.stderr = os.fdopen(2, "w", closefd=False)
    for descriptor in (0, 1):
        os.fstat(descriptor)  # raises if it is closed: a duplicate below could get its number
    wire = StdioPipes(os.dup(0), os.dup(1))
    if sys.platform != "win32":
        for descriptor in (wire.reading, wire.writing):
            os.set_blocking(descriptor, True)
    sys.stdout.flush()  # what was printed before belongs to the old standard output
    _silence(0, os.O_RDONLY, inheritable=True)
    os.dup2(2, 1)
    redirect()
    _end_on_signals(wire, grace)
    return wire


def serve(
    server: Server, wire: StdioPipes, *, look: Callable[[], object] = bool, grace: float = GRACE_S
) -> bool:
    """
    Answer one client until it hangs up, or until the process is told to end.

    Args:
        server:
            Answers the requests; it must send with the wire's `write`.

        wire:
            What `redirect_stdio` returned.

        look:
            Called once a second.

        grace:
            How long to wait for running prompts at the end, in seconds.

    Returns:
        Whether reading worked until the end.
    """
    try:
        server.read_from(wire.read, wire.ended.set)
    except RuntimeError as error:  # no more threads can be started
        say(f"nothing can be read: {error}")
    # Signal handlers run on this thread.
    while not wire.ended.wait(_LOOK_FOR_PARENT_EVERY_S) and server.is_reading and not wire.is_orphaned:
        look()
    served = wire.ended.is_set() or server.is_reading
    exit_after(grace, 0 if served else 1)
    # A client that has hung up wants no more errors: the official Python client fails at them.
    has_hung_up = wire.ended.is_set() and not wire.told_to_end
    server.close(0 if wire.reader_gone else grace, answer_rest=not has_hung_up)
    return served


def exit_after(grace: float, code: int = 0) -> None:
    """
    End the process after a while, even if a prompt hangs or the client does not read.

    Args:
        grace:
            How long it may go on, in seconds, besides the time to write what is left.

        code:
            The exit code.
    """
    timer = threading.Timer(grace + _WRITE_REST_S, _exit, (code,))
    timer.daemon = True
    with suppress(RuntimeError):  # no more threads can be started
        timer.start()


def exit_now(code: int = 0) -> NoReturn:
    """
    End the process, even if prompts have left threads running.

    Printed output is flushed first, unless nobody reads it.

    Args:
        code:
            The exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # an author may have closed or replaced it
            stream.flush()
    _exit(code)


def _exit(code: int = 0) -> NoReturn:
    """End the process without running authors' code, such as exit handlers."""
    finish(_WRITE_REST_S)
    end_all()
    os._exit(code)


def _end_on_signals(wire: StdioPipes, grace: float) -> None:
    """Handle the signals that would end the process: they end the wire instead."""

    def end(_number: int, _frame: FrameType | None) -> None:
        # Start the timer first: the import of a recipe may hang, and so may `wire.end()`, because the thread
        # that was interrupted may hold the lock of `wire.ended`.
        exit_after(grace)
        wire.end()

    for name in _ENDING_SIGNALS:
        signal.signal(getattr(signal, name), end)
