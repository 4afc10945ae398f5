"""Rendering of chunks of rows to lines of a batch file, in one process or several."""

import os
import re
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from hashlib import blake2b
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, TypeAlias

import attrs
import msgspec
from msgspec import Struct

from promptkit.batch.columns import Columns, RowError, key_text
from promptkit.batch.renderer import Renderer
from promptkit.batch.tables import Chunk, Row, row_of
from promptkit.batch.vendor_formats import LINE_FORMATS, LineFormat, numbered_identifier

#: Characters that some readers, unlike JSON, treat as line endings, with their escapes.
_LINE_SEPARATORS: Final = {end.encode(): f"\\u{ord(end):04x}".encode() for end in "\x85\u2028\u2029"}

#: Number of chunks in memory for each process, whether rendered, being rendered, or waiting.
_CHUNKS_PER_WORKER: Final = 3


class Rejection(Struct, frozen=True, omit_defaults=True):
    """
    An error in a row.

    Args:
        line:
            The line number of the row.

        argument:
            The argument; None if the error is about the whole row.

        reason:
            The problem.

        key:
            The row's value in the column that identifies rows, if there is such a column.
    """

    line: int
    argument: str | None
    reason: str
    key: str | None = None


class RenderedChunk(Struct, frozen=True):
    """
    The requests and errors of a chunk of rows.

    Args:
        last:
            The number of the last row.

        end:
            The number of bytes or rows of the table read so far.

        lines:
            The requests, as lines with line endings.

        requests:
            The number of requests.

        keys:
            The line and identifier of each request, if a column identifies rows; otherwise empty.

        rejected:
            The errors of rejected rows.

        characters:
            The total number of characters in the prompts.

        digest:
            A digest of the requests and errors.

        unused:
            The columns that are neither arguments nor the key.
    """

    last: int
    end: int
    lines: bytes
    requests: int
    keys: list[tuple[int, str]]
    rejected: list[Rejection]
    characters: int
    digest: str
    unused: list[str]


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
        lines, keys, rejected, characters = list[bytes](), list[tuple[int, str]](), list[Rejection](), 0
        matched, columns = self.renderer.matched, dict[str, None]()
        for number, line, raw in chunk.iterate_rows():
            row: Row = {}
            try:
                row = row_of(raw, self.read)
                if not row.keys() <= columns.keys():
                    columns |= dict.fromkeys(row)
                identifier, data, length = self._build_request(number, row, matched)
            except Exception as error:  # noqa: BLE001 (a failing row does not stop the batch)
                key = None if self.renderer.key is None else key_text(row.get(self.renderer.key))
                reasons = self.renderer.row_error(error).reasons
                rejected += (Rejection(line, argument, reason, key) for argument, reason in reasons)
            else:
                lines.append(data)
                characters += length
                if self.renderer.key is not None:
                    keys.append((line, identifier))
        data = b"".join(lines)
        digest = blake2b(data, digest_size=8)
        digest.update(repr(rejected).encode())
        return RenderedChunk(
            chunk.last,
            chunk.end,
            data,
            len(lines),
            keys,
            rejected,
            characters,
            digest.hexdigest(),
            matched.find_unused(columns),
        )

    def _build_request(self, number: int, row: Row, matched: Columns) -> tuple[str, bytes, int]:
        renderer, form = self.renderer, LINE_FORMATS[self.renderer.to]
        sent, typed = matched.extract_arguments(row)
        rendering = renderer.render_row(sent, typed)
        identifier = self._build_identifier(number, row, {**sent, **typed}, form)
        line = msgspec.json.encode(form.build_line(identifier, renderer.body(rendering)))
        data = _escape_separators(line) + b"\n"
        if len(data) > form.max_bytes:
            msg = f"its request has {len(data):,} bytes, but a file can have at most {form.max_bytes:,}"
            raise RowError.of(msg)
        return identifier, data, len(rendering if isinstance(rendering, str) else rendering.text)

    def _build_identifier(self, number: int, row: Row, arguments: Mapping[str, Any], form: LineFormat) -> str:
        key, name = self.renderer.key, self.renderer.prompt.options.name
        if key is None:
            content = msgspec.json.encode((name, arguments), enc_hook=repr, order="sorted")
            return numbered_identifier(number, content)
        identifier = "" if row.get(key) is None else str(row[key])
        if re.fullmatch(form.identifier_pattern, identifier) is None:
            msg = (
                f"its {key!r} is not a valid identifier: {self.renderer.to} accepts "
                f"{form.identifier_description}"
            )
            raise RowError.of(msg)
        return identifier


def _escape_separators(data: bytes) -> bytes:
    if not data.isascii():
        for end, escaped in _LINE_SEPARATORS.items():
            data = data.replace(end, escaped)
    return data


#: Renders chunks, and yields the results in order.
Rendering: TypeAlias = Callable[[Iterable[Chunk]], Iterator[RenderedChunk]]


@contextmanager
def start_workers(render: ChunkRenderer, workers: int) -> Iterator[Rendering]:
    """
    Start processes, yield a function that renders in them, and kill them at the end.

    Each process has its own pipe, and a thread waits for each reply. `ProcessPoolExecutor` has one pipe for
    all replies, so it waits indefinitely if a process is killed while it writes.

    Args:
        render:
            Renders one chunk.

        workers:
            The number of rendering processes. With 1, only this process renders.

    Raises:
        EOFError: If a process has exited unexpectedly.

        ConnectionError: In the same case.
    """
    if workers == 1:
        yield partial(map, render)
        return
    idle: SimpleQueue[Connection[Any, Any]] = SimpleQueue()

    def render_elsewhere(chunk: Chunk) -> RenderedChunk:
        pipe = idle.get()
        try:
            pipe.send(chunk)
            return pipe.recv()  # type: ignore[no-any-return]
        finally:
            idle.put(pipe)

    with ExitStack() as stack:
        threads = stack.enter_context(ThreadPoolExecutor(workers))  # starts its threads later: see _context
        for _ in range(workers):
            idle.put(_start_worker(render, stack))
        yield partial(_map_in_order, threads, render_elsewhere, workers * _CHUNKS_PER_WORKER)


def _start_worker(render: ChunkRenderer, stack: ExitStack) -> "Connection[Any, Any]":
    """Start a process that *stack* kills, and return its pipe."""
    context = _context()
    pipe, worker_pipe = context.Pipe()
    process = context.Process(target=_serve, args=(worker_pipe, render), daemon=True)
    process.start()
    stack.callback(process.join)
    stack.callback(process.kill)
    worker_pipe.close()
    return pipe  # type: ignore[no-any-return]


def _context() -> Any:
    """Return a context that forks, or spawns if other threads might hold locks that a fork would copy."""
    is_single_threaded = sys.platform == "linux" and len(list(Path("/proc/self/task").iterdir())) == 1
    return get_context("fork" if is_single_threaded else "spawn")


def _map_in_order(
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


def _serve(pipe: "Connection[Any, Any]", render: ChunkRenderer) -> None:
    """Render the chunks that the parent process sends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process kills this one on Ctrl-C
    Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, ConnectionError):
        while True:
            pipe.send(render(pipe.recv()))


def _end_with_parent() -> None:
    """Exit this process when its parent is killed, even if a prompt hangs."""
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)
