"""
Writing that never waits long for a reader: at once where there is room, else on a background thread.
"""

import _thread
import os
import stat
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeAlias

from promptkit.errors.pending_output import PendingOutput, Redact

__all__ = ["BackgroundWriter"]

#: How many bytes wait for a reader at most; more is dropped.
_CAPACITY: Final = 1024 * 1024

#: How long an unfinished line is held back for its end, in seconds.
_HOLD_LINE_S: Final = 0.2

#: How long a thread waits for its output to be read, in seconds, and for a write that blocks.
_WAIT_FOR_READER_S: Final = 0.05

#: How long a thread waits for another one that writes, in seconds.
_WAIT_FOR_TURN_S: Final = 0.005

#: How long a thread may write without a pause, in seconds, before the background thread writes beside it.
_REPLACE_TURN_S: Final = 0.5

#: How often waiting threads look again, in seconds.
_POLL_S: Final = 0.0001

#: At the end, a slow reader gets this many times as long as one that reads nothing.
_SLOW_READER_FACTOR: Final = 10

#: What a pipe takes in one piece: no child's output is mixed into a shorter line.
_PIPE_CHUNK: Final = 4096

#: How many bytes a socket takes without waiting once it says that it is ready.
_SOCKET_CHUNK: Final = 2048

#: How many bytes are written to a file at once.
_FILE_CHUNK: Final = 65536

#: Returns how many bytes to write to a descriptor next; 0 if that would wait.
_Room: TypeAlias = Callable[[int], int]


class BackgroundWriter:
    """
    Writes whole lines at once as long as that does not wait; the rest on a background thread.

    So what is printed is there before what a child process or C code writes later, and before a
    crash. Lines of different threads stay whole. Any thread may write at any time: in a signal
    handler, in a finalizer that interrupts another write, in a forked child.

    Args:
        capacity:
            How many bytes may wait for a reader.

    Attributes:
        pending:
            What waits to be written, and what removes secrets from it.
    """

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self.pending = PendingOutput(capacity)
        self.resume()

    def resume(self) -> None:
        """
        Write in the background: from the beginning, and again in a forked child that goes on to serve.
        """
        # Held while something is taken out of the queue and written.
        self._turn = threading.RLock()
        self._is_writing = False
        # Released when there is something to do. Unlike an event, any signal handler may do that.
        self._ready = threading.Lock()
        self._ready.acquire()
        self._blocked_since: float | None = None
        self._thread: int | None = None
        self._starts = threading.Lock()
        self._holds_lines = False
        self._is_direct = False

    def write(self, descriptor: int, data: bytes) -> None:
        """
        Write *data* now or soon; drop it if nobody reads. It never waits long.

        Args:
            descriptor:
                Where to write. Each thread has a line of its own there.

            data:
                UTF-8 text, or any bytes.
        """
        if self._is_direct or sys.is_finalizing():
            self._write_directly(descriptor, data)
            return
        pending, deadline = self.pending, time.monotonic() + _WAIT_FOR_READER_S
        for piece in pending.pieces(data):
            while not pending.has_room(len(piece)) and self._is_worth_waiting(deadline):
                time.sleep(_POLL_S)
            pending.add(descriptor, piece)
            self._write_now()
        if pending or (pending.has_unfinished_lines and not self._holds_lines):
            self._wake()
        if pending and os.isatty(descriptor):  # nothing says how much a terminal takes
            self._wait()

    def flush(self, descriptor: int) -> None:
        """
        Wait a moment until everything is read; not at all while nobody reads.

        Where secrets are removed, an unfinished line is held back all the same.
        """
        if self.pending.redact is None:
            self.pending.release_line(descriptor)
            self._write_now()
            if self.pending:
                self._wake()
        self._wait()

    def finish(self, seconds: float) -> None:
        """
        Wait until everything is written, unfinished lines too; *seconds* for a reader that reads nothing.
        """
        pending = self.pending
        pending.release_lines()
        if pending or pending.dropped:
            self._wake()
        begun = moved = time.monotonic()
        done = pending.done
        while (pending.done < pending.accepted or pending.dropped) and not self._is_direct:
            time.sleep(_POLL_S)
            now = time.monotonic()
            if pending.done != done:
                done, moved = pending.done, now
            if now - moved > seconds or now - begun > seconds * _SLOW_READER_FACTOR:
                break

    def stop(self) -> None:
        """
        From now on, write on the thread that calls `write`.
        """
        self._is_direct = True

    def forget(self) -> None:
        """
        In a forked child, which has no background thread: leave what waits to the parent.
        """
        self.stop()
        self.pending.forget()
        self._blocked_since = None

    def _wait(self) -> None:
        goal, deadline = self.pending.accepted, time.monotonic() + _WAIT_FOR_READER_S
        while self.pending.done < goal and self._is_worth_waiting(deadline):
            time.sleep(_POLL_S)

    def _is_worth_waiting(self, deadline: float) -> bool:
        now, since = time.monotonic(), self._blocked_since
        is_read = since is None or now - since < _WAIT_FOR_READER_S
        return is_read and now < deadline and self._thread not in (None, threading.get_ident())

    def _wake(self) -> None:
        """Wake the background thread, or start it."""
        with suppress(RuntimeError):  # it is awake
            self._ready.release()
        if self._thread is None and self._starts.acquire(blocking=False):
            # Not by `threading`, which would run an author's tracing functions, and these may raise.
            with suppress(RuntimeError, MemoryError):  # no more threads: the next write tries again
                self._thread = _thread.start_new_thread(self._run, ())
            self._starts.release()

    def _run(self) -> None:
        try:
            while not self._is_direct:
                self._holds_lines = self.pending.has_unfinished_lines
                self._ready.acquire(timeout=_HOLD_LINE_S if self._holds_lines else -1)
                self._holds_lines = False
                self._write_all()
        finally:  # an author's profiler can end any thread
            self._thread = None

    def _write_all(self) -> None:
        pending = self.pending
        pending.release_lines(_HOLD_LINE_S)
        while pending or pending.dropped:
            while pending:
                if not self._write_next(_any_room, _REPLACE_TURN_S) and not self._is_writing:
                    self._turn = threading.RLock()  # its holder may never release it
            pending.report_dropped()

    def _write_now(self) -> None:
        """Write on this thread what needs no waiting."""
        with suppress(RecursionError):  # the author's code is that deep
            while self.pending and self._write_next(_room_of, _WAIT_FOR_TURN_S):
                pass

    def _write_next(self, room: _Room, patience_s: float) -> bool:
        """Write the oldest batch once no other thread writes; return whether to go on."""
        turn = self._turn
        # A thread that waits for a reader is not waited for.
        if not turn.acquire(blocking=False) and not (
            room(self.pending.last_descriptor) and turn.acquire(timeout=patience_s)
        ):
            return False
        try:
            if self._is_writing:  # a finalizer or a signal handler interrupted a write of this thread
                return False
            self._is_writing = True
            try:
                if not self.pending:  # another thread has written it, or a signal handler just now
                    return True
                length = room(self.pending.next_descriptor())
                return bool(length and self._write_batch(room, length))
            finally:
                self._is_writing = False
        finally:
            turn.release()

    def _write_batch(self, room: _Room, length: int) -> bool:
        """Write the oldest batch, *length* bytes first; return whether none of it is left to write."""
        pending = self.pending
        batch = descriptor, data, redact, _ = pending.take()
        rest, still = data, redact  # an author's recursion or time limit may end here
        try:
            rest, still = _redacted(data, redact), None
            while rest and length:
                self._blocked_since = time.monotonic()
                rest = rest[_write_some(descriptor, rest[:length]) :]
                length = room(descriptor) if rest else 0
        except (OSError, MemoryError) as error:  # it is closed, its reader is gone, or its disk is full
            pending.dropped += len(data) if isinstance(error, MemoryError) else 0
            rest = b""
        finally:
            self._blocked_since = None
            pending.settle(batch, rest, still)
        return not rest

    def _write_directly(self, descriptor: int, data: bytes) -> None:
        if self._blocked_since is not None:  # nobody reads, and the process must end
            return
        with suppress(OSError):
            rest = memoryview(_redacted(data, self.pending.redact))
            while rest:
                rest = rest[os.write(descriptor, rest) :]


def _any_room(_descriptor: int) -> int:
    """The room for a thread that may wait."""
    return _PIPE_CHUNK


def _room_of(descriptor: int) -> int:
    """Return how many bytes can be written without waiting for a reader; 0 if that is unknown."""
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return 0
    if stat.S_ISREG(mode):
        return _FILE_CHUNK
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return 0
    import select  # loaded by the first output

    if sys.platform == "win32":  # it has no poll
        return 0
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    if not poll.poll(0):
        return 0
    return select.PIPE_BUF if stat.S_ISFIFO(mode) else _SOCKET_CHUNK


def _write_some(descriptor: int, data: bytes) -> int:
    """Return how many bytes were written: of a non-blocking descriptor maybe 0, after waiting for it."""
    try:
        return os.write(descriptor, data)
    except BlockingIOError:  # another process that shares the descriptor has made it so
        from select import select

        select((), (descriptor,), ())
        return 0


def _redacted(data: bytes, redact: Redact | None) -> bytes:
    if redact is None:
        return data
    return redact(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
