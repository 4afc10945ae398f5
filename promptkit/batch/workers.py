"""Renders chunks of rows in this process and in others, and returns what became of them in order."""

import os
import pickle
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
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

#: How many chunks may be done while an earlier one is not.
_KEPT: Final = 32


#: Renders chunks, and yields them in order. Each has to be written before the next is asked for.
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
    if workers == 1:
        yield partial(map, render)
        return
    with TemporaryDirectory(prefix="promptkit-") as folder, ExitStack() as running:
        others = [running.enter_context(_Worker(render)) for _ in range(workers - 1)]
        files = [Path(folder, str(number)) for number in range(len(others) * _AHEAD + _KEPT)]
        yield partial(_rendered, render=render, others=others, files=files)


def _rendered(
    chunks: Iterable[Chunk], render: ChunkRenderer, others: Sequence["_Worker"], files: Sequence[Path]
) -> Iterator[RenderedChunk]:
    made = deque[RenderedChunk | _Worker]()
    for number, chunk in enumerate(chunks):
        for other in others:
            other.receive()
        other = min(others, key=_Worker.rendering)
        if other.rendering() < _AHEAD:
            other.send(chunk, files[number % len(files)])
            made.append(other)
        else:
            made.append(render(chunk))
        while made and (len(made) == len(files) or _is_done(made[0])):
            yield _taken(made.popleft())
    while made:
        for other in others:
            other.receive()
        other = max(others, key=_Worker.rendering)
        if not _is_done(made[0]) and other.rendering() > 1:  # what it has not begun need not wait for it
            last = len(made) - 1 - list(reversed(made)).index(other)
            made[last] = render(other.take_back())
        else:
            yield _taken(made.popleft())


def _is_done(made: "RenderedChunk | _Worker") -> bool:
    return isinstance(made, RenderedChunk) or bool(made.done)


def _taken(made: "RenderedChunk | _Worker") -> RenderedChunk:
    return made if isinstance(made, RenderedChunk) else made.take()


class _Worker:
    """Another process: takes chunks that lie in files, and answers them in order."""

    def __init__(self, render: ChunkRenderer) -> None:
        self._sent, self.done = (
            deque[Chunk](),
            deque[RenderedChunk](),
        )  # in order: what it has, and what became of it
        context = _context()
        self._pipe, theirs = context.Pipe()  # takes names of files at once, so that no thread need send them
        self._process = context.Process(target=_serve, args=(theirs, render), daemon=True)
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
        return len(self._sent)

    def receive(self) -> None:
        """Receive what it has done."""
        while self._sent and self._pipe.poll():
            self._receive_next()

    def send(self, chunk: Chunk, file: Path) -> None:
        """Give it another one, with a file that nothing else is in."""
        _write(file.with_suffix(".rows"), pickle.dumps(chunk))
        try:
            self._pipe.send(file)
        except ConnectionError:
            raise WorkerEnded from None
        self._sent.append(chunk)

    def take_back(self) -> Chunk:
        """Take the last chunk that it has, for good: nothing may be sent after it."""
        return self._sent.pop()

    def take(self) -> RenderedChunk:
        """Wait for what became of the first."""
        if not self.done:
            self._receive_next()
        return self.done.popleft()

    def _receive_next(self) -> None:
        try:
            found = self._pipe.recv()
        except (EOFError, ConnectionError):
            raise WorkerEnded from None
        if isinstance(found, OSError):
            raise found
        self._sent.popleft()
        self.done.append(found)


def _context() -> Any:
    """A process that is forked is there at once. But a lock that another thread holds stays locked in it."""
    is_alone = sys.platform == "linux" and len(list(Path("/proc/self/task").iterdir())) == 1
    return get_context("fork" if is_alone else "spawn")


def _serve(pipe: "Connection[Any, Any]", render: ChunkRenderer) -> None:
    """Render what comes of a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that Ctrl-C is meant for ends this one
    Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, ConnectionError):  # that sends no more
        while True:
            file = pipe.recv()
            pipe.send(_render_in(file, render))


def _render_in(file: Path, render: ChunkRenderer) -> RenderedChunk | OSError:
    try:
        made = render(pickle.loads(file.with_suffix(".rows").read_bytes()))  # noqa: S301 (its parent wrote it)
        _write(file, made.data())
    except OSError as error:
        return error
    return structs.replace(made, lines=file)


def _end_with_parent() -> None:
    """What renders may never come to its end, and the parent may be killed."""
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)


def _write(file: Path, data: bytes) -> None:
    with file.open("r+b" if file.exists() else "wb") as opened:  # room that it has is not given back
        opened.write(data)
        opened.truncate()
