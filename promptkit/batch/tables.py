"""Tables in files: CSV, JSON Lines, Parquet and Arrow, read in chunks."""

import codecs
import csv
import os
import stat
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias, cast

import msgspec
from msgspec import Struct, structs

from promptkit.batch.dataframes import columns_of, rows_of
from promptkit.batch.rows import Chunk, Raw, Row, RowError, RowsError, Table, chunks_of, listed, rows_after
from promptkit.errors.distribution import install_command
from promptkit.errors.suggestions import near_file
from promptkit.files.reading import open_input, open_regular_file

#: The number of typed rows to read at a time.
_TYPED_ROWS: Final = 4_000

#: The maximum size of a line or cell in bytes, so that a chunk fits into memory.
_MAX_LINE: Final = 16 * 1024 * 1024

#: The number of bytes of JSON Lines to read first, and the maximum to read at a time.
_FIRST_BYTES: Final = 4 * 1024
_BLOCK_BYTES: Final = 256 * 1024

#: A marker for a line of CSV that is too long; valid lines cannot contain it.
_TOO_LONG: Final = "\0too long\n"


#: Returns the rows of a part of a table with the given columns.
_Conversion: TypeAlias = Callable[[Any, Collection[str]], Sequence[Row]]


@contextmanager
def open_table(path: str) -> Iterator[Table]:
    """
    Open a file of rows. Its suffix determines the format, or its first bytes if the suffix is unknown.

    Args:
        path:
            A file, or ``-`` for standard input.

    Raises:
        RowsError: If the file cannot be read, has another format, or needs a library that is not installed.
    """
    suffix = Path(path).suffix.lower()
    error_type = Exception if suffix in _ARROW else OSError  # the Arrow libraries raise their own exceptions
    with ExitStack() as stack:
        with explain_read_errors(path, error_type):
            table = _arrow_table(Path(path)) if suffix in _ARROW else _text_table(path, suffix, stack)
        yield structs.replace(table, chunks=_read(table.chunks, path, error_type))


@contextmanager
def explain_read_errors(path: str, error_type: type[Exception]) -> Iterator[None]:
    """Turn errors of *error_type* into a RowsError that names the file."""
    try:
        yield
    except RowsError:
        raise
    except error_type as error:
        hint = near_file(path) if isinstance(error, FileNotFoundError) else ""
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())
        msg = f"{path!r} cannot be read: {reason}{hint}"
        raise RowsError(msg) from None


def _read(chunks: Iterator[Chunk], path: str, error_type: type[Exception]) -> Iterator[Chunk]:
    with explain_read_errors(path, error_type):
        yield from chunks


def _text_table(path: str, suffix: str, stack: ExitStack) -> Table:
    if path != "-":
        stream = stack.enter_context(open_input(path))
    elif sys.stdin is not None:
        stream = cast("BufferedReader", sys.stdin.buffer)
    else:
        msg = "there are no rows: standard input is closed"
        raise RowsError(msg)
    size = None if path == "-" else _size_of(stream)
    if suffix not in _TEXT:
        beginning = stream.peek(1).removeprefix(codecs.BOM_UTF8).lstrip()
        suffix = ".jsonl" if beginning.startswith(b"{") else ".csv"
    if suffix in (".jsonl", ".ndjson"):
        return Table(None, _from_json, _json_chunks(stream), size)
    return _csv_table(_lines(stream), "\t" if suffix == ".tsv" else ",", size)


def _size_of(stream: BufferedReader) -> int | None:
    """Return the size of a regular file; None for a pipe."""
    status = os.fstat(stream.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None


class _TextLine(Struct, frozen=True):
    number: int
    data: bytes
    end: int
    is_too_long: bool = False


def _lines(stream: BinaryIO) -> Iterator[_TextLine]:
    """Yield the lines of a file; for a line that is too long, only its start."""
    number, end = 0, 0
    while data := stream.readline(_MAX_LINE + 1):
        number, end = number + 1, end + len(data) + _rest_of_line(stream, data)
        if number == 1:
            data = data.removeprefix(codecs.BOM_UTF8)
        yield _TextLine(number, data, end, is_too_long=len(data) > _MAX_LINE)


def _rest_of_line(stream: BinaryIO, data: bytes) -> int:
    """Read the rest of the line after *data*, and return its size."""
    size = 0
    while not data.endswith(b"\n") and (data := stream.readline(_MAX_LINE)):
        size += len(data)
    return size


def _json_chunks(stream: BinaryIO) -> Iterator[Chunk]:
    """
    Yield chunks of whole lines.

    A row's number is its line number, so counting newlines is enough; the lines are not split here.
    """
    rows, end, size = 0, 0, _FIRST_BYTES
    while data := stream.read(size):
        if not data.endswith(b"\n"):
            data += stream.readline(_MAX_LINE + 1)
        end += len(data) + _rest_of_line(stream, data)
        if not rows:
            data = data.removeprefix(codecs.BOM_UTF8)
        count = data.count(b"\n") + (not data.endswith(b"\n"))
        yield Chunk(rows + 1, count, data, end)
        rows += count
        size = min(_BLOCK_BYTES, rows_after(rows) * end // rows)


def _from_json(raw: bytes) -> Row:
    if len(raw) > _MAX_LINE:
        raise _too_long_error()
    try:
        row = msgspec.json.decode(raw)
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


def _csv_table(lines: Iterable[_TextLine], delimiter: str, size: int | None) -> Table:
    csv.field_size_limit(_MAX_LINE)
    position = _Position(lines)
    reader = csv.reader(position, delimiter=delimiter, strict=True)
    try:
        header = next(filter(None, reader), [])
    except csv.Error as error:
        msg = f"the header cannot be read: {error}"
        raise RowsError(msg) from None
    if not header or _TOO_LONG.strip() in header:
        msg = "there is no header: the first line names the columns"
        raise RowsError(msg)
    if not _is_utf8(header):
        msg = "the header is not UTF-8: save the table as UTF-8"
        raise RowsError(msg)
    if duplicates := sorted(name for name, count in Counter(header).items() if count > 1):
        msg = f"the header names {listed(duplicates)} twice: name each column once"
        raise RowsError(msg)
    return Table(header, partial(_from_cells, header), chunks_of(_csv_rows(reader, position)), size)


class _Position:
    """The lines of a CSV table as text, with the position of the last line read."""

    def __init__(self, lines: Iterable[_TextLine]) -> None:
        self._lines = iter(lines)
        self.number = self.end = 0
        self._row_size = 0

    def begin_row(self) -> None:
        """Reset the size of the current row."""
        self._row_size = 0

    def __iter__(self) -> "_Position":
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.number, self.end = line.number, line.end
        if line.is_too_long:
            return _TOO_LONG
        self._row_size += len(line.data)
        if self._row_size > _MAX_LINE:  # a quoted row with many lines
            msg = f"the row is longer than {_MAX_LINE:,} bytes"
            raise csv.Error(msg)
        return line.data.decode("utf-8", "surrogateescape")


def _csv_rows(reader: Iterator[list[str]], position: _Position) -> Iterator[tuple[int, Raw, int]]:
    while True:
        line = position.number + 1
        position.begin_row()
        raw: Raw
        try:
            raw = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            suffix = "" if position.number == line else f"; it continues to line {position.number}"
            raw = _line_error(f"is not CSV: {error}{suffix}")
        if raw:
            yield line, raw, position.end


def _from_cells(header: list[str], cells: list[str]) -> Row:
    if any("\0" in cell for cell in cells):
        raise (
            _too_long_error()
            if any(_TOO_LONG.strip() in cell for cell in cells)
            else _line_error("holds a NUL")
        )
    if len(cells) != len(header):
        msg = f"has {len(cells)} cells, and the header {len(header)}: quote what holds a comma"
        raise _line_error(msg)
    if not _is_utf8(cells):
        msg = "is not UTF-8: save the table as UTF-8"
        raise _line_error(msg)
    return dict(zip(header, cells, strict=True))


def _is_utf8(cells: list[str]) -> bool:
    try:
        "".join(cells).encode()
    except UnicodeEncodeError:
        return False
    return True


def _line_error(reason: str) -> RowError:
    return RowError.of(f"the line {reason}")


def _too_long_error() -> RowError:
    return _line_error(f"is longer than {_MAX_LINE:,} bytes")


def _arrow_table(file: Path) -> Table:
    """Open a file of typed columns with pyarrow or Polars, whichever is installed."""
    open_regular_file(file).close()  # the libraries would also open a pipe
    for reader in (_read_with_pyarrow, _read_with_polars):
        with suppress(ModuleNotFoundError):
            columns, count, rows = reader(file)
            return Table(columns, dict, chunks_of((n, row, n) for n, row in enumerate(rows, 1)), count)

    msg = f"to read {file.suffix[1:]}, run: {install_command('batch')}"
    raise RowsError(msg)


def _read_with_pyarrow(file: Path) -> tuple[list[str], int, Iterator[Raw]]:
    import pyarrow.dataset  # type: ignore[import-untyped]

    table = pyarrow.dataset.dataset(file.absolute(), format=_ARROW[file.suffix.lower()])
    batches = table.to_batches(batch_size=_TYPED_ROWS)
    return (
        table.schema.names,
        table.count_rows(),
        (row for batch in batches for row in _raw_rows(_validated(batch), rows_of)),
    )


def _validated(batch: Any) -> Any:
    """Validate a record batch. Invalid offsets in a broken file would crash the process on access."""
    batch.validate(full=True)
    return batch


def _read_with_polars(file: Path) -> tuple[list[str], int, Iterator[Raw]]:
    import polars as pl

    scan = pl.scan_parquet if _ARROW[file.suffix.lower()] == "parquet" else pl.scan_ipc
    table = scan(file.absolute())
    with _convert_panics():
        columns, count = table.collect_schema().names(), table.select(pl.len()).collect().item()
    return columns, count, _polars_rows(table, count)


def _polars_rows(table: Any, count: int) -> Iterator[Raw]:
    for start in range(0, count, _TYPED_ROWS):
        with _convert_panics():
            slice_ = table.slice(start, _TYPED_ROWS).collect()
        if slice_.is_empty():
            msg = f"it has {start:,} rows, and its header {count:,}"
            raise RowsError(msg)
        yield from _raw_rows(slice_, _rows_of_polars)


def _rows_of_polars(table: Any, columns: Collection[str]) -> Sequence[Row]:
    with _convert_panics():
        return rows_of(table, columns)


@contextmanager
def _convert_panics() -> Iterator[None]:
    """Convert a panic of Polars, which a broken file can cause, to an ordinary exception."""
    from polars.exceptions import PanicException

    try:
        yield
    except PanicException as error:
        msg = f"Polars cannot read it: {error}"
        raise ValueError(msg) from None


def _raw_rows(table: Any, convert: _Conversion) -> Sequence[Raw]:
    """Convert the rows of a part of a table. If that fails, convert each row separately."""
    columns = columns_of(table) or []
    try:
        return convert(table, columns)
    except Exception:  # noqa: BLE001 (the libraries raise many kinds of errors)
        parts = (table[index : index + 1] for index in range(len(table)))
        return [_raw_row(part, columns, convert) for part in parts]


def _raw_row(table: Any, columns: list[str], convert: _Conversion) -> Raw:
    try:
        return convert(table, columns)[0]
    except Exception as error:  # noqa: BLE001 (see above)
        return RowError.of(f"the row cannot be read: {type(error).__name__}: {error}")


#: The formats by suffix.
_TEXT: Final = frozenset({".csv", ".tsv", ".jsonl", ".ndjson"})
_ARROW: Final = {".parquet": "parquet", ".arrow": "ipc", ".feather": "feather", ".ipc": "ipc"}
