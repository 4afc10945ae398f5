"""Tables in files: CSV, JSON, JSON Lines, Parquet and Arrow, read in chunks of rows."""

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

#: The formats by suffix.
_JSON_LINES: Final = frozenset({".jsonl", ".ndjson"})
_JSON: Final = _JSON_LINES | {".json"}
_ARROW: Final = {".parquet": "parquet", ".arrow": "ipc", ".feather": "feather", ".ipc": "ipc"}

#: The number of typed rows to read at a time.
_TYPED_ROWS: Final = 4_000

#: The maximum size of a row in a text format, in bytes, so that a chunk fits into memory.
_MAX_ROW: Final = 16 * 1024 * 1024

#: The maximum size of a JSON array in bytes, because it is read as a whole.
_MAX_ARRAY: Final = 256 * 1024 * 1024

#: The delimiters to try on a header. The one that yields the most cells wins; on a tie, the first.
_DETECTED: Final = (",", ";", "\t")

#: The possible delimiters by suffix.
_DELIMITERS: Final = {".csv": _DETECTED, ".tsv": ("\t",)}

#: The maximum and the minimum number of rows in a chunk.
_MAX_ROWS: Final = 1_000
_MIN_ROWS: Final = 16

#: A chunk has as many rows as all earlier chunks together, divided by this, so that processes finish
#: together.
_FRACTION: Final = 32

#: The size in bytes at which a chunk is complete.
_CHUNK_BYTES: Final = 1024 * 1024

#: The values of one row by column.
Row: TypeAlias = Mapping[str, Any]

#: A row as read from a file: its bytes, its cells, its values, or the error that prevents reading it.
Raw: TypeAlias = "bytes | list[str] | Row | RowError"

#: The line number of a row, its raw data, and how much of the file was read with it.
_Position: TypeAlias = tuple[int, Raw, int]


class RowsError(PromptkitError, ValueError):
    """
    A file of rows cannot be read.

    Args:
        message:
            The reason, and how to fix it.
    """


class Chunk(Struct, frozen=True):
    """
    Consecutive rows.

    Args:
        first:
            The number of the first row, from 1.

        rows:
            The line number and raw data of each row.

        end:
            The number of bytes or rows of the file read so far.
    """

    first: int
    rows: list[tuple[int, Raw]]
    end: int

    @property
    def last(self) -> int:
        """The number of the last row."""
        return self.first + len(self.rows) - 1

    def iterate_rows(self) -> Iterator[tuple[int, int, Raw]]:
        """Yield the number of each row, its line, and its raw data."""
        for number, (line, raw) in enumerate(self.rows, self.first):
            yield number, line, raw


class Table(Struct, frozen=True):
    """
    A file of rows.

    Args:
        columns:
            The column names; None if each row has its own columns.

        parse:
            Converts the raw data of a row to its values. It can be pickled.

        chunks:
            Yields the rows.

        size:
            The number of bytes or rows; None if unknown.
    """

    columns: list[str] | None
    parse: Callable[[Any], Row]
    chunks: Iterator[Chunk]
    size: int | None = None


def row_of(raw: Raw, read: Callable[[Any], Row]) -> Row:
    """
    Return the values of a row.

    Args:
        raw:
            The raw data of the row.

        read:
            The `parse` function of the row's table.

    Raises:
        RowError: If the row cannot be read.
    """
    if isinstance(raw, RowError):
        raise raw
    return read(raw)


@contextmanager
def open_table(path: str, delimiter: str | None = None) -> Iterator[Table]:
    """
    Open a file of rows. The suffix or, if that is unknown, the first bytes determine the format.

    Args:
        path:
            A file, or ``-`` for standard input.

        delimiter:
            The delimiter of a CSV table; None to detect it in the header.

    Raises:
        RowsError: If the file cannot be read, has another format, or needs a library that is not installed.
    """
    suffix = Path(path).suffix.lower()
    is_arrow = suffix in _ARROW and delimiter is None
    error_type = Exception if is_arrow else OSError  # pyarrow raises its own exceptions
    with ExitStack() as stack:
        with explain_read_errors(path, error_type):
            if is_arrow:
                table = _open_arrow_table(Path(path))
            else:
                table = _open_text_table(path, suffix, delimiter, stack)
        yield structs.replace(table, chunks=_read(table.chunks, path, error_type))


@contextmanager
def explain_read_errors(path: str, error_type: type[Exception]) -> Iterator[None]:
    """Turn errors of *error_type* into a RowsError that names the file."""
    try:
        yield
    except RowsError:
        raise
    except error_type as error:
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())
        msg = f"{path!r} cannot be read: {reason}"
        raise RowsError(msg) from None


def _read(chunks: Iterator[Chunk], path: str, error_type: type[Exception]) -> Iterator[Chunk]:
    with explain_read_errors(path, error_type):
        yield from chunks


def _chunks_of(rows: Iterable[_Position]) -> Iterator[Chunk]:
    first, rows_of_chunk, start, end = 1, list[tuple[int, Raw]](), 0, 0
    for line, raw, end in rows:
        rows_of_chunk.append((line, raw))
        max_rows = min(_MAX_ROWS, max(_MIN_ROWS, first // _FRACTION))
        if len(rows_of_chunk) == max_rows or end - start > _CHUNK_BYTES:
            yield Chunk(first, rows_of_chunk, end)
            first, rows_of_chunk, start = first + len(rows_of_chunk), [], end
    if rows_of_chunk:
        yield Chunk(first, rows_of_chunk, end)


def _open_text_table(path: str, suffix: str, delimiter: str | None, stack: ExitStack) -> Table:
    if path == "-" and sys.stdin is None:
        msg = "there are no rows: standard input is closed"
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
    """Return the size of a regular file; None for a pipe."""
    status = os.fstat(stream.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _read_lines(stream: BufferedReader) -> Iterator[tuple[int, bytes, int]]:
    """Yield the number, the data and the end of each line, truncating lines that are too long."""
    number = end = 0
    while data := stream.readline(_MAX_ROW + 1):
        number, end, rest = number + 1, end + len(data), data
        while not rest.endswith(b"\n") and (rest := stream.readline(_MAX_ROW)):
            end += len(rest)
        yield number, data.removeprefix(codecs.BOM_UTF8) if number == 1 else data, end


def _json_rows(stream: BufferedReader) -> Iterator[_Position]:
    for number, data, end in _read_lines(stream):
        if len(data) > _MAX_ROW:
            yield number, _too_long_error(), end
        elif not data.isspace():
            yield number, data, end


def _array_rows(stream: BufferedReader, path: str) -> Iterator[_Position]:
    """Read a JSON array, and return an iterator over its items."""
    data = stream.read(_MAX_ARRAY + 1)
    if len(data) > _MAX_ARRAY:
        msg = f"{path!r} is a JSON array of more than {_MAX_ARRAY:,} bytes: write it as JSON Lines"
        raise RowsError(msg)
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        items = msgspec.json.decode(data, type=list[msgspec.Raw])
    except (ValueError, RecursionError) as error:
        msg = f"{path!r} is not a JSON array: {error}"
        raise RowsError(msg) from None
    return _items(data, items)


def _items(data: bytes, items: Iterable[msgspec.Raw]) -> Iterator[_Position]:
    """Yield the items of the array in *data*, with the lines on which they start."""
    number, end = 1, 0
    for item in items:
        raw = bytes(item)
        start = data.index(raw, end)  # only whitespace and a comma are in between
        number, end = number + data.count(b"\n", end, start), start + len(raw)
        yield number, raw if len(raw) <= _MAX_ROW else _too_long_error(), end
        number += raw.count(b"\n")


def _row_from_json(raw: bytes) -> Row:
    try:
        row = msgspec.json.decode(raw.decode())  # msgspec reports invalid UTF-8 differently by version
    except UnicodeDecodeError:
        msg = "is not UTF-8: save it as UTF-8"
        raise _line_error(msg) from None
    except (ValueError, RecursionError) as error:
        msg = f"is not JSON: {error}"
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
        msg = f"the header repeats {format_names(duplicates)}: use each column name once"
        raise RowsError(msg)
    read, chunks = partial(_row_from_cells, header, delimiter), _chunks_of(_csv_rows(reader, lines))
    return Table(header, read, chunks, size)


def _count_cells(line: str, delimiter: str) -> int:
    """Return the number of cells of a header with a delimiter."""
    return len(next(csv.reader([line], delimiter=delimiter), []))


class _CsvLines:
    """The lines of a CSV table as text. Stores the number and the end of the last line that was read."""

    def __init__(self, stream: BufferedReader) -> None:
        self._lines = _read_lines(stream)
        self.number = self.end = self.row_start = 0

    def __iter__(self) -> "_CsvLines":
        return self

    def __next__(self) -> str:
        self.number, data, self.end = next(self._lines)
        if self.end - self.row_start > _MAX_ROW:  # a quoted row can have many lines
            raise _too_long_error()
        return data.decode("utf-8", "surrogateescape")


def _csv_rows(reader: Iterator[list[str]], lines: _CsvLines) -> Iterator[_Position]:
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
            suffix = "" if lines.number == line else f"; it continues to line {lines.number}"
            raw = _line_error(f"is not CSV: {error}{suffix}")
        if raw:
            yield line, raw, lines.end


def _row_from_cells(header: list[str], delimiter: str, cells: list[str]) -> Row:
    """Return the values of a row; None for an empty cell."""
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
    """Open a file whose columns are typed, such as Parquet."""
    open_regular_file(file).close()  # pyarrow would also open a pipe
    try:
        import pyarrow.dataset  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        msg = f"to read {file.suffix[1:]}, run: {install_command('batch')}"
        raise RowsError(msg) from None
    table = pyarrow.dataset.dataset(file.absolute(), format=_ARROW[file.suffix.lower()])
    rows = (row for batch in table.to_batches(batch_size=_TYPED_ROWS) for row in _arrow_rows(batch))
    chunks = _chunks_of((number, row, number) for number, row in enumerate(rows, 1))
    return Table(table.schema.names, dict, chunks, table.count_rows())


def _arrow_rows(batch: Any) -> Sequence[Row]:
    """Return the rows of a record batch."""
    batch.validate(full=True)  # otherwise, invalid offsets would crash the process
    return rows_of(batch, batch.schema.names)
