"""
Standard error: promptkit's own messages, and everything that Python code prints while serving.

A client may read standard error slowly, or not at all. `redirect` therefore replaces the streams in ``sys``
with streams that put whole lines into a bounded queue, which one thread writes.
"""

import _thread
import atexit
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from io import FileIO, TextIOWrapper
from queue import Empty, SimpleQueue
from typing import Any, Final, TextIO

#: Sizes in bytes: the maximum for the queue, the overhead per queued item, and the maximum for an unfinished
#: line.
_CAPACITY: Final = 1024 * 1024
_OVERHEAD: Final = 128
_LONGEST: Final = 65536

#: Maximum waits in seconds: for the end of a line, for space in the queue and at exit; and during a flush.
_WAIT_S: Final = 1.0
_FLUSH_S: Final = 0.25

#: Intervals in seconds between checks of the queue, and between retries when a pipe is full.
_POLL_EVERY_S: Final = 0.0001
_RETRY_EVERY_S: Final = 0.01


class BackgroundWriter:
    """
    A bounded queue of whole lines, and the thread that writes them.

    Every method can be called on any thread, in a signal handler, and in a finalizer that interrupts another
    call.

    Args:
        descriptor:
            The file descriptor to write to.

    Attributes:
        redact:
            Removes secrets from text; None if there are no secrets.

        stamps:
            Whether each line begins with the time.
    """

    def __init__(self, descriptor: int = 2) -> None:
        self.redact: Callable[[str], str] | None = None
        self.stamps = False
        self._descriptor = descriptor
        self.reset()

    def reset(self) -> None:
        """
        Start with an empty queue and no thread. Called initially, in a forked child, and after a failure.
        """
        self._queue: SimpleQueue[bytes] = SimpleQueue()  # reentrant, like all state below
        self._lock = threading.RLock()
        self._lines: dict[int, tuple[bytes, float]] = {}  # unfinished lines and their start, by thread
        self._size = self._dropped = 0
        self._has_thread = False
        self._is_stalled = False  # a wait has timed out since the last write

    def write(self, data: bytes) -> None:
        """
        Add *data* to the line of this thread, and queue the line once it is complete.

        Args:
            data:
                UTF-8 text, or any bytes.
        """
        thread = threading.get_ident()
        with self._lock:
            before, since = self._lines.pop(thread, (b"", time.monotonic()))
            data = before + data
            # A progress bar ends with a carriage return. Do not split data, because a secret can have several
            # lines.
            if not data.endswith((b"\n", b"\r")) and len(data) <= _LONGEST:
                self._lines[thread] = data, since
                data = b""
        if data:
            self._wait_unless_stalled(_CAPACITY - len(data), _WAIT_S)
        self._put(data)

    def flush(self) -> None:
        """
        Wait briefly until the queue is written.

        Queue the unfinished line of this thread first, unless secrets must be redacted, because the line
        could end inside a secret.
        """
        if self.redact is None:
            self._put_line(threading.get_ident())
        self._wait_unless_stalled(0, _FLUSH_S)

    def finish(self, seconds: float) -> None:
        """Wait until everything is written, for at most *seconds*."""
        for thread in list(self._lines):
            self._put_line(thread)
        self._wait(0, seconds)

    def _put_line(self, thread: int) -> None:
        """Queue the unfinished line of a thread."""
        with self._lock:  # so that the line's thread cannot extend it
            self._put(self._lines.pop(thread, (b"", 0.0))[0])

    def _put(self, data: bytes) -> None:
        """Redact and queue *data*, or drop it if the queue is full."""
        if data and self.redact is not None:
            data = self.redact(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        if data and self.stamps:
            data = _add_timestamps(data)
        length, size = len(data), len(data) + _OVERHEAD  # a call within `+=` could be interrupted
        with self._lock:
            if self._size and self._size + length > _CAPACITY:  # an empty queue accepts any line
                self._dropped += length
            else:
                self._size += size
                self._queue.put(data)
            if not self._has_thread:
                with suppress(RuntimeError):  # the next write tries again
                    _thread.start_new_thread(self._run, ())  # `Thread.start` is not reentrant
                    self._has_thread = True

    def _wait_unless_stalled(self, size: int, seconds: float) -> None:
        """Call `_wait`, unless a wait has already timed out since the last write."""
        if not self._is_stalled:
            self._is_stalled = not self._wait(size, seconds)

    def _wait(self, size: int, seconds: float) -> bool:
        """Wait until at most *size* bytes are queued. Return False if that takes more than *seconds*."""
        deadline = time.monotonic() + seconds
        while (is_full := self._has_more(size)) and time.monotonic() < deadline:
            time.sleep(_POLL_EVERY_S)
        return not is_full

    def _has_more(self, size: int) -> bool:
        with self._lock:  # the note about dropped bytes is queued with it
            return self._size > max(size, 0)

    def _run(self) -> None:
        try:
            while True:
                self._write_next()
        finally:  # the thread has failed, such as out of memory
            self.reset()

    def _write_next(self) -> None:
        """Write the next item of the queue, and queue the lines that have been unfinished for a second."""
        with suppress(Empty):
            data = self._queue.get(timeout=_WAIT_S if self._lines else None)
            _write(self._descriptor, data)
            with self._lock:
                self._size -= len(data) + _OVERHEAD
                self._is_stalled = False
                self._put_note()
        for thread, (_, since) in list(self._lines.items()):
            if time.monotonic() - since >= _WAIT_S:
                self._put_line(thread)

    def _put_note(self) -> None:
        """Queue a note about dropped bytes, if there are any and the queue is empty."""
        if self._dropped and not self._size:
            count, self._dropped = self._dropped, 0
            note = f"\npromptkit: {count:,} bytes of standard error were dropped: the queue was full\n"
            self._put(note.encode())


def _add_timestamps(data: bytes) -> bytes:
    """Return *data* with a UTC timestamp (RFC 3339) before each non-empty line."""
    now = time.time()
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
    stamp = f"{seconds}.{int(now % 1 * 1000):03}Z ".encode()
    return b"\n".join(stamp + line if line else line for line in data.split(b"\n"))


def _write(descriptor: int, data: bytes) -> None:
    """Write *data*, blocking as long as necessary; drop the rest if writing fails."""
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except BlockingIOError:  # another process that shares the pipe has made it non-blocking
            time.sleep(_RETRY_EVERY_S)
        except OSError:  # closed, without a reader, or the disk is full
            return


class _Stream(FileIO):
    """The raw stream below a standard stream. It is never closed, because the server needs it."""

    def write(self, data: Any, /) -> int:
        content = bytes(data)
        _writer.write(content)
        return len(content)

    def flush(self) -> None:
        _writer.flush()

    def close(self) -> None:
        self.flush()


_writer = BackgroundWriter()
_stream: TextIO | None = None


def redirect() -> None:
    """
    Send all output of Python code to standard error, through a `BackgroundWriter`.

    C code and child processes write to the descriptors as before.
    """
    global _stream  # noqa: PLW0603 (a process has one standard error)
    sys.stdout = sys.__stdout__ = _create_text_stream(1)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _create_text_stream(2)  # type: ignore[misc]
    _stream = _create_text_stream(2)  # private, so that no recipe detaches it
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_writer.reset)
    atexit.register(finish)


def _create_text_stream(descriptor: int) -> Any:
    raw = _Stream(descriptor, "w", closefd=False)
    stream: Any = TextIOWrapper(raw, "utf-8", "backslashreplace", write_through=True)
    stream.mode = "w"  # like Python's own streams
    return stream


def stderr_stream() -> TextIO:
    """
    Return promptkit's own stream while serving, even if a recipe has replaced ``sys.stderr``.

    When not serving, return ``sys.stderr``, reopened if a recipe has closed or removed it.
    """
    if _stream is not None:
        return _stream
    stream: Any = getattr(sys, "stderr", None)
    if not callable(getattr(stream, "write", None)) or getattr(stream, "closed", False):
        sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115 (the stream stays open)
    return sys.stderr


def redact_with(redact: Callable[[str], str]) -> None:
    """Call *redact* to remove secrets from all further output."""
    _writer.redact = redact


def stamp_lines(*, stamps: bool) -> None:
    """Set whether all further lines begin with the time."""
    _writer.stamps = stamps


def finish(seconds: float = _WAIT_S) -> None:
    """Wait until everything is written, for at most *seconds*."""
    _writer.finish(seconds)


def say(text: str) -> None:
    """Print *text* to standard error after ``promptkit:``. Never raises."""
    with suppress(Exception):  # a recipe may have closed or replaced the stream, or its reader is gone
        stderr_stream().write(f"promptkit: {text}\n")
