"""Tables in files: CSV, JSON lines, Parquet and Arrow, read a chunk at a time."""

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

#: How many rows with types are read at a time.
_TYPED_ROWS: Final = 4_000

#: How long a line, or a cell, may be, in bytes. A chunk of such rows fits into memory.
_MAX_LINE: Final = 16 * 1024 * 1024

#: How much of JSON lines is read at first, and at most at a time, in bytes.
_FIRST_BYTES: Final = 4 * 1024
_BLOCK_BYTES: Final = 256 * 1024

#: What stands in a table of text for a line that is too long, and for none that it may hold.
_TOO_LONG: Final = "\0too long\n"


#: Returns the rows of a part of a table with some of its columns.
_Conversion: TypeAlias = Callable[[Any, Collection[str]], Sequence[Row]]


@contextmanager
def open_table(path: str) -> Iterator[Table]:
    """
    Open a file of rows: its suffix says of which kind it is, or else what it begins with.

    Args:
        path:
            A file, or ``-`` for standard input.

    Raises:
        RowsError: If it cannot be read, is no such file, or what reads it is not installed.
    """
    suffix = Path(path).suffix.lower()
    errors = Exception if suffix in _ARROW else OSError  # what reads typed columns has exceptions of its own
    with ExitStack() as opened:
        with _reading(path, errors):
            table = _arrow_table(Path(path)) if suffix in _ARROW else _text_table(path, suffix, opened)
        yield structs.replace(table, chunks=_read(table.chunks, path, errors))


@contextmanager
def _reading(path: str, errors: type[Exception]) -> Iterator[None]:
    try:
        yield
    except RowsError:
        raise
    except errors as error:
        hint = near_file(path) if isinstance(error, FileNotFoundError) else ""
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())
        msg = f"{path!r} cannot be read: {reason}{hint}"
        raise RowsError(msg) from None


def _read(chunks: Iterator[Chunk], path: str, errors: type[Exception]) -> Iterator[Chunk]:
    with _reading(path, errors):
        yield from chunks


def _text_table(path: str, suffix: str, opened: ExitStack) -> Table:
    if path != "-":
        stream = opened.enter_context(open_input(path))
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
    """The size of a regular file; None for a pipe."""
    status = os.fstat(stream.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None


class _TextLine(Struct, frozen=True):
    number: int
    data: bytes
    end: int
    is_too_long: bool = False


def _lines(stream: BinaryIO) -> Iterator[_TextLine]:
    """The lines of a file. Of one that is too long, the beginning."""
    number, end = 0, 0
    while data := stream.readline(_MAX_LINE + 1):
        number, end = number + 1, end + len(data) + _rest_of_line(stream, data)
        if number == 1:
            data = data.removeprefix(codecs.BOM_UTF8)
        yield _TextLine(number, data, end, is_too_long=len(data) > _MAX_LINE)


def _rest_of_line(stream: BinaryIO, data: bytes) -> int:
    """Read what follows *data* in its line, and return how much that was."""
    size = 0
    while not data.endswith(b"\n") and (data := stream.readline(_MAX_LINE)):
        size += len(data)
    return size


def _json_chunks(stream: BinaryIO) -> Iterator[Chunk]:
    """Whole lines, as one read gives them. Rows are numbered as lines are, so nobody has to look at them."""
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
        raise _too_long()
    try:
        row = msgspec.json.decode(raw)
    except UnicodeDecodeError:
        msg = "is no UTF-8: save it as UTF-8"
        raise _fault(msg) from None
    except (ValueError, RecursionError) as error:
        msg = f"is no JSON: {error}"
        raise _fault(msg) from None
    if not isinstance(row, dict):
        msg = 'is no JSON object: write {"COLUMN": VALUE, ...}'
        raise _fault(msg)
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
    if twice := sorted(name for name, count in Counter(header).items() if count > 1):
        msg = f"the header names {listed(twice)} twice: name each column once"
        raise RowsError(msg)
    return Table(header, partial(_from_cells, header), chunks_of(_csv_rows(reader, position)), size)


class _Position:
    """The lines of a table as text, and how far they were read."""

    def __init__(self, lines: Iterable[_TextLine]) -> None:
        self._lines = iter(lines)
        self.number = self.end = 0
        self._row_size = 0

    def begin_row(self) -> None:
        """Count the size of a row from here on."""
        self._row_size = 0

    def __iter__(self) -> "_Position":
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.number, self.end = line.number, line.end
        if line.is_too_long:
            return _TOO_LONG
        self._row_size += len(line.data)
        if self._row_size > _MAX_LINE:  # of many lines, in quotes
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
            ends = "" if position.number == line else f"; it goes on to line {position.number}"
            raw = _fault(f"is no CSV: {error}{ends}")
        if raw:
            yield line, raw, position.end


def _from_cells(header: list[str], cells: list[str]) -> Row:
    if any("\0" in cell for cell in cells):
        raise _too_long() if any(_TOO_LONG.strip() in cell for cell in cells) else _fault("holds a NUL")
    if len(cells) != len(header):
        msg = f"has {len(cells)} cells, and the header {len(header)}: quote what holds a comma"
        raise _fault(msg)
    if not _is_utf8(cells):
        msg = "is no UTF-8: save the table as UTF-8"
        raise _fault(msg)
    return dict(zip(header, cells, strict=True))


def _is_utf8(cells: list[str]) -> bool:
    try:
        "".join(cells).encode()
    except UnicodeEncodeError:
        return False
    return True


def _fault(reason: str) -> RowError:
    return RowError.of(f"the line {reason}")


def _too_long() -> RowError:
    return _fault(f"is longer than {_MAX_LINE:,} bytes")


def _arrow_table(file: Path) -> Table:
    """A file of typed columns, by pyarrow or by Polars, whichever is there."""
    open_regular_file(file).close()  # the readers open what they are given, also a pipe
    for reader in (_by_pyarrow, _by_polars):
        with suppress(ModuleNotFoundError):
            columns, count, rows = reader(file)
            return Table(columns, dict, chunks_of((n, row, n) for n, row in enumerate(rows, 1)), count)

    msg = f"to read {file.suffix[1:]}, run: {install_command('batch')}"
    raise RowsError(msg)


def _by_pyarrow(file: Path) -> tuple[list[str], int, Iterator[Raw]]:
    import pyarrow.dataset  # type: ignore[import-untyped]

    table = pyarrow.dataset.dataset(file.absolute(), format=_ARROW[file.suffix.lower()])
    batches = table.to_batches(batch_size=_TYPED_ROWS)
    return (
        table.schema.names,
        table.count_rows(),
        (row for batch in batches for row in _raw_rows(_valid(batch), rows_of)),
    )


def _valid(batch: Any) -> Any:
    """Check a record batch. Offsets of a broken file would end the process when they are used."""
    batch.validate(full=True)
    return batch


def _by_polars(file: Path) -> tuple[list[str], int, Iterator[Raw]]:
    import polars as pl

    scan = pl.scan_parquet if _ARROW[file.suffix.lower()] == "parquet" else pl.scan_ipc
    table = scan(file.absolute())
    with _panics_raised():
        columns, count = table.collect_schema().names(), table.select(pl.len()).collect().item()
    return columns, count, _polars_rows(table, count)


def _polars_rows(table: Any, count: int) -> Iterator[Raw]:
    for start in range(0, count, _TYPED_ROWS):
        with _panics_raised():
            part = table.slice(start, _TYPED_ROWS).collect()
        if part.is_empty():
            msg = f"it has {start:,} rows, and its header {count:,}"
            raise RowsError(msg)
        yield from _raw_rows(part, _rows_of_polars)


def _rows_of_polars(table: Any, columns: Collection[str]) -> Sequence[Row]:
    with _panics_raised():
        return rows_of(table, columns)


@contextmanager
def _panics_raised() -> Iterator[None]:
    """Raise a panic of Polars, which a broken file can cause, as an exception like any other."""
    from polars.exceptions import PanicException

    try:
        yield
    except PanicException as error:
        msg = f"Polars cannot read it: {error}"
        raise ValueError(msg) from None


def _raw_rows(table: Any, convert: _Conversion) -> Sequence[Raw]:
    """The rows of a part of a table. If they cannot all be converted, each is converted by itself."""
    columns = columns_of(table) or []
    try:
        return convert(table, columns)
    except Exception:  # noqa: BLE001 (the libraries raise errors of many kinds)
        parts = (table[number : number + 1] for number in range(len(table)))
        return [_raw_row(part, columns, convert) for part in parts]


def _raw_row(table: Any, columns: list[str], convert: _Conversion) -> Raw:
    try:
        return convert(table, columns)[0]
    except Exception as error:  # noqa: BLE001 (as above)
        return RowError.of(f"the row cannot be read: {type(error).__name__}: {error}")


#: What each suffix stands for.
_TEXT: Final = frozenset({".csv", ".tsv", ".jsonl", ".ndjson"})
_ARROW: Final = {".parquet": "parquet", ".arrow": "ipc", ".feather": "feather", ".ipc": "ipc"}
