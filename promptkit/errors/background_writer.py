"""
Writing for which nobody waits, whether somebody reads or not: at once, or on a thread of its own.
"""

import _thread
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, TypeAlias

from promptkit.errors.descriptors import any_room, room_of, write_some

__all__ = ["BackgroundWriter", "Redact"]

#: How many bytes wait to be read at most; what is more is dropped.
_CAPACITY: Final = 1024 * 1024

#: What an entry of the queue takes besides its text.
_OVERHEAD: Final = 128

#: Of how many bytes secrets are removed at once.
_BATCH: Final = 65536

#: How long a line without its end may be, and how many there may be, before they are written as they are.
_LONGEST_LINE: Final = 8192
_MOST_LINES: Final = 256

#: How long a line is held back for its end, in seconds.
_HOLD_S: Final = 0.2

#: How long a writing thread may wait, in seconds, and a read be overdue before nobody waits for it.
_PATIENCE_S: Final = 0.05

#: How long a lock may be held before another takes its place, in seconds. Busy threads take turns of 5 ms.
_HELD_S: Final = 0.5

#: How long a thread waits for another one to have written, in seconds.
_TURN_S: Final = 0.005

#: How often it is looked whether there is room, in seconds.
_TICK_S: Final = 0.0001

#: A reader that is slow is waited for at the end, in seconds, up to so many times as one that takes nothing.
_MOST_TIMES: Final = 10

Redact: TypeAlias = Callable[[str], str]

#: The line of one thread: its descriptor and its thread.
_Line: TypeAlias = tuple[int, int]

#: Returns how much may be written to a descriptor at once; none if that would wait.
Room: TypeAlias = Callable[[int], int]

#: What is to be written: where, what, and what secrets are removed from it before.
_Entry: TypeAlias = tuple[int, bytes, Redact | None]


class BackgroundWriter:
    """
    Writes whole lines at once as long as that does not wait; the rest on a thread of its own.

    So what is printed is there before what a child or C code writes later, and before a crash.
    It keeps lines of different threads whole. Any thread may write at any time: in a signal
    handler, in a finalizer that runs in the midst of another write, in a forked child.

    Args:
        capacity:
            How many bytes may wait there for a reader.

    Attributes:
        redact:
            Removes from text what must not be shown; None if there is nothing to remove.
    """

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self.redact: Redact | None = None
        self._capacity = capacity
        self._descriptor = 2
        self._queue: deque[_Entry] = deque()
        self._lines: dict[_Line, tuple[bytes, float]] = {}
        # A finalizer or a signal handler may write while its own thread is writing.
        self._lock = threading.RLock()
        # Held by the thread that takes something out of the queue and writes it.
        self._turn = threading.RLock()
        self._is_writing = False
        # Released when there is something to do. Unlike an event, it can be in any handler.
        self._ready = threading.Lock()
        self._ready.acquire()
        self._accepted = self._done = self._dropped = 0
        self._waits_since: float | None = None
        self._thread: int | None = None
        self._starts = threading.Lock()
        self._ends_line = True
        self._holds = False
        self._direct = False

    def write(self, descriptor: int, data: bytes) -> None:
        """
        Write *data*, or have it written soon; drop it if nobody reads. It does not wait for long.

        Args:
            descriptor:
                Where it is written. Each thread has a line of its own there.

            data:
                Text as UTF-8, or any bytes.
        """
        if self._direct or sys.is_finalizing():
            self._write_here(descriptor, data)
            return
        deadline = time.monotonic() + _PATIENCE_S
        for piece in _pieces(data, _BATCH if self.redact is None else self._capacity // 2):
            while self._size + len(piece) > self._capacity and self._is_moving(deadline):
                time.sleep(_TICK_S)
            lock = self._locked()
            try:
                self._append((descriptor, threading.get_ident()), piece)
            finally:
                lock.release()
            self._write_now()
        if self._queue or (self._lines and not self._holds):
            self._wake()
        if self._queue and os.isatty(descriptor):  # how much room it has cannot be told
            self._wait()

    def flush(self, descriptor: int) -> None:
        """
        Wait, not for long, until what was written is read; not at all while nobody reads.

        A line without its end is held back all the same if secrets are looked for.
        """
        if self.redact is None:
            self._release_lines(lambda key, _: key == (descriptor, threading.get_ident()))
            self._write_now()
            if self._queue:
                self._wake()
        self._wait()

    def finish(self, seconds: float) -> None:
        """
        Wait until everything is written, lines without an end too.

        Args:
            seconds:
                How long to wait for a reader that takes nothing.
        """
        self._release_lines(lambda _key, _since: True)
        if self._queue or self._dropped:
            self._wake()
        begun = moved = time.monotonic()
        done = self._done
        while (self._done < self._accepted or self._dropped) and not self._direct:
            time.sleep(_TICK_S)
            now = time.monotonic()
            if self._done != done:
                done, moved = self._done, now
            if now - moved > seconds or now - begun > seconds * _MOST_TIMES:
                break

    def stop(self) -> None:
        """
        Have whoever writes do so on its own thread from now on.
        """
        self._direct = True

    def forget(self) -> None:
        """
        Leave what waits to the parent of this process, a forked child, which the thread is not in.
        """
        self.stop()
        self._lock = threading.RLock()
        self._lines = {}
        self._queue.clear()
        self._waits_since = None

    def _wait(self) -> None:
        """
        Wait, not for long, until what was written is read.
        """
        goal, deadline = self._accepted, time.monotonic() + _PATIENCE_S
        while self._done < goal and self._is_moving(deadline):
            time.sleep(_TICK_S)

    @property
    def _size(self) -> int:
        return self._accepted - self._done

    def _is_moving(self, deadline: float) -> bool:
        """
        Return whether it is worth to wait until *deadline* for what is written to be read.
        """
        now, since = time.monotonic(), self._waits_since
        is_read = since is None or now - since < _PATIENCE_S
        return is_read and now < deadline and self._thread not in (None, threading.get_ident())

    def _append(self, key: _Line, data: bytes) -> None:
        """
        Add to a thread's line, and queue what of it has an end.
        """
        before, _ = self._lines.pop(key, (b"", 0.0))
        data = before + data
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1  # progress is shown on one line again and again
        if len(data) - end > (_LONGEST_LINE if self.redact is None else _BATCH):
            end = _cut(data, len(data))
        if len(self._lines) >= _MOST_LINES:
            end = len(data)
        if end < len(data):
            self._lines[key] = data[end:], time.monotonic()
        if end:
            self._enqueue(key[0], data[:end])

    def _enqueue(self, descriptor: int, data: bytes) -> None:
        """
        Queue *data* if it fits; else drop it, and what follows until there is room again.
        """
        capacity = self._capacity // 2 if self._dropped else self._capacity
        if self._size + len(data) > capacity:
            self._dropped += len(data)
            return
        self._note_dropped()
        self._put(descriptor, data, self.redact)

    def _note_dropped(self) -> None:
        """
        Queue a line that says how much was dropped, if anything was.
        """
        if not self._dropped:
            return
        begin = "" if self._ends_line else "\n"
        note = (
            f"{begin}promptkit: {self._dropped:,} bytes of standard error were dropped, as nobody reads it\n"
        )
        self._dropped = 0
        self._put(self._descriptor, note.encode(), None)

    def _put(self, descriptor: int, data: bytes, redact: Redact | None) -> None:
        self._descriptor = descriptor
        self._accepted += len(data) + _OVERHEAD
        self._ends_line = data.endswith(b"\n")
        self._queue.append((descriptor, data, redact))

    def _release_lines(self, is_due: Callable[[_Line, float], bool]) -> None:
        """
        Queue lines that have no end yet.
        """
        if not self._lines:
            return
        lock = self._locked()
        try:
            for key, (data, since) in list(self._lines.items()):
                if is_due(key, since):
                    del self._lines[key]
                    self._enqueue(key[0], data)
        finally:
            lock.release()

    def _locked(self) -> "threading.RLock":
        """
        Return the lock, held: another one if whoever holds it does not give it back.

        A thread may be stopped before it can, or be in a finalizer of an author's that does not end.
        """
        lock = self._lock
        if not lock.acquire(timeout=_HELD_S):
            self._lock = lock = threading.RLock()
            lock.acquire()
        return lock

    def _wake(self) -> None:
        """
        Have the thread look what there is to do, and start it if it does not run.
        """
        with suppress(RuntimeError):  # it has been told already
            self._ready.release()
        if self._thread is None and self._starts.acquire(blocking=False):
            # Not by `threading`, whose tracing functions are authors' code, and may raise.
            with suppress(RuntimeError, MemoryError):  # there can be no more threads: the next write tries
                self._thread = _thread.start_new_thread(self._run, ())
            self._starts.release()

    def _run(self) -> None:
        try:
            while not self._direct:
                self._holds = bool(self._lines)
                self._ready.acquire(timeout=_HOLD_S if self._holds else -1)
                self._holds = False
                self._work_off()
        finally:  # an author's profiler can end any thread
            self._thread = None

    def _work_off(self) -> None:
        """
        Write everything that is queued, and lines whose end does not come.
        """
        overdue = time.monotonic() - _HOLD_S
        self._release_lines(lambda _, since: since <= overdue)
        while self._queue or self._dropped:
            while self._queue:
                if not self._write_next(any_room, _HELD_S) and not self._is_writing:
                    self._turn = threading.RLock()  # as `_locked` does
            lock = self._locked()
            try:
                self._note_dropped()
            finally:
                lock.release()

    def _write_now(self) -> None:
        """
        Write on this thread what can be written without waiting for its reader.
        """
        with suppress(RecursionError):  # the thread's stack is not that deep
            while self._queue and self._write_next(room_of, _TURN_S):
                pass

    def _write_next(self, room: Room, patience: float) -> bool:
        """
        Write what was queued first, if no other thread writes for too long; return whether to go on.
        """
        # A thread that waits for a reader is not waited for.
        turn = self._turn
        if not turn.acquire(blocking=False) and not (
            room(self._descriptor) and turn.acquire(timeout=patience)
        ):
            return False
        try:
            if self._is_writing:  # this is a finalizer, or a signal handler, in the midst of it
                return False
            if not self._queue:  # another thread has written it
                return True
            self._is_writing = True
            try:
                length = room(self._queue[0][0])
                return bool(length and self._write_batch(room, length))
            finally:
                self._is_writing = False
        finally:
            turn.release()

    def _write_batch(self, room: Room, length: int) -> bool:
        """
        Write what was queued first, together with what has the same secrets removed.

        Args:
            room:
                Returns how much may be written to a descriptor at once; none if that would wait.

            length:
                What it has just returned.

        Returns:
            Whether all of it was written, or cannot be.
        """
        descriptor, _, redact = self._queue[0]
        batch, size = [], 0
        while self._queue and self._queue[0][::2] == (descriptor, redact) and size < _BATCH:
            batch.append(self._queue.popleft()[1])
            size += len(batch[-1])
        data = b"".join(batch)
        rest, still = data, redact  # an author's recursion, or time limit, may end here
        try:
            rest, still = _redacted(data, redact), None
            while rest and length:
                self._waits_since = time.monotonic()
                rest = rest[write_some(descriptor, rest[:length]) :]
                length = room(descriptor) if rest else 0
        except (OSError, MemoryError) as error:  # it is closed, its reader is gone, or its disk is full
            self._dropped += size if isinstance(error, MemoryError) else 0
            rest = b""
        finally:
            self._waits_since = None
            if rest:
                self._queue.appendleft((descriptor, rest, still))
                self._accepted += len(rest) + _OVERHEAD
            self._done += size + _OVERHEAD * len(batch)
        return not rest

    def _write_here(self, descriptor: int, data: bytes) -> None:
        """
        Write *data* on this thread: the process is a child, or ends.
        """
        if self._waits_since is not None:  # nobody reads, and the end must not wait
            return
        with suppress(OSError):
            rest = memoryview(_redacted(data, self.redact))
            while rest:
                rest = rest[os.write(descriptor, rest) :]


def _pieces(data: bytes, longest: int) -> Iterator[bytes]:
    """
    Yield *data* in pieces, none of which fills the queue.
    """
    while len(data) > _BATCH:
        # A secret that is cut in two would not be found.
        cut = _cut(data, min(longest, len(data)))
        yield data[:cut]
        data = data[cut:]
    yield data


def _cut(data: bytes, end: int) -> int:
    """
    Return where to cut *data* before *end*: behind a line, or else a word, if there is any.
    """
    return data.rfind(b"\n", 0, end) + 1 or data.rfind(b" ", 0, end) + 1 or end


def _redacted(data: bytes, redact: Redact | None) -> bytes:
    """
    Return *data*, which may be no text, without what *redact* removes.
    """
    if redact is None:
        return data
    return redact(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
