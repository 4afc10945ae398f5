import json

import pytest

from promptkit.protocol.capabilities import ServerInfo
from promptkit.protocol.events import Cancelled, ClientResponse, Request
from promptkit.protocol.jsonrpc import Reply
from promptkit.protocol.limits import LARGE_MESSAGE
from promptkit.protocol.session import Session
from tests.wire import HANDSHAKES, MODERN, envelope, initialize, line, modern, notification, request

HALF = "\\ud800"
WORDS = "a" * (LARGE_MESSAGE + 1)


def connect(revision="2025-11-25"):
    connection = Session(ServerInfo("shelf", "1.2"))
    connection.receive_data(line(initialize(revision)))
    return connection


def events(text, revision="2025-11-25"):
    """Return the events of a line, with decoded replies."""
    received = connect(revision).receive_data(text + b"\n")
    return [json.loads(event.line) if isinstance(event, Reply) else event for event in received]


def raw(message, *, ensure_ascii=True):
    return json.dumps(message, ensure_ascii=ensure_ascii).encode("utf-8", "surrogatepass")


SURROGATES = {
    "method": request(7, "\ud800"),
    "name": request(7, "prompts/get", {"name": "\ud800"}),
    "argument": request(7, "prompts/get", {"name": "x", "arguments": {"x": "a\udc00b"}}),
    "name of an argument": request(7, "prompts/get", {"name": "x", "arguments": {"\ud800": "x"}}),
    "deep in an argument": request(7, "prompts/get", {"name": "x", "arguments": {"x": [{"y": "\udfff"}]}}),
    "cursor": request(7, "prompts/list", {"cursor": "\ud800"}),
    "uri": request(7, "resources/read", {"uri": "x://\udead"}),
    "meta": request(7, "prompts/list", {"_meta": {"x": "\ud800"}}),
    "key of meta": request(7, "prompts/list", {"_meta": {"\ud800": 1}}),
    "client": request(7, "initialize", {"protocolVersion": "2025-11-25", "clientInfo": {"name": "\ud800"}}),
    "envelope": modern(7, "prompts/list", x="\ud800"),
    "completion": request(7, "completion/complete", {"argument": {"name": "x", "value": "\ud800"}}),
    "another member": {**request(7, "ping"), "x": "\ud800"},
    "key of another member": {**request(7, "ping"), "\ud800": 1},
    "no version": {"id": 7, "method": "ping", "x": "\ud800"},
    "two of them": request(7, "\ud800", {"\udc00": "\ud83d\ude00"}),
    "large": request(7, "ping", {"x": "\ud800", "y": WORDS}),
}


class TestInvalidText:
    @pytest.mark.parametrize("message", SURROGATES.values(), ids=SURROGATES)
    @pytest.mark.parametrize("revision", ["2025-11-25", "2025-03-26"])
    def test_lone_surrogate(self, message, revision):
        """The request is rejected under its id, wherever the surrogate is."""
        (reply,) = events(raw(message), revision)

        assert reply == {
            "jsonrpc": "2.0",
            "id": 7,
            "error": {
                "code": -32600,
                "message": "the message contains an unpaired surrogate, which is not a character",
            },
        }

    @pytest.mark.parametrize("message", SURROGATES.values(), ids=SURROGATES)
    def test_invalid_utf_8(self, message):
        """Invalid UTF-8 is reported under the request's id."""
        (reply,) = events(raw(message, ensure_ascii=False))

        assert (reply["id"], reply["error"]) == (7, {"code": -32700, "message": "the message is not UTF-8"})

    @pytest.mark.parametrize(
        "number",
        [
            7,
            -1,
            0,
            10**30,
            "7",
            "",
            "é",
            "😀",
            "\ue000",
        ],
        ids=lambda number: f"{str(number)[:20]!a}",
    )
    def test_id_without_escapes(self, number):
        """If the lone surrogate is in another field, the error has the id of the message."""
        text = json.dumps(request(number, "x"), ensure_ascii=False)

        (reply,) = events(f'{text[:-1]},"x":"\\\\{HALF}"}}'.encode())

        assert (reply["id"], reply["error"]["code"]) == (number, -32600)

    @pytest.mark.parametrize(
        "number",
        ["\ud800", "x\udc00", "\\ud800", 'a"\\'],
        ids=["first", "last", "backslash", "both"],
    )
    @pytest.mark.parametrize("ensure_ascii", [True, False])
    def test_invalid_id(self, number, ensure_ascii):
        """In a message with a lone surrogate, an id with a surrogate or a backslash is not repeated."""
        (reply,) = events(raw(request(number, "ping"), ensure_ascii=ensure_ascii)[:-1] + b',"x":"\\ud800"}')

        assert reply.keys() == {"jsonrpc", "error"}

    def test_valid_escapes(self):
        """An escaped backslash and a complete pair are valid."""
        text = rb'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":"\\ud800","b":"\ud83d\ude00"}}'

        assert events(text) == [{"jsonrpc": "2.0", "id": 7, "result": {}}]

    @pytest.mark.parametrize("method", ["nope", "notifications/progress", HALF])
    def test_notification_is_not_answered(self, method):
        """An invalid notification gets no reply."""
        assert events(f'{{"jsonrpc":"2.0","method":"{method}","params":{{"x":"{HALF}"}}}}'.encode()) == []

    def test_cancellation_with_an_invalid_reason(self):
        """A cancellation with an invalid reason is still effective."""
        params = {"requestId": 5, "reason": "\ud800"}

        assert events(raw(notification("notifications/cancelled", params))) == [Cancelled(5)]

    def test_invalid_answer(self):
        """An invalid answer counts as no answer, so that the request does not wait indefinitely."""
        received = connect().receive_data(
            b'{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"x":"\\ud800"}}}\n'
        )

        assert received == [ClientResponse(1, None)]

    @pytest.mark.parametrize(
        ("bad", "code"), [(b"\\ud800", -32600), (b"\xff", -32700)], ids=["half", "bytes"]
    )
    def test_invalid_element_of_a_batch(self, bad, code):
        """An array with a lone surrogate or invalid UTF-8 in one element is rejected as a whole."""
        text = b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"%b"}]' % bad

        (reply,) = events(text, "2025-03-26")

        assert (reply.get("id"), reply["error"]["code"]) == (None, code)

    @pytest.mark.parametrize("text", [HALF, f'{{"id":7,"x":"{HALF}"', f'{{"id":7,"x":"{HALF}"}}}}'])
    def test_invalid_json(self, text):
        """Invalid JSON with a lone surrogate is reported as invalid JSON."""
        (reply,) = events(text.encode())

        assert (reply.get("id"), reply["error"]["code"]) == (None, -32700)


class TestLargeMessages:
    @pytest.mark.parametrize("revision", [*HANDSHAKES, MODERN])
    @pytest.mark.parametrize("number", [7, "x", "x" * 1000], ids=["number", "short", "long"])
    def test_request(self, revision, number):
        """A large request is decoded like any other, and keeps its id."""
        params = {"x": WORDS, **({"_meta": envelope()} if revision == MODERN else {})}

        (event,) = events(line(request(number, "prompts/list", params))[:-1], revision if params else None)

        assert isinstance(event, Request)
        assert (event.id, event.method) == (number, "prompts/list")

    @pytest.mark.parametrize(
        ("changed", "code"),
        [
            ({"jsonrpc": "1.0"}, -32600),
            ({"jsonrpc": WORDS}, -32600),
            ({"method": 3}, -32600),
            ({"method": [WORDS]}, -32600),
            ({"method": WORDS}, -32601),
            ({"params": WORDS}, -32600),
            ({"params": [WORDS]}, -32600),
        ],
        ids=lambda changed: str(changed)[:24],
    )
    def test_invalid_request(self, changed, code):
        """The error has the id of the request, and does not repeat long strings in full."""
        (reply,) = events(line({**request(7, "ping", {"x": WORDS}), **changed})[:-1])

        assert (reply["id"], reply["error"]["code"]) == (7, code)
        assert len(json.dumps(reply)) < 1000

    @pytest.mark.parametrize(
        "number",
        [None, True, 1.5, {}, 10**5000, "é" * 512],
        ids=["null", "bool", "half", "object", "huge", "long"],
    )
    def test_invalid_id(self, number):
        """An invalid id is not repeated."""
        text = b'{"jsonrpc":"2.0","id":%b,"method":"ping","params":{"x":"%b"}}'
        written = b"1" * 5001 if number == 10**5000 else json.dumps(number).encode()

        (reply,) = events(text % (written, WORDS.encode()))

        assert (reply.get("id"), reply["error"]["code"]) == (None, -32600)

    def test_notification(self):
        """A large notification is effective."""
        text = line(
            {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": 5, "reason": WORDS},
            }
        )

        assert events(text[:-1]) == [Cancelled(5)]
