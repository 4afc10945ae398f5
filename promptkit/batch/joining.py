"""The results of a batch, in any order, joined with its rows."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
from msgspec import Struct

from promptkit.batch.rows import RowError, RowsError, Table, check_key, row_of
from promptkit.batch.shards import Keys, KeysError
from promptkit.batch.tables import explain_read_errors
from promptkit.files.folder import Folder
from promptkit.files.reading import open_regular_file

#: Members with the identifier of a result.
_IDENTIFIERS: Final = ("custom_id", "key", "recordId")

#: The location that marks a result as used by a row.
_USED: Final = -1

#: Members that wrap the answer, from the outside in.
_WRAPPERS: Final = ("result", "response", "body", "message", "modelOutput")

#: The maximum size of a line of results, in bytes: some vendors repeat the request next to its answer.
_MAX_LINE: Final = 64 * 1024 * 1024


class _Results(Struct, frozen=True):
    """A file of results, and its name for error messages."""

    name: str
    file: BinaryIO


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
    """
    if table.columns is not None:
        check_key(key, table.columns)
    with ExitStack() as stack:
        files = _open_results(results, stack)
        locations = stack.enter_context(closing(Keys()))
        _index_results(files, locations, by_number=key is None)
        for number, line, raw in table.rows():
            yield {"line": line, **_join_row(table, raw, number if key is None else key, files, locations)}


def _open_results(results: Path, stack: ExitStack) -> list[_Results]:
    with explain_read_errors(str(results), OSError):
        if not results.is_dir():
            return [_Results(str(results), stack.enter_context(open_regular_file(results)))]
        folder = Folder.named(results)
        names = [name for name, _ in folder.entries() if name.endswith(".jsonl")]
    if not names:
        msg = f"{str(results)!r} has no results: no file in it ends with .jsonl"
        raise RowsError(msg)
    files = list[_Results]()
    for name in names:
        with explain_read_errors(str(results / name), OSError):
            files.append(_Results(str(results / name), stack.enter_context(folder.open_for_reading(name))))
    return files


def _join_row(
    table: Table, raw: Any, key: str | int, files: Sequence[_Results], locations: Keys
) -> dict[str, Any]:
    """Join one row, which is identified by its number or its key column."""
    row: Any = None
    try:
        row = row_of(raw, table.read)
        answer, error_message = _answer(key if isinstance(key, int) else row.get(key), files, locations)
    except RowError as error:
        answer, error_message = "", str(error)
    except KeysError:
        raise
    except Exception as error:  # noqa: BLE001 (an unusual row or result does not end the join)
        answer, error_message = "", f"the result cannot be read: {type(error).__name__}: {error}"
    return {"row": row, "answer": None if error_message else answer, "error": error_message}


def _answer(identifier: Any, files: Sequence[_Results], locations: Keys) -> tuple[str, str | None]:
    if identifier in (None, ""):
        return "", "it has no key"
    location = locations.location(str(identifier))
    if location is None:
        return "", "there is no result"
    if location == _USED:
        return "", "its key is that of an earlier row"
    answer = answer_of(_result_at(files, location))
    locations.replace(str(identifier), _USED)
    return answer


def _index_results(files: Sequence[_Results], locations: Keys, *, by_number: bool) -> None:
    """Store the location of each result: its file, and its position there."""
    for index, results in enumerate(files):
        for position, line in _lines(results):
            result, identifier = _parse_result(line, results.name, position)
            name = _row_number(identifier, results.name) if by_number else identifier
            location = position * len(files) + index
            if not locations.add(name, location) and _has_answer(result):
                locations.replace(name, location)


def _lines(results: _Results) -> Iterator[tuple[int, bytes]]:
    """Yield the non-blank lines of results with their positions."""
    position = 0
    with explain_read_errors(results.name, OSError):
        while line := results.file.readline(_MAX_LINE + 1):
            if len(line) > _MAX_LINE:
                msg = f"{results.name!r} has a line of more than {_MAX_LINE:,} bytes at byte {position:,}"
                raise RowsError(msg)
            if not line.isspace():
                yield position, line
            position += len(line)


def _has_answer(result: Mapping[str, Any]) -> bool:
    try:
        return answer_of(result)[1] is None
    except Exception:  # noqa: BLE001 (an unusual result; its row reports the error)
        return False


def _parse_result(line: bytes, file: str, position: int) -> tuple[dict[str, Any], str]:
    try:
        result = msgspec.json.decode(line, type=dict[str, Any])
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


def _result_at(files: Sequence[_Results], location: int) -> dict[str, Any]:
    position, index = divmod(location, len(files))
    file = files[index].file
    file.seek(position)
    return msgspec.json.decode(file.readline(_MAX_LINE), type=dict[str, Any])


def answer_of(result: Mapping[str, Any]) -> tuple[str, str | None]:
    """
    Return the text of a model's answer, and the error; the error is None if there is an answer.

    Args:
        result:
            One line of a vendor's results.
    """
    current: Any = result
    while isinstance(current, dict):
        if error := current.get("error"):
            return "", error if isinstance(error, str) else msgspec.json.encode(error).decode()
        inner = next((current[name] for name in _WRAPPERS if name in current), None)
        if inner is None:
            break
        current = inner
    texts = list(_texts(current))
    if texts:
        return "".join(texts), None
    return "", f"there is no answer in it: {msgspec.json.encode(current).decode()[:200]}"


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
