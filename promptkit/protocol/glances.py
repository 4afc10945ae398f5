"""
Glances: what a message says of itself, its texts left where they are.

What is large, or no request, or no text, is looked at before anything of it is copied: to refuse
it must not take much more memory than to hold it.
"""

import re
from codecs import getincrementaldecoder
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from promptkit.protocol.jsonrpc import Incoming, InvalidRequest, ParseError, ProtocolError, RequestId

__all__ = [
    "LARGE",
    "Elements",
    "Glance",
    "beginning_of",
    "characters_in",
    "check_text",
    "glance_at",
    "id_of",
    "incoming_of",
    "leading_id",
]

#: What is longer is looked at first, in bytes.
LARGE: Final = 1 << 16

#: What is longer is the name of no method, and an id that is not copied, in bytes.
_LONG: Final = 1024

#: The id of a request, if nothing stands before it but what is short in every request.
_LEADING_ID: Final = re.compile(
    rb'\s*\{\s*(?:"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*,\s*)*"id"\s*:\s*(-?\d{1,18}|"[^"\\]{0,200}")\s*[,}]'
)

#: How a text begins: no character of it is cut.
_BEGINNING: Final = re.compile(
    rb'"(?:[^"\\]|\\u[dD][89abAB]..\\u....|\\u(?![dD][89abAB])....|\\[^u]){0,200}+', re.DOTALL
)

#: Where an id stands that is read so, in bytes from the beginning at most.
_LEADING: Final = 4096

#: The bytes of a character in UTF-8 but its first.
_CONTINUATION: Final = bytes(range(0x80, 0xC0))

#: What stands in place of an escaped backslash while a line is mended: hardly any text holds it.
_MENDED: Final = b"\x7f\x7f"

#: How the first half of a surrogate pair begins.
_HALVES: Final = [f"\\u{d}{digit}".encode() for d in "dD" for digit in "89abAB"]


class Glance(Struct, gc=False):
    """
    The members of a message, none of them read.
    """

    jsonrpc: Raw | UnsetType = UNSET
    id: Raw | UnsetType = UNSET
    method: Raw | UnsetType = UNSET
    params: Raw = Raw(b"{}")
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET

    @property
    def is_response(self) -> bool:
        """
        Whether it is an answer, well-formed or not, which must never be answered.
        """
        return self.method is UNSET and not (self.result is UNSET and self.error is UNSET)

    @property
    def fault(self) -> str:
        """
        What keeps it from being a request.
        """
        if _start(self.jsonrpc, 6) != b'"2.0"':
            return 'a message has the member "jsonrpc": "2.0"'
        if _start(self.method, 1) != b'"':
            return "a request has a method, a string"
        return "an id is a string or a whole number"

    def id_on(self, line: bytes) -> RequestId | Raw | UnsetType:
        """
        Return its id as it stands on *line*; `UNSET` if it has none that can be echoed.
        """
        if self.id is UNSET:
            return UNSET
        found = bytes(self.id)
        if found not in line:
            found = found.replace(_MENDED, b"\\\\")
        if found not in line:
            found = found.replace(b"\\ue", b"\\ud").replace(b"\\uE", b"\\uD")
        try:
            check_text(found)
            _decode_raw(found)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return UNSET
        return id_of(Raw(found)) if found in line else UNSET

    def incoming(self) -> Incoming | None:
        """
        Return the notification that it is; None if it is none.
        """
        try:
            return Incoming(beginning_of(self.method), "2.0", params=self.params)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None


_decode_glance: Final = msgspec.json.Decoder(Glance).decode
_decode_incoming: Final = msgspec.json.Decoder(Incoming).decode
_decode_id: Final = msgspec.json.Decoder(int | str).decode
_decode_text: Final = msgspec.json.Decoder(str).decode
_decode_raw: Final = msgspec.json.Decoder(Raw).decode
_decode_elements: Final = msgspec.json.Decoder(list[Raw]).decode


def _start(raw: Raw | UnsetType, size: int) -> bytes:
    """
    Return the beginning of a member that may not be there.
    """
    return b"" if raw is UNSET else bytes(memoryview(raw)[:size])


def check_text(line: bytes) -> None:
    """
    Check that *line* is UTF-8: the decoder does not look at what it skips.

    Raises:
        UnicodeDecodeError: If it is not.
    """
    if len(line) <= LARGE:
        str(line, "utf-8")
        return
    decode = getincrementaldecoder("utf-8")().decode
    for start in range(0, len(line), LARGE):  # all of it at once may take four times its size
        decode(line[start : start + LARGE], start + LARGE >= len(line))


class Elements:
    """
    The elements of an array, each copied when it is its turn.

    Args:
        found:
            The elements of *whole*.

        whole:
            The line they were found on, which is *line* if nothing was mended.

        line:
            The line as it came.
    """

    def __init__(self, found: list[Raw], whole: bytes, line: bytes) -> None:
        self._found, self._whole, self._line = found, whole, line

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[bytes]:
        """
        Yield how each stands on the line.
        """
        end = 0
        for element in map(bytes, self._found):
            start = self._whole.index(element, end)  # only blanks and commas are between them
            end = start + len(element)
            yield self._line[start:end]


def glance_at(line: bytes) -> tuple[Glance | Elements | None, ProtocolError | None]:
    """
    Return the members of an object, or the elements of an array; None for any other JSON.

    Beside it, return what is wrong with the texts in it if they are no text.

    Raises:
        msgspec.DecodeError: If it is no JSON, whatever is in its texts.

        RecursionError: If it is nested too deeply.
    """
    fault: ProtocolError | None = None
    try:
        check_text(line)
    except UnicodeDecodeError:
        fault = ParseError("the line is no UTF-8")
    try:
        found = _glance(line)
        whole = line
    except msgspec.DecodeError:
        whole = _mended(line)
        found = _glance(whole)
        msg = "the line holds half of a surrogate pair, which is no character"
        fault = fault or InvalidRequest(msg)
    return (Elements(found, whole, line) if isinstance(found, list) else found), fault


def _glance(line: bytes) -> Glance | list[Raw] | None:
    try:
        return _decode_glance(line)
    except msgspec.ValidationError:
        _decode_raw(line)  # the error came at once: is the rest JSON?
    return _decode_elements(line) if line.lstrip().startswith(b"[") else None


def incoming_of(line: bytes) -> Incoming:
    """
    Return the request, or the notification, on a line.

    Of one that is large, a long id is left as it is, and a long method is cut.

    Raises:
        msgspec.DecodeError: If there is none.

        UnicodeDecodeError: If a text in it is none.

        RecursionError: If it is nested too deeply.
    """
    if len(line) <= LARGE:
        return _decode_incoming(line)
    found = _decode_glance(line)
    request_id: Any = UNSET if found.id is UNSET else id_of(found.id)  # of a large one, a `Raw`
    if found.fault.startswith("an id") and (found.id is UNSET or request_id is not UNSET):
        return Incoming(beginning_of(found.method), "2.0", request_id, found.params)
    raise msgspec.ValidationError(found.fault)


def id_of(raw: Raw) -> RequestId | Raw | UnsetType:
    """
    Return an id, as it is if it is long; `UNSET` for what cannot be echoed.
    """
    if len(raw) > _LONG and _start(raw, 1) == b'"':
        return raw
    try:
        found: RequestId = _decode_id(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return UNSET
    return found


def beginning_of(raw: Raw | UnsetType) -> str:
    """
    Return a text, of a long one the beginning.

    Raises:
        msgspec.DecodeError: If it is none.

        UnicodeDecodeError: If it is no UTF-8.
    """
    if raw is UNSET or len(raw) <= _LONG:
        return _decode_text(b"" if raw is UNSET else raw)
    found = _BEGINNING.match(_start(raw, _LONG))
    return _decode_text(str(found.group() if found else b"", "utf-8", "ignore") + '"') + "..."


def leading_id(line: bytes) -> RequestId | UnsetType:
    """
    Return the id of a request of which only the beginning is there, if it can be told.
    """
    if not (found := _LEADING_ID.match(line[:_LEADING])):
        return UNSET
    try:
        request_id: RequestId = _decode_id(found[1])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return UNSET
    return request_id


def characters_in(raw: Raw) -> int:
    """
    Return how long a text is, in characters, or any other value, as JSON without blanks in it.
    """
    written = bytes(raw)
    if written.startswith((b"[", b"{")):
        return len(msgspec.json.format(written, indent=-1).translate(None, _CONTINUATION))
    if not written.startswith(b'"'):
        return len(written)
    size = len(written) - 2
    if not written.isascii():
        size = len(written.translate(None, _CONTINUATION)) - 2
    if b"\\" not in written:
        return size
    backslashes = written.count(b"\\\\")
    written = written.replace(b"\\\\", b"")  # what is left of them escapes what follows
    pairs = sum(written.count(half) for half in _HALVES)
    return size - backslashes - written.count(b"\\") - 4 * written.count(b"\\u") - pairs


def _mended(line: bytes) -> bytes:
    """
    Return *line* with other characters in place of every surrogate, so that it can be decoded.

    Half of a pair is no character, and the decoder stops at it. Nothing is moved.
    """
    line = line.replace(b"\\\\", _MENDED)  # or what follows would look escaped
    return line.replace(b"\\ud", b"\\ue").replace(b"\\uD", b"\\uE")
