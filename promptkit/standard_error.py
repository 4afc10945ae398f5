"""
Standard error: promptkit's own messages, and everything that Python code prints while serving.

A client may read standard error slowly, or not at all. `redirect` therefore replaces the streams in ``sys``
with streams that put whole lines into a bounded queue. A single thread writes the queued lines.
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

#: Sizes in bytes: the maximum size of the queue, the overhead counted for each queued item, and the maximum
#: length of an unfinished line.
_CAPACITY: Final = 1024 * 1024
_OVERHEAD: Final = 128
_MAX_LINE: Final = 65536

#: The longest waits, in seconds: `_WAIT_S` for the end of a line, for space in the queue, and at exit;
#: `_FLUSH_S` during a flush.
_WAIT_S: Final = 1.0
_FLUSH_S: Final = 0.25

#: Intervals in seconds between checks of the queue, and between retries when a pipe is full.
_POLL_EVERY_S: Final = 0.0001
_RETRY_EVERY_S: Final = 0.01


class BackgroundWriter:
    """
    A bounded queue of whole lines, and the thread that writes them.

    Every method can be called on any thread, in a signal handler, and in a finalizer that interrupts another
    method of the writer.

    Args:
        descriptor:
            The file descriptor to write to.

    Attributes:
        redact:
            A function that removes secrets from text; None if there are no secrets.

        has_timestamps:
            Whether each line begins with a timestamp.
    """

    def __init__(self, descriptor: int = 2) -> None:
        self.redact: Callable[[str], str] | None = None
        self.has_timestamps = False
        self._descriptor = descriptor
        self.reset()

    def reset(self) -> None:
        """
        Start with an empty queue and no thread. Called on creation, in a forked child, and after a failure.
        """
        self._queue: SimpleQueue[bytes] = SimpleQueue()  # reentrant, like everything below
        self._lock = threading.RLock()
        self._lines: dict[int, tuple[bytes, float]] = {}  # each thread's unfinished line, and its start time
        self._size = self._dropped = 0
        self._has_thread = False
        self._is_stalled = False  # whether a wait has timed out since the last write

    def write(self, data: bytes) -> None:
        """
        Add *data* to the current thread's line, and queue the line once it is complete.

        Args:
            data:
                UTF-8 text, or any bytes.
        """
        thread = threading.get_ident()
        with self._lock:
            before, since = self._lines.pop(thread, (b"", time.monotonic()))
            data = before + data
            # A progress bar ends with a carriage return. Do not split data, because a secret can span several
            # lines.
            if not data.endswith((b"\n", b"\r")) and len(data) <= _MAX_LINE:
                self._lines[thread] = data, since
                data = b""
        if data:
            self._wait_unless_stalled(_CAPACITY - len(data), _WAIT_S)
        self._put(data)

    def flush(self) -> None:
        """
        Wait briefly for everything in the queue to be written.

        The current thread's unfinished line is queued first, unless secrets must be redacted: the line could
        end in the middle of a secret.
        """
        if self.redact is None:
            self._put_line(threading.get_ident())
        self._wait_unless_stalled(0, _FLUSH_S)

    def finish(self, seconds: float) -> None:
        """Wait at most *seconds* until everything is written."""
        for thread in list(self._lines):
            self._put_line(thread)
        self._wait(0, seconds)

    def _put_line(self, thread: int) -> None:
        """Queue a thread's unfinished line."""
        with self._lock:  # so that the line's thread cannot extend it
            self._put(self._lines.pop(thread, (b"", 0.0))[0])

    def _put(self, data: bytes) -> None:
        """Redact and queue *data*, or drop it if the queue is full."""
        if data and self.redact is not None:
            data = self.redact(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        if data and self.has_timestamps:
            data = _add_timestamps(data)
        length, size = len(data), len(data) + _OVERHEAD  # computed first: a call in `+=` could be interrupted
        with self._lock:
            if self._size and self._size + length > _CAPACITY:  # an empty queue accepts any line
                self._dropped += length
            else:
                self._size += size
                self._queue.put(data)
            if not self._has_thread:
                with suppress(RuntimeError):  # no thread can be started; the next write tries again
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
        with self._lock:  # so that any note about dropped bytes has been queued as well
            return self._size > max(size, 0)

    def _run(self) -> None:
        try:
            while True:
                self._write_next()
        finally:  # the thread has failed, for example because memory ran out
            self.reset()

    def _write_next(self) -> None:
        """Write the next item in the queue, and queue the lines that have been unfinished for a second."""
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
            note = f"\npromptkit: {count:,} bytes of standard error were dropped because the queue was full\n"
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
        except OSError:  # it is closed, nothing reads the pipe, or the disk is full
            return


class _Stream(FileIO):
    """The raw stream underneath a standard stream. `close` only flushes it, because the server needs it."""

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
    Send everything that Python code prints to standard error, through a `BackgroundWriter`.

    C code and child processes still write to the file descriptors directly.
    """
    global _stream  # noqa: PLW0603 (a process has one standard error)
    sys.stdout = sys.__stdout__ = _create_text_stream(1)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _create_text_stream(2)  # type: ignore[misc]
    _stream = _create_text_stream(2)  # private, so that recipes cannot detach it
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
    """Pass all further output to *redact*, which removes secrets from it."""
    _writer.redact = redact


def set_timestamps(*, enabled: bool) -> None:
    """Set whether all further lines begin with a timestamp."""
    _writer.has_timestamps = enabled


def finish(seconds: float = _WAIT_S) -> None:
    """Wait at most *seconds* until everything is written."""
    _writer.finish(seconds)


def say(text: str) -> None:
    """Print *text* to standard error, with the prefix ``promptkit:``. Never raise an exception."""
    with suppress(Exception):  # a recipe may have closed or replaced the stream, or nothing reads it any more
        stderr_stream().write(f"promptkit: {text}\n")
