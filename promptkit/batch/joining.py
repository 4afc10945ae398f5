"""Joins the results of a batch, in whichever order they came, with the rows that the batch was made of."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
from msgspec import Struct

from promptkit.batch.rows import RowError, RowsError, Table, check_key, row_of
from promptkit.batch.shards import Keys, KeysError
from promptkit.errors.suggestions import near_file
from promptkit.files.folder import Folder
from promptkit.files.reading import open_regular_file

#: The members that have the identifier of a result.
_IDENTIFIERS: Final = ("custom_id", "key", "recordId")

#: Where the result of a row is that has its answer.
_TAKEN: Final = -1

#: The members that hold what came back, from the outside in.
_WRAPPERS: Final = ("result", "response", "body", "message", "modelOutput")

#: The longest line of results, in bytes: some vendors repeat the request next to its answer.
_MAX_LINE: Final = 64 * 1024 * 1024


class _Results(Struct, frozen=True):
    """A file of results, and its name in errors."""

    name: str
    file: BinaryIO


def joined(table: Table, results: Path, key: str | None) -> Iterator[dict[str, Any]]:
    """
    Yield each row with its answer.

    Args:
        table:
            The rows.

        results:
            The file of results that a vendor has written, or a folder of them.

        key:
            The column that identifies rows; None where they have their number.

    Returns:
        The row's values as ``row``, its ``answer`` as text, and its ``error``, of which one is None. A row
        without a result has an error that says so. Of several results of a row, one with an answer counts.

    Raises:
        ColumnError: If there is no such column.

        RowsError: If a line of the results is no result, or there are none.
    """
    if table.columns is not None:
        check_key(key, table.columns)
    with ExitStack() as opened:
        files = _opened(results, opened)
        places = opened.enter_context(closing(Keys()))
        _find(files, places, by_number=key is None)
        for number, line, raw in table.rows():
            yield {"line": line, **_joined(table, raw, number if key is None else key, files, places)}


def _opened(results: Path, opened: ExitStack) -> list[_Results]:
    with _reading(str(results)):
        if not results.is_dir():
            return [_Results(str(results), opened.enter_context(open_regular_file(results)))]
        folder = Folder.named(results)
        names = [name for name, _ in folder.entries() if name.endswith(".jsonl")]
    if not names:
        msg = f"{str(results)!r} has no results: no file in it ends with .jsonl"
        raise RowsError(msg)
    files = list[_Results]()
    for name in names:
        with _reading(str(results / name)):
            files.append(_Results(str(results / name), opened.enter_context(folder.open_for_reading(name))))
    return files


@contextmanager
def _reading(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        hint = near_file(name) if isinstance(error, FileNotFoundError) else ""
        msg = f"{name!r} cannot be read: {error.strerror or error}{hint}"
        raise RowsError(msg) from None


def _joined(
    table: Table, raw: Any, key: str | int, files: Sequence[_Results], places: Keys
) -> dict[str, Any]:
    """One row, which is known by its number, or by what it has in a column."""
    row: Any = None
    try:
        row = row_of(raw, table.read)
        answer, fault = _answer(key if isinstance(key, int) else row.get(key), files, places)
    except RowError as error:
        answer, fault = "", str(error)
    except KeysError:
        raise
    except Exception as error:  # noqa: BLE001 (one odd row or result does not end the others)
        answer, fault = "", f"the result cannot be read: {type(error).__name__}: {error}"
    return {"row": row, "answer": None if fault else answer, "error": fault}


def _answer(identifier: Any, files: Sequence[_Results], places: Keys) -> tuple[str, str | None]:
    if identifier in (None, ""):
        return "", "it has no key"
    place = places.place(str(identifier))
    if place is None:
        return "", "there is no result"
    if place == _TAKEN:
        return "", "its key is that of an earlier row"
    found = answer_of(_result_at(files, place))
    places.replace(str(identifier), _TAKEN)
    return found


def _find(files: Sequence[_Results], places: Keys, *, by_number: bool) -> None:
    """Keep where the result of each row is: which file, and where in it."""
    for number, results in enumerate(files):
        for position, line in _lines(results):
            result, identifier = _identified(line, results.name, position)
            name = _number_in(identifier, results.name) if by_number else identifier
            place = position * len(files) + number
            if not places.add(name, place) and _has_answer(result):
                places.replace(name, place)


def _lines(results: _Results) -> Iterator[tuple[int, bytes]]:
    """The lines of results that are not blank, each with its position."""
    position = 0
    with _reading(results.name):
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
    except Exception:  # noqa: BLE001 (a result of an odd shape; its row has the error)
        return False


def _identified(line: bytes, file: str, position: int) -> tuple[dict[str, Any], str]:
    try:
        result = msgspec.json.decode(line, type=dict[str, Any])
        return result, next(str(result[name]) for name in _IDENTIFIERS if name in result)
    except (ValueError, RecursionError, StopIteration):
        wanted = f"each line is an object with {' or '.join(_IDENTIFIERS)}"
        msg = f"{file!r} has no result at byte {position:,}: {wanted}"
        raise RowsError(msg) from None


def _number_in(identifier: str, file: str) -> str:
    found = re.fullmatch(r"(\d+)-[0-9a-f]{16}", identifier)
    if found is None:
        msg = f"{file!r} has {identifier!r}, which is no row's number: name the column of the key with --key"
        raise RowsError(msg)
    return found[1]


def _result_at(files: Sequence[_Results], place: int) -> dict[str, Any]:
    position, number = divmod(place, len(files))
    file = files[number].file
    file.seek(position)
    return msgspec.json.decode(file.readline(_MAX_LINE), type=dict[str, Any])


def answer_of(result: Mapping[str, Any]) -> tuple[str, str | None]:
    """
    Return the text that a model answered, and what went wrong; None if nothing did.

    Args:
        result:
            One line of a vendor's results.
    """
    found: Any = result
    while isinstance(found, dict):
        if error := found.get("error"):
            return "", error if isinstance(error, str) else msgspec.json.encode(error).decode()
        inner = next((found[name] for name in _WRAPPERS if name in found), None)
        if inner is None:
            break
        found = inner
    texts = list(_texts(found))
    if texts:
        return "".join(texts), None
    return "", f"there is no answer in it: {msgspec.json.encode(found).decode()[:200]}"


def _texts(found: Any) -> Iterator[str]:
    """The texts of the first answer, in the order of their parts."""
    match found:
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
            case {"thought": True}:  # Gemini's own notes
                continue
            case {"text": str(text)}:
                yield text
