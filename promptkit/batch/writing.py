"""Renders the rows of a table in one process or in several, and writes what comes of them in order."""

import os
import signal
import sqlite3
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import compress
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Final

from promptkit.batch.chunks import ChunkRenderer, Rejected, RenderedChunk
from promptkit.batch.rows import Chunk
from promptkit.batch.shards import Tally, UnfinishedBatch

__all__ = ["Keys", "rendered", "write"]

#: How many chunks are on their way to each process.
_AHEAD: Final = 2


class Keys:
    """The keys that there were, and where: on disk, so that memory does not grow with them."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)  # a file of its own, which goes with it
        self._database.execute("CREATE TABLE keys (key TEXT PRIMARY KEY, place INTEGER) WITHOUT ROWID")
        self._database.execute("BEGIN")

    def add(self, key: str, place: int = 0) -> bool:
        """Keep a key; return whether it is new."""
        return self._database.execute("INSERT OR IGNORE INTO keys VALUES (?, ?)", (key, place)).rowcount == 1

    def replace(self, key: str, place: int) -> None:
        """Keep another place for a key."""
        self._database.execute("UPDATE keys SET place = ? WHERE key = ?", (place, key))

    def add_all(self, keys: Iterable[str]) -> None:
        """Keep many keys."""
        self._database.executemany("INSERT OR IGNORE INTO keys VALUES (?, 0)", ((key,) for key in keys))

    def place(self, key: str) -> int | None:
        """Return where a key was first; None if there is no such key."""
        found = self._database.execute("SELECT place FROM keys WHERE key = ?", (key,)).fetchone()
        return None if found is None else int(found[0])

    def close(self) -> None:
        """Forget them."""
        self._database.close()


def rendered(chunks: Iterable[Chunk], render: ChunkRenderer, workers: int) -> Iterator[RenderedChunk]:
    """
    Render chunks in order.

    Args:
        chunks:
            What is read of the table.

        render:
            Renders one.

        workers:
            How many processes do so; 1 for this one alone.

    Raises:
        BrokenProcessPool: If one of them has ended.

        Exception: What `ChunkRenderer` raises.
    """
    if workers == 1:
        yield from map(render, chunks)
        return
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _begin, (render,))
    try:
        waiting = deque[Future[RenderedChunk]]()
        for chunk in chunks:
            waiting.append(pool.submit(_render, chunk))
            if len(waiting) > workers * _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


#: In a process of a pool: what renders.
_renderer: list[ChunkRenderer] = []


def _begin(render: ChunkRenderer) -> None:
    _renderer.append(render)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that Ctrl-C is meant for ends this one
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """The pool itself would wait for ever for what a parent sends that was killed."""
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)


def _render(chunk: Chunk) -> RenderedChunk:
    (render,) = _renderer
    return render(chunk)


def write(
    chunks: Iterable[RenderedChunk],
    files: Tally,
    keys: Keys | None,
    told: Callable[[RenderedChunk], object],
) -> None:
    """
    Write what was rendered, and a checkpoint behind each chunk.

    Args:
        chunks:
            What was rendered: the last chunk that was written before, if any was, and all behind it.

        files:
            Where to.

        keys:
            The keys that there were, if identifiers are keys: none may come twice.

        told:
            Called with each chunk that is written.

    Raises:
        UnfinishedBatch: If what was written before is of something else.

        OSError: If a file cannot be written.
    """
    is_checked = not files.done.rows
    for chunk in chunks:
        if not is_checked:
            files.check(chunk)
            is_checked = True
            continue
        lines, rejected = chunk.lines, list(chunk.rejected)
        if keys is not None:
            is_new = [keys.add(identifier) for _, identifier in chunk.keys]
            lines = list(compress(lines, is_new))
            again = (row for (row, _), new in zip(chunk.keys, is_new, strict=True) if not new)
            rejected += (Rejected(row, None, "its key is that of an earlier row") for row in again)
        files.add(lines)
        files.reject(sorted(rejected, key=lambda one: one.line))
        files.keep(chunk)
        told(chunk)
    if not is_checked:
        msg = f"{files.done.rows:,} rows were done before, and now there are fewer: give the same rows"
        raise UnfinishedBatch(msg)
