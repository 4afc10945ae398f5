"""Renders chunks of rows in this process and in others, and returns what became of them in order."""

import gc
import os
import pickle
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from io import FileIO
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, Final, Self, TypeAlias

from msgspec import structs

from promptkit.batch.chunks import ChunkRenderer, RenderedChunk
from promptkit.batch.rows import Chunk

__all__ = ["WorkerEnded", "begun"]

#: How many chunks are on their way to each other process.
_AHEAD: Final = 4

#: So much memory is given back once. From then on, the C library of Linux keeps what a chunk gives back for
#: the next one, which the system would have to clear else.
_FREED: Final = 8 * 1024 * 1024

#: How many chunks may be done while an earlier one is not.
_KEPT: Final = 32


#: Renders chunks, and yields them in order.
Rendering: TypeAlias = Callable[[Iterable[Chunk]], Iterator[RenderedChunk]]


class WorkerEnded(Exception):
    """
    A process that renders has ended before its time.
    """


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
        WorkerEnded: If one of them has ended.

        OSError: If a chunk, or what became of it, cannot be handed over.

        Exception: What `ChunkRenderer` raises in this process.
    """
    bytes(_FREED)
    if workers == 1:
        yield partial(map, render)
        return
    gc.freeze()  # what was there before would be copied when it is searched for garbage
    with TemporaryDirectory(prefix="promptkit-") as folder, ExitStack() as running:
        files = running.enter_context(_Files(Path(folder)))
        others = [running.enter_context(_Worker(render, files)) for _ in range(workers - 1)]
        yield partial(_rendered, render=render, others=others)


def _rendered(
    chunks: Iterable[Chunk], render: ChunkRenderer, others: Sequence["_Worker"]
) -> Iterator[RenderedChunk]:
    made, most = deque[RenderedChunk | _Worker](), len(others) * _AHEAD + _KEPT
    for number, chunk in enumerate(chunks):
        if min(other.rendering() for other in others) == _AHEAD:
            _receive(others)
        other = min(others, key=_Worker.rendering)
        if other.rendering() < _AHEAD:
            other.send(chunk, number % most)
            made.append(other)
        else:
            made.append(render(chunk))
        while made and (len(made) == most or _is_done(made[0])):
            yield _taken(made.popleft())
    yield from _rest(made, render, others)


def _rest(
    made: "deque[RenderedChunk | _Worker]", render: ChunkRenderer, others: Sequence["_Worker"]
) -> Iterator[RenderedChunk]:
    """What is left when no chunk comes any more: what another process has not begun need not wait for it."""
    while made:
        _receive(others)
        other = max(others, key=_Worker.rendering)
        if not _is_done(made[0]) and other.rendering() > 1:
            last = len(made) - 1 - list(reversed(made)).index(other)
            made[last] = render(other.take_back())
        else:
            yield _taken(made.popleft())


def _receive(others: Sequence["_Worker"]) -> None:
    for other in others:
        other.receive()


def _is_done(made: "RenderedChunk | _Worker") -> bool:
    return isinstance(made, RenderedChunk) or bool(made.done)


def _taken(made: "RenderedChunk | _Worker") -> RenderedChunk:
    return made if isinstance(made, RenderedChunk) else made.take()


class _Files:
    """Files that processes hand over chunks in: each opens one once, and writes over what it has held."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._opened: dict[int, FileIO] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._opened.values():  # not every system removes what is open
            file.close()

    def write(self, number: int, data: bytes) -> int:
        """Write, and return the size, which who reads it has to know."""
        file, rest = self._at_its_begin(number), memoryview(data)
        while rest:
            rest = rest[file.write(rest) :]
        return len(data)

    def read(self, number: int, size: int) -> bytes:
        """Return what another process has written."""
        return self._at_its_begin(number).read(size)

    def _at_its_begin(self, number: int) -> FileIO:
        if number not in self._opened:
            path = self._folder / str(number)
            self._opened[number] = FileIO(path, "r+" if path.exists() else "w+")
        self._opened[number].seek(0)
        return self._opened[number]


class _Worker:
    """Another process: takes chunks that lie in files, and answers them in order."""

    def __init__(self, render: ChunkRenderer, files: _Files) -> None:
        # The requests of what is done lie in files still: the number, and the size, of each.
        self.done = deque[tuple[RenderedChunk, int, int]]()
        self._rendering, self._files = deque[Chunk](), files
        context = _context()
        self._pipe, theirs = context.Pipe()  # takes what is small at once, so that no thread need send it
        self._process = context.Process(target=_serve, args=(theirs, files, render), daemon=True)
        self._process.start()
        theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()  # nobody waits for what it still has
        self._process.join()
        self._pipe.close()

    def rendering(self) -> int:
        """How many chunks it has."""
        return len(self._rendering)

    def receive(self) -> None:
        """Receive what it has done."""
        while self._rendering and self._pipe.poll():
            self._receive_next()

    def send(self, chunk: Chunk, number: int) -> None:
        """Give it another one, by a file that nothing else is in."""
        rows = chunk.rows
        size = self._files.write(number, rows if isinstance(rows, bytes) else pickle.dumps(rows))
        try:
            self._pipe.send((structs.replace(chunk, rows=type(rows)()), number, size))
        except ConnectionError:
            raise WorkerEnded from None
        self._rendering.append(chunk)

    def take_back(self) -> Chunk:
        """Take the last chunk that it has, for good: nothing may be sent after it."""
        return self._rendering.pop()

    def take(self) -> RenderedChunk:
        """Wait for what became of the first."""
        if not self.done:
            self._receive_next()
        made, number, size = self.done.popleft()
        return structs.replace(made, lines=self._files.read(number, size))

    def _receive_next(self) -> None:
        try:
            found = self._pipe.recv()
        except (EOFError, ConnectionError):
            raise WorkerEnded from None
        if isinstance(found, OSError):
            raise found
        self._rendering.popleft()
        self.done.append(found)


def _context() -> Any:
    """A process that is forked is there at once. But a lock that another thread holds stays locked in it."""
    is_alone = sys.platform == "linux" and len(list(Path("/proc/self/task").iterdir())) == 1
    return get_context("fork" if is_alone else "spawn")


def _serve(pipe: "Connection[Any, Any]", files: _Files, render: ChunkRenderer) -> None:
    """Render what comes of a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that Ctrl-C is meant for ends this one
    Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, ConnectionError):  # that sends no more
        while True:
            pipe.send(_answer(pipe.recv(), files, render))


def _answer(
    sent: tuple[Chunk, int, int], files: _Files, render: ChunkRenderer
) -> tuple[RenderedChunk, int, int] | OSError:
    chunk, number, size = sent
    try:
        data = files.read(number, size)
        rows = data if isinstance(chunk.rows, bytes) else pickle.loads(data)  # noqa: S301 (its parent wrote it)
        made = render(structs.replace(chunk, rows=rows))
        return structs.replace(made, lines=b""), number, files.write(number, made.lines)
    except OSError as error:
        return error


def _end_with_parent() -> None:
    """What renders may never come to its end, and the parent may be killed."""
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)
