"""The tables of engines: their rows, and the same table with columns added."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

__all__ = ["ColumnTypes", "known_table", "rows_of", "with_columns"]

#: Columns by name: whether each holds messages; else it holds text.
ColumnTypes: TypeAlias = Mapping[str, bool]

_Rows: TypeAlias = Iterable[Mapping[str, Any]]
_Columns: TypeAlias = Mapping[str, list[Any]]


def known_table(table: Any) -> Any:
    """
    Return a table, or a pyarrow Table of what has Arrow's stream of another kind.

    Raises:
        TypeError: If it is no table.

    See Also:
        https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html
    """
    if _package_of(table) in _KINDS:
        return table
    if hasattr(table, "__arrow_c_stream__"):
        import pyarrow as pa  # type: ignore[import-untyped]

        return pa.table(table)
    if isinstance(table, Sequence) and not isinstance(table, str | bytes):
        return table
    msg = (
        f"a {type(table).__name__} is no table: give a pyarrow Table, a frame of Polars or pandas, or a list "
        "of mappings"
    )
    raise TypeError(msg)


def rows_of(table: Any) -> _Rows:
    """
    Return the rows of a known table. Raises TypeError if one is no mapping.
    """
    return _kind_of(table)[0](table)


def with_columns(table: Any, columns: _Columns, types: ColumnTypes) -> Any:
    """
    Return a known table with columns added, or replaced.
    """
    return _kind_of(table)[1](table, columns, types)


_Kind: TypeAlias = tuple[Callable[[Any], _Rows], Callable[[Any, _Columns, ColumnTypes], Any]]


def _package_of(table: Any) -> str:
    return type(table).__module__.partition(".")[0]


def _kind_of(table: Any) -> _Kind:
    return _KINDS.get(_package_of(table), (_list_rows, _list_with))


def _list_rows(rows: Any) -> _Rows:
    for row in rows:
        if not isinstance(row, Mapping):
            msg = f"a row is a mapping of column to value, not a {type(row).__name__}"
            raise TypeError(msg)
    return rows  # type: ignore[no-any-return]  # they were looked at


def _list_with(rows: Any, columns: _Columns, _: ColumnTypes) -> Any:
    added = zip(*columns.values(), strict=True)
    return [
        {**row, **dict(zip(columns, values, strict=True))} for row, values in zip(rows, added, strict=True)
    ]


def _arrow_rows(table: Any) -> _Rows:
    return table.to_pylist()  # type: ignore[no-any-return]  # it is a list of mappings


def _arrow_with(table: Any, columns: _Columns, types: ColumnTypes) -> Any:
    arrow = sys.modules["pyarrow"]
    text = arrow.string()
    messages = arrow.list_(arrow.struct([("role", text), ("content", text)]))
    for name, values in columns.items():
        if name in table.schema.names:
            table = table.drop_columns([name])
        table = table.append_column(name, arrow.array(values, messages if types[name] else text))
    return table


def _polars_rows(table: Any) -> _Rows:
    if hasattr(table, "iter_rows"):
        return table.iter_rows(named=True)  # type: ignore[no-any-return]  # it yields mappings
    return [row or {} for row in table.to_list()]  # of structs, some of which may be null


def _polars_with(table: Any, columns: _Columns, types: ColumnTypes) -> Any:
    polars = sys.modules["polars"]
    messages = polars.List(polars.Struct({"role": polars.String, "content": polars.String}))
    made = [
        polars.Series(name, values, dtype=messages if types[name] else polars.String)
        for name, values in columns.items()
    ]
    if hasattr(table, "with_columns"):
        return table.with_columns(made)
    return polars.DataFrame(made).to_struct(table.name)


def _pandas_rows(frame: Any) -> _Rows:
    whole = frame.astype(object)
    return whole.where(whole.notna(), None).to_dict("records")  # type: ignore[no-any-return]  # a list of them


def _pandas_with(frame: Any, columns: _Columns, _: ColumnTypes) -> Any:
    pandas = sys.modules["pandas"]
    return frame.assign(
        **{name: pandas.Series(values, frame.index, dtype=object) for name, values in columns.items()}
    )


#: By the package of the table: what reads its rows, and what adds columns.
_KINDS: Final[dict[str, _Kind]] = {
    "pyarrow": (_arrow_rows, _arrow_with),
    "polars": (_polars_rows, _polars_with),
    "pandas": (_pandas_rows, _pandas_with),
}
