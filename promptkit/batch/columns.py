"""The mapping of a table's columns to the parameters of a prompt, and errors in rows."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, time
from typing import Any, Final, Self

import attrs
import msgspec

from promptkit.catalog.arguments import Argument, Arguments
from promptkit.errors.exceptions import ArgumentsError, InvalidArgument, PromptkitError
from promptkit.errors.suggestions import is_misspelling_of
from promptkit.types.unstructuring import json_of

#: Types whose values are sent unchanged, and types whose items might not be JSON-compatible.
_SCALARS: Final = frozenset({str, int, float, bool})
_CONTAINERS: Final = frozenset({list, dict})

#: The maximum number of names that an error message lists.
MAX_LISTED: Final = 20

#: The length to which keys are truncated in reports. No vendor accepts longer identifiers.
_MAX_KEY: Final = 512


class ColumnError(PromptkitError, ValueError):
    """
    A table's columns do not match a prompt's parameters.

    Args:
        message:
            A description of the problem, and how to fix it.
    """


class RowError(PromptkitError, ValueError):
    """
    A row is invalid or cannot be rendered.

    Args:
        errors:
            One error for each invalid value. An error about the row as a whole has an empty argument name.
    """

    def __init__(self, errors: tuple[InvalidArgument, ...]) -> None:
        super().__init__(errors)
        self.errors = errors

    @classmethod
    def of(cls, reason: str) -> Self:
        """Return an error about the row as a whole."""
        return cls((InvalidArgument("", reason),))

    @property
    def reasons(self) -> list[tuple[str | None, str]]:
        """
        The argument name and the message of each error, as text that can be encoded as UTF-8.

        The argument name is None for an error about the row as a whole.
        """
        messages = [
            (error.argument or None, str(error) if error.argument else error.reason) for error in self.errors
        ]
        return [(name, text.encode(errors="backslashreplace").decode()) for name, text in messages]

    def __str__(self) -> str:
        return "; ".join(text for _, text in self.reasons)


def format_names(names: Sequence[str], count: int | None = None) -> str:
    """
    Format names for an error message: the first few names, and the number of remaining ones.

    *count* is the total number of names; None if *names* contains all of them.
    """
    text, rest = ", ".join(map(repr, names[:MAX_LISTED])), (count or len(names)) - MAX_LISTED
    return f"{text}, and {rest:,} more" if rest > 0 else text


def check_key(key: str | None, columns: Sequence[str]) -> None:
    """
    Check that a table has the key column, unless *key* is None.

    Raises:
        ColumnError: If the column does not exist. The message lists the existing columns.
    """
    if key is not None and key not in columns:
        msg = f"the key column {key!r} does not exist; the columns are {format_names(columns)}"
        raise ColumnError(msg)


def key_text(value: Any) -> str | None:
    """
    Convert a row's key to text that can be encoded as UTF-8, truncated if it is long.

    Return None if the row has no key, or if the key cannot be converted to text.
    """
    try:
        return None if value is None else str(value)[:_MAX_KEY].encode(errors="backslashreplace").decode()
    except (ValueError, RecursionError):  # an int with too many digits, or a list that is nested too deeply
        return None


@attrs.frozen
class Columns:
    """
    The column for each of a prompt's arguments, and the values that are the same for every row.

    Args:
        arguments:
            The prompt's arguments.

        pairs:
            Pairs of a column name and the argument whose values it contains.

        fixed:
            The values that are the same for every row, keyed by argument name.

        key:
            The name of the column that identifies rows; None if there is no such column.
    """

    arguments: Arguments
    pairs: tuple[tuple[str, Argument], ...]
    fixed: Mapping[str, Any]
    key: str | None = None

    @classmethod
    def of(
        cls,
        arguments: Arguments,
        renamed: Mapping[str, str],
        fixed: Mapping[str, Any],
        key: str | None = None,
    ) -> Self:
        """
        Match columns to arguments by name, except for columns in *renamed*.

        Args:
            arguments:
                The prompt's arguments.

            renamed:
                The argument names for columns with different names, keyed by column name.

            fixed:
                The values that are the same for every row, keyed by argument name, in the form that clients
                send.

            key:
                The name of the column that identifies rows; None if there is no such column.

        Raises:
            ColumnError: If an argument does not exist, has two columns, or has both a column and a fixed
                value.

            ArgumentsError: If a fixed value is invalid.
        """
        for name in (*renamed.values(), *fixed):
            if name not in arguments.by_name:
                msg = (
                    f"prompt {arguments.owner!r} has no argument {name!r}; "
                    f"its arguments are {', '.join(arguments.by_name)}"
                )
                raise ColumnError(msg)
        columns: dict[str, str] = {}
        for column, name in renamed.items():
            if name in columns or name in fixed:
                other = f"column {columns[name]!r}" if name in columns else "a value for all rows"
                msg = f"argument {name!r} has both {other} and column {column!r}: remove one of them"
                raise ColumnError(msg)
            columns[name] = column
        unfixed = (argument for argument in arguments.ordered if argument.name not in fixed)
        matched = cls(
            arguments,
            tuple((columns.get(argument.name, argument.name), argument) for argument in unfixed),
            fixed,
            key,
        )
        matched._check_fixed_values()
        return matched

    def _check_fixed_values(self) -> None:
        try:
            self.arguments.read(self.fixed)
        except ArgumentsError as error:
            errors = tuple(invalid for invalid in error.errors if invalid.argument in self.fixed)
            if errors:
                raise ArgumentsError(error.prompt, errors, error.kind) from None

    def check(self, columns: Iterable[str]) -> None:
        """
        Check that a table has all required columns, and that no column name is probably misspelt.

        Args:
            columns:
                The names of the table's columns.

        Raises:
            ColumnError: If the key column or a required column is missing, or if a column name is probably
                misspelt. If columns are missing, the message lists the existing ones.
        """
        available = list(columns)
        check_key(self.key, available)
        names, unused = set(available), self.find_unused_columns(available)
        absent = [(column, argument) for column, argument in self.pairs if column not in names]
        missing = [column for column, argument in absent if argument.required or column != argument.name]
        if missing:
            msg = (
                f"prompt {self.arguments.owner!r} requires {', '.join(map(repr, missing))} from the table, "
                f"but the table's columns are {format_names(available)}: map one of them to the missing "
                f"argument"
            )
            raise ColumnError(msg)
        for expected, _ in absent:
            for column in unused:
                if is_misspelling_of(str(column).strip(), expected):
                    msg = (
                        f"the table has no column {expected!r}, but it has a similar column {column!r}: "
                        f"rename that column, map it to the argument, or set a value for all rows"
                    )
                    raise ColumnError(msg)

    def find_unused_columns(self, columns: Iterable[str]) -> list[str]:
        """Return the columns that contain neither the values of an argument nor the key."""
        used = {self.key, *(column for column, _ in self.pairs)}
        return [column for column in columns if column not in used]

    def extract_arguments(self, row: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """
        Return a row's arguments as two mappings, keyed by argument name.

        The first contains values in the form that clients send, including the values that are the same for
        every row. The second contains values that already have the argument's type. If the row contains None
        for an argument, both mappings omit the argument.

        Args:
            row:
                The row's values, keyed by column name.

        Raises:
            RowError: If a value's type is not supported.
        """
        sent, typed = dict(self.fixed), {}
        for column, argument in self.pairs:
            if (value := row.get(column)) is None:
                continue
            name, kind = argument.name, type(value)
            if kind in _SCALARS:
                sent[name] = value
            elif kind in _CONTAINERS or (value_typed := _convert_to_type(value, argument.annotation)) is None:
                sent[name] = _convert_to_json(value, name)
            else:
                typed[name] = value_typed
        return sent, typed


def _convert_to_type(value: Any, annotation: Any) -> Any:
    """
    Convert *value* to the annotated type, or return None if that is not possible.

    A naive datetime at midnight is converted as a date. For any other naive datetime, the result is None, so
    that the caller sends the datetime as text.
    """
    with suppress(msgspec.ValidationError, TypeError, ValueError):
        if not (isinstance(value, datetime) and value.tzinfo is None):
            return msgspec.convert(value, annotation)
        if value.time() == time():  # some data engines have no date type
            return msgspec.convert(value.date(), annotation)
    return None


def _convert_to_json(value: Any, name: str) -> Any:
    with suppress(TypeError, ValueError):
        if not isinstance(value, bytes):  # bytes would become base64, which would count as text
            return json_of(value.tolist() if hasattr(value, "tolist") else value)
    reason = f"has the unsupported type {type(value).__name__}: convert it to text or JSON"
    raise RowError((InvalidArgument(name, reason),))
