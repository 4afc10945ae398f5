"""The rows of a table, whatever a file has of each, and the chunks that are rendered at a time."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct

from promptkit.batch.columns import RowError
from promptkit.errors.exceptions import PromptkitError

#: The values of one row, by column.
Row: TypeAlias = Mapping[str, Any]

#: What a file has of a row: its bytes, its cells, or its values; or why it cannot be read.
Raw: TypeAlias = "bytes | list[str] | Row | RowError"

#: How many rows a chunk has at most, so that it fits into the caches of a processor, and at least.
_ROWS: Final = 400
_LEAST_ROWS: Final = 16

#: Which part of the rows before it a chunk may be, so that all processes end at about the same time.
_PART: Final = 32

#: How many bytes a chunk has before it ends.
_CHUNK_BYTES: Final = 1024 * 1024


class RowsError(PromptkitError, ValueError):
    """
    A file of rows cannot be read at all.

    Args:
        message:
            Why, and what to do.
    """


class Chunk(Struct, frozen=True):
    """
    Rows that follow each other.

    Args:
        first:
            The number of the first, from 1 on.

        count:
            How many numbers they have.

        rows:
            The line, and what stands there, of each; or whole lines, which are cut where they are rendered.

        end:
            How many bytes, or rows, of the file were read so far.
    """

    first: int
    count: int
    rows: "list[tuple[int, Raw]] | bytes"
    end: int

    def numbered(self) -> Iterator[tuple[int, int, Raw]]:
        """Return the number of each row, its line, and what stands there."""
        if isinstance(self.rows, bytes):
            lines = enumerate(self.rows.split(b"\n"), self.first)
            yield from ((line, line, data) for line, data in lines if data and not data.isspace())
        else:
            for number, (line, raw) in enumerate(self.rows, self.first):
                yield number, line, raw


class Table(Struct, frozen=True):
    """
    A file of rows.

    Args:
        columns:
            Their names; None if each row says its own.

        read:
            Makes a row of what the file has of it. It can be pickled.

        chunks:
            Reads the rows.

        size:
            How many bytes, or rows, there are; None if nobody knows.
    """

    columns: list[str] | None
    read: Callable[[Any], Row]
    chunks: Iterator[Chunk]
    size: int | None = None

    def rows(self) -> Iterator[tuple[int, int, Raw]]:
        """Return the number of each row, its line, and what stands there."""
        for chunk in self.chunks:
            yield from chunk.numbered()


def row_of(raw: Raw, read: Callable[[Any], Row]) -> Row:
    """
    Return the values of a row.

    Args:
        raw:
            What a file has of it.

        read:
            The function of its table.

    Raises:
        RowError: If it cannot be read.
    """
    if isinstance(raw, RowError):
        raise raw
    return read(raw)


def rows_after(rows: int) -> int:
    """Return how many rows the next chunk is to have, after so many."""
    return min(_ROWS, max(_LEAST_ROWS, rows // _PART))


def chunks_of(rows: Iterable[tuple[int, Raw, int]]) -> Iterator[Chunk]:
    """
    Yield chunks of rows.

    Args:
        rows:
            The line of each, what stands there, and how much of the file was read up to it.
    """
    first, some, begin, end = 1, list[tuple[int, Raw]](), 0, 0
    for line, raw, end in rows:
        some.append((line, raw))
        if len(some) == rows_after(first - 1) or end - begin > _CHUNK_BYTES:
            yield Chunk(first, len(some), some, end)
            first, some, begin = first + len(some), [], end
    if some:
        yield Chunk(first, len(some), some, end)
