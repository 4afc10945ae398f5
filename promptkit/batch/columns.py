"""The mapping of a table's columns to the parameters of a prompt, and errors in rows."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, time
from typing import Any, Final, Self

import attrs
import msgspec

from promptkit.catalog.arguments import Argument, Arguments
from promptkit.errors.exceptions import ArgumentsError, InvalidArgument, PromptkitError
from promptkit.errors.suggestions import is_misspelt
from promptkit.types.unstructuring import json_of

#: Types whose values are sent unchanged, and types whose items might not be valid JSON.
_SCALARS: Final = frozenset({str, int, float, bool})
_CONTAINERS: Final = frozenset({list, dict})

#: The maximum number of names in an error message.
MAX_LISTED: Final = 20

#: The maximum length of a key in a report; no vendor accepts longer identifiers.
_MAX_KEY: Final = 512


class ColumnError(PromptkitError, ValueError):
    """
    A table's columns do not match a prompt's parameters.

    Args:
        message:
            The problem, and how to fix it.
    """


class RowError(PromptkitError, ValueError):
    """
    A row is invalid.

    Args:
        errors:
            One error per invalid value. An error about the row as a whole has an empty argument name.
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
        The argument and the message of each error, as text that UTF-8 can encode.

        The argument is None for an error about the row as a whole.
        """
        messages = [
            (error.argument or None, str(error) if error.argument else error.reason) for error in self.errors
        ]
        return [(name, text.encode(errors="backslashreplace").decode()) for name, text in messages]

    def __str__(self) -> str:
        return "; ".join(text for _, text in self.reasons)


def format_names(names: Sequence[str], count: int | None = None) -> str:
    """
    Format names for an error message: the first few, and the number of the remaining ones.

    *count* is the total number of names, if *names* does not contain all of them.
    """
    text, rest = ", ".join(map(repr, names[:MAX_LISTED])), (count or len(names)) - MAX_LISTED
    return f"{text}, and {rest:,} more" if rest > 0 else text


def check_key(key: str | None, columns: Sequence[str]) -> None:
    """
    Check that a table has the key column, if one is given.

    Raises:
        ColumnError: If the column does not exist; the message lists the columns.
    """
    if key is not None and key not in columns:
        msg = f"the key column {key!r} does not exist; the columns are {format_names(columns)}"
        raise ColumnError(msg)


def key_text(value: Any) -> str | None:
    """Return the key of a row as text that UTF-8 can encode, truncated if it is long; None without a key."""
    try:
        return None if value is None else str(value)[:_MAX_KEY].encode(errors="backslashreplace").decode()
    except (ValueError, RecursionError):  # a number with too many digits, or a list that is nested too deeply
        return None


@attrs.frozen
class Columns:
    """
    The column of each parameter, and the values that are the same for every row.

    Args:
        arguments:
            The prompt's arguments.

        pairs:
            The columns, each with its argument.

        fixed:
            Values for all rows, by parameter.

        key:
            The column that identifies rows, if any.
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
        Match columns to parameters by name, unless a column is renamed.

        Args:
            arguments:
                The prompt's arguments.

            renamed:
                Parameters by column, for columns whose names differ.

            fixed:
                Values by parameter, as a client sends them.

            key:
                The column that identifies rows, if any.

        Raises:
            ColumnError: If a parameter does not exist, has two columns, or has both a column and a value.

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
                other = repr(columns[name]) if name in columns else "a value for all rows"
                msg = f"argument {name!r} has both {other} and column {column!r}: remove one"
                raise ColumnError(msg)
            columns[name] = column
        unfixed = (argument for argument in arguments.ordered if argument.name not in fixed)
        matched = cls(
            arguments,
            tuple((columns.get(argument.name, argument.name), argument) for argument in unfixed),
            fixed,
            key,
        )
        matched._check_fixed()
        return matched

    def _check_fixed(self) -> None:
        try:
            self.arguments.read(self.fixed)
        except ArgumentsError as error:
            errors = tuple(invalid for invalid in error.errors if invalid.argument in self.fixed)
            if errors:
                raise ArgumentsError(error.prompt, errors, error.kind) from None

    def check(self, columns: Iterable[str]) -> None:
        """
        Check that a table has all required columns, and no columns that are probably misspelt.

        Args:
            columns:
                The table's columns.

        Raises:
            ColumnError: If the key column or a required column is missing, or a column is probably misspelt.
                If columns are missing, the message lists the existing ones.
        """
        available = list(columns)
        check_key(self.key, available)
        names, unused = set(available), self.find_unused(available)
        absent = [(column, argument) for column, argument in self.pairs if column not in names]
        missing = [column for column, argument in absent if argument.required or column != argument.name]
        if missing:
            msg = (
                f"the table has no column {', '.join(map(repr, missing))} for prompt "
                f"{self.arguments.owner!r}; "
                f"its columns are {format_names(available)}: map one of them to the argument"
            )
            raise ColumnError(msg)
        for expected, _ in absent:
            for column in unused:
                if is_misspelt(str(column).strip(), expected):
                    msg = (
                        f"there is no column {expected!r}, but there is {column!r}: rename or map it, "
                        f"or set a value for all rows"
                    )
                    raise ColumnError(msg)

    def find_unused(self, columns: Iterable[str]) -> list[str]:
        """Return the columns that are neither arguments nor the key."""
        used = {self.key, *(column for column, _ in self.pairs)}
        return [column for column in columns if column not in used]

    def extract_arguments(self, row: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """
        Return the arguments of a row as two mappings.

        The first has values as a client sends them, including the values for all rows. The second has values
        that already have their parameter's type. If the row contains None for an argument, the argument is
        missing.

        Args:
            row:
                Values by column.

        Raises:
            RowError: If a value has an unsupported type.
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
    Convert a value to a type; return None if that fails.

    A naive datetime at midnight is converted as a date. Any other naive datetime is sent as text instead.
    """
    with suppress(msgspec.ValidationError, TypeError, ValueError):
        if not (isinstance(value, datetime) and value.tzinfo is None):
            return msgspec.convert(value, annotation)
        if value.time() == time():  # some tables lack a date type
            return msgspec.convert(value.date(), annotation)
    return None


def _convert_to_json(value: Any, name: str) -> Any:
    with suppress(TypeError, ValueError):
        if not isinstance(value, bytes):  # base64 would be treated as text
            return json_of(value.tolist() if hasattr(value, "tolist") else value)
    reason = f"has the unsupported type {type(value).__name__}: use text or JSON"
    raise RowError((InvalidArgument(name, reason),))
