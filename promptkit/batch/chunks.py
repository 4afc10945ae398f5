"""Renders a chunk of rows to lines of a batch file, in whichever process."""

import re
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, Final

import attrs
import msgspec
from msgspec import Struct

from promptkit.batch.renderer import Renderer
from promptkit.batch.request_lines import LINE_FORMATS, LineFormat
from promptkit.batch.rows import Chunk, Columns, Row, RowError, row_of

#: How long a digest in an identifier is, in bytes.
_DIGEST_SIZE: Final = 8

#: What some who read lines take for ends of them, and JSON does not: as JSON writes it.
_ENDS: Final = {end.encode(): f"\\u{ord(end):04x}".encode() for end in "\x85\u2028\u2029"}


class Rejected(Struct, frozen=True):
    """
    What is wrong with a row.

    Args:
        line:
            The line of the row.

        argument:
            The argument; None if it is about the row.

        reason:
            What is wrong.
    """

    line: int
    argument: str | None
    reason: str


class RenderedChunk(Struct, frozen=True):
    """
    What became of a chunk of rows.

    Args:
        first:
            The number of the first row.

        lines:
            The requests, each with its end.

        requests:
            How many they are.

        keys:
            The line of the row, and the identifier, of each, if a column has them; else nothing.

        rejected:
            What is wrong with the others.

        rows:
            How many numbers the rows have.

        end:
            How much of the table was read up to here.

        characters:
            How much text the requests hold.

        digest:
            Tells one outcome from another.
    """

    first: int
    lines: bytes
    requests: int
    keys: list[tuple[int, str]]
    rejected: list[Rejected]
    rows: int
    end: int
    characters: int
    digest: str


@attrs.frozen
class ChunkRenderer:
    """
    Makes lines of rows. It can be pickled.

    Args:
        renderer:
            Renders one row, for a vendor. Its key is the column that identifies rows.

        read:
            Makes a row of what the file has of it.
    """

    renderer: Renderer
    read: Callable[[Any], Row]

    def __call__(self, chunk: Chunk) -> RenderedChunk:
        """
        Return the requests of a chunk.
        """
        lines, keys, rejected, characters = list[bytes](), list[tuple[int, str]](), list[Rejected](), 0
        matched = self.renderer.matched
        for number, place, raw in chunk.numbered():
            try:
                identifier, data, length = self._request(number, row_of(raw, self.read), matched)
            except Exception as error:  # noqa: BLE001 (one odd row does not end the batch)
                told = self.renderer.row_error(error).told
                rejected += (Rejected(place, argument, reason) for argument, reason in told)
            else:
                lines.append(data)
                characters += length
                if self.renderer.key is not None:
                    keys.append((place, identifier))
        data = b"".join(lines)
        return RenderedChunk(
            chunk.first,
            data,
            len(lines),
            keys,
            rejected,
            chunk.count,
            chunk.end,
            characters,
            _digest(data, repr(rejected).encode()),
        )

    def _request(self, number: int, row: Row, matched: Columns) -> tuple[str, bytes, int]:
        renderer, form = self.renderer, LINE_FORMATS[self.renderer.to]
        sent, typed = matched.given(row)
        said = renderer.said(sent, typed)
        try:
            identifier = self._identifier(number, row, {**sent, **typed}, form)
            data = _one_line(msgspec.json.encode(form.line(identifier, renderer.body(said)))) + b"\n"
        except UnicodeEncodeError:
            msg = "a value has half of a character"
            raise RowError.of(msg) from None
        if len(data) > form.most_bytes:
            msg = f"its request has {len(data):,} bytes, and a file at most {form.most_bytes:,}"
            raise RowError.of(msg)
        return identifier, data, len(said if isinstance(said, str) else said.text)

    def _identifier(self, number: int, row: Row, given: Mapping[str, Any], form: LineFormat) -> str:
        key, name = self.renderer.key, self.renderer.prompt.options.name
        if key is None:
            what = msgspec.json.encode((name, given), enc_hook=repr, order="sorted")
            return f"{number}-{blake2b(what, digest_size=_DIGEST_SIZE).hexdigest()}"
        identifier = "" if row.get(key) is None else str(row[key])
        if re.fullmatch(form.identifiers, identifier) is None:
            msg = f"its {key!r} is no identifier: {self.renderer.to} takes {form.takes}"
            raise RowError.of(msg)
        return identifier


def _digest(*parts: bytes) -> str:
    digest = blake2b(digest_size=_DIGEST_SIZE)
    for part in parts:  # joined, they would be copied
        digest.update(part)
    return digest.hexdigest()


def _one_line(data: bytes) -> bytes:
    if not data.isascii():
        for end, written in _ENDS.items():
            data = data.replace(end, written)
    return data
