"""Reading rows from the tables of data engines, and adding columns to those tables."""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

#: The name of the added column that contains messages. All other added columns contain text.
MESSAGES: Final = "messages"

_Rows: TypeAlias = Sequence[Mapping[str, Any]]
_Columns: TypeAlias = Mapping[str, list[Any]]


class _TableKind(Struct, frozen=True):
    """The functions for one kind of table."""

    #: Returns the column names of a table.
    names: Callable[[Any], list[str]]
    #: Returns the rows of a table, restricted to the given columns.
    rows: Callable[[Any, list[str]], _Rows]
    #: Returns a table to which the given columns were added, replacing columns with the same names.
    with_columns: Callable[[Any, _Columns], Any]


def to_supported_table(table: Any) -> Any:
    """
    Return *table* if its kind is supported; otherwise, build a pyarrow Table from its Arrow stream.

    Raises:
        TypeError: If *table* is neither a supported table nor an object with an Arrow stream.

    See Also:
        https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html
    """
    if _kind_of(table) is not None:
        return table
    if hasattr(table, "__arrow_c_stream__"):
        import pyarrow as pa  # type: ignore[import-untyped]

        return pa.table(table)
    if isinstance(table, Sequence) and not isinstance(table, str | bytes):
        return table
    msg = (
        f"an object of type {type(table).__name__} is not a table: pass a pyarrow Table, a Polars or pandas "
        f"DataFrame, or a list of mappings"
    )
    raise TypeError(msg)


def columns_of(table: Any) -> list[str] | None:
    """
    Return the column names of a supported table.

    Return None for a list of mappings, in which each row has its own columns.
    """
    kind = _kind_of(table)
    return None if kind is None else kind.names(table)


def rows_of(table: Any, columns: Collection[str]) -> _Rows:
    """
    Return the rows of a supported table, restricted to *columns*.

    A list of mappings is returned unchanged, with all columns.
    """
    kind = _kind_of(table)
    if kind is None:
        return table  # type: ignore[no-any-return]  # a list of mappings
    requested = frozenset(columns)
    names = [name for name in kind.names(table) if name in requested]
    return kind.rows(table, names) if names else [{}] * len(table)  # some tables need a column to have rows


def with_columns(table: Any, columns: _Columns) -> Any:
    """Add *columns* to a supported table, replacing columns with the same names, and return the result."""
    kind = _kind_of(table)
    return _add_columns_to_mappings(table, columns) if kind is None else kind.with_columns(table, columns)


def _kind_of(table: Any) -> _TableKind | None:
    """Return the kind of a table; None for a list of mappings."""
    names = ((cls.__module__.partition(".")[0], cls.__name__) for cls in type(table).__mro__)
    return next((_KINDS[name] for name in names if name in _KINDS), None)


def _add_columns_to_mappings(rows: Any, columns: _Columns) -> list[dict[str, Any]]:
    added = zip(*columns.values(), strict=True)
    return [
        {**row, **dict(zip(columns, values, strict=True))} for row, values in zip(rows, added, strict=True)
    ]


def _arrow_rows(table: Any, names: list[str]) -> _Rows:
    arrow = sys.modules["pyarrow"]
    selected = table.select(names)
    fields = [field.with_type(_reduce_to_microseconds(arrow, field.type)) for field in selected.schema]
    # Python's types have no nanoseconds, so they are truncated.
    selected = selected.cast(arrow.schema(fields), safe=False)
    return selected.to_pylist(maps_as_pydicts="strict")  # type: ignore[no-any-return]  # a list of mappings


def _reduce_to_microseconds(arrow: Any, data_type: Any) -> Any:
    """Return the Arrow type with microseconds in place of nanoseconds; return any other type unchanged."""
    if getattr(data_type, "unit", None) != "ns":
        return data_type
    if arrow.types.is_timestamp(data_type):
        return arrow.timestamp("us", data_type.tz)
    return arrow.duration("us") if arrow.types.is_duration(data_type) else arrow.time64("us")


def _add_arrow_columns(table: Any, columns: _Columns) -> Any:
    arrow = sys.modules["pyarrow"]
    text = arrow.string()
    messages = arrow.list_(arrow.struct([("role", text), ("content", text)]))
    for name, values in columns.items():
        column = arrow.array(values, messages if name == MESSAGES else text)
        index = table.schema.get_field_index(name)
        table = table.append_column(name, column) if index < 0 else table.set_column(index, name, column)
    return table


def prepend_text_column(batch: Any, name: str, values: list[str | None]) -> Any:
    """Return an Arrow record batch with a text column inserted before the existing columns."""
    arrow = sys.modules["pyarrow"]
    columns = [arrow.array(values, arrow.string()), *batch.columns]
    return arrow.RecordBatch.from_arrays(columns, [name, *batch.schema.names])


def _polars_rows(table: Any, names: list[str]) -> _Rows:
    frame = table if hasattr(table, "iter_rows") else table.struct.unnest()
    return frame.select(names).rows(named=True)  # type: ignore[no-any-return]  # a list of mappings


def _polars_names(table: Any) -> list[str]:
    return table.columns if hasattr(table, "columns") else table.struct.fields  # type: ignore[no-any-return]


def _add_polars_columns(table: Any, columns: _Columns) -> Any:
    polars = sys.modules["polars"]
    messages = polars.List(polars.Struct({"role": polars.String, "content": polars.String}))
    series = [
        polars.Series(name, values, dtype=messages if name == MESSAGES else polars.String)
        for name, values in columns.items()
    ]
    if hasattr(table, "with_columns"):
        return table.with_columns(series)
    return polars.DataFrame(series).to_struct(table.name)


def _pandas_rows(frame: Any, names: list[str]) -> _Rows:
    columns = [_python_values(frame[name]) for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _python_values(column: Any) -> list[Any]:
    """
    Return the values of a pandas column as Python objects.

    Missing values become None, and pandas' timestamps and timedeltas become those of the standard library.
    """
    values: list[Any] = column.astype(object).where(column.notna(), None).tolist()
    if column.dtype.kind == "M":
        return [None if value is None else value.to_pydatetime(warn=False) for value in values]
    if column.dtype.kind == "m":
        return [None if value is None else value.to_pytimedelta() for value in values]
    return values


def _add_pandas_columns(frame: Any, columns: _Columns) -> Any:
    pandas = sys.modules["pandas"]
    return frame.assign(
        **{name: pandas.Series(values, frame.index, dtype=object) for name, values in columns.items()}
    )


_ARROW: Final = _TableKind(lambda table: table.schema.names, _arrow_rows, _add_arrow_columns)
_POLARS: Final = _TableKind(_polars_names, _polars_rows, _add_polars_columns)

#: The supported kinds of tables, keyed by the package and name of the class, or of one of its base classes.
_KINDS: Final[dict[tuple[str, str], _TableKind]] = {
    ("pyarrow", "Table"): _ARROW,
    ("pyarrow", "RecordBatch"): _ARROW,
    ("polars", "DataFrame"): _POLARS,
    ("polars", "Series"): _POLARS,
    ("pandas", "DataFrame"): _TableKind(list, _pandas_rows, _add_pandas_columns),
}
