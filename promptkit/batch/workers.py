"""Renders chunks of rows in this process and in others, and returns what became of them in order."""

import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context, parent_process
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, Final, TypeAlias

from msgspec import structs

from promptkit.batch.chunks import ChunkRenderer, RenderedChunk
from promptkit.batch.rows import Chunk

__all__ = ["begun"]

#: How many chunks are on their way to each other process.
_AHEAD: Final = 4

#: How many chunks may be done while an earlier one is not.
_KEPT: Final = 32


#: Renders chunks, and yields them in order. Each has to be written before the next is asked for.
Rendering: TypeAlias = Callable[[Iterable[Chunk]], Iterator[RenderedChunk]]


@contextmanager
def begun(render: ChunkRenderer, workers: int) -> Iterator[Rendering]:
    """
    Begin processes that render, and yield what has them do so.

    Args:
        render:
            Renders one chunk.

        workers:
            How many processes do so, this one among them: what it renders need not be handed over.

    Raises:
        BrokenProcessPool: If one of them has ended.

        OSError: If one of them cannot hand over what it has rendered.

        Exception: What `ChunkRenderer` raises.
    """
    if workers == 1:
        yield partial(map, render)
        return
    with TemporaryDirectory(prefix="promptkit-") as folder:
        pool = ProcessPoolExecutor(workers - 1, _context(), _begin, (render,))
        try:
            pool.submit(os.getpid)  # begins them
            ahead = (workers - 1) * _AHEAD
            files = [Path(folder, str(number)) for number in range(ahead + _KEPT)]
            yield partial(_rendered, render=render, pool=pool, ahead=ahead, files=files)
        finally:
            pool.shutdown(cancel_futures=True)


def _context() -> Any:
    """A process that is forked is there at once. But a lock that another thread holds stays locked in it."""
    is_alone = sys.platform == "linux" and len(list(Path("/proc/self/task").iterdir())) == 1
    return get_context("fork" if is_alone else "spawn")


def _rendered(
    chunks: Iterable[Chunk],
    render: ChunkRenderer,
    pool: ProcessPoolExecutor,
    ahead: int,
    files: Sequence[Path],
) -> Iterator[RenderedChunk]:
    waiting = deque[Future[RenderedChunk]]()
    for number, chunk in enumerate(chunks):
        if sum(not one.done() for one in waiting) < ahead:
            waiting.append(pool.submit(_render_to, files[number % len(files)], chunk))
        else:
            waiting.append(Future())
            waiting[-1].set_result(render(chunk))
        while waiting and (waiting[0].done() or len(waiting) == len(files)):
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


#: In another process: what renders.
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


def _render_to(path: Path, chunk: Chunk) -> RenderedChunk:
    """Render a chunk, and leave the requests in a file: a pipe would take several times as long."""
    (render,) = _renderer
    made = render(chunk)
    with path.open("r+b" if path.exists() else "wb") as file:  # room that it has is not given back
        file.write(made.data())
        file.truncate()
    return structs.replace(made, lines=path)
