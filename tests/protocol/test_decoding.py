import json

import pytest

from promptkit.protocol.capabilities import ServerInfo
from promptkit.protocol.connection import Connection
from promptkit.protocol.events import Cancelled, ClientResponse, Request
from promptkit.protocol.jsonrpc import Reply
from promptkit.protocol.limits import LARGE_MESSAGE
from tests.wire import HANDSHAKES, MODERN, envelope, initialize, line, modern, notification, request

HALF = "\\ud800"
WORDS = "a" * (LARGE_MESSAGE + 1)


def connect(revision="2025-11-25"):
    connection = Connection(ServerInfo("shelf", "1.2"))
    connection.receive_data(line(initialize(revision)))
    return connection


def events(text, revision="2025-11-25"):
    """What follows from a line, its replies read."""
    found = connect(revision).receive_data(text + b"\n")
    return [json.loads(one.line) if isinstance(one, Reply) else one for one in found]


def raw(message, *, ensure_ascii=True):
    return json.dumps(message, ensure_ascii=ensure_ascii).encode("utf-8", "surrogatepass")


PLACES = {
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


class TestTextThatIsNone:
    @pytest.mark.parametrize("message", PLACES.values(), ids=PLACES)
    @pytest.mark.parametrize("revision", ["2025-11-25", "2025-03-26"])
    def test_half_of_a_surrogate_pair(self, message, revision):
        """
        Wherever it stands, the request is answered under its id, and the answer says what is wrong.
        """
        (reply,) = events(raw(message), revision)

        assert reply == {
            "jsonrpc": "2.0",
            "id": 7,
            "error": {
                "code": -32600,
                "message": "the message holds half of a surrogate pair, which is not a character",
            },
        }

    @pytest.mark.parametrize("message", PLACES.values(), ids=PLACES)
    def test_bytes_that_are_no_utf_8(self, message):
        """
        They are reported as invalid UTF-8, under the request's id as well.
        """
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
    def test_every_id_without_escapes_is_recovered(self, number):
        """
        The error carries the id, also next to half of a surrogate pair.
        """
        text = json.dumps(request(number, "x"), ensure_ascii=False)

        (reply,) = events(f'{text[:-1]},"x":"\\\\{HALF}"}}'.encode())

        assert (reply["id"], reply["error"]["code"]) == (number, -32600)

    @pytest.mark.parametrize(
        "number",
        ["\ud800", "x\udc00", "\\ud800", 'a"\\'],
        ids=["first", "last", "backslash", "both"],
    )
    @pytest.mark.parametrize("ensure_ascii", [True, False])
    def test_an_id_that_is_none(self, number, ensure_ascii):
        """
        Next to half of a surrogate pair, an id with such a half or with a backslash is not repeated.
        """
        (reply,) = events(raw(request(number, "ping"), ensure_ascii=ensure_ascii)[:-1] + b',"x":"\\ud800"}')

        assert reply.keys() == {"jsonrpc", "error"}

    def test_what_only_looks_like_one(self):
        """
        A backslash before it makes it text, and a whole pair is a character.
        """
        text = rb'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":"\\ud800","b":"\ud83d\ude00"}}'

        assert events(text) == [{"jsonrpc": "2.0", "id": 7, "result": {}}]

    @pytest.mark.parametrize("method", ["nope", "notifications/progress", HALF])
    def test_a_notification_is_never_answered(self, method):
        """
        It gets no reply.
        """
        assert events(f'{{"jsonrpc":"2.0","method":"{method}","params":{{"x":"{HALF}"}}}}'.encode()) == []

    def test_a_reason_is_not_needed_to_cancel(self):
        """
        What a notification says beside what counts may be anything.
        """
        params = {"requestId": 5, "reason": "\ud800"}

        assert events(raw(notification("notifications/cancelled", params))) == [Cancelled(5)]

    def test_an_answer_counts_as_none(self):
        """
        The request that waits for it does not wait for ever.
        """
        connection = connect()
        number, _ = connection.ask("elicitation/create", {})
        connection.expect(number)

        found = connection.receive_data(
            b'{"jsonrpc":"2.0","id":"%b","result":{"action":"accept","content":{"x":"\\ud800"}}}\n'
            % number.encode()
        )

        assert found == [ClientResponse(number, None)]

    @pytest.mark.parametrize(
        ("bad", "code"), [(b"\\ud800", -32600), (b"\xff", -32700)], ids=["half", "bytes"]
    )
    def test_an_element_of_a_batch(self, bad, code):
        """
        The whole array is refused.
        """
        text = b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"%b"}]' % bad

        (reply,) = events(text, "2025-03-26")

        assert (reply.get("id"), reply["error"]["code"]) == (None, code)

    @pytest.mark.parametrize("text", [HALF, f'{{"id":7,"x":"{HALF}"', f'{{"id":7,"x":"{HALF}"}}}}'])
    def test_what_is_no_json_besides(self, text):
        """
        It is no JSON whatever its texts are.
        """
        (reply,) = events(text.encode())

        assert (reply.get("id"), reply["error"]["code"]) == (None, -32700)


class TestLarge:
    @pytest.mark.parametrize("revision", [*HANDSHAKES, MODERN])
    @pytest.mark.parametrize("number", [7, "x", "x" * 1000], ids=["number", "short", "long"])
    def test_a_request(self, revision, number):
        """
        A large one is read like any other, and keeps its id.
        """
        params = {"x": WORDS, **({"_meta": envelope()} if revision == MODERN else {})}

        (found,) = events(line(request(number, "prompts/list", params))[:-1], revision if params else None)

        assert isinstance(found, Request)
        assert (found.id, found.method) == (number, "prompts/list")

    @pytest.mark.parametrize(
        ("changed", "code"),
        [
            ({"jsonrpc": "1.0"}, -32600),
            ({"jsonrpc": WORDS}, -32600),
            ({"method": 3}, -32600),
            ({"method": [WORDS]}, -32600),
            ({"method": WORDS}, -32600),
            ({"params": WORDS}, -32600),
            ({"params": [WORDS]}, -32600),
        ],
        ids=lambda changed: str(changed)[:24],
    )
    def test_one_that_is_none(self, changed, code):
        """
        The error has its id, and repeats no text of it in full.
        """
        (reply,) = events(line({**request(7, "ping", {"x": WORDS}), **changed})[:-1])

        assert (reply["id"], reply["error"]["code"]) == (7, code)
        assert len(json.dumps(reply)) < 1000

    @pytest.mark.parametrize(
        "number",
        [None, True, 1.5, {}, 10**5000, "é" * 512],
        ids=["null", "bool", "half", "object", "huge", "long"],
    )
    def test_an_id_that_is_none(self, number):
        """
        It is not repeated.
        """
        text = b'{"jsonrpc":"2.0","id":%b,"method":"ping","params":{"x":"%b"}}'
        written = b"1" * 5001 if number == 10**5000 else json.dumps(number).encode()

        (reply,) = events(text % (written, WORDS.encode()))

        assert (reply.get("id"), reply["error"]["code"]) == (None, -32600)

    def test_a_notification(self):
        """
        One that is large counts, too.
        """
        text = line(
            {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": 5, "reason": WORDS},
            }
        )

        assert events(text[:-1]) == [Cancelled(5)]
