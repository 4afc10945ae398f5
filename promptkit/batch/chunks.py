"""Renders a chunk of rows to lines of a batch file, in whichever process."""

import re
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, Final

import attrs
import msgspec
from msgspec import Struct

from promptkit.batch.columns import RowError
from promptkit.batch.lines import LINE_FORMATS, LineFormat
from promptkit.batch.renderer import Renderer
from promptkit.batch.rows import Chunk, Row

__all__ = ["ChunkRenderer", "Rejected", "RenderedChunk", "RequestLine"]

#: How long a digest in an identifier is, in bytes.
_DIGEST_SIZE: Final = 8


class RequestLine(Struct, frozen=True):
    """
    A line of a batch file.

    Args:
        row:
            The line of the row.

        identifier:
            Its identifier.

        data:
            The line, with its end.
    """

    row: int
    identifier: str
    data: bytes


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
            The requests.

        rejected:
            What is wrong with the others.

        rows:
            How many rows there were.

        end:
            How much of the table was read up to here.

        characters:
            How much text the requests hold.
    """

    first: int
    lines: list[RequestLine]
    rejected: list[Rejected]
    rows: int
    end: int
    characters: int

    @property
    def digest(self) -> str:
        """Tells one outcome from another."""
        found = blake2b(digest_size=_DIGEST_SIZE)
        for line in self.lines:
            found.update(line.data)
        found.update(repr(self.rejected).encode())
        return found.hexdigest()


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
        lines, rejected, characters = list[RequestLine](), list[Rejected](), 0
        for number, (place, raw) in enumerate(chunk.rows, chunk.first):
            try:
                if isinstance(raw, RowError):
                    raise raw
                identifier, data, length = self._request(number, self.read(raw))
            except RowError as error:
                rejected += (Rejected(place, argument, reason) for argument, reason in error.told)
            else:
                lines.append(RequestLine(place, identifier, data))
                characters += length
        return RenderedChunk(chunk.first, lines, rejected, len(chunk.rows), chunk.end, characters)

    def _request(self, number: int, row: Row) -> tuple[str, bytes, int]:
        renderer, form = self.renderer, LINE_FORMATS[self.renderer.to]
        sent, typed = renderer.matched.given(row)
        said = renderer.said(sent, typed)
        try:
            identifier = self._identifier(number, row, {**sent, **typed}, form)
            data = msgspec.json.encode(form.line(identifier, renderer.body(said))) + b"\n"
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
