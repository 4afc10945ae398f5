"""Tables in CSV, JSON, JSON Lines, Parquet and Arrow files, which are read in chunks of rows."""

import codecs
import csv
import os
import stat
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import msgspec
from msgspec import Struct, structs

from promptkit.batch.columns import RowError, format_names
from promptkit.batch.dataframes import rows_of
from promptkit.errors.distribution import install_command
from promptkit.errors.exceptions import PromptkitError
from promptkit.files.reading import open_input, open_regular_file

#: The file suffixes of each format.
_JSON_LINES: Final = frozenset({".jsonl", ".ndjson"})
_JSON: Final = _JSON_LINES | {".json"}
_ARROW: Final = {".parquet": "parquet", ".arrow": "ipc", ".feather": "feather", ".ipc": "ipc"}

#: The number of rows to read at a time from a file whose columns are typed.
_TYPED_ROWS: Final = 4_000

#: The maximum size of a row in a text format, in bytes. The limit ensures that a chunk fits into memory.
_MAX_ROW: Final = 16 * 1024 * 1024

#: The maximum size of a JSON array, in bytes. Arrays are limited because they are read as a whole.
_MAX_ARRAY: Final = 256 * 1024 * 1024

#: The delimiters to try on a header. The delimiter that yields the most cells is used; on a tie, the first.
_DETECTED: Final = (",", ";", "\t")

#: The possible delimiters for each file suffix.
_DELIMITERS: Final = {".csv": _DETECTED, ".tsv": ("\t",)}

#: The maximum and the minimum number of rows in a chunk.
_MAX_ROWS: Final = 1_000
_MIN_ROWS: Final = 16

#: The number of rows before a chunk, divided by this constant, is the number of rows in the chunk. Chunks
#: grow gradually, so that all processes finish at about the same time.
_GROWTH_DIVISOR: Final = 32

#: The size at which a chunk is complete, in bytes.
_CHUNK_BYTES: Final = 1024 * 1024

#: The values of one row, keyed by column name.
Row: TypeAlias = Mapping[str, Any]

#: A row as it was read from a file: its bytes, its cells, its values, or the error that made it unreadable.
Raw: TypeAlias = "bytes | list[str] | Row | RowError"

#: The line number of a row, its raw data, and how many bytes or rows of the file end with this row.
_NumberedRow: TypeAlias = tuple[int, Raw, int]


class RowsError(PromptkitError, ValueError):
    """
    A file of rows or results cannot be read.

    Args:
        message:
            The reason, and how to fix the problem.
    """


class Chunk(Struct, frozen=True):
    """
    Consecutive rows of a table.

    Args:
        first:
            The number of the first row. The first row of the table has the number 1.

        rows:
            The line number and the raw data of each row.

        end:
            The number of bytes or rows that were read from the file up to the end of this chunk.
    """

    first: int
    rows: list[tuple[int, Raw]]
    end: int

    @property
    def last(self) -> int:
        """The number of the last row."""
        return self.first + len(self.rows) - 1

    def iterate_rows(self) -> Iterator[tuple[int, int, Raw]]:
        """Yield the number, the line number and the raw data of each row."""
        for number, (line, raw) in enumerate(self.rows, self.first):
            yield number, line, raw


class Table(Struct, frozen=True):
    """
    A file of rows.

    Args:
        columns:
            The column names; None if each row has its own columns.

        parse:
            A function that converts the raw data of a row to its values. It can be pickled.

        chunks:
            An iterator over the rows.

        size:
            The number of bytes or rows in the file; None if it is unknown.
    """

    columns: list[str] | None
    parse: Callable[[Any], Row]
    chunks: Iterator[Chunk]
    size: int | None = None


def parse_row(raw: Raw, parse: Callable[[Any], Row]) -> Row:
    """
    Return the values of a row.

    Args:
        raw:
            The raw data of the row, or the error that made it unreadable.

        parse:
            The `parse` function of the row's table.

    Raises:
        RowError: If the row cannot be read or parsed.
    """
    if isinstance(raw, RowError):
        raise raw
    return parse(raw)


@contextmanager
def open_table(path: str, delimiter: str | None = None) -> Iterator[Table]:
    """
    Open a file of rows. The suffix, or the first bytes if the suffix is unknown, determine the format.

    Args:
        path:
            The path of a file, or ``-`` for standard input.

        delimiter:
            The delimiter of a CSV table; None to detect it from the header.

    Raises:
        RowsError: If the file cannot be read, does not have the expected format, or needs a library that is
            not installed.
    """
    suffix = Path(path).suffix.lower()
    is_arrow = suffix in _ARROW and delimiter is None
    error_type = Exception if is_arrow else OSError  # pyarrow raises exceptions of its own
    with ExitStack() as stack:
        with explain_read_errors(path, error_type):
            if is_arrow:
                table = _open_arrow_table(Path(path))
            else:
                table = _open_text_table(path, suffix, delimiter, stack)
        yield structs.replace(table, chunks=_explain_errors_of(table.chunks, path, error_type))


@contextmanager
def explain_read_errors(path: str, error_type: type[Exception]) -> Iterator[None]:
    """Convert exceptions of *error_type* in the block to a `RowsError` that names the file."""
    try:
        yield
    except RowsError:
        raise
    except error_type as error:
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())
        msg = f"{path!r} cannot be read: {reason}"
        raise RowsError(msg) from None


def _explain_errors_of(chunks: Iterator[Chunk], path: str, error_type: type[Exception]) -> Iterator[Chunk]:
    with explain_read_errors(path, error_type):
        yield from chunks


def _chunks_of(rows: Iterable[_NumberedRow]) -> Iterator[Chunk]:
    first, rows_of_chunk, start, end = 1, list[tuple[int, Raw]](), 0, 0
    for line, raw, end in rows:
        rows_of_chunk.append((line, raw))
        max_rows = min(_MAX_ROWS, max(_MIN_ROWS, first // _GROWTH_DIVISOR))
        if len(rows_of_chunk) == max_rows or end - start > _CHUNK_BYTES:
            yield Chunk(first, rows_of_chunk, end)
            first, rows_of_chunk, start = first + len(rows_of_chunk), [], end
    if rows_of_chunk:
        yield Chunk(first, rows_of_chunk, end)


def _open_text_table(path: str, suffix: str, delimiter: str | None, stack: ExitStack) -> Table:
    if path == "-" and sys.stdin is None:
        msg = "the rows cannot be read, because standard input is closed: pass a file"
        raise RowsError(msg)
    file = cast("BufferedReader", sys.stdin.buffer) if path == "-" else stack.enter_context(open_input(path))
    size = None if path == "-" else _size_of(file)
    beginning = file.peek(1).removeprefix(codecs.BOM_UTF8)
    first = beginning.lstrip()[:1]
    is_json = suffix in _JSON or (suffix not in _DELIMITERS and first in (b"{", b"["))
    if delimiter is not None or not is_json:
        return _open_csv_table(file, suffix, delimiter, size)
    rows = _array_rows(file, path) if first == b"[" else _json_rows(file)
    return Table(None, _row_from_json, _chunks_of(rows), size)


def _size_of(stream: BufferedReader) -> int | None:
    """Return the size of a regular file in bytes; None for a pipe or a device."""
    status = os.fstat(stream.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _read_lines(stream: BufferedReader) -> Iterator[tuple[int, bytes, int]]:
    """Yield the number, the data and the end offset of each line. Lines that are too long are truncated."""
    number = end = 0
    while data := stream.readline(_MAX_ROW + 1):
        number, end, rest = number + 1, end + len(data), data
        while not rest.endswith(b"\n") and (rest := stream.readline(_MAX_ROW)):
            end += len(rest)
        yield number, data.removeprefix(codecs.BOM_UTF8) if number == 1 else data, end


def _json_rows(stream: BufferedReader) -> Iterator[_NumberedRow]:
    for number, data, end in _read_lines(stream):
        if len(data) > _MAX_ROW:
            yield number, _too_long_error(), end
        elif not data.isspace():
            yield number, data, end


def _array_rows(stream: BufferedReader, path: str) -> Iterator[_NumberedRow]:
    """Read a JSON array, and return an iterator over its items as rows."""
    data = stream.read(_MAX_ARRAY + 1)
    if len(data) > _MAX_ARRAY:
        msg = f"{path!r} is a JSON array of more than {_MAX_ARRAY:,} bytes: convert it to JSON Lines"
        raise RowsError(msg)
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        items = msgspec.json.decode(data, type=list[msgspec.Raw])
    except (ValueError, RecursionError) as error:
        msg = f"{path!r} is not a valid JSON array: {error}"
        raise RowsError(msg) from None
    return _number_items(data, items)


def _number_items(data: bytes, items: Iterable[msgspec.Raw]) -> Iterator[_NumberedRow]:
    """Yield the *items* of the array in *data*, each with the number of the line on which it starts."""
    number, end = 1, 0
    for item in items:
        raw = bytes(item)
        start = data.index(raw, end)  # only whitespace and a comma are in between
        number, end = number + data.count(b"\n", end, start), start + len(raw)
        yield number, raw if len(raw) <= _MAX_ROW else _too_long_error(), end
        number += raw.count(b"\n")


def _row_from_json(raw: bytes) -> Row:
    try:
        row = msgspec.json.decode(raw.decode())  # msgspec's error for invalid UTF-8 depends on its version
    except UnicodeDecodeError:
        msg = "is not UTF-8: save the file as UTF-8"
        raise _line_error(msg) from None
    except (ValueError, RecursionError) as error:
        msg = f"is not valid JSON: {error}"
        raise _line_error(msg) from None
    if not isinstance(row, dict):
        msg = 'is not a JSON object: write {"COLUMN": VALUE, ...}'
        raise _line_error(msg)
    return row


def _open_csv_table(stream: BufferedReader, suffix: str, delimiter: str | None, size: int | None) -> Table:
    csv.field_size_limit(_MAX_ROW)
    lines = _CsvLines(stream)
    try:
        first = next((line for line in lines if line.strip()), "")
        possible = _DELIMITERS.get(suffix, _DETECTED)
        delimiter = delimiter or max(possible, key=partial(_count_cells, first))
        reader = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
        header = next(reader, [])
    except (csv.Error, RowError) as error:
        msg = f"the header cannot be read: {error}"
        raise RowsError(msg) from None
    if not header:
        msg = "the table has no header: write the column names in the first line"
        raise RowsError(msg)
    if not _is_utf8(header):
        msg = "the header is not UTF-8: save the table as UTF-8"
        raise RowsError(msg)
    header = [name.strip() for name in header]
    if duplicates := sorted(name for name, count in Counter(header).items() if name and count > 1):
        msg = f"the header contains {format_names(duplicates)} more than once: use each column name only once"
        raise RowsError(msg)
    read, chunks = partial(_row_from_cells, header, delimiter), _chunks_of(_csv_rows(reader, lines))
    return Table(header, read, chunks, size)


def _count_cells(line: str, delimiter: str) -> int:
    """Return the number of cells into which *delimiter* splits a line."""
    return len(next(csv.reader([line], delimiter=delimiter), []))


class _CsvLines:
    """
    An iterator over the lines of a CSV table, as text.

    It stores the number and the end offset of the last line that it returned, and the offset at which the
    current row starts, which its user sets.
    """

    def __init__(self, stream: BufferedReader) -> None:
        self._lines = _read_lines(stream)
        self.number = self.end = self.row_start = 0

    def __iter__(self) -> "_CsvLines":
        return self

    def __next__(self) -> str:
        self.number, data, self.end = next(self._lines)
        if self.end - self.row_start > _MAX_ROW:  # a row with quoted cells can span many lines
            raise _too_long_error()
        return data.decode("utf-8", "surrogateescape")


def _csv_rows(reader: Iterator[list[str]], lines: _CsvLines) -> Iterator[_NumberedRow]:
    while True:
        line, lines.row_start = lines.number + 1, lines.end
        raw: Raw
        try:
            raw = next(reader)
        except StopIteration:
            return
        except RowError as error:
            raw = error
        except csv.Error as error:
            suffix = "" if lines.number == line else f"; the row continues to line {lines.number}"
            raw = _line_error(f"is not valid CSV: {error}{suffix}")
        if raw:
            yield line, raw, lines.end


def _row_from_cells(header: list[str], delimiter: str, cells: list[str]) -> Row:
    """Return the values of a row. Empty cells become None."""
    if len(cells) != len(header):
        name = "a comma" if delimiter == "," else repr(delimiter)
        msg = f"has {len(cells)} cells, but the header has {len(header)}: quote cells that contain {name}"
        raise _line_error(msg)
    if not _is_utf8(cells):
        msg = "is not UTF-8: save the table as UTF-8"
        raise _line_error(msg)
    return {name: cell or None for name, cell in zip(header, cells, strict=True)}


def _is_utf8(cells: list[str]) -> bool:
    try:
        "".join(cells).encode()
    except UnicodeEncodeError:
        return False
    return True


def _line_error(reason: str) -> RowError:
    return RowError.of(f"the line {reason}")


def _too_long_error() -> RowError:
    return _line_error(f"is longer than {_MAX_ROW:,} bytes")


def _open_arrow_table(file: Path) -> Table:
    """Open a file in a format whose columns are typed, such as Parquet."""
    open_regular_file(file).close()  # pyarrow would open even a pipe
    try:
        import pyarrow.dataset  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        msg = f"reading {file.suffix} files needs pyarrow: run {install_command('batch')}"
        raise RowsError(msg) from None
    table = pyarrow.dataset.dataset(file.absolute(), format=_ARROW[file.suffix.lower()])
    rows = (row for batch in table.to_batches(batch_size=_TYPED_ROWS) for row in _arrow_rows(batch))
    chunks = _chunks_of((number, row, number) for number, row in enumerate(rows, 1))
    return Table(table.schema.names, dict, chunks, table.count_rows())


def _arrow_rows(batch: Any) -> Sequence[Row]:
    """Return the rows of a record batch after validating it."""
    batch.validate(full=True)  # invalid offsets would otherwise crash the process
    return rows_of(batch, batch.schema.names)
