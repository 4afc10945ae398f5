"""Rows of a table, and the mapping of its columns to the parameters of a prompt."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, time
from typing import Any, Final, Self, TypeAlias

import attrs
import msgspec
from msgspec import Struct

from promptkit.catalog.arguments import Argument, Arguments
from promptkit.errors.exceptions import ArgumentsError, InvalidArgument, PromptkitError
from promptkit.errors.suggestions import nearest
from promptkit.types.unstructuring import json_of

#: What is sent as it is; lists and objects may hold what is not JSON.
_SENT: Final = frozenset({str, int, float, bool})
_PARTED: Final = frozenset({list, dict})


#: How many columns an error has at most.
_LISTED: Final = 20


class ColumnError(PromptkitError, ValueError):
    """
    A table's columns cannot be what a prompt takes.

    Args:
        message:
            What is wrong, and what to write.
    """


class RowError(PromptkitError, ValueError):
    """
    No request can be made of one row.

    Args:
        errors:
            What is wrong with each value; where it is no value, the fault names no argument.
    """

    def __init__(self, errors: tuple[InvalidArgument, ...]) -> None:
        super().__init__(errors)
        self.errors = errors

    @classmethod
    def of(cls, reason: str) -> Self:
        """
        Return the error of a row as a whole.
        """
        return cls((InvalidArgument("", reason),))

    @property
    def told(self) -> list[tuple[str | None, str]]:
        """
        The argument of each fault, if it is about one, and what is wrong, as UTF-8 can write it.
        """
        said = [(one.argument or None, str(one) if one.argument else one.reason) for one in self.errors]
        return [(name, text.encode(errors="backslashreplace").decode()) for name, text in said]

    def __str__(self) -> str:
        return "; ".join(text for _, text in self.told)


def listed(columns: Sequence[str]) -> str:
    """Return the names of columns for an error: the first of them if there are many."""
    names = ", ".join(map(repr, columns[:_LISTED]))
    return f"{names}, and {len(columns) - _LISTED:,} more" if len(columns) > _LISTED else names


def check_key(key: str | None, columns: Sequence[str]) -> None:
    """
    Check that a table has the column that identifies its rows, if one does.

    Raises:
        ColumnError: With the columns that there are.
    """
    if key is not None and key not in columns:
        msg = f"there is no column {key!r}, which is the key; there are {listed(columns)}"
        raise ColumnError(msg)


@attrs.frozen
class Columns:
    """
    Which column each parameter is read from, and what is the same for every row.

    Args:
        arguments:
            What the prompt takes.

        pairs:
            The columns, each with its parameter.

        fixed:
            What has one value for all rows, by parameter.
    """

    arguments: Arguments
    pairs: tuple[tuple[str, Argument], ...]
    fixed: Mapping[str, Any]

    @classmethod
    def of(cls, arguments: Arguments, renamed: Mapping[str, str], fixed: Mapping[str, Any]) -> Self:
        """
        Find the column of each parameter: it has the parameter's name, unless it is renamed.

        Args:
            arguments:
                What the prompt takes.

            renamed:
                Parameters by the columns that they are read from.

            fixed:
                Values by parameter, as a client sends them.

        Raises:
            ColumnError: If there is no such parameter, or one has two columns, or a column and a value.

            ArgumentsError: If a fixed value has the wrong type.
        """
        for name in (*renamed.values(), *fixed):
            if name not in arguments.by_name:
                meant = nearest(name, arguments.by_name)
                hint = f"did you mean {meant!r}?" if meant else f"it has {', '.join(arguments.by_name)}"
                msg = f"prompt {arguments.owner!r} has no argument {name!r}; {hint}"
                raise ColumnError(msg)
        columns: dict[str, str] = {}
        for column, name in renamed.items():
            if name in columns or name in fixed:
                other = repr(columns[name]) if name in columns else "a value for all rows"
                msg = f"argument {name!r} has both {other} and column {column!r}: leave out one"
                raise ColumnError(msg)
            columns[name] = column
        found = (one for one in arguments.ordered if one.name not in fixed)
        made = cls(arguments, tuple((columns.get(one.name, one.name), one) for one in found), fixed)
        made._check_fixed()
        return made

    def _check_fixed(self) -> None:
        try:
            self.arguments.read(self.fixed)
        except ArgumentsError as error:
            faults = tuple(fault for fault in error.errors if fault.argument in self.fixed)
            if faults:
                raise ArgumentsError(error.prompt, faults, error.kind) from None

    def check(self, columns: Iterable[str], key: str | None) -> None:
        """
        Check that a table has a column for everything that is required.

        Args:
            columns:
                Their names.

            key:
                The column that identifies rows; None if none does.

        Raises:
            ColumnError: With those that are missing, and those that there are.
        """
        there = list(columns)
        check_key(key, there)
        needed = [column for column, one in self.pairs if one.required or column != one.name]
        names = set(there)
        missing = [column for column in needed if column not in names]
        if missing:
            msg = (
                f"there is no column {', '.join(map(repr, missing))}, which prompt {self.arguments.owner!r} "
                f"needs; there are {listed(there)}: map one of them to it"
            )
            raise ColumnError(msg)

    def given(self, row: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """
        Return what a row has for the parameters: as a client would send it, and as it is, where types agree.

        None is what is not given.

        Args:
            row:
                Values by column.

        Raises:
            RowError: If a value is of a type that nothing reads.
        """
        sent, typed = dict(self.fixed), {}
        for column, argument in self.pairs:
            value = row.get(column)
            if value is None:
                continue
            name, kind = argument.name, type(value)
            if kind in _SENT:
                sent[name] = value
            elif kind in _PARTED or (found := _typed(value, argument.annotation)) is None:
                sent[name] = _as_json(value, name)
            else:
                typed[name] = found
        return sent, typed


def _typed(value: Any, annotation: Any) -> Any:
    """A value that has the type, or None: without an offset, a time may be one of the author's zone."""
    with suppress(msgspec.ValidationError, TypeError, ValueError):
        if not (isinstance(value, datetime) and value.tzinfo is None):
            return msgspec.convert(value, annotation)
        if value.time() == time():  # some tables have no dates
            return msgspec.convert(value.date(), annotation)
    return None


def _as_json(value: Any, name: str) -> Any:
    with suppress(TypeError, ValueError):
        if not isinstance(value, bytes):  # whose base64 nobody means as text
            return json_of(value.tolist() if hasattr(value, "tolist") else value)
    fault = f"is a {type(value).__name__}, which is no argument: send text, or JSON"
    raise RowError((InvalidArgument(name, fault),))


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
