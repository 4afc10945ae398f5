"""
Standard error: promptkit's own messages, and what recipes print.

A client may read it slowly, or not at all. So `redirect` replaces the streams in ``sys`` with streams that
never wait long for a reader.
"""

import _thread
import atexit
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from io import FileIO, TextIOWrapper
from itertools import takewhile
from typing import Any, Final, TextIO

__all__ = ["BackgroundWriter", "finish", "redact_with", "redirect", "say", "stamp_lines", "stderr_stream"]

#: How many bytes wait for a reader at most, and what each piece takes besides its text; more is dropped.
_CAPACITY: Final = 1024 * 1024
_OVERHEAD: Final = 128

#: How many bytes a piece has at most, and an unfinished line.
_LONGEST: Final = 65536

#: What is written at once at most; a pipe that says that it has room takes PIPE_BUF.
_ROOM: Final = 4096
_PIECES: Final = 64

#: How long an unfinished line is held back for its end, and how often the thread looks, in seconds.
_HOLD_LINE_S: Final = 0.2
_LOOK_EVERY_S: Final = 0.001

#: How long a thread waits for another one that writes, for a reader that reads nothing, and in all.
_TURN_S: Final = 0.005
_IDLE_S: Final = 0.05
_WAIT_S: Final = 1.0


class BackgroundWriter:
    """
    Writes whole lines: at once where that does not wait for a reader, else on a thread.

    So what is printed is there before what a child process writes later, and before a crash. Any thread may
    write at any time, also in a signal handler, or in a finalizer that interrupts another write.

    Args:
        capacity:
            How many bytes may wait for a reader.

    Attributes:
        redact:
            Removes secrets from text; None if there are none.

        stamps:
            Whether each line begins with the time.
    """

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self.redact: Callable[[str], str] | None = None
        self.stamps = False
        self._capacity = capacity
        self.begin()

    def begin(self) -> None:
        """Begin with nothing that waits: at first, and in a forked child, as the parent writes that."""
        self._queue: deque[tuple[int, bytes]] = deque()
        self._lines: dict[tuple[int, int], tuple[bytes, float]] = {}  # by descriptor and thread
        self._size = self._dropped = 0
        self._moved_at = 0.0  # when something was written
        self._dropped_at = 2  # the descriptor
        self._lock = threading.RLock()  # of all these
        self._turn = threading.Lock()  # held to write
        self._turn_of = 0  # who has held it last
        self._is_blocked = self._is_stalled = self._has_thread = False

    def write(self, descriptor: int, data: bytes) -> None:
        """
        Write *data* now or soon; drop what does not fit. It never waits long.

        Args:
            descriptor:
                Where to write. Each thread has a line of its own there.

            data:
                UTF-8 text, or any bytes.
        """
        line = descriptor, threading.get_ident()
        with self._lock:
            before, since = self._lines.pop(line, (b"", time.monotonic()))
            data = before + data
            # Progress bars end with a carriage return. A secret may have several lines, so none is cut off.
            if not data.endswith((b"\n", b"\r")) and len(data) <= _LONGEST:
                self._lines[line] = data, since
                data = b""
        self._put(descriptor, data)
        # Nothing says how much a terminal takes. To ask what it is lets other threads run, which takes 5 ms.
        if self._queue and not self._is_stalled and os.isatty(descriptor):
            self._wait(0, _IDLE_S)

    def flush(self, descriptor: int) -> None:
        """Write the thread's line, unless secrets are looked for, and wait a moment for the reader."""
        if self.redact is None:
            self._release((descriptor, threading.get_ident()))
        self._wait(0, _IDLE_S)

    def finish(self, seconds: float) -> None:
        """Wait until everything is written; at most so many seconds."""
        self._release()
        self._is_stalled = False
        self._wait(0, seconds, idle=seconds)

    def _release(self, only: tuple[int, int] | None = None, age: float = 0.0) -> None:
        """Write lines that are not finished: those that were begun so many seconds ago."""
        for line, (_, since) in list(self._lines.items()):
            if only in (None, line) and time.monotonic() - since >= age:
                self._put(line[0], self._lines.pop(line, (b"", since))[0])

    def _put(self, descriptor: int, data: bytes) -> None:
        """Write *data* as far as there is room, and leave the rest to the thread."""
        if self.redact is not None:
            data = self.redact(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        if self.stamps:
            data = _stamped(data)
        for start in range(0, len(data), _LONGEST):
            piece = data[start : start + _LONGEST]
            self._wait(self._capacity - len(piece), _WAIT_S)
            with self._lock:
                if self._dropped or self._size + len(piece) > self._capacity:
                    self._dropped_at = descriptor
                    self._dropped += len(piece)  # and all that comes until the thread has said so
                else:
                    self._append(descriptor, piece)
            while self._write_next(_room_of):
                pass
        if self._queue or self._lines:
            self._start()

    def _append(self, descriptor: int, piece: bytes) -> None:
        self._queue.append((descriptor, piece))
        self._size += len(piece) + _OVERHEAD

    def _write_next(self, room: Callable[[int], int]) -> bool:
        """Write what there is room for; return whether that was anything."""
        # Another thread that writes is waited for, unless that waits for a reader. It may also be this one,
        # interrupted by a finalizer or a signal handler.
        own = threading.get_ident()
        if not self._turn.acquire(timeout=0 if self._is_blocked or self._turn_of == own else _TURN_S):
            return False
        self._turn_of = own
        try:
            descriptor, data = self._first()
            written = _write(descriptor, data[: room(descriptor)]) if data else 0
            if written:
                self._take(written)
                self._is_stalled = False
        finally:
            self._turn.release()
        return written > 0

    def _first(self) -> tuple[int, bytes]:
        """Where to write next, and what: for each write, other threads may run for 5 ms."""
        first = list(self._queue)[:_PIECES]  # copied at once: no signal handler comes between
        descriptor = first[0][0] if first else 2
        return descriptor, b"".join(piece for _, piece in takewhile(lambda one: one[0] == descriptor, first))

    def _take(self, size: int) -> None:
        """Take what was written out of the queue."""
        with self._lock:
            self._size -= size
            self._moved_at = time.monotonic()
            while self._queue and size >= len(self._queue[0][1]):
                size -= len(self._queue.popleft()[1])
                self._size -= _OVERHEAD
            if size:
                descriptor, piece = self._queue[0]
                self._queue[0] = descriptor, piece[size:]

    def _wait(self, size: int, seconds: float, idle: float = _IDLE_S) -> None:
        """Wait until no more than *size* bytes wait: so many seconds, *idle* ones if nobody reads."""
        begun = now = time.monotonic()
        while self._size + self._dropped > size and now < begun + seconds and not self._is_stalled:
            self._start()
            time.sleep(_LOOK_EVERY_S / 10)
            now = time.monotonic()
            # There may be room while many threads keep the one that writes from it.
            self._is_stalled = now >= max(begun, self._moved_at) + idle and not _room_of(self._first()[0])

    def _start(self) -> None:
        """Start the thread, unless there is one."""
        with self._lock, suppress(RuntimeError):  # there can be no more threads: the next write tries again
            if not self._has_thread:
                _thread.start_new_thread(self._run, ())
                self._has_thread = True

    def _run(self) -> None:
        try:
            while self._has_work():
                self._release(age=_HOLD_LINE_S)
                self._is_blocked = True
                if not self._write_next(lambda _: _ROOM):
                    time.sleep(_LOOK_EVERY_S)
                self._is_blocked = False
        except MemoryError:  # the next write starts another thread
            self._has_thread = self._is_blocked = False

    def _has_work(self) -> bool:
        with self._lock:
            if self._dropped and not self._queue:
                said = f"{self._dropped:,} bytes of standard error were dropped, as nobody reads it"
                self._append(self._dropped_at, f"\npromptkit: {said}\n".encode())
                self._dropped = 0
            self._has_thread = bool(self._queue or self._lines)
            return self._has_thread


def _stamped(data: bytes) -> bytes:
    """The lines of *data*, each with the time before it, in UTC (RFC 3339)."""
    now = time.time()
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
    stamp = f"{seconds}.{int(now % 1 * 1000):03}Z ".encode()
    return b"\n".join(stamp + line if line else line for line in data.split(b"\n"))


def _room_of(descriptor: int) -> int:
    """Return how many bytes can be written without waiting for a reader; 0 if that is unknown."""
    import select  # loaded by the first output

    if sys.platform == "win32" or os.isatty(descriptor):
        return 0
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return min(select.PIPE_BUF, _ROOM) if poll.poll(0) else 0


def _write(descriptor: int, data: bytes) -> int:
    """Return how many bytes were written, or never can be."""
    try:
        return os.write(descriptor, data) if data else 0
    except BlockingIOError:  # another process that shares the descriptor has made it non-blocking
        return 0
    except OSError:  # it is closed, its reader is gone, or its disk is full
        return len(data)


class _Stream(FileIO):
    """What is below a standard stream. It is never closed: the server needs it."""

    def __init__(self, writer: BackgroundWriter, descriptor: int) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._writer = writer

    def write(self, data: Any, /) -> int:
        whole = bytes(data)
        self._writer.write(self.fileno(), whole)
        return len(whole)

    def flush(self) -> None:
        self._writer.flush(self.fileno())

    def close(self) -> None:
        self.flush()


_writer: BackgroundWriter | None = None
_stream: TextIO | None = None


def redirect() -> None:
    """
    Send what is printed on standard output and standard error through a `BackgroundWriter`.

    Both end on standard error. C code and child processes write to the descriptors as before.
    """
    global _writer, _stream  # noqa: PLW0603 (a process has one standard error)
    _writer = BackgroundWriter()
    sys.stdout = sys.__stdout__ = _text_stream(_writer, 1)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _text_stream(_writer, 2)  # type: ignore[misc]
    _stream = _text_stream(_writer, 2)  # which no recipe detaches
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_writer.begin)
    atexit.register(finish, _WAIT_S)


def _text_stream(writer: BackgroundWriter, descriptor: int) -> Any:
    stream: Any = TextIOWrapper(_Stream(writer, descriptor), "utf-8", "backslashreplace", write_through=True)
    stream.mode = "w"  # as Python's own have
    return stream


def stderr_stream() -> TextIO:
    """
    Return promptkit's own stream while serving, even if a recipe has replaced ``sys.stderr``.

    Otherwise return ``sys.stderr``, opened again if a recipe has closed or removed it.
    """
    if _stream is not None:
        return _stream
    stream: Any = getattr(sys, "stderr", None)
    if not callable(getattr(stream, "write", None)) or getattr(stream, "closed", False):
        sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115 (a descriptor, which stays open)
    return sys.stderr


def redact_with(redact: Callable[[str], str]) -> None:
    """
    From now on, remove secrets by *redact* from what is printed.
    """
    if _writer is not None:
        _writer.redact = redact


def stamp_lines(*, stamps: bool) -> None:
    """
    Choose whether each line that is printed from now on begins with the time.
    """
    if _writer is not None:
        _writer.stamps = stamps


def finish(seconds: float) -> None:
    """
    Wait until everything is written; at most *seconds* for a reader that reads nothing.
    """
    if _writer is not None:
        _writer.finish(seconds)


def say(text: str) -> None:
    """
    Print *text* on standard error, after ``promptkit:``. It never raises.
    """
    with suppress(Exception):  # an author may have closed or replaced it, and nobody may be reading
        stream = stderr_stream()
        stream.write(f"promptkit: {text}\n")
        stream.flush()
