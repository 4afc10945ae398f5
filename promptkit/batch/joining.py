"""The results of a batch, in any order, joined with its rows."""

import re
import sqlite3
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from promptkit.batch.rows import check_key
from promptkit.batch.tables import RowsError, Table, explain_read_errors, row_of
from promptkit.files.folder import Folder
from promptkit.files.reading import open_regular_file

#: Members with the identifier of a result.
_IDENTIFIERS: Final = ("custom_id", "key", "recordId")

#: Members that wrap the answer, from the outside in.
_WRAPPERS: Final = ("result", "response", "body", "message", "modelOutput")

#: The maximum size of a line of results, in bytes: some vendors repeat the request next to its answer.
_MAX_LINE: Final = 64 * 1024 * 1024

#: Adds a result. Of several with one key, the first that has an answer counts.
_ADD: Final = """
INSERT INTO results VALUES (?, ?, ?)
ON CONFLICT (key) DO UPDATE SET answer = excluded.answer, error = excluded.error WHERE error IS NOT NULL
"""


def joined(table: Table, results: Path, key: str | None) -> Iterator[dict[str, Any]]:
    """
    Yield each row with its answer.

    Args:
        table:
            The rows.

        results:
            The file with a vendor's results, or a folder of such files.

        key:
            The column that identifies rows; None if their numbers do.

    Returns:
        The row's values as ``row``, its ``answer`` as text, and its ``error``. Exactly one of ``answer`` and
        ``error`` is None. Missing results are errors. If a row has several results, a result with an answer
        is used.

    Raises:
        ColumnError: If the key column does not exist.

        RowsError: If a line of the results is invalid, or there are no results.

        sqlite3.Error: If the results cannot be stored on disk.
    """
    if table.columns is not None:
        check_key(key, table.columns)
    with closing(sqlite3.connect("")) as database:  # a temporary file
        database.execute("CREATE TABLE results (key TEXT PRIMARY KEY, answer TEXT, error TEXT) WITHOUT ROWID")
        database.executemany(_ADD, _results(results, by_number=key is None))
        for chunk in table.chunks:
            for number, line, raw in chunk.numbered():
                row, answer, error = None, None, None
                try:
                    row = row_of(raw, table.read)
                    answer, error = _take(database, number if key is None else row.get(key))
                except (ValueError, RecursionError) as unusual:  # a `RowError`, or an unusual key
                    error = str(unusual)
                yield {"line": line, "row": row, "answer": answer, "error": error}


def _results(results: Path, *, by_number: bool) -> Iterator[tuple[str, str | None, str | None]]:
    """Yield the key, the answer and the error of each result."""
    for name, open_file in _files(results).items():
        with explain_read_errors(name, OSError), open_file() as file:
            for position, line in _lines(file, name):
                result, identifier = _parse_result(line, name, position)
                try:
                    answer, error = answer_of(result)
                except RecursionError as unusual:
                    answer, error = None, f"the result cannot be read: {unusual}"
                yield _row_number(identifier, name) if by_number else identifier, answer, error


def _files(results: Path) -> dict[str, Callable[[], BinaryIO]]:
    """Return the files of results by their paths, as functions that open them."""
    with explain_read_errors(str(results), OSError):
        if not results.is_dir():
            return {str(results): partial(open_regular_file, results)}
        folder = Folder.named(results)
        names = [name for name, _ in folder.entries() if name.endswith(".jsonl")]
    if not names:
        msg = f"{str(results)!r} has no results: no file in it ends with .jsonl"
        raise RowsError(msg)
    return {str(results / name): partial(folder.open_for_reading, name) for name in names}


def _take(database: sqlite3.Connection, key: Any) -> tuple[str | None, str | None]:
    """Return the answer and the error for a row, and leave none for later rows with the same key."""
    if key in (None, ""):
        return None, "it has no key"
    found = database.execute("SELECT answer, error FROM results WHERE key = ?", (str(key),)).fetchone()
    if found is None:
        return None, "there is no result"
    used = "its key is that of an earlier row"
    database.execute("UPDATE results SET answer = NULL, error = ? WHERE key = ?", (used, str(key)))
    answer, error = found
    return answer, error


def _lines(file: BinaryIO, name: str) -> Iterator[tuple[int, bytes]]:
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
        expected = f"each line is an object with {' or '.join(_IDENTIFIERS)}"
        msg = f"{file!r} has no result at byte {position:,}: {expected}"
        raise RowsError(msg) from None


def _row_number(identifier: str, file: str) -> str:
    match = re.fullmatch(r"(\d+)-[0-9a-f]{16}", identifier)
    if match is None:
        msg = f"{file!r} has {identifier!r}, which is not a row number: name the key column with --key"
        raise RowsError(msg)
    return match[1]


def answer_of(result: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """
    Return the text of a model's answer, and the error; one of them is None.

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
    if texts := list(_texts(current)):
        return "".join(texts), None
    return None, f"there is no answer in it: {msgspec.json.encode(current).decode()[:200]}"


def _texts(result: Any) -> Iterator[str]:
    """Yield the texts of the first answer, in the order of its parts."""
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
