"""
Partial decoding: the parts of a message that say what it is, without its long texts.

Messages that are large, broken, or not requests are decoded this way: refusing one must not take much more
memory than holding it. Of a reply only the beginning is looked at.
"""

import re
from codecs import iterdecode
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from promptkit.protocol.jsonrpc import (
    Incoming,
    InvalidRequest,
    JsonRpcError,
    ParseError,
    RequestId,
)
from promptkit.protocol.limits import LARGE_MESSAGE, PREFIX_BYTES

__all__ = [
    "RawMessage",
    "check_text",
    "count_characters",
    "decode_beginning",
    "decode_id",
    "decode_large",
    "decode_raw",
    "error_code",
    "is_failure",
    "is_question",
    "leading_id",
    "retry_after",
]

#: Longer ids and methods, in bytes, are not decoded in full: no method has such a name.
_SHORT_BYTES: Final = 1024

#: The id of a request, if nothing stands before it but the version and the method.
_LEADING_ID: Final = re.compile(
    rb'\s*\{\s*(?:"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*,\s*)*"id"\s*:\s*(-?\d{1,18}|"[^"\\]{0,200}")\s*[,}]'
)

#: The beginning of a JSON string, with no character cut in half.
_BEGINNING: Final = re.compile(
    rb'"(?:[^"\\]|\\u[dD][89abAB]..\\u....|\\u(?![dD][89abAB])....|\\[^u]){0,200}+', re.DOTALL
)

#: The second and later bytes of a character in UTF-8.
_CONTINUATION: Final = bytes(range(0x80, 0xC0))

#: Stands for an escaped backslash while surrogates are replaced. Hardly any text holds it.
_BACKSLASH: Final = b"\x7f\x7f"

#: The escape of the first half of a surrogate pair begins with one of these.
_HIGH_SURROGATES: Final = [f"\\u{d}{digit}".encode() for d in "dD" for digit in "89abAB"]


class RawMessage(Struct, gc=False):
    """
    The members of a message, none of them decoded.
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
        Whether this is a response, well-formed or not. A response must never be answered.
        """
        return self.method is UNSET and not (self.result is UNSET and self.error is UNSET)

    @property
    def fault(self) -> str:
        """
        Why this is not a request.
        """
        if _prefix(self.jsonrpc, 6) != b'"2.0"':
            return 'a message has the member "jsonrpc": "2.0"'
        if _prefix(self.method, 1) != b'"':
            return "a request has a method, a string"
        return "an id is a string or a whole number"

    def id_on(self, line: bytes) -> RequestId | Raw | UnsetType:
        """
        Return the id as it is written on *line*, `UNSET` if there is none to answer with.
        """
        if self.id is UNSET:
            return UNSET
        found = bytes(self.id)
        if found not in line:
            found = found.replace(_BACKSLASH, b"\\\\")
        if found not in line:
            found = found.replace(b"\\ue", b"\\ud").replace(b"\\uE", b"\\uD")
        try:
            check_text(found)
            _decode_any(found)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return UNSET
        return decode_id(Raw(found)) if found in line else UNSET

    def incoming(self) -> Incoming | None:
        """
        Return this as a notification; None if it is not one.
        """
        try:
            return Incoming(decode_beginning(self.method), "2.0", params=self.params)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None


_decode_message: Final = msgspec.json.Decoder(RawMessage).decode
_decode_incoming: Final = msgspec.json.Decoder(Incoming).decode
_decode_short_id: Final = msgspec.json.Decoder(int | str).decode
_decode_text: Final = msgspec.json.Decoder(str).decode
_decode_any: Final = msgspec.json.Decoder(Raw).decode
_decode_elements: Final = msgspec.json.Decoder(list[Raw]).decode


def _prefix(raw: Raw | UnsetType, size: int) -> bytes:
    return b"" if raw is UNSET else bytes(memoryview(raw)[:size])


def check_text(line: bytes) -> None:
    """
    Check that *line* is UTF-8, as the decoder does not check what it skips.

    Raises:
        UnicodeDecodeError: If it is not.
    """
    pieces = (line[start : start + LARGE_MESSAGE] for start in range(0, len(line), LARGE_MESSAGE))
    for _ in iterdecode(pieces, "utf-8"):  # decoded at once it may take four times its size
        pass


def decode_raw(line: bytes) -> tuple[RawMessage | list[memoryview] | None, JsonRpcError | None]:
    """
    Return the members of an object, or the elements of an array as they are written; None for other JSON.

    The second value is what is wrong with the texts on the line, if anything is.

    Raises:
        msgspec.DecodeError: If the line is not JSON, whatever its texts hold.

        RecursionError: If it is nested too deeply.
    """
    fault: JsonRpcError | None = None
    try:
        check_text(line)
    except UnicodeDecodeError:
        fault = ParseError("the message is not UTF-8")
    decoded = line
    try:
        found = _decode_object_or_array(line)
    except msgspec.DecodeError:
        decoded = _without_surrogates(line)
        found = _decode_object_or_array(decoded)
        msg = "the message holds half of a surrogate pair, which is not a character"
        fault = fault or InvalidRequest(msg)
    return (_elements(found, decoded, line) if isinstance(found, list) else found), fault


def _elements(found: list[Raw], decoded: bytes, line: bytes) -> list[memoryview]:
    """The elements of an array as the line has them. What was decoded may be without its surrogates."""
    elements, end = [], 0
    for element in map(bytes, found):
        start = decoded.index(element, end)  # between elements are only blanks and commas
        end = start + len(element)
        elements.append(memoryview(line)[start:end])
    return elements


def _decode_object_or_array(line: bytes) -> RawMessage | list[Raw] | None:
    try:
        return _decode_message(line)
    except msgspec.ValidationError:
        _decode_any(line)  # the error came early: is the rest JSON?
    return _decode_elements(line) if line.lstrip().startswith(b"[") else None


def decode_large(line: bytes) -> Incoming:
    """
    Return the request or notification on a line. A long id of a large one stays `Raw`, a long method is cut.

    Raises:
        msgspec.DecodeError: If the line holds neither.

        UnicodeDecodeError: If the method or the id is not UTF-8.

        RecursionError: If the line is nested too deeply.
    """
    if len(line) <= LARGE_MESSAGE:
        return _decode_incoming(line)
    found = _decode_message(line)
    request_id: Any = UNSET if found.id is UNSET else decode_id(found.id)
    if found.fault.startswith("an id") and (found.id is UNSET or request_id is not UNSET):
        return Incoming(decode_beginning(found.method), "2.0", request_id, found.params)
    raise msgspec.ValidationError(found.fault)


def decode_id(raw: Raw) -> RequestId | Raw | UnsetType:
    """
    Decode an id. A long one stays `Raw`; `UNSET` stands for a value that is not an id.
    """
    if len(raw) > _SHORT_BYTES and _prefix(raw, 1) == b'"':
        return raw
    try:
        found: RequestId = _decode_short_id(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return UNSET
    return found


def decode_beginning(raw: Raw | UnsetType) -> str:
    """
    Decode a text, or only the beginning of a long one.

    Raises:
        msgspec.DecodeError: If it is not a text.

        UnicodeDecodeError: If it is not UTF-8.
    """
    if raw is UNSET or len(raw) <= _SHORT_BYTES:
        return _decode_text(b"" if raw is UNSET else raw)
    found = _BEGINNING.match(_prefix(raw, _SHORT_BYTES))
    return _decode_text(str(found.group() if found else b"", "utf-8", "ignore") + '"') + "..."


def leading_id(line: bytes) -> RequestId | Raw | UnsetType:
    """
    Find the id of a request in the beginning of its line.
    """
    found = _LEADING_ID.match(line[:PREFIX_BYTES])
    return decode_id(Raw(found[1])) if found else UNSET


def count_characters(raw: Raw) -> int:
    """
    Count the characters of a text, or those of any other value's JSON, without blanks.
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
    written = written.replace(b"\\\\", b"")  # each one that is left escapes what follows
    pairs = sum(written.count(half) for half in _HIGH_SURROGATES)
    return size - backslashes - written.count(b"\\") - 4 * written.count(b"\\u") - pairs


def _without_surrogates(line: bytes) -> bytes:
    # The decoder refuses half of a pair. What takes its place is as long, so that nothing moves.
    line = line.replace(b"\\\\", _BACKSLASH)  # else what follows a backslash would look escaped
    return line.replace(b"\\ud", b"\\ue").replace(b"\\uD", b"\\uE")


# The repetitions are possessive: an id may be long, and backtracking takes memory.
_BEGIN: Final = rb'\{"jsonrpc":"2\.0",(?:"id":(?:-?\d++|"[^"\\]*+(?:\\.[^"\\]*+)*+"),)?'
_ERROR: Final = re.compile(_BEGIN + rb'"error":\{"code":(-?\d+)')
_QUESTION: Final = re.compile(_BEGIN + rb'"result":\{"inputRequests":')
_FAILURE: Final = re.compile(_BEGIN + rb'"result":\{"isError":true')
_RETRY: Final = re.compile(rb'"data":\{"retryAfter":(\d+)\}\}\}\s*+$')


def error_code(reply: bytes) -> int | None:
    """
    Return the code of a reply that is an error; None if it is a result.

    Args:
        reply:
            One line that `promptkit.protocol.jsonrpc` has encoded.
    """
    found = _ERROR.match(reply)
    return None if found is None else int(found[1])


def is_question(reply: bytes) -> bool:
    """
    Return whether a reply asks the client for input.
    """
    return _QUESTION.match(reply) is not None


def is_failure(reply: bytes) -> bool:
    """
    Return whether a reply is the result of a tool that says what was wrong.
    """
    return _FAILURE.match(reply) is not None


def retry_after(reply: bytes) -> int | None:
    """
    Return in how many seconds the client may try again; None if the reply, an error, does not say it.
    """
    found = _RETRY.search(reply[-64:])
    return None if found is None else int(found[1])
