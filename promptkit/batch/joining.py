"""Joining the results of a batch, which can be in any order, with the rows of its table."""

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
from promptkit.batch.tables import RowsError, Table, explain_read_errors, parse_row
from promptkit.batch.vendor_formats import row_number_of
from promptkit.batch.workers import Rejection
from promptkit.files.folder import Folder
from promptkit.files.reading import open_regular_file

#: The suffixes of result files in a folder. Bedrock appends .out to the name of the request file.
_SUFFIXES: Final = (".jsonl", ".jsonl.out")

#: The fields that can contain the identifier of a result.
_IDENTIFIERS: Final = ("custom_id", "key", "recordId")

#: The fields that can wrap an answer, from the outermost to the innermost.
_WRAPPERS: Final = ("result", "response", "body", "message", "modelOutput")

#: The maximum size of a line in a result file, in bytes. Some vendors repeat the request next to its answer.
_MAX_LINE: Final = 64 * 1024 * 1024

#: The stop reasons that indicate a complete answer, in lowercase.
_COMPLETE: Final = frozenset({"stop", "end_turn", "stop_sequence", "completed", "eos", "eos_token"})

_CREATE_TABLES: Final = """
CREATE TABLE results (key TEXT PRIMARY KEY, answer TEXT, error TEXT, used INTEGER DEFAULT 0) WITHOUT ROWID;
CREATE TABLE rejected (line TEXT, key TEXT, reason TEXT);
CREATE INDEX lines ON rejected (line);
"""

#: Inserts a result. If several results have the same key, the first one with an answer is kept.
_INSERT_RESULT: Final = """
INSERT INTO results (key, answer, error) VALUES (?, ?, ?)
ON CONFLICT (key) DO UPDATE SET answer = excluded.answer, error = excluded.error WHERE error IS NOT NULL
"""

#: Selects the reasons why the row with a given line and key was rejected.
_SELECT_REASONS: Final = """
SELECT reason FROM rejected WHERE line = ?1 AND (key IS NULL OR ?2 IS NULL OR key = ?2) ORDER BY rowid
"""


class Results:
    """
    The results of a batch, and the reasons why rows were rejected.

    Args:
        database:
            A temporary database that contains the results and the rejected rows.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def take(self, key: Any) -> tuple[str | None, str | None] | None:
        """
        Return the answer and the error recorded for a row; None if the row has no result.

        *key* is the row's key or number. Each result can be taken only once: for a later row with the same
        key, return an error instead of the answer.
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

    def explain_rejection(self, line: int, key: str | None) -> str | None:
        """Return an error message with the reasons why a row was rejected; None if it was not rejected."""
        reasons = [reason for (reason,) in self._database.execute(_SELECT_REASONS, (str(line), key))]
        return f"the batch rejected the row: {'; '.join(reasons)}" if reasons else None

    def find_unused_results(self, limit: int) -> tuple[int, list[str]]:
        """Return the number of results that were not taken for any row, and at most *limit* of their keys."""
        (count,) = self._database.execute("SELECT count(*) FROM results WHERE NOT used").fetchone()
        keys = self._database.execute("SELECT key FROM results WHERE NOT used LIMIT ?", (limit,))
        return count, [key for (key,) in keys]


@contextmanager
def open_results(results: Path, batch: Folder, *, by_number: bool) -> Iterator[Results]:
    """
    Read the results of a batch into a temporary database, and yield them as `Results`.

    Args:
        results:
            A file of results from a vendor, or a folder of such files.

        batch:
            The folder of the batch, from which the rejected rows are read.

        by_number:
            Whether rows are identified by their numbers instead of by a column.

    Raises:
        RowsError: If a file cannot be read, a line is invalid, or a folder contains no result files.

        sqlite3.Error: If the results cannot be stored in the database.
    """
    with closing(sqlite3.connect("")) as database:
        database.executescript(_CREATE_TABLES)
        database.executemany(_INSERT_RESULT, _read_results(results, by_number=by_number))
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
            The name of the column that identifies rows; None if rows are identified by their numbers.

        parse:
            A function that parses an answer, or raises `AnswerError`; None if answers are only text.

    Returns:
        For each row, a dictionary of its line number (``line``), its values (``row``), the text of its answer
        (``answer``) and its error (``error``). With *parse*, the dictionary also contains the parsed answer
        (``parsed``). If a row has no result, or its answer is incomplete or invalid, ``error`` describes the
        problem. If a row has several results, the first one with an answer is used.

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
                row = parse_row(raw, table.parse)
                if key is None:
                    answer, error = results.take(number) or (None, results.explain_rejection(line, None))
                elif row.get(key) in (None, ""):
                    error = "the row has no key"
                # A rejected row can have the same key as a valid row.
                elif (error := results.explain_rejection(line, key_text(row[key]))) is None:
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
    """Yield the line, the key and the reason for each error in a rejected row of the batch."""
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
                msg = f"{path!r} has no rejected row at byte {position:,}: specify the batch's folder with -o"
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
                    answer, error = None, f"the result cannot be parsed: {too_deep}"
                yield _require_row_number(identifier, name) if by_number else identifier, answer, error


def _find_files(results: Path) -> dict[str, Callable[[], BinaryIO]]:
    """Return a function that opens each result file, keyed by the file's path."""
    with explain_read_errors(str(results), OSError):
        if not results.is_dir():
            return {str(results): partial(open_regular_file, results)}
        folder = Folder.named(results)
        names = [name for name, _ in folder.entries() if name.endswith(_SUFFIXES) and name != REJECTED]
    if not names:
        msg = f"{str(results)!r} contains no result files, whose names must end with {' or '.join(_SUFFIXES)}"
        raise RowsError(msg)
    return {str(results / name): partial(folder.open_for_reading, name) for name in names}


def _read_lines(file: BinaryIO, name: str) -> Iterator[tuple[int, bytes]]:
    """Yield the byte offset and the content of each line of a result file, except for blank lines."""
    position = 0
    while line := file.readline(_MAX_LINE + 1):
        if len(line) > _MAX_LINE:
            msg = f"the line at byte {position:,} of {name!r} is longer than {_MAX_LINE:,} bytes"
            raise RowsError(msg)
        if not line.isspace():
            yield position, line
        position += len(line)


def _parse_result(line: bytes, file: str, position: int) -> tuple[dict[str, Any], str]:
    try:
        result = msgspec.json.decode(line.removeprefix(BOM_UTF8), type=dict[str, Any])
        return result, next(str(result[name]) for name in _IDENTIFIERS if name in result)
    except (ValueError, RecursionError, StopIteration):
        expected = f"each line must be a JSON object with one of the fields {', '.join(_IDENTIFIERS)}"
        msg = f"{file!r} has no result at byte {position:,}: {expected}"
        raise RowsError(msg) from None


def _require_row_number(identifier: str, file: str) -> str:
    number = row_number_of(identifier)
    if number is None:
        msg = (
            f"the identifier {identifier!r} in {file!r} does not contain a row number: specify the key "
            "column with --key"
        )
        raise RowsError(msg)
    return number


def answer_of(result: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """
    Return the text of a model's answer if it is complete, and otherwise an error.

    Args:
        result:
            One line of a vendor's result file.

    Returns:
        A pair of the answer and the error, one of which is None.
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
    return None, f"the result does not contain an answer: {msgspec.json.encode(current).decode()[:200]}"


def _stop_reason(result: Any) -> tuple[str, str] | None:
    """
    Return the name and the value of the field that contains the first answer's stop reason.

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
            yield from _texts_of_parts(parts)
        case {"output": [*items]}:
            for item in items:
                match item:
                    case {"type": "message", "content": [*parts]}:
                        yield from _texts_of_parts(parts)


def _texts_of_parts(parts: Iterable[Any]) -> Iterator[str]:
    for part in parts:
        match part:
            case {"thought": True}:  # Gemini's summary of its reasoning
                continue
            case {"text": str(text)}:
                yield text
