import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit.protocol.capabilities import METHODS, ServerInfo
from promptkit.protocol.connection import Connection
from promptkit.protocol.events import Cancelled, ClientResponse, Request
from promptkit.protocol.jsonrpc import CANCELLED, Reply
from promptkit.protocol.limits import CutOff
from promptkit.protocol.revisions import REVISIONS
from tests.wire import HANDSHAKES, initialize, line, modern, request


def connect(revision=None):
    connection = Connection(ServerInfo("shelf", "1.2", "Review prompts."))
    if revision:
        connection.receive_data(line(initialize(revision)))
    return connection


def reply(connection, message):
    """The one reply to a message that needs no work."""
    data = message if isinstance(message, bytes) else line(message)
    (event,) = connection.receive_data(data)
    return json.loads(event.line)


def code(answer):
    return answer["error"]["code"]


#: What methods that want something are sent.
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
    def test_a_served_revision_is_agreed_upon(self, revision):
        """
        The client's proposal is taken where it is served.
        """
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
    def test_any_other_gets_a_counter_offer(self, proposed):
        """
        An unknown revision, or one without a handshake, is answered with the newest that has one.
        """
        result = reply(connect(), initialize(proposed))["result"]

        assert result["protocolVersion"] == "2025-11-25"

    def test_a_second_handshake_agrees_anew(self):
        """
        A client may open the session again, with another revision.
        """
        connection = connect("2025-06-18")

        assert reply(connection, initialize("2024-11-05"))["result"]["protocolVersion"] == "2024-11-05"

    @pytest.mark.requirement("lifecycle/first")
    @pytest.mark.parametrize("revision", HANDSHAKES)
    @pytest.mark.parametrize("method", [name for name, method in METHODS.items() if not method.opens])
    def test_nothing_comes_before_it(self, method, revision):
        """
        A request before the handshake is refused, and says what to do; the handshake then succeeds.
        """
        connection = connect()
        answer = reply(connection, request(1, method, PARAMS.get(method, {})))

        assert reply(connection, initialize(revision))["result"]["protocolVersion"] == revision
        assert code(answer) == -32602
        assert answer["error"]["message"] == (
            f"{method} came before initialize, and its params._meta lacks "
            "'io.modelcontextprotocol/protocolVersion': open a session first, "
            "or name the revision in every request"
        )

    @pytest.mark.requirement("ping/before-handshake")
    def test_a_ping_may(self):
        """
        A ping is answered in every phase.
        """
        assert reply(connect(), request(1, "ping")) == {"jsonrpc": "2.0", "id": 1, "result": {}}

    @pytest.mark.parametrize(
        "params",
        [None, {}, {"protocolVersion": 3}, {"protocolVersion": "2025-06-18", "capabilities": []}],
        ids=str,
    )
    def test_a_handshake_without_its_params(self, params):
        """
        Params that do not fit are refused, and nothing is agreed upon.
        """
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
            pytest.param(
                b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null}', -32600, 1, id="params-null"
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
    def test_a_line_that_is_no_request(self, text, expected, number):
        """
        It gets the code of the specification, with the id where one can be read, and the next
        line is served.
        """
        connection = connect("2025-06-18")

        answer = reply(connection, text + b"\n")

        assert (expected, number) == (code(answer), answer.get("id"))
        assert reply(connection, request(2, "ping")) == {"jsonrpc": "2.0", "id": 2, "result": {}}

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
            pytest.param(b'{"jsonrpc":"2.0","id":5,"result":{}}', id="response"),
            pytest.param(b'{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":"x"}}', id="error-response"),
            pytest.param(b'{"jsonrpc":"2.0","method":"notifications/cancelled"}', id="cancels-nothing"),
            pytest.param(
                b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}', id="cancels-an-array"
            ),
            pytest.param(b'{"jsonrpc":"2.0","method":"initialize","params":{}}', id="initialize-without-id"),
        ],
    )
    def test_what_is_not_answered(self, text, revision):
        """
        Blank lines, notifications and responses to no request get no reply.
        """
        connection = connect(revision)

        assert connection.receive_data(text + b"\n") == []
        assert connection.receive_data(text + b"\n") == []

    def test_windows_line_ends(self):
        """
        A line may end as on Windows.
        """
        assert reply(connect(), line(request(1, "ping")).replace(b"\n", b"\r\n"))["result"] == {}

    def test_the_last_line_needs_no_end(self):
        """
        What comes before the end of the stream is a line.
        """
        connection = connect()

        assert connection.receive_data(line(request(1, "ping")).rstrip()) == []
        assert reply(connection, b"")["result"] == {}

    def test_a_line_that_is_cut_off(self):
        """
        Where a stream is not read to its end, what has begun is no line.
        """
        connection = connect()
        connection.receive_data(line(request(1, "ping")).rstrip())

        assert connection.receive_data(CutOff()) == []
        assert connection.receive_data(b"") == []

    @pytest.mark.parametrize("number", [0, -1, 2**53, 10**30, "", "a", "ü", "\x00", "7"])
    def test_an_id_comes_back_as_it_was(self, number):
        """
        Ids keep their value and their type.
        """
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
    def test_any_depth_is_survived(self, template):
        """
        However deep the nesting, and wherever the decoder gives up, the next line is served.
        """
        connection = connect("2025-03-26")

        for depth in (*range(940, 1010), 5000):
            connection.receive_data(template % (b"[" * depth + b"]" * depth) + b"\n")

        assert reply(connection, request(2, "ping"))["result"] == {}


class TestWork:
    def test_a_prompt_is_asked_for(self):
        """
        A request for a prompt is handed out with its params and the agreed revision.
        """
        params = {"name": "review", "arguments": {"diff": "x"}, "_meta": {"progressToken": 1}, "extra": None}

        (work,) = connect("2025-03-26").receive_data(line(request("a", "prompts/get", params)))

        assert isinstance(work, Request)
        assert ("a", REVISIONS["2025-03-26"]) == (work.id, work.revision)
        assert (
            work.params.name,
            work.params.arguments,
            work.params.meta.progress_token,
        ) == ("review", {"diff": "x"}, 1)

    def test_a_cancellation_is_handed_out(self):
        """
        So is a cancellation, with the id's type.
        """
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
    def test_only_one_revision_has_them(self, revision, batch):
        """
        An array is one invalid request wherever the agreed revision has none.
        """
        answer = reply(connect(revision), batch)

        assert (code(answer), answer.get("id")) == (-32600, None)

    @pytest.mark.requirement("lifecycle/initialize-in-batch")
    def test_a_handshake_is_no_part_of_one(self):
        """
        It is refused inside of an array, and the session stays unchanged.
        """
        connection = connect("2025-03-26")

        (answer,) = reply(connection, [initialize("2025-06-18", 3)])

        assert (answer["id"], code(answer)) == (3, -32600)
        assert connection.revision.date == "2025-03-26"

    @pytest.mark.requirement("lifecycle/initialize-in-batch")
    def test_an_array_opens_no_session(self):
        """
        As the first line, an array with a handshake is one invalid request.
        """
        connection = connect()

        assert code(reply(connection, [initialize("2025-03-26")])) == -32600
        assert connection.revision is None

    @pytest.mark.requirement("base/batch/received")
    def test_the_replies_leave_together(self):
        """
        Requests get an array of replies; notifications and responses add nothing to it.
        """
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
    def test_nothing_to_answer(self, batch):
        """
        A batch without requests gets no reply at all.
        """
        assert connect("2025-03-26").receive_data(line(batch)) == []

    @pytest.mark.requirement("base/batch/empty")
    def test_an_empty_one_is_an_invalid_request(self):
        """
        An empty array gets one error, not an array.
        """
        answer = reply(connect("2025-03-26"), [])

        assert (code(answer), "id" in answer) == (-32600, False)

    @pytest.mark.requirement("base/batch/received")
    def test_work_delays_the_array(self):
        """
        The array leaves with its last reply, whichever that is.
        """
        batch = [request(1, "prompts/list"), request(2, "ping"), request(3, "prompts/list")]

        first, second = connect("2025-03-26").receive_data(line(batch))

        assert second.answer(Reply(b'{"id":3}\n')) == b""
        assert [answer["id"] for answer in json.loads(first.answer(Reply(b'{"id":1}\n')))] == [2, 3, 1]

    def test_a_cancelled_request_leaves_its_batch(self):
        """
        What is not answered does not hold up the others.
        """
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
    """What a stream that is cut into *chunks* leads to, in a form that compares."""
    connection = connect()
    events = [event for chunk in chunks if chunk for event in connection.receive_data(chunk)]
    return [event.line if isinstance(event, Reply) else (event.id, event.params) for event in events]


@given(st.lists(st.integers(0, len(SESSION)), max_size=20))
def test_a_stream_is_the_same_however_it_is_cut(cuts):
    """
    Cutting the stream anywhere changes when a message is seen, never which.
    """
    edges = [0, *sorted(cuts), len(SESSION)]
    chunks = [SESSION[a:b] for a, b in pairwise(edges)]

    assert outcome([SESSION]) == outcome(chunks)


@given(st.binary(max_size=200))
def test_any_bytes_at_all_are_survived(data):
    """
    Whatever arrives gives replies that are JSON, and a ping is answered afterwards.
    """
    connection = connect("2025-03-26")

    for event in connection.receive_data(data + b"\n"):
        assert json.loads(event.line)["error"]["code"] in (-32700, -32600)

    assert reply(connection, request(1, "ping"))["result"] == {}


def test_every_released_revision_is_known():
    """
    The table holds all five revisions; four of them begin with a handshake.
    """
    assert [*HANDSHAKES, "2026-07-28"] == list(REVISIONS)
    assert [date for date, revision in REVISIONS.items() if not revision.stateless] == HANDSHAKES


def test_an_answer_is_taken_from_when_on_it_is_expected():
    """
    A client can answer a question only after it was asked, and only once.
    """
    connection = Connection(ServerInfo("promptkit", "1"))
    number, _ = connection.ask("elicitation/create", {})
    answer = line({"jsonrpc": "2.0", "id": number, "result": {"action": "decline"}})
    before = connection.receive_data(answer)
    connection.expect(number)
    after = [connection.receive_data(answer), connection.receive_data(answer)]

    assert before == []
    assert after == [[ClientResponse(number, {"action": "decline"})], []]


@pytest.mark.parametrize("revision", HANDSHAKES)
def test_of_members_with_one_name_the_last_counts(revision):
    """
    In a message and in its params, as JSON itself leaves that open.
    """
    twice = b'{"jsonrpc":"2.0","id":1,"id":2,"method":"none","method":"prompts/get","params":'
    params = b'{"name":"one","name":"two","arguments":{"a":"1","a":"2"}}}\n'

    (asked,) = connect(revision).receive_data(twice + params)

    assert (asked.id, asked.method, asked.params.name, asked.params.arguments) == (
        2,
        "prompts/get",
        "two",
        {"a": "2"},
    )
