"""The results of a batch, in any order, joined with its rows."""

import sqlite3
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from promptkit.batch.columns import check_key, key_text
from promptkit.batch.shards import REJECTED
from promptkit.batch.tables import RowsError, Table, explain_read_errors, row_of
from promptkit.batch.vendor_formats import row_number_of
from promptkit.batch.workers import Rejection
from promptkit.files.folder import Folder
from promptkit.files.reading import open_regular_file

#: The suffixes of result files in a folder. Bedrock appends .out to the name of the request file.
_SUFFIXES: Final = (".jsonl", ".jsonl.out")

#: Fields that can contain the identifier of a result.
_IDENTIFIERS: Final = ("custom_id", "key", "recordId")

#: Fields that wrap the answer, from the outside in.
_WRAPPERS: Final = ("result", "response", "body", "message", "modelOutput")

#: The maximum size of a line of results, in bytes. Some vendors repeat the request next to its answer.
_MAX_LINE: Final = 64 * 1024 * 1024

#: The stop reasons of complete answers, in lowercase.
_COMPLETE: Final = frozenset({"stop", "end_turn", "stop_sequence", "completed", "eos", "eos_token"})

_TABLES: Final = """
CREATE TABLE results (key TEXT PRIMARY KEY, answer TEXT, error TEXT, used INTEGER DEFAULT 0) WITHOUT ROWID;
CREATE TABLE rejected (line TEXT, key TEXT, reason TEXT);
CREATE INDEX lines ON rejected (line);
"""

#: Adds a result. Of several results with the same key, the first with an answer counts.
_ADD: Final = """
INSERT INTO results (key, answer, error) VALUES (?, ?, ?)
ON CONFLICT (key) DO UPDATE SET answer = excluded.answer, error = excluded.error WHERE error IS NOT NULL
"""

_REASONS: Final = """
SELECT reason FROM rejected WHERE line = ?1 AND (key IS NULL OR ?2 IS NULL OR key = ?2) ORDER BY rowid
"""


class Results:
    """
    The results of a batch by key, and its rejected rows.

    Args:
        database:
            A temporary database with the results and the rejected rows.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def take(self, key: Any) -> tuple[str | None, str | None] | None:
        """
        Return the answer and the error of a row's result; None if there is no result.

        A result can be taken once. For a later row with the same key, return an error.
        """
        query = "SELECT answer, error, used FROM results WHERE key = ?"
        result = self._database.execute(query, (str(key),)).fetchone()
        if result is None:
            return None
        answer, error, is_used = result
        if is_used:
            return None, "an earlier row has the same key"
        self._database.execute("UPDATE results SET used = 1 WHERE key = ?", (str(key),))
        return answer, error

    def rejection(self, line: int, key: str | None) -> str | None:
        """Return the reason why a row was rejected; None if it was not rejected."""
        reasons = [reason for (reason,) in self._database.execute(_REASONS, (str(line), key))]
        return f"the batch has rejected it: {'; '.join(reasons)}" if reasons else None

    def find_unused(self, limit: int) -> tuple[int, list[str]]:
        """Return the number of results that no row has taken, and at most *limit* of their keys."""
        (count,) = self._database.execute("SELECT count(*) FROM results WHERE NOT used").fetchone()
        keys = self._database.execute("SELECT key FROM results WHERE NOT used LIMIT ?", (limit,))
        return count, [key for (key,) in keys]


@contextmanager
def open_results(results: Path, batch: Folder, *, by_number: bool) -> Iterator[Results]:
    """
    Read the results of a batch into a temporary database, and yield them.

    Args:
        results:
            The file of a vendor's results, or a folder of such files.

        batch:
            The folder of the batch, whose rejected rows are read as well.

        by_number:
            Whether rows are identified by their numbers instead of a column.

    Raises:
        RowsError: If a line is invalid, or there are no results.

        sqlite3.Error: If the results cannot be stored on disk.
    """
    with closing(sqlite3.connect("")) as database:
        database.executescript(_TABLES)
        database.executemany(_ADD, _read_results(results, by_number=by_number))
        database.executemany("INSERT INTO rejected VALUES (?, ?, ?)", _read_rejected(batch))
        yield Results(database)


def join_results(
    table: Table, results: Results, key: str | None, parse: Callable[[str], Any] | None = None
) -> Iterator[dict[str, Any]]:
    """
    Yield each row with its answer.

    Args:
        table:
            The rows.

        results:
            The results of the batch.

        key:
            The column that identifies rows; None if rows are identified by their numbers.

        parse:
            Parses an answer, or raises `AnswerError`; None to return answers as text.

    Returns:
        For each row, its line number as ``line``, its values as ``row``, its ``answer`` as text, and its
        ``error``; with *parse*, also the ``parsed`` answer. Missing results, and incomplete or invalid
        answers, are errors. If a row has several results, a result with an answer is used.

    Raises:
        ColumnError: If the key column does not exist.

        RowsError: If the table cannot be read.
    """
    if table.columns is not None:
        check_key(key, table.columns)
    for chunk in table.chunks:
        for number, line, raw in chunk.iterate_rows():
            row, answer, parsed, error = None, None, None, None
            try:
                row = row_of(raw, table.parse)
                if key is None:
                    answer, error = results.take(number) or (None, results.rejection(line, None))
                elif row.get(key) in (None, ""):
                    error = "the row has no key"
                # A rejected row can have the same key as a valid row.
                elif (error := results.rejection(line, key_text(row[key]))) is None:
                    answer, error = results.take(row[key]) or (None, None)
                if answer is None and error is None:
                    error = "the row has no result"
                if answer is not None and parse is not None:
                    parsed = parse(answer)
            except (
                ValueError,
                RecursionError,
            ) as invalid:  # a `RowError`, an `AnswerError` or an invalid key
                error = str(invalid)
            parsed_column = {} if parse is None else {"parsed": parsed}
            yield {"line": line, "row": row, "answer": answer, **parsed_column, "error": error}


def _read_rejected(batch: Folder) -> Iterator[tuple[str, str | None, str]]:
    """Yield the line, the key and the reason of each row that the batch has rejected."""
    path = f"{batch.path.name}/{REJECTED}"
    with explain_read_errors(path, OSError), ExitStack() as stack:
        try:
            file = stack.enter_context(batch.open_for_reading(REJECTED))
        except FileNotFoundError:
            return
        for position, line in _read_lines(file, path):
            try:
                rejected = msgspec.json.decode(line, type=Rejection)
                number = str(rejected.line)
            except (ValueError, RecursionError):
                msg = f"{path!r} has no rejected row at byte {position:,}: name the batch with -o"
                raise RowsError(msg) from None
            yield number, rejected.key, rejected.reason


def _read_results(results: Path, *, by_number: bool) -> Iterator[tuple[str, str | None, str | None]]:
    """Yield the key, the answer and the error of each result."""
    for name, open_file in _find_files(results).items():
        with explain_read_errors(name, OSError), open_file() as file:
            for position, line in _read_lines(file, name):
                result, identifier = _parse_result(line, name, position)
                try:
                    answer, error = answer_of(result)
                except RecursionError as too_deep:
                    answer, error = None, f"the result cannot be read: {too_deep}"
                yield _row_number(identifier, name) if by_number else identifier, answer, error


def _find_files(results: Path) -> dict[str, Callable[[], BinaryIO]]:
    """Return functions that open the result files, by path."""
    with explain_read_errors(str(results), OSError):
        if not results.is_dir():
            return {str(results): partial(open_regular_file, results)}
        folder = Folder.named(results)
        names = [name for name, _ in folder.entries() if name.endswith(_SUFFIXES) and name != REJECTED]
    if not names:
        msg = f"{str(results)!r} has no results: no file in it ends with {' or '.join(_SUFFIXES)}"
        raise RowsError(msg)
    return {str(results / name): partial(folder.open_for_reading, name) for name in names}


def _read_lines(file: BinaryIO, name: str) -> Iterator[tuple[int, bytes]]:
    """Yield the non-blank lines of results with their positions."""
    position = 0
    while line := file.readline(_MAX_LINE + 1):
        if len(line) > _MAX_LINE:
            msg = f"{name!r} has a line of more than {_MAX_LINE:,} bytes at byte {position:,}"
            raise RowsError(msg)
        if not line.isspace():
            yield position, line
        position += len(line)


def _parse_result(line: bytes, file: str, position: int) -> tuple[dict[str, Any], str]:
    try:
        result = msgspec.json.decode(line.removeprefix(BOM_UTF8), type=dict[str, Any])
        return result, next(str(result[name]) for name in _IDENTIFIERS if name in result)
    except (ValueError, RecursionError, StopIteration):
        expected = f"each line must be a JSON object with one of {', '.join(_IDENTIFIERS)}"
        msg = f"{file!r} has no result at byte {position:,}: {expected}"
        raise RowsError(msg) from None


def _row_number(identifier: str, file: str) -> str:
    number = row_number_of(identifier)
    if number is None:
        msg = (
            f"{file!r} has the identifier {identifier!r}, which is not a row number: specify the key "
            "column with --key"
        )
        raise RowsError(msg)
    return number


def answer_of(result: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """
    Return the text of a model's complete answer, and None; or None, and the error.

    Args:
        result:
            One line of a vendor's results.
    """
    current: Any = result
    while isinstance(current, dict):
        if error := current.get("error"):
            return None, error if isinstance(error, str) else msgspec.json.encode(error).decode()
        inner = next((current[name] for name in _WRAPPERS if name in current), None)
        if inner is None:
            break
        current = inner
    if (stop := _stop_reason(current)) is not None and stop[1].lower() not in _COMPLETE:
        return None, f"the answer is incomplete: {stop[0]} is {stop[1]!r}"
    if texts := list(_texts(current)):
        return "".join(texts), None
    return None, f"the result has no answer: {msgspec.json.encode(current).decode()[:200]}"


def _stop_reason(result: Any) -> tuple[str, str] | None:
    """
    Return the name and the value of the field that contains the stop reason of the first answer.

    Return None if there is no such field.
    """
    match result:
        case {"choices": [{"finish_reason": str(reason)}, *_]}:
            return "finish_reason", reason
        case {"candidates": [{"finishReason": str(reason)}, *_]}:
            return "finishReason", reason
        case {"stop_reason": str(reason)}:
            return "stop_reason", reason
        case {"output": [*_], "incomplete_details": {"reason": str(reason)}}:
            return "incomplete_details.reason", reason
        case {"output": [*_], "status": str(reason)}:
            return "status", reason
    return None


def _texts(result: Any) -> Iterator[str]:
    """Yield the text of each part of the first answer."""
    match result:
        case {"choices": [{"message": {"content": str(text)}}, *_]}:
            yield text
        case {"candidates": [{"content": {"parts": [*parts]}}, *_]} | {"content": [*parts]}:
            yield from _parts(parts)
        case {"output": [*items]}:
            for item in items:
                match item:
                    case {"type": "message", "content": [*parts]}:
                        yield from _parts(parts)


def _parts(parts: Iterable[Any]) -> Iterator[str]:
    for part in parts:
        match part:
            case {"thought": True}:  # Gemini's thoughts
                continue
            case {"text": str(text)}:
                yield text
