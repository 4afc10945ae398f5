"""Joins the results of a batch, in whichever order they came, with the rows that the batch was made of."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from promptkit.batch.columns import RowError, check_key
from promptkit.batch.rows import RowsError, Table
from promptkit.batch.writing import Keys
from promptkit.errors.near_names import near_file

__all__ = ["answer_of", "joined"]

#: The members that have the identifier of a result.
_IDENTIFIERS: Final = ("custom_id", "key", "recordId")

#: Where the result of a row is that has its answer.
_TAKEN: Final = -1

#: The members that hold what came back, from the outside in.
_WRAPPERS: Final = ("result", "response", "body", "message", "modelOutput")


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
        files = [opened.enter_context(file) for file in _opened(results)]
        places = opened.enter_context(closing(Keys()))
        _find(files, places, by_number=key is None)
        for number, line, raw in table.rows():
            yield {"line": line, **_joined(table, raw, number if key is None else key, files, places)}


def _opened(results: Path) -> list[BinaryIO]:
    files = sorted(results.glob("*.jsonl")) if results.is_dir() else [results]
    if not files:
        msg = f"{str(results)!r} has no results: no file in it ends with .jsonl"
        raise RowsError(msg)
    try:
        return [file.open("rb") for file in files]
    except OSError as error:
        hint = near_file(str(results)) if isinstance(error, FileNotFoundError) else ""
        msg = f"{error.filename!r} cannot be read: {error.strerror}{hint}"
        raise RowsError(msg) from None


def _joined(
    table: Table, raw: Any, key: str | int, files: Sequence[BinaryIO], places: Keys
) -> dict[str, Any]:
    """One row, which is known by its number, or by what it has in a column."""
    try:
        if isinstance(raw, RowError):
            raise raw
        row = table.read(raw)
    except RowError as error:
        return {"row": None, "answer": None, "error": str(error)}
    identifier = key if isinstance(key, int) else row.get(key)
    place = places.place(str(identifier))
    if identifier in (None, ""):
        found: tuple[str, str | None] = "", "it has no key"
    elif place is None:
        found = "", "there is no result"
    elif place == _TAKEN:
        found = "", "its key is that of an earlier row"
    else:
        found = answer_of(_result_at(files, place))
        places.replace(str(identifier), _TAKEN)
    answer, fault = found
    return {"row": row, "answer": None if fault else answer, "error": fault}


def _find(files: Sequence[BinaryIO], places: Keys, *, by_number: bool) -> None:
    """Keep where the result of each row is: which file, and where in it."""
    for number, file in enumerate(files):
        position = 0
        for line in file:
            if not line.isspace():
                result, identifier = _identified(line, file.name, position)
                name = _number_in(identifier, file.name) if by_number else identifier
                place = position * len(files) + number
                if not places.add(name, place) and answer_of(result)[1] is None:
                    places.replace(name, place)
            position += len(line)


def _identified(line: bytes, file: str, position: int) -> tuple[dict[str, Any], str]:
    try:
        result = msgspec.json.decode(line)
        return result, next(str(result[name]) for name in _IDENTIFIERS if name in result)
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError, StopIteration):
        wanted = f"each line is an object with {' or '.join(_IDENTIFIERS)}"
        msg = f"{file!r} has no result at byte {position:,}: {wanted}"
        raise RowsError(msg) from None


def _number_in(identifier: str, file: str) -> str:
    found = re.fullmatch(r"(\d+)-[0-9a-f]{16}", identifier)
    if found is None:
        msg = f"{file!r} has {identifier!r}, which is no row's number: name the column of the key with --key"
        raise RowsError(msg)
    return found[1]


def _result_at(files: Sequence[BinaryIO], place: int) -> Any:
    position, number = divmod(place, len(files))
    files[number].seek(position)
    return msgspec.json.decode(files[number].readline())


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
                yield from _texts(item) if isinstance(item, dict) and item.get("type") == "message" else ()


def _parts(parts: Iterable[Any]) -> Iterator[str]:
    for part in parts:
        match part:
            case {"thought": True}:  # Gemini's own notes
                continue
            case {"text": str(text)}:
                yield text
