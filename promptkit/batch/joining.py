"""Joins the results of a batch, in whichever order they came, with the rows that the batch was made of."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from promptkit.batch.columns import RowError
from promptkit.batch.rows import RowsError, Table
from promptkit.batch.writing import Keys

__all__ = ["answer_of", "joined"]

#: The members that have the identifier of a result.
_IDENTIFIERS: Final = ("custom_id", "key", "recordId")

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
        without a result has an error that says so.

    Raises:
        RowsError: If a line of the results is no result.

        OSError: If they cannot be read.
    """
    files = sorted(results.glob("*.jsonl")) if results.is_dir() else [results]
    if not files:
        msg = f"{str(results)!r} has no results: no file in it ends with .jsonl"
        raise RowsError(msg)
    opened = [file.open("rb") for file in files]
    try:
        with closing(Keys()) as places:
            _find(opened, places, by_number=key is None)
            for chunk in table.chunks():
                for number, (line, raw) in enumerate(chunk.rows, chunk.first):
                    try:
                        if isinstance(raw, RowError):
                            raise raw
                        row = table.read(raw)
                        place = places.place(str(number if key is None else row.get(key)))
                    except RowError as error:
                        yield {"line": line, "row": None, "answer": None, "error": str(error)}
                        continue
                    found = ("", "there is no result") if place is None else _result_at(opened, place)
                    answer, fault = found
                    yield {"line": line, "row": row, "answer": None if fault else answer, "error": fault}
    finally:
        for file in opened:
            file.close()


def _find(files: Sequence[BinaryIO], places: Keys, *, by_number: bool) -> None:
    """Keep where the result of each row is: which file, and where in it."""
    for number, file in enumerate(files):
        position = 0
        for line in file:
            if not line.isspace():
                identifier = _identifier(line, file.name, position)
                places.add(
                    identifier.partition("-")[0] if by_number else identifier, position * len(files) + number
                )
            position += len(line)


def _identifier(line: bytes, file: str, position: int) -> str:
    try:
        result = msgspec.json.decode(line)
        return next(str(result[name]) for name in _IDENTIFIERS if name in result)
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError, StopIteration):
        reason = (
            f"has no result at byte {position:,}: each line is an object with {' or '.join(_IDENTIFIERS)}"
        )
        msg = f"{file!r} {reason}"
        raise RowsError(msg) from None


def _result_at(files: Sequence[BinaryIO], place: int) -> tuple[str, str | None]:
    position, number = divmod(place, len(files))
    files[number].seek(position)
    return answer_of(msgspec.json.decode(files[number].readline()))


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
