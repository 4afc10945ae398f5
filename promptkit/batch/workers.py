"""
Rendering of chunks of rows in several processes, with results in order.

Each process has its own pipe, and a thread waits for each reply. A process that is killed closes its pipe, so
its thread gets an error. `ProcessPoolExecutor` has one pipe for all replies: if a process is killed while it
writes, the executor waits indefinitely for the rest.
"""

import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, TypeAlias

from promptkit.batch.chunks import ChunkRenderer, RenderedChunk
from promptkit.batch.rows import Chunk

#: Chunks in memory for each process: rendered, being rendered, or waiting for it.
_CHUNKS_PER_WORKER: Final = 3

#: Size of a block that is allocated and freed once, in bytes. Afterwards, the C library of Linux reuses
#: memory up to this size. Otherwise it would map new pages for each chunk, a sixth of all CPU time.
_FREED_ONCE: Final = 8 * 1024 * 1024

#: Renders chunks, and yields the results in order.
Rendering: TypeAlias = Callable[[Iterable[Chunk]], Iterator[RenderedChunk]]

#: The pipes of the processes that wait for a chunk.
_IdlePipes: TypeAlias = "SimpleQueue[Connection[Any, Any]]"


class WorkerEndedError(Exception):
    """A rendering process has ended unexpectedly."""


@contextmanager
def start_workers(render: ChunkRenderer, workers: int) -> Iterator[Rendering]:
    """
    Start processes, yield a function that renders in them, and end them.

    Args:
        render:
            Renders one chunk.

        workers:
            The number of rendering processes. With 1, this process renders, and starts no other.

    Raises:
        WorkerEndedError: If a process has ended unexpectedly.

        Exception: Any exception that `ChunkRenderer` raises in this process.
    """
    if workers == 1:
        yield partial(map, render)
        return
    bytes(_FREED_ONCE)
    idle: _IdlePipes = SimpleQueue()
    with ExitStack() as running:
        threads = running.enter_context(ThreadPoolExecutor(workers))  # starts its threads later: see _context
        for _ in range(workers):
            idle.put(_start_worker(render, running))
        yield partial(_rendered, threads, partial(_render_elsewhere, idle), workers * _CHUNKS_PER_WORKER)


def _start_worker(render: ChunkRenderer, running: ExitStack) -> "Connection[Any, Any]":
    """Start a process that ends with *running*, and return its pipe."""
    context = _context()
    pipe, other_end = context.Pipe()
    process = context.Process(target=_serve, args=(other_end, render), daemon=True)
    process.start()
    running.callback(process.join)
    running.callback(process.kill)
    other_end.close()
    return pipe  # type: ignore[no-any-return]


def _context() -> Any:
    """Return the context of new processes: forking is fast, but copies locks that other threads hold."""
    is_alone = sys.platform == "linux" and len(list(Path("/proc/self/task").iterdir())) == 1
    return get_context("fork" if is_alone else "spawn")


def _rendered(
    threads: Executor, render: Callable[[Chunk], RenderedChunk], limit: int, chunks: Iterable[Chunk]
) -> Iterator[RenderedChunk]:
    """Yield the results for *chunks* in order, with at most *limit* of them in memory."""
    pending = deque[Future[RenderedChunk]]()
    for chunk in chunks:
        pending.append(threads.submit(render, chunk))
        if len(pending) == limit:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


def _render_elsewhere(idle: _IdlePipes, chunk: Chunk) -> RenderedChunk:
    """Render a chunk in an idle process."""
    pipe = idle.get()
    try:
        pipe.send(chunk)
        return pipe.recv()  # type: ignore[no-any-return]
    except (EOFError, ConnectionError):
        raise WorkerEndedError from None
    finally:
        idle.put(pipe)


def _serve(pipe: "Connection[Any, Any]", render: ChunkRenderer) -> None:
    """Render the chunks that another process sends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process ends this one on Ctrl-C
    Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, ConnectionError):
        while True:
            pipe.send(render(pipe.recv()))


def _end_with_parent() -> None:
    """End this process when its parent is killed, even if a prompt hangs."""
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)
