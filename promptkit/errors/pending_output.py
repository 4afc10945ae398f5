"""Output that waits to be written: lines that are not finished yet, and a queue of bounded size."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

__all__ = ["Batch", "PendingOutput", "Redact"]

#: What an entry of the queue takes besides its text, in bytes.
_OVERHEAD: Final = 128

#: Secrets are removed from about so many bytes at once.
_BATCH: Final = 65536

#: An unfinished line that is longer, in bytes, is written as far as it goes; so are lines beyond this number.
_LONGEST_LINE: Final = 8192
_MOST_LINES: Final = 256

#: How long a thread may hold the lock, in seconds, before others replace it. Busy threads switch every 5 ms.
_LOCK_TIMEOUT_S: Final = 0.5

#: Removes secrets from text.
Redact: TypeAlias = Callable[[str], str]

#: Whose line it is: its descriptor and its thread.
_Line: TypeAlias = tuple[int, int]

#: What is queued: the descriptor, the text, and what removes secrets from it.
_Entry: TypeAlias = tuple[int, bytes, Redact | None]

#: What is written at once: the descriptor, the text, what removes secrets from it, and its number of entries.
Batch: TypeAlias = tuple[int, bytes, Redact | None, int]


class PendingOutput:
    """
    Keeps the lines of different threads whole, and counts what it has to drop.

    Any thread may add to it at any time, also in a signal handler, or in a finalizer that runs
    while the same thread adds something. Only one thread at a time may take batches.

    Args:
        capacity:
            How many bytes may wait.

    Attributes:
        redact:
            Removes secrets; None if there are none.

        accepted:
            How many bytes were queued so far.

        done:
            How many of them were written, or could not be.

        dropped:
            How many bytes were dropped since this was last reported.

        last_descriptor:
            Where the newest entry is to be written.
    """

    def __init__(self, capacity: int) -> None:
        self.redact: Redact | None = None
        self.accepted = self.done = self.dropped = 0
        self.last_descriptor = 2
        self._capacity = capacity
        self._queue: deque[_Entry] = deque()
        self._lines: dict[_Line, tuple[bytes, float]] = {}
        # Reentrant: a finalizer or a signal handler may write while its own thread is writing.
        self._lock = threading.RLock()
        self._ends_line = True

    def __bool__(self) -> bool:
        return bool(self._queue)

    @property
    def has_unfinished_lines(self) -> bool:
        """Whether a line waits for its end."""
        return bool(self._lines)

    def has_room(self, length: int) -> bool:
        """Whether *length* more bytes may wait."""
        return self.accepted - self.done + length <= self._capacity

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """
        Yield *data* in pieces, none of which fills the queue.
        """
        # A secret that is cut in two would not be found, so pieces are as long as possible then.
        longest = _BATCH if self.redact is None else self._capacity // 2
        while len(data) > _BATCH:
            end = _cut(data, min(longest, len(data)))
            yield data[:end]
            data = data[end:]
        yield data

    def add(self, descriptor: int, data: bytes) -> None:
        """
        Add to the calling thread's line, and queue the lines that are finished.
        """
        lock = self._locked()
        try:
            self._append((descriptor, threading.get_ident()), data)
        finally:
            lock.release()

    def release_line(self, descriptor: int) -> None:
        """
        Queue the calling thread's unfinished line.
        """
        self._release(lambda line, _: line == (descriptor, threading.get_ident()))

    def release_lines(self, age: float = 0.0) -> None:
        """
        Queue the lines that have not been finished for *age* seconds.
        """
        overdue = time.monotonic() - age
        self._release(lambda _, since: since <= overdue)

    def report_dropped(self) -> None:
        """
        Queue a line that says how much was dropped, if anything was.
        """
        lock = self._locked()
        try:
            self._report_dropped()
        finally:
            lock.release()

    def next_descriptor(self) -> int:
        """
        Return where the oldest entry is to be written. Raises IndexError if there is none.
        """
        return self._queue[0][0]

    def take(self) -> Batch:
        """
        Take the oldest entry, and those behind it from which the same secrets are removed.
        """
        descriptor, _, redact = self._queue[0]
        batch: list[bytes] = []
        size = 0
        while self._queue and self._queue[0][::2] == (descriptor, redact) and size < _BATCH:
            batch.append(self._queue.popleft()[1])
            size += len(batch[-1])
        return descriptor, b"".join(batch), redact, len(batch)

    def settle(self, batch: Batch, rest: bytes, redact: Redact | None) -> None:
        """
        Count a batch as written, but for its *rest*, which comes next.
        """
        descriptor, data, _, entries = batch
        if rest:
            self._queue.appendleft((descriptor, rest, redact))
            self.accepted += len(rest) + _OVERHEAD
        self.done += len(data) + _OVERHEAD * entries

    def forget(self) -> None:
        """
        Forget everything: in a forked child, the parent writes it. The lock may be held there for ever.
        """
        self._lock = threading.RLock()
        self._lines = {}
        self._queue.clear()
        self.done = self.accepted

    def _append(self, line: _Line, data: bytes) -> None:
        before, _ = self._lines.pop(line, (b"", 0.0))
        data = before + data
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1  # progress bars end with a carriage return
        if len(data) - end > (_LONGEST_LINE if self.redact is None else _BATCH):
            end = _cut(data, len(data))
        if len(self._lines) >= _MOST_LINES:
            end = len(data)
        if end < len(data):
            self._lines[line] = data[end:], time.monotonic()
        if end:
            self._enqueue(line[0], data[:end])

    def _release(self, is_due: Callable[[_Line, float], bool]) -> None:
        if not self._lines:
            return
        lock = self._locked()
        try:
            for line, (data, since) in list(self._lines.items()):
                if is_due(line, since):
                    del self._lines[line]
                    self._enqueue(line[0], data)
        finally:
            lock.release()

    def _enqueue(self, descriptor: int, data: bytes) -> None:
        # Once something was dropped, more is dropped until half of the queue is free.
        limit = self._capacity // 2 if self.dropped else self._capacity
        if self.accepted - self.done + len(data) > limit:
            self.dropped += len(data)
            return
        self._report_dropped()
        self._put(descriptor, data, self.redact)

    def _report_dropped(self) -> None:
        if not self.dropped:
            return
        begin = "" if self._ends_line else "\n"
        note = (
            f"{begin}promptkit: {self.dropped:,} bytes of standard error were dropped, as nobody reads it\n"
        )
        self.dropped = 0
        self._put(self.last_descriptor, note.encode(), None)

    def _put(self, descriptor: int, data: bytes, redact: Redact | None) -> None:
        self.last_descriptor = descriptor
        self.accepted += len(data) + _OVERHEAD
        self._ends_line = data.endswith(b"\n")
        self._queue.append((descriptor, data, redact))

    def _locked(self) -> "threading.RLock":
        """Return the lock, held; a new one if its holder does not release it."""
        # The holder may have been stopped, or be in an author's finalizer that does not end.
        lock = self._lock
        if not lock.acquire(timeout=_LOCK_TIMEOUT_S):
            self._lock = lock = threading.RLock()
            lock.acquire()
        return lock


def _cut(data: bytes, end: int) -> int:
    """Return where to cut *data* before *end*: behind a line, else behind a word, else at *end*."""
    return data.rfind(b"\n", 0, end) + 1 or data.rfind(b" ", 0, end) + 1 or end
