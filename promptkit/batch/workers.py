"""Rendering chunks of rows as the lines of a batch file, in one process or in several."""

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
from promptkit.batch.tables import Chunk, Row, parse_row
from promptkit.batch.vendor_formats import LINE_FORMATS, LineFormat, numbered_identifier

#: Characters that JSON allows in strings but that some programs treat as line endings, with their escapes.
_LINE_SEPARATORS: Final = {end.encode(): f"\\u{ord(end):04x}".encode() for end in "\x85\u2028\u2029"}

#: The number of chunks in memory for each process: rendered, being rendered, or waiting.
_CHUNKS_PER_WORKER: Final = 3


class Rejection(Struct, frozen=True, omit_defaults=True):
    """
    An error in a rejected row.

    Args:
        line:
            The line number of the row.

        argument:
            The name of the invalid argument; None if the error is about the row as a whole.

        reason:
            A description of the problem.

        key:
            The row's value in the column that identifies rows; None if there is no such column.
    """

    line: int
    argument: str | None
    reason: str
    key: str | None = None


class RenderedChunk(Struct, frozen=True):
    """
    The requests and errors for a chunk of rows.

    Args:
        last:
            The number of the last row.

        end:
            The number of bytes or rows that were read from the table up to the end of this chunk.

        lines:
            The requests, one per line, with line endings.

        requests:
            The number of requests.

        keys:
            The line number and the identifier of each request if a column identifies rows; otherwise empty.

        rejected:
            The errors of rejected rows.

        characters:
            The total number of characters in the prompts.

        digest:
            A digest of the requests and errors.

        unused:
            The columns that contain neither the values of an argument nor the key.
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
    A function that renders chunks of rows as the lines of a batch file. It can be pickled.

    Args:
        renderer:
            The renderer for single rows, in a vendor's format. Its key is the column that identifies rows.

        parse:
            The `parse` function of the table.
    """

    renderer: Renderer
    parse: Callable[[Any], Row]

    def __call__(self, chunk: Chunk) -> RenderedChunk:
        """Return the requests and errors for a chunk."""
        lines, keys, rejected, characters = list[bytes](), list[tuple[int, str]](), list[Rejection](), 0
        matched, columns = self.renderer.matched, dict[str, None]()
        for number, line, raw in chunk.iterate_rows():
            row: Row = {}
            try:
                row = parse_row(raw, self.parse)
                if not row.keys() <= columns.keys():
                    columns |= dict.fromkeys(row)
                identifier, data, length = self._build_request(number, row, matched)
            except Exception as error:  # noqa: BLE001 (one failing row must not stop the batch)
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
            matched.find_unused_columns(columns),
        )

    def _build_request(self, number: int, row: Row, matched: Columns) -> tuple[str, bytes, int]:
        renderer, line_format = self.renderer, LINE_FORMATS[self.renderer.to]
        sent, typed = matched.extract_arguments(row)
        rendering = renderer.render_row(sent, typed)
        identifier = self._build_identifier(number, row, {**sent, **typed}, line_format)
        line = msgspec.json.encode(line_format.build_line(identifier, renderer.body(rendering)))
        data = _escape_separators(line) + b"\n"
        if len(data) > line_format.max_bytes:
            msg = (
                f"its request is {len(data):,} bytes long, but a file can be at most "
                f"{line_format.max_bytes:,} bytes long"
            )
            raise RowError.of(msg)
        return identifier, data, len(rendering if isinstance(rendering, str) else rendering.text)

    def _build_identifier(
        self, number: int, row: Row, arguments: Mapping[str, Any], line_format: LineFormat
    ) -> str:
        key, name = self.renderer.key, self.renderer.prompt.options.name
        if key is None:
            content = msgspec.json.encode((name, arguments), enc_hook=repr, order="sorted")
            return numbered_identifier(number, content)
        identifier = "" if row.get(key) is None else str(row[key])
        if re.fullmatch(line_format.identifier_pattern, identifier) is None:
            msg = (
                f"its {key!r} is not a valid identifier: an identifier for {self.renderer.to} must consist "
                f"of {line_format.identifier_description}"
            )
            raise RowError.of(msg)
        return identifier


def _escape_separators(data: bytes) -> bytes:
    if not data.isascii():
        for end, escaped in _LINE_SEPARATORS.items():
            data = data.replace(end, escaped)
    return data


#: A function that renders chunks, and yields the results in the same order.
ChunkMapper: TypeAlias = Callable[[Iterable[Chunk]], Iterator[RenderedChunk]]


@contextmanager
def start_workers(render: ChunkRenderer, workers: int) -> Iterator[ChunkMapper]:
    """
    Start processes, yield a function that renders chunks in them, and kill the processes at the end.

    Each process has its own pipe, and a thread waits for each reply. `ProcessPoolExecutor` is not used,
    because it has one pipe for all replies and waits indefinitely if a process is killed while it writes to
    the pipe.

    Args:
        render:
            The function that renders one chunk.

        workers:
            The number of processes that render. With 1, this process renders all chunks itself.

    Raises:
        EOFError: If a process has exited unexpectedly.

        ConnectionError: If a process has exited unexpectedly.
    """
    if workers == 1:
        yield partial(map, render)
        return
    idle: SimpleQueue[Connection[Any, Any]] = SimpleQueue()

    def render_in_worker(chunk: Chunk) -> RenderedChunk:
        pipe = idle.get()
        try:
            pipe.send(chunk)
            return pipe.recv()  # type: ignore[no-any-return]
        finally:
            idle.put(pipe)

    with ExitStack() as stack:
        threads = stack.enter_context(ThreadPoolExecutor(workers))  # no threads yet: see _process_context
        for _ in range(workers):
            idle.put(_start_worker(render, stack))
        yield partial(_map_in_order, threads, render_in_worker, workers * _CHUNKS_PER_WORKER)


def _start_worker(render: ChunkRenderer, stack: ExitStack) -> "Connection[Any, Any]":
    """Start a process, which *stack* kills on exit, and return the pipe to it."""
    context = _process_context()
    pipe, worker_pipe = context.Pipe()
    process = context.Process(target=_render_chunks, args=(worker_pipe, render), daemon=True)
    process.start()
    stack.callback(process.join)
    stack.callback(process.kill)
    worker_pipe.close()
    return pipe  # type: ignore[no-any-return]


def _process_context() -> Any:
    """
    Return the multiprocessing context with which to start processes.

    Processes are forked, or spawned if this process has other threads, because a fork would copy their locks.
    """
    is_single_threaded = sys.platform == "linux" and len(list(Path("/proc/self/task").iterdir())) == 1
    return get_context("fork" if is_single_threaded else "spawn")


def _map_in_order(
    threads: Executor, render: Callable[[Chunk], RenderedChunk], limit: int, chunks: Iterable[Chunk]
) -> Iterator[RenderedChunk]:
    """Render *chunks* in threads, and yield the results in order. At most *limit* chunks are in memory."""
    pending = deque[Future[RenderedChunk]]()
    for chunk in chunks:
        pending.append(threads.submit(render, chunk))
        if len(pending) == limit:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


def _render_chunks(pipe: "Connection[Any, Any]", render: ChunkRenderer) -> None:
    """Render the chunks that the parent process sends, until it closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Ctrl-C, the parent process kills this one
    Thread(target=_exit_with_parent, daemon=True).start()
    with suppress(EOFError, ConnectionError):
        while True:
            pipe.send(render(pipe.recv()))


def _exit_with_parent() -> None:
    """Exit this process when its parent exits, even if a prompt hangs."""
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)
