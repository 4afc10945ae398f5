"""Rendering of a chunk of rows to lines of a batch file, in any process."""

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

#: The size of a digest in an identifier, in bytes.
_DIGEST_SIZE: Final = 8

#: Characters that some readers take for line ends, but JSON does not, with their escapes.
_LINE_SEPARATORS: Final = {end.encode(): f"\\u{ord(end):04x}".encode() for end in "\x85\u2028\u2029"}


class Rejected(Struct, frozen=True):
    """
    An error in a row.

    Args:
        line:
            The line of the row.

        argument:
            The argument; None if the error is about the whole row.

        reason:
            The problem.
    """

    line: int
    argument: str | None
    reason: str


class RenderedChunk(Struct, frozen=True):
    """
    The requests and errors of a chunk of rows.

    Args:
        first:
            The number of the first row.

        lines:
            The requests, as lines with line ends.

        requests:
            The number of requests.

        keys:
            The line and identifier of each request, if a column identifies rows; otherwise empty.

        rejected:
            The errors of rejected rows.

        rows:
            How many row numbers the chunk spans, including blank lines.

        end:
            The number of bytes or rows of the table read so far.

        characters:
            The number of characters in the requests' texts.

        digest:
            A digest of the requests and errors.
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
    A renderer of rows to lines of a batch file. It can be pickled.

    Args:
        renderer:
            Renders one row for a vendor. Its key is the column that identifies rows.

        read:
            Converts the raw data of a row to its values.
    """

    renderer: Renderer
    read: Callable[[Any], Row]

    def __call__(self, chunk: Chunk) -> RenderedChunk:
        """Return the requests and errors of a chunk."""
        lines, keys, rejected, characters = list[bytes](), list[tuple[int, str]](), list[Rejected](), 0
        matched = self.renderer.matched
        for number, line, raw in chunk.numbered():
            try:
                identifier, data, length = self._request(number, row_of(raw, self.read), matched)
            except Exception as error:  # noqa: BLE001 (an unusual row does not end the batch)
                reasons = self.renderer.row_error(error).reasons
                rejected += (Rejected(line, argument, reason) for argument, reason in reasons)
            else:
                lines.append(data)
                characters += length
                if self.renderer.key is not None:
                    keys.append((line, identifier))
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
        rendering = renderer.render_row(sent, typed)
        try:
            identifier = self._identifier(number, row, {**sent, **typed}, form)
            data = _one_line(msgspec.json.encode(form.line(identifier, renderer.body(rendering)))) + b"\n"
        except UnicodeEncodeError:
            msg = "a value has half of a character"
            raise RowError.of(msg) from None
        if len(data) > form.most_bytes:
            msg = f"its request has {len(data):,} bytes, and a file at most {form.most_bytes:,}"
            raise RowError.of(msg)
        return identifier, data, len(rendering if isinstance(rendering, str) else rendering.text)

    def _identifier(self, number: int, row: Row, arguments: Mapping[str, Any], form: LineFormat) -> str:
        key, name = self.renderer.key, self.renderer.prompt.options.name
        if key is None:
            content = msgspec.json.encode((name, arguments), enc_hook=repr, order="sorted")
            return f"{number}-{blake2b(content, digest_size=_DIGEST_SIZE).hexdigest()}"
        identifier = "" if row.get(key) is None else str(row[key])
        if re.fullmatch(form.identifiers, identifier) is None:
            msg = f"its {key!r} is not an identifier: {self.renderer.to} takes {form.takes}"
            raise RowError.of(msg)
        return identifier


def _digest(*parts: bytes) -> str:
    digest = blake2b(digest_size=_DIGEST_SIZE)
    for part in parts:  # joining would copy them
        digest.update(part)
    return digest.hexdigest()


def _one_line(data: bytes) -> bytes:
    if not data.isascii():
        for end, escaped in _LINE_SEPARATORS.items():
            data = data.replace(end, escaped)
    return data
