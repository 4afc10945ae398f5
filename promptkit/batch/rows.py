"""Tables in files: CSV, JSON lines, Parquet and Arrow, read a chunk at a time, whatever a row holds."""

import csv
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

import msgspec
from msgspec import Struct

from promptkit.batch.columns import RowError
from promptkit.batch.tables import rows_of
from promptkit.errors.exceptions import PromptkitError

__all__ = ["Chunk", "Row", "RowsError", "Table", "open_table"]

#: The values of one row, by column.
Row: TypeAlias = Mapping[str, Any]

#: What a file has of a row: its bytes, its cells, or its values; or why it cannot be read.
_Raw: TypeAlias = "bytes | list[str] | Row | RowError"

#: How many rows are rendered at a time.
_ROWS: Final = 250

#: How many rows with types are read at a time.
_TYPED_ROWS: Final = 4_000

#: How long a line, or a cell, may be, in bytes. A chunk of such rows fits into memory.
_MAX_LINE: Final = 16 * 1024 * 1024

#: How many bytes a chunk has before it ends.
_CHUNK_BYTES: Final = 16 * 1024 * 1024

#: What stands in a table of text for a line that is too long, and for none that it may hold.
_TOO_LONG: Final = "\0too long\n"


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

        rows:
            The line, and what stands there, of each.

        end:
            How many bytes, or rows, of the file were read so far.
    """

    first: int
    rows: list[tuple[int, _Raw]]
    end: int


class Table(Struct, frozen=True):
    """
    A file of rows.

    Args:
        columns:
            Their names; None if each row says its own.

        read:
            Makes a row of what the file has of it. It can be pickled.

        raw:
            Reads the rows, each with its line, and how much of the file was read up to it.

        size:
            How many bytes, or rows, there are; None if nobody knows.
    """

    columns: list[str] | None
    read: Callable[[Any], Row]
    raw: Iterator[tuple[int, _Raw, int]]
    size: int | None = None

    def chunks(self) -> Iterator[Chunk]:
        """Return all rows."""
        first, rows, begin = 1, list[tuple[int, _Raw]](), 0
        for line, raw, end in self.raw:
            rows.append((line, raw))
            if len(rows) == _ROWS or end - begin > _CHUNK_BYTES:
                yield Chunk(first, rows, end)
                first, rows, begin = first + len(rows), [], end
        if rows:
            yield Chunk(first, rows, end)


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
    file = Path(path)
    if path == "-":
        if sys.stdin is None:
            msg = "there are no rows: standard input is closed"
            raise RowsError(msg)
        yield _text_table(sys.stdin.buffer, "", None)
        return
    try:
        stream = file.open("rb")
    except OSError as error:
        msg = f"{path!r} cannot be read: {error.strerror}"
        raise RowsError(msg) from None
    with stream:
        suffix = file.suffix.lower()
        size = file.stat().st_size if file.is_file() else None
        yield _arrow_table(file) if suffix in _ARROW else _text_table(stream, suffix, size)


def _text_table(stream: BinaryIO, suffix: str, size: int | None) -> Table:
    if suffix not in _TEXT:
        assert isinstance(stream, BufferedReader)  # noqa: S101 (both are)
        beginning = stream.peek(1).removeprefix(b"\xef\xbb\xbf").lstrip()
        suffix = ".jsonl" if beginning.startswith(b"{") else ".csv"
    lines = _lines(stream)
    if suffix in (".jsonl", ".ndjson"):
        return Table(None, _from_json, _json_rows(lines), size)
    return _csv_table(lines, "\t" if suffix == ".tsv" else ",", size)


class _TextLine(Struct, frozen=True):
    number: int
    data: bytes
    end: int
    is_too_long: bool = False


def _lines(stream: BinaryIO) -> Iterator[_TextLine]:
    """The lines of a file. Of one that is too long, the beginning."""
    number, end = 0, 0
    while data := stream.readline(_MAX_LINE + 1):
        number, end, rest = number + 1, end + len(data), data
        while not rest.endswith(b"\n") and (rest := stream.readline(_MAX_LINE)):
            end += len(rest)
        if number == 1:
            data = data.removeprefix(b"\xef\xbb\xbf")
        yield _TextLine(number, data, end, is_too_long=len(data) > _MAX_LINE)


def _json_rows(lines: Iterable[_TextLine]) -> Iterator[tuple[int, _Raw, int]]:
    for line in lines:
        if line.is_too_long:
            yield line.number, _too_long(), line.end
        elif not line.data.isspace():
            yield line.number, line.data, line.end


def _from_json(raw: bytes) -> Row:
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
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        msg = f"the header names {', '.join(map(repr, twice))} twice: name each column once"
        raise RowsError(msg)
    return Table(header, partial(_from_cells, header), _csv_rows(reader, position), size)


class _Position:
    """The lines of a table as text, and how far they were read."""

    def __init__(self, lines: Iterable[_TextLine]) -> None:
        self._lines = iter(lines)
        self.number = self.end = 0

    def __iter__(self) -> "_Position":
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.number, self.end = line.number, line.end
        return _TOO_LONG if line.is_too_long else line.data.decode("utf-8", "surrogateescape")


def _csv_rows(reader: Iterator[list[str]], position: _Position) -> Iterator[tuple[int, _Raw, int]]:
    while True:
        line = position.number + 1
        raw: _Raw
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
    try:
        "".join(cells).encode()
    except UnicodeEncodeError:
        msg = "is no UTF-8: save the table as UTF-8"
        raise _fault(msg) from None
    return dict(zip(header, cells, strict=True))


def _fault(reason: str) -> RowError:
    return RowError.of(f"the line {reason}")


def _too_long() -> RowError:
    return _fault(f"is longer than {_MAX_LINE:,} bytes")


def _arrow_table(file: Path) -> Table:
    """A file of typed columns, by pyarrow or by Polars, whichever is there."""
    for opened in (_by_pyarrow, _by_polars):
        try:
            columns, count, rows = opened(file)
        except ModuleNotFoundError:
            continue
        except Exception as error:  # noqa: BLE001 (each has exceptions of its own for a file that it cannot read)
            msg = f"{str(file)!r} cannot be read: {error}"
            raise RowsError(msg) from None
        return Table(columns, dict, _numbered(rows, file), count)
    from promptkit.errors.distribution import install_command

    msg = f"to read {file.suffix[1:]}, run: {install_command('batch')}"
    raise RowsError(msg)


def _numbered(rows: Iterator[Row], file: Path) -> Iterator[tuple[int, _Raw, int]]:
    try:
        for number, row in enumerate(rows, 1):
            yield number, row, number
    except Exception as error:  # noqa: BLE001 (as for opening)
        msg = f"{str(file)!r} cannot be read to its end: {error}"
        raise RowsError(msg) from None


def _by_pyarrow(file: Path) -> tuple[list[str], int, Iterator[Row]]:
    import pyarrow.dataset  # type: ignore[import-untyped]

    table = pyarrow.dataset.dataset(file.absolute(), format=_ARROW[file.suffix.lower()])
    names, batches = table.schema.names, table.to_batches(batch_size=_TYPED_ROWS)
    return names, table.count_rows(), (row for batch in batches for row in rows_of(batch, names))


def _by_polars(file: Path) -> tuple[list[str], int, Iterator[Row]]:
    import polars as pl

    scan = pl.scan_parquet if _ARROW[file.suffix.lower()] == "parquet" else pl.scan_ipc
    table = scan(file.absolute())
    count = table.select(pl.len()).collect().item()
    slices = (table.slice(start, _TYPED_ROWS).collect() for start in range(0, count, _TYPED_ROWS))
    return (
        table.collect_schema().names(),
        count,
        (row for part in slices for row in part.iter_rows(named=True)),
    )


#: What each suffix stands for.
_TEXT: Final = frozenset({".csv", ".tsv", ".jsonl", ".ndjson"})
_ARROW: Final = {".parquet": "parquet", ".arrow": "ipc", ".feather": "feather", ".ipc": "ipc"}
