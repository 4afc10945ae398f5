import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit.protocol.capabilities import METHODS, ServerInfo
from promptkit.protocol.events import Cancelled, Request
from promptkit.protocol.jsonrpc import CANCELLED, Reply
from promptkit.protocol.limits import CutOff
from promptkit.protocol.revisions import REVISIONS
from promptkit.protocol.session import Session
from tests.wire import HANDSHAKES, initialize, line, modern, request


def connect(revision=None):
    connection = Session(ServerInfo("shelf", "1.2", "Review prompts."))
    if revision:
        connection.receive_data(line(initialize(revision)))
    return connection


def reply(connection, message):
    """Return the immediate reply to a message."""
    data = message if isinstance(message, bytes) else line(message)
    (event,) = connection.receive_data(data)
    return json.loads(event.line)


def code(answer):
    return answer["error"]["code"]


#: Params of the methods that require some.
PARAMS = {
    "prompts/get": {"name": "x"},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "x"},
        "argument": {"name": "y", "value": ""},
    },
    "resources/read": {"uri": "x://y"},
    "resources/subscribe": {"uri": "x://y"},
    "resources/unsubscribe": {"uri": "x://y"},
    "subscriptions/listen": {"notifications": {}},
    "skills/get": {"uri": "skill://x/SKILL.md"},
    "resources/directory/read": {"uri": "skill://x"},
}


class TestHandshake:
    @pytest.mark.requirement("lifecycle/same-version", "lifecycle/respond")
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_supported_revision(self, revision):
        """The server agrees to a supported revision that the client proposes."""
        result = reply(connect(), initialize(revision))["result"]

        assert {
            "protocolVersion": revision,
            "capabilities": {
                "prompts": {"listChanged": False},
                "resources": {"subscribe": False, "listChanged": False},
                "extensions": {"io.modelcontextprotocol/skills": {"directoryRead": True}},
            }
            | ({} if revision == "2024-11-05" else {"completions": {}}),
            "serverInfo": {"name": "shelf", "version": "1.2"},
            "instructions": "Review prompts.",
        } == result

    @pytest.mark.requirement("lifecycle/other-version", "lifecycle/latest-version")
    @pytest.mark.parametrize("proposed", ["2023-01-01", "2026-07-28", "2099-12-31", "", "latest"])
    def test_unsupported_revision(self, proposed):
        """
        If the proposed revision is unknown or has no handshake, the newest one with a handshake is used.
        """
        result = reply(connect(), initialize(proposed))["result"]

        assert result["protocolVersion"] == "2025-11-25"

    def test_second_handshake(self):
        """A client can open the session again with another revision."""
        connection = connect("2025-06-18")

        assert reply(connection, initialize("2024-11-05"))["result"]["protocolVersion"] == "2024-11-05"

    @pytest.mark.requirement("lifecycle/first")
    @pytest.mark.parametrize("revision", HANDSHAKES)
    @pytest.mark.parametrize(
        "method",
        sorted({name for name, method in METHODS.items() if not method.before_handshake} - {"tools/call"}),
    )
    def test_request_before_the_handshake(self, method, revision):
        """A request before the handshake is rejected with an explanation, and the handshake then succeeds."""
        connection = connect()
        answer = reply(connection, request(1, method, PARAMS.get(method, {})))

        assert reply(connection, initialize(revision))["result"]["protocolVersion"] == revision
        assert code(answer) == -32602
        assert answer["error"]["message"] == (
            f"{method} was sent before initialize, and its params._meta has no "
            "'io.modelcontextprotocol/protocolVersion': open a session first, "
            "or name the revision in every request"
        )

    @pytest.mark.requirement("ping/before-handshake")
    def test_ping_before_the_handshake(self):
        """A ping is answered in every phase."""
        assert reply(connect(), request(1, "ping")) == {"jsonrpc": "2.0", "id": 1, "result": {}}

    @pytest.mark.parametrize(
        "params",
        [None, {}, {"protocolVersion": 3}, {"protocolVersion": "2025-06-18", "capabilities": []}],
        ids=str,
    )
    def test_invalid_params(self, params):
        """A handshake with invalid params is rejected, and no revision is agreed upon."""
        connection = connect()

        assert code(reply(connection, request(1, "initialize", params))) == -32602
        assert connection.revision is None


class TestLines:
    @pytest.mark.parametrize(
        ("text", "expected", "number"),
        [
            pytest.param(b"{", -32700, None, id="truncated"),
            pytest.param(b"hello", -32700, None, id="text"),
            pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"ping","x":NaN}', -32700, None, id="nan"),
            pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"ping","x":"\xff"}', -32700, 1, id="no-utf-8"),
            pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"p\xff"}', -32700, 1, id="no-utf-8-method"),
            pytest.param(b'\xff\xfe{"jsonrpc":"2.0"}', -32700, None, id="utf-16-mark"),
            pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', -32600, 1, id="surrogate"),
            pytest.param(b"[" * 100_000, -32700, None, id="too-deep"),
            pytest.param(
                b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"[" * 9999 + b"]" * 9999 + b"}",
                -32700,
                1,
                id="params-too-deep",
            ),
            pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"ping"} {}', -32700, None, id="two-on-a-line"),
            pytest.param(b"3", -32600, None, id="number"),
            pytest.param(b"null", -32600, None, id="null"),
            pytest.param(b'"ping"', -32600, None, id="string"),
            pytest.param(b"{}", -32600, None, id="empty-object"),
            pytest.param(b'{"id":1,"method":"ping"}', -32600, 1, id="no-jsonrpc"),
            pytest.param(b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600, 1, id="jsonrpc-1"),
            pytest.param(b'{"jsonrpc":"2.0","id":"a"}', -32600, "a", id="no-method"),
            pytest.param(b'{"jsonrpc":"2.0","id":1,"method":3}', -32600, 1, id="method-number"),
            pytest.param(b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None, id="id-null"),
            pytest.param(b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None, id="id-bool"),
            pytest.param(b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None, id="id-fraction"),
            pytest.param(b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, None, id="id-object"),
            pytest.param(
                b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600, 1, id="params-array"
            ),
            pytest.param(
                b'{"jsonrpc":"2.0","id":1,"method":"ping","params":3}', -32600, 1, id="params-number"
            ),
            pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"nope"}', -32601, 1, id="unknown-method"),
            pytest.param(
                b'{"jsonrpc":"2.0","id":1,"method":"logging/setLevel"}', -32601, 1, id="not-declared"
            ),
            pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"prompts/get"}', -32602, 1, id="no-params"),
            pytest.param(
                b'{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":3}}',
                -32602,
                1,
                id="name-number",
            ),
            pytest.param(
                b'{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"x","arguments":[]}}',
                -32602,
                1,
                id="arguments-array",
            ),
            pytest.param(
                b'{"jsonrpc":"2.0","id":1,"method":"prompts/list","params":{"cursor":3}}',
                -32602,
                1,
                id="cursor",
            ),
        ],
    )
    def test_invalid_line(self, text, expected, number):
        """The error has the code of the specification and the id, if any, and the next line is served."""
        connection = connect("2025-06-18")

        answer = reply(connection, text + b"\n")

        assert (expected, number) == (code(answer), answer.get("id"))
        assert reply(connection, request(2, "ping")) == {"jsonrpc": "2.0", "id": 2, "result": {}}

    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_byte_order_mark(self, revision):
        """A byte order mark before the first message is ignored, even if it arrives separately."""
        whole, split = connect(), connect()
        text = line(initialize(revision))
        split.receive_data(b"\xef\xbb")

        answer = reply(whole, b"\xef\xbb\xbf" + text)

        assert answer["result"]["protocolVersion"] == revision
        assert reply(split, b"\xbf" + text) == answer

    @pytest.mark.requirement("base/notification/no-reply")
    @pytest.mark.parametrize("revision", [None, *HANDSHAKES])
    @pytest.mark.parametrize(
        "text",
        [
            pytest.param(b"", id="blank"),
            pytest.param(b" \t\r", id="spaces"),
            pytest.param(b'{"jsonrpc":"2.0","method":"notifications/initialized"}', id="initialized"),
            pytest.param(b'{"jsonrpc":"2.0","method":"notifications/nope"}', id="unknown-notification"),
            pytest.param(b'{"jsonrpc":"2.0","method":"prompts/list"}', id="request-without-id"),
            pytest.param(b'{"jsonrpc":"2.0","method":"ping","params":3}', id="notification-bad-params"),
            pytest.param(b'{"jsonrpc":"2.0","method":"notifications/cancelled"}', id="cancels-nothing"),
            pytest.param(
                b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}', id="cancels-an-array"
            ),
            pytest.param(b'{"jsonrpc":"2.0","method":"initialize","params":{}}', id="initialize-without-id"),
        ],
    )
    def test_messages_without_a_reply(self, text, revision):
        """Blank lines and notifications get no reply."""
        connection = connect(revision)

        assert connection.receive_data(text + b"\n") == []
        assert connection.receive_data(text + b"\n") == []

    def test_windows_line_endings(self):
        """A line can end with CRLF."""
        assert reply(connect(), line(request(1, "ping")).replace(b"\n", b"\r\n"))["result"] == {}

    def test_last_line_without_a_line_ending(self):
        """The data before the end of the stream is a line, even without a line ending."""
        connection = connect()

        assert connection.receive_data(line(request(1, "ping")).rstrip()) == []
        assert reply(connection, b"")["result"] == {}

    def test_truncated_line(self):
        """If the stream is not read to its end, incomplete data is not a line."""
        connection = connect()
        connection.receive_data(line(request(1, "ping")).rstrip())

        assert connection.receive_data(CutOff()) == []
        assert connection.receive_data(b"") == []

    @pytest.mark.parametrize("number", [0, -1, 2**53, 10**30, "", "a", "ü", "\x00", "7"])
    def test_id_is_unchanged(self, number):
        """Ids keep their value and their type."""
        assert number == reply(connect(), request(number, "ping"))["id"]

    @pytest.mark.parametrize(
        "template",
        [
            b'{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"x","z":%b}}',
            b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"x","z":%b}}',
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"z":%b}}',
            b'[{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"x","z":%b}}]',
        ],
        ids=["get", "initialize", "cancelled", "batch"],
    )
    def test_deep_nesting(self, template):
        """The next line is served whatever the depth of nesting."""
        connection = connect("2025-03-26")

        for depth in (*range(940, 1010), 5000):
            connection.receive_data(template % (b"[" * depth + b"]" * depth) + b"\n")

        assert reply(connection, request(2, "ping"))["result"] == {}


class TestDispatch:
    def test_request(self):
        """A request for a prompt is an event with its params and the agreed revision."""
        params = {"name": "review", "arguments": {"diff": "x"}, "_meta": {"progressToken": 1}, "extra": None}

        (work,) = connect("2025-03-26").receive_data(line(request("a", "prompts/get", params)))

        assert isinstance(work, Request)
        assert ("a", REVISIONS["2025-03-26"]) == (work.id, work.revision)
        assert (
            work.params.name,
            work.params.arguments,
            work.params.meta.progress_token,
        ) == ("review", {"diff": "x"}, 1)

    def test_cancellation(self):
        """A cancellation is an event with the id in its type."""
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "7"}}

        assert [Cancelled("7")] == connect("2025-06-18").receive_data(line(cancel))


class TestBatches:
    @pytest.mark.requirement("base/batch/none")
    @pytest.mark.parametrize("revision", [None, "2024-11-05", "2025-06-18", "2025-11-25"])
    @pytest.mark.parametrize(
        "batch",
        [
            [],
            [request(1, "ping"), request(2, "ping")],
            [modern(1, "prompts/list"), modern(2, "server/discover")],
            [{"jsonrpc": "2.0", "method": "notifications/initialized"}],
        ],
        ids=["empty", "requests", "modern-requests", "notification"],
    )
    def test_revisions_without_batches(self, revision, batch):
        """An array is one invalid request in every revision without batches."""
        answer = reply(connect(revision), batch)

        assert (code(answer), answer.get("id")) == (-32600, None)

    @pytest.mark.requirement("lifecycle/initialize-in-batch")
    def test_handshake_in_a_batch(self):
        """A handshake in an array is rejected, and the session is unchanged."""
        connection = connect("2025-03-26")

        (answer,) = reply(connection, [initialize("2025-06-18", 3)])

        assert (answer["id"], code(answer)) == (3, -32600)
        assert connection.revision.date == "2025-03-26"

    @pytest.mark.requirement("lifecycle/initialize-in-batch")
    def test_array_before_the_handshake(self):
        """An array as the first line is one invalid request."""
        connection = connect()

        assert code(reply(connection, [initialize("2025-03-26")])) == -32600
        assert connection.revision is None

    @pytest.mark.requirement("base/batch/received")
    def test_array_of_replies(self):
        """Requests get an array of replies, without elements for notifications and responses."""
        batch = [
            request(1, "ping"),
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 9, "result": {}},
            request(2, "nope"),
            3,
            initialize("2025-06-18", 3),
            [request(4, "ping")],
        ]

        answers = reply(connect("2025-03-26"), batch)

        assert [(answer.get("id"), answer.get("error", {}).get("code")) for answer in answers] == [
            (1, None),
            (2, -32601),
            (None, -32600),
            (3, -32600),
            (None, -32600),
        ]

    @pytest.mark.parametrize(
        "batch", [[{"jsonrpc": "2.0", "method": "x"}], [{"jsonrpc": "2.0", "id": 1, "result": {}}]]
    )
    def test_batch_without_requests(self, batch):
        """A batch without requests gets no reply."""
        assert connect("2025-03-26").receive_data(line(batch)) == []

    @pytest.mark.requirement("base/batch/empty")
    def test_empty_batch(self):
        """An empty array gets one error, not an array."""
        answer = reply(connect("2025-03-26"), [])

        assert (code(answer), "id" in answer) == (-32600, False)

    @pytest.mark.requirement("base/batch/received")
    def test_array_waits_for_all_replies(self):
        """The array is sent once its last reply is ready, whichever reply that is."""
        batch = [request(1, "prompts/list"), request(2, "ping"), request(3, "prompts/list")]

        first, second = connect("2025-03-26").receive_data(line(batch))

        assert second.answer(Reply(b'{"id":3}\n')) == b""
        assert [answer["id"] for answer in json.loads(first.answer(Reply(b'{"id":1}\n')))] == [2, 3, 1]

    def test_cancelled_request(self):
        """A cancelled request does not delay the other replies."""
        (work,) = connect("2025-03-26").receive_data(line([request(1, "prompts/list"), request(2, "ping")]))

        assert [answer["id"] for answer in json.loads(work.answer(CANCELLED))] == [2]


SESSION = b"".join(
    [
        line(initialize("2025-03-26")),
        line({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        b"\r\n",
        line(request("ü", "prompts/get", {"name": "p", "arguments": {"a": "ß\n"}})),
        b"no json\n",
        line([request(1, "ping"), request(2, "nope")]),
        b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n',
        json.dumps(request(3, "prompts/list"), ensure_ascii=False).encode() + b"\n",
    ],
)


def outcome(chunks):
    """Return the events of a stream of *chunks*, in a form that can be compared."""
    connection = connect()
    events = [event for chunk in chunks if chunk for event in connection.receive_data(chunk)]
    return [event.line if isinstance(event, Reply) else (event.id, event.params) for event in events]


@given(st.lists(st.integers(0, len(SESSION)), max_size=20))
def test_chunks_do_not_affect_messages(cuts):
    """The messages of a stream do not depend on its chunks."""
    edges = [0, *sorted(cuts), len(SESSION)]
    chunks = [SESSION[a:b] for a, b in pairwise(edges)]

    assert outcome([SESSION]) == outcome(chunks)


@given(st.binary(max_size=200))
def test_arbitrary_bytes(data):
    """Arbitrary bytes lead to JSON replies, and a ping is answered afterwards."""
    connection = connect("2025-03-26")

    for event in connection.receive_data(data + b"\n"):
        assert json.loads(event.line)["error"]["code"] in (-32700, -32600)

    assert reply(connection, request(1, "ping"))["result"] == {}


def test_every_released_revision_is_known():
    """The table contains all five revisions; four of them have a handshake."""
    assert [*HANDSHAKES, "2026-07-28"] == list(REVISIONS)
    assert [date for date, revision in REVISIONS.items() if not revision.stateless] == HANDSHAKES


@pytest.mark.parametrize("revision", HANDSHAKES)
def test_duplicate_members(revision):
    """Of duplicate fields in a message and its params, the last one counts."""
    twice = b'{"jsonrpc":"2.0","id":1,"id":2,"method":"none","method":"prompts/get","params":'
    params = b'{"name":"one","name":"two","arguments":{"a":"1","a":"2"}}}\n'

    (event,) = connect(revision).receive_data(twice + params)

    assert (event.id, event.method, event.params.name, event.params.arguments) == (
        2,
        "prompts/get",
        "two",
        {"a": "2"},
    )
