"""Rendering of chunks of rows to lines of a batch file, in one process or several."""

import os
import re
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any, Final, TypeAlias

import attrs
import msgspec
from msgspec import Struct

from promptkit.batch.renderer import Renderer
from promptkit.batch.request_lines import LINE_FORMATS, LineFormat
from promptkit.batch.rows import Columns, RowError
from promptkit.batch.tables import Chunk, Row, row_of

#: The size of a digest in an identifier, in bytes.
_DIGEST_SIZE: Final = 8

#: Characters that some readers take for line ends, but JSON does not, with their escapes.
_LINE_SEPARATORS: Final = {end.encode(): f"\\u{ord(end):04x}".encode() for end in "\x85\u2028\u2029"}

#: Chunks in memory for each process: rendered, being rendered, or waiting for it.
_CHUNKS_PER_WORKER: Final = 3


class Rejected(Struct, frozen=True):
    """
    An error in a row.

    Args:
        line:
            The line of the row.

        argument:
            The argument; None if the error is about the whole row.

        reason:
            The problem.
    """

    line: int
    argument: str | None
    reason: str


class RenderedChunk(Struct, frozen=True):
    """
    The requests and errors of a chunk of rows.

    Args:
        last:
            The number of the last row.

        end:
            The number of bytes or rows of the table read so far.

        lines:
            The requests, as lines with line ends.

        keys:
            The line and identifier of each request, if a column identifies rows; otherwise empty.

        rejected:
            The errors of rejected rows.

        characters:
            The number of characters in the requests' texts.

        digest:
            A digest of the requests and errors.
    """

    last: int
    end: int
    lines: list[bytes]
    keys: list[tuple[int, str]]
    rejected: list[Rejected]
    characters: int
    digest: str


@attrs.frozen
class ChunkRenderer:
    """
    A renderer of rows to lines of a batch file. It can be pickled.

    Args:
        renderer:
            Renders one row for a vendor. Its key is the column that identifies rows.

        read:
            Converts the raw data of a row to its values.
    """

    renderer: Renderer
    read: Callable[[Any], Row]

    def __call__(self, chunk: Chunk) -> RenderedChunk:
        """Return the requests and errors of a chunk."""
        lines, keys, rejected, characters = list[bytes](), list[tuple[int, str]](), list[Rejected](), 0
        matched, digest = self.renderer.matched, blake2b(digest_size=_DIGEST_SIZE)
        for number, line, raw in chunk.numbered():
            try:
                identifier, data, length = self._request(number, row_of(raw, self.read), matched)
            except Exception as error:  # noqa: BLE001 (an unusual row does not end the batch)
                reasons = self.renderer.row_error(error).reasons
                rejected += (Rejected(line, argument, reason) for argument, reason in reasons)
            else:
                digest.update(data)
                lines.append(data)
                characters += length
                if self.renderer.key is not None:
                    keys.append((line, identifier))
        digest.update(repr(rejected).encode())
        return RenderedChunk(chunk.last, chunk.end, lines, keys, rejected, characters, digest.hexdigest())

    def _request(self, number: int, row: Row, matched: Columns) -> tuple[str, bytes, int]:
        renderer, form = self.renderer, LINE_FORMATS[self.renderer.to]
        sent, typed = matched.given(row)
        rendering = renderer.render_row(sent, typed)
        try:
            identifier = self._identifier(number, row, {**sent, **typed}, form)
            data = _one_line(msgspec.json.encode(form.line(identifier, renderer.body(rendering)))) + b"\n"
        except UnicodeEncodeError:
            msg = "a value has half of a character"
            raise RowError.of(msg) from None
        if len(data) > form.most_bytes:
            msg = f"its request has {len(data):,} bytes, and a file at most {form.most_bytes:,}"
            raise RowError.of(msg)
        return identifier, data, len(rendering if isinstance(rendering, str) else rendering.text)

    def _identifier(self, number: int, row: Row, arguments: Mapping[str, Any], form: LineFormat) -> str:
        key, name = self.renderer.key, self.renderer.prompt.options.name
        if key is None:
            content = msgspec.json.encode((name, arguments), enc_hook=repr, order="sorted")
            return f"{number}-{blake2b(content, digest_size=_DIGEST_SIZE).hexdigest()}"
        identifier = "" if row.get(key) is None else str(row[key])
        if re.fullmatch(form.identifiers, identifier) is None:
            msg = f"its {key!r} is not an identifier: {self.renderer.to} takes {form.takes}"
            raise RowError.of(msg)
        return identifier


def _one_line(data: bytes) -> bytes:
    if not data.isascii():
        for end, escaped in _LINE_SEPARATORS.items():
            data = data.replace(end, escaped)
    return data


#: Renders chunks, and yields the results in order.
Rendering: TypeAlias = Callable[[Iterable[Chunk]], Iterator[RenderedChunk]]


@contextmanager
def start_workers(render: ChunkRenderer, workers: int) -> Iterator[Rendering]:
    """
    Start processes, yield a function that renders in them, and end them.

    That function raises `concurrent.futures.process.BrokenProcessPool` if a process ends unexpectedly.

    Args:
        render:
            Renders one chunk.

        workers:
            The number of rendering processes. With 1, this process renders, and starts no other.
    """
    if workers == 1:
        yield partial(map, render)
        return
    executor = ProcessPoolExecutor(workers, _context(), _begin, (render,))
    executor.submit(bool)  # starts the processes before this process has other threads
    try:
        yield partial(_rendered, executor, workers * _CHUNKS_PER_WORKER)
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        for process in active_children():  # a prompt may hang
            process.kill()


def _context() -> Any:
    """Return the context of new processes: forking is fast, but copies locks that other threads hold."""
    is_alone = sys.platform == "linux" and len(list(Path("/proc/self/task").iterdir())) == 1
    return get_context("fork" if is_alone else "spawn")


def _rendered(executor: ProcessPoolExecutor, limit: int, chunks: Iterable[Chunk]) -> Iterator[RenderedChunk]:
    """Yield the results for *chunks* in order, with at most *limit* of them in memory."""
    pending = deque[Future[RenderedChunk]]()
    for chunk in chunks:
        pending.append(executor.submit(_render, chunk))
        if len(pending) == limit:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


def _begin(render: ChunkRenderer) -> None:
    """Prepare a new process, which renders with *render*."""
    global _worker_render  # noqa: PLW0603 (a process has one)
    _worker_render = render
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends this one on Ctrl-C
    Thread(target=_end_with_parent, daemon=True).start()


def _render(chunk: Chunk) -> RenderedChunk:
    return _worker_render(chunk)


def _end_with_parent() -> None:
    """End this process when its parent is killed, even if a prompt hangs."""
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)


#: The renderer of a worker process.
_worker_render: ChunkRenderer
