import asyncio
import json
import math
import threading
from queue import Queue
from typing import Annotated

import pytest

from promptkit import Arg, prompt
from promptkit.catalog.catalog import Catalog
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from promptkit.protocol.capabilities import ServerInfo
from promptkit.protocol.connection import Connection
from promptkit.protocol.jsonrpc import InternalError, Reply
from promptkit.protocol.limits import Limits
from promptkit.server import Server
from promptkit.server.dispatch import Dispatcher
from promptkit.server.event_loop import EventLoopThread
from promptkit.server.snapshot import Snapshot
from tests.wire import (
    HANDSHAKES,
    MODERN,
    REVISIONS,
    Client,
    Input,
    initialize,
    line,
    modern,
    notification,
    request,
)

FORM = {"elicitation": {}}
#: The revisions in which the server sends a question, as a request of its own.
ASKING = ["2025-06-18", "2025-11-25"]

#: What can take long, and how it is asked for.
SLOW = {
    "async": ("prompts/get", {"name": "waits"}),
    "thread": ("prompts/get", {"name": "blocks"}),
    "completion": (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "offers"}, "argument": {"name": "word", "value": ""}},
    ),
}
QUESTION = ("prompts/get", {"name": "asks"})
STREAM = ("subscriptions/listen", {"notifications": {"promptsListChanged": True}})

#: Every kind of request that can be in flight, in every revision that has it.
IN_FLIGHT = [
    *[
        pytest.param(revision, *SLOW[kind], id=f"{revision}-{kind}")
        for revision in REVISIONS
        for kind in SLOW
    ],
    *[pytest.param(revision, *QUESTION, id=f"{revision}-question") for revision in ASKING],
    pytest.param(MODERN, *STREAM, id=f"{MODERN}-stream"),
]

MALFORMED = [
    {},
    {"params": None},
    {"params": []},
    {"params": {}},
    {"params": [1]},
    {"params": 1},
    {"params": {"id": 1}},
    {"params": {"requestId": None}},
    {"params": {"requestId": True}},
    {"params": {"requestId": 1.5}},
    {"params": {"requestId": {}}},
    {"params": {"requestId": [1]}},
]


#: What can answer a pending request.
ANSWERERS = {
    "work": lambda dispatcher, pending: dispatcher.answer(pending, Reply(b"done\n")),
    "client": lambda dispatcher, _: dispatcher.cancel(1),
    "deadline": lambda dispatcher, _: dispatcher._expire(math.inf),
    "end": lambda dispatcher, _: dispatcher.close(0, lambda _: InternalError("the end")),
}


def cancel(number, **params):
    """The line that cancels a request."""
    return line(notification("notifications/cancelled", {"requestId": number, **params}))


class Work:
    """Prompts that do not end by themselves, and what becomes of them."""

    def __init__(self):
        self.started, self.ended, self.go_on = Queue(), Queue(), threading.Event()

        async def wait() -> str:
            self.started.put(self)
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError as error:
                self.ended.put(type(error))
                raise
            return "never"

        def block() -> str:
            self.started.put(self)
            try:
                self.go_on.wait(50)
            finally:
                self.ended.put("to its end")
            return "done"

        @prompt
        def offers(word: Annotated[str, Arg(complete=wait)]) -> str:
            return word

        @prompt(elicit=True)
        def asks(name: str) -> str:
            return name

        quick = prompt(name="quick")(lambda: "done")
        late = prompt(name="late", timeout=0.02)(block)
        made = (prompt(name="waits")(wait), prompt(name="blocks", timeout=30)(block))
        self.catalog = compile(Recipes(prompts=(*made, late, offers, asks, quick)))

    def client(self, revision):
        """A client that can be asked, too."""
        return Client(self.catalog, revision, capabilities=FORM, changes=True, threads=True)

    def start(self, client, method, params, number=1):
        """Send a request, and wait until the work on it has begun; return what is sent at once."""
        told = client.post(method, params, number)
        if not told:
            self.started.get(timeout=50)
        return told


@pytest.fixture
def work():
    """Prompts that are let go in the end."""
    work = Work()
    yield work
    work.go_on.set()


def rest(client):
    """What is still sent until nothing is in flight any more."""
    client.sent.clear()
    client.server.close(10)
    return client.replies()


class TestInFlight:
    @pytest.mark.requirement("cancellation/stops", "cancellation/frees")
    @pytest.mark.parametrize("revision", REVISIONS)
    @pytest.mark.parametrize("kind", ["async", "completion"])
    def test_it_stops(self, work, revision, kind):
        """
        What awaits something is cancelled there, so that it can tidy up; it is not waited for.
        """
        client = work.client(revision)
        work.start(client, *SLOW[kind])

        told = client.send(cancel(1, reason="closed the tab"))

        assert told == []
        assert work.ended.get(timeout=50) is asyncio.CancelledError
        assert rest(client) == []

    @pytest.mark.requirement("cancellation/no-reply", "cancellation/nothing-more")
    @pytest.mark.parametrize(("revision", "method", "params"), IN_FLIGHT)
    def test_it_is_not_answered(self, work, revision, method, params):
        """
        Requests after it are answered, and nothing is sent for it, not even at the end.
        """
        client = work.client(revision)
        work.start(client, method, params)

        told = client.send(cancel(1))
        work.go_on.set()
        answer = client.ask("prompts/list", {}, 2)

        assert answer["id"] == 2
        assert [found.get("method") for found in told] == (
            ["notifications/cancelled"] if params == QUESTION[1] else []
        )
        assert rest(client) == []

    @pytest.mark.requirement("cancellation/frees")
    @pytest.mark.parametrize(("revision", "method", "params"), IN_FLIGHT)
    def test_its_id_is_free(self, work, revision, method, params):
        """
        While it is in flight nothing else may have its id; once it is cancelled something may.
        """
        client = work.client(revision)
        work.start(client, method, params)
        refused = client.ask("prompts/get", {"name": "quick"}, 1)

        client.send(cancel(1))

        assert refused["error"]["code"] == -32600
        assert "result" in client.ask("prompts/get", {"name": "quick"}, 1)

    @pytest.mark.requirement("cancellation/no-reply")
    def test_the_rest_of_a_batch_is_answered(self, work):
        """
        In a batch its reply is missing, and the others leave without it.
        """
        client = work.client("2025-03-26")
        batch = [request(1, *SLOW["async"]), request(2, "ping"), request(3, "ping")]
        client.send(line(batch))
        work.started.get(timeout=50)

        (replies,) = client.send(cancel(1))

        assert [reply["id"] for reply in replies] == [2, 3]

    def test_a_batch_of_nothing_else_is_not_answered(self, work):
        """
        If all of a batch is cancelled nothing is sent at all.
        """
        client = work.client("2025-03-26")
        client.send(line([request(1, *SLOW["async"])]))
        work.started.get(timeout=50)

        assert client.send(cancel(1)) == []

    def test_one_of_several(self, work):
        """
        The others go on.
        """
        client = work.client("2025-06-18")
        for number in (1, 2, 3):
            work.start(client, *SLOW["thread"], number)

        client.send(cancel(2))
        client.sent.clear()
        work.go_on.set()
        client.server.close(10)

        assert sorted(reply["id"] for reply in client.replies()) == [1, 3]

    def test_a_cancellation_of_one_era_stops_a_request_of_the_other(self, work):
        """
        It carries no revision, so it may mean whatever is in flight.
        """
        client = Client(work.catalog, None, threads=True)
        client.send(line(initialize("2025-06-18")) + line(modern(1, *SLOW["async"])))
        work.started.get(timeout=50)

        client.send(cancel(1))

        assert work.ended.get(timeout=50) is asyncio.CancelledError


class TestNothingToCancel:
    @pytest.mark.requirement("cancellation/unknown")
    @pytest.mark.parametrize("revision", REVISIONS)
    @pytest.mark.parametrize("number", [999, "1", "", -1, 2**70])
    def test_what_was_never_requested(self, work, revision, number):
        """
        An unknown id is ignored, and so is one of another type than that of the request.
        """
        client = work.client(revision)
        work.start(client, *SLOW["thread"])

        assert client.send(cancel(number)) == []
        self.assert_answered(client, work)

    @pytest.mark.requirement("cancellation/malformed")
    @pytest.mark.parametrize("revision", REVISIONS)
    @pytest.mark.parametrize("members", MALFORMED, ids=str)
    def test_what_says_nothing_sensible(self, work, revision, members):
        """
        A malformed cancellation is ignored, and the request goes on.
        """
        client = work.client(revision)
        work.start(client, *SLOW["thread"])

        assert client.send(line({**notification("notifications/cancelled"), **members})) == []
        self.assert_answered(client, work)

    @pytest.mark.requirement("cancellation/completed", "cancellation/races")
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_what_is_already_answered(self, work, revision):
        """
        It is ignored, and a later request with that id is served.
        """
        client = work.client(revision)
        client.ask("prompts/get", {"name": "quick"}, 1)

        assert client.send(cancel(1)) == []
        assert "result" in client.ask("prompts/get", {"name": "quick"}, 1)

    @pytest.mark.requirement("cancellation/completed", "cancellation/races")
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_what_was_answered_by_another_thread(self, work, revision):
        """
        So is what took its time and is answered now.
        """
        client = work.client(revision)
        work.start(client, *SLOW["thread"])
        work.go_on.set()
        (reply,) = rest(client)

        assert (reply["id"], "result" in reply) == (1, True)
        assert client.send(cancel(1)) == []
        assert "result" in client.ask("prompts/get", {"name": "quick"}, 1)

    @pytest.mark.requirement("cancellation/initialize")
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_a_handshake(self, work, revision):
        """
        It is answered before the cancellation is read, and the session works.
        """
        client = Client(work.catalog, None)

        (opened,) = client.send(line(initialize(revision, number=0)) + cancel(0))
        (listed,) = client.send(line(request(1, "prompts/list")))

        assert opened["result"]["protocolVersion"] == revision
        assert "result" in listed

    def assert_answered(self, client, work):
        """The request is still worked on, and answered."""
        client.sent.clear()
        work.go_on.set()
        client.server.close(10)
        (reply,) = client.replies()
        assert (reply["id"], "result" in reply) == (1, True)


class TestRaces:
    def test_while_the_work_begins(self, work, monkeypatch):
        """
        A cancellation that arrives while a coroutine starts is not lost.
        """
        client = work.client(MODERN)
        start = EventLoopThread.start

        def start_and_cancel(*args):
            started = start(*args)
            work.started.get(timeout=50)
            client.server._dispatcher.cancel(1)
            return started

        monkeypatch.setattr(EventLoopThread, "start", start_and_cancel)
        client.post(*SLOW["async"], 1)

        assert work.ended.get(timeout=50) is asyncio.CancelledError
        assert rest(client) == []

    @pytest.mark.parametrize("kind", ["async", "thread"])
    def test_while_it_waits_for_room(self, work, kind):
        """
        A request that is cancelled before there is room for it never runs, and is not answered.
        """
        client = Client(work.catalog, MODERN, threads=True, limits=Limits(renders=1))
        work.start(client, *SLOW["thread"])
        client.post(*SLOW[kind], 2)
        client.post("prompts/get", {"name": "quick"}, 3)

        client.send(cancel(2))
        work.go_on.set()

        assert sorted(reply["id"] for reply in rest(client)) == [1, 3]
        assert work.started.empty()

    @pytest.mark.requirement("cancellation/races")
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_twice(self, work, revision):
        """
        The second cancellation of a request is ignored.
        """
        client = work.client(revision)
        work.start(client, *SLOW["async"])

        assert client.send(cancel(1) + cancel(1)) == []
        assert "result" in client.ask("prompts/list", {}, 1)

    @pytest.mark.requirement("cancellation/races")
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_in_one_write_with_the_request(self, revision):
        """
        There is one reply or none, never two, and the next request is served.
        """

        @prompt
        async def brief() -> str:
            return "done"

        catalog = compile(Recipes(prompts=(brief,)))
        get = modern if revision == MODERN else request
        started = line(get(1, "prompts/get", {"name": "brief"}))
        for _ in range(100):
            client = Client(catalog, revision)
            client.send(started + cancel(1) + line(get(2, "prompts/list")))
            client.server.close(10)

            ids = [reply["id"] for reply in client.replies()]
            assert (ids.count(1) <= 1, ids.count(2)) == (True, 1)

    @pytest.mark.requirement("cancellation/races")
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_while_the_reply_is_being_sent(self, work, revision):
        """
        What is on its way out is not stopped, and not sent twice.
        """
        sending, go_on, sent = threading.Event(), threading.Event(), []

        def send(data):
            if b'"id":1,' in data:
                sending.set()
                go_on.wait(50)
            sent.extend(data.splitlines())

        server = Server(work.catalog, send)
        reading = Input(server)
        get = modern if revision == MODERN else request
        if revision != MODERN:
            reading.write(line(initialize(revision)))
        reading.write(line(get(1, *SLOW["thread"])))
        work.go_on.set()
        assert sending.wait(50)
        reading.write(cancel(1) + line(get(2, "prompts/list")))
        go_on.set()
        server.close(10)
        reading.end()

        assert [json.loads(reply)["id"] for reply in sent][-2:] == [2, 1]


class TestWhoComesFirst:
    @pytest.fixture
    def pending(self):
        """A dispatcher, a pending request, and the lines that were sent."""
        sent, taken = [], []
        identity = ServerInfo("shelf", "1")
        (asked,) = Connection(identity).receive_data(line(modern(1, *QUESTION)))
        snapshot = Snapshot(Catalog(), identity, 10, changes=False)
        dispatcher = Dispatcher(
            {"prompts/get": taken.append},
            lambda _: snapshot,
            bool,
            bool,
            sent.append,
            Limits(),
            importing=str,
            many_clients=False,
        )
        dispatcher.handle_events([asked])
        return dispatcher, taken[0], sent

    @pytest.mark.requirement("cancellation/races")
    @pytest.mark.parametrize("first", ANSWERERS)
    @pytest.mark.parametrize("second", ANSWERERS)
    def test_the_first_answer_wins(self, pending, first, second):
        """
        Of the work, the client, the deadline and the end, the first answers; the second sends nothing.
        """
        dispatcher, held, sent = pending
        ANSWERERS[first](dispatcher, held)
        after_first = list(sent)
        ANSWERERS[second](dispatcher, held)

        assert len(after_first) == (0 if first == "client" else 1)
        assert sent == after_first

    @pytest.mark.requirement("cancellation/races")
    def test_a_late_answer_is_not_sent_for_another_request(self, pending):
        """
        The result of a cancelled request does not answer the next request with its id.
        """
        dispatcher, held, sent = pending
        dispatcher.cancel(1)
        dispatcher.handle_events([held.request])

        assert not dispatcher.answer(held, Reply(b"late\n"))
        assert not dispatcher.release(held)
        assert sent == []


class TestOfTheServer:
    def lines(self, work, revision):
        """What the server sends in a session in which everything is cancelled, or ends."""
        client = work.client(revision)
        sent = work.start(client, *SLOW["async"], 1) + client.send(cancel(1))
        sent += client.post(*QUESTION, 2) + client.send(cancel(2))
        asked = client.post(*QUESTION, 3)
        if asked[0].get("method"):
            sent += client.answer(asked[0]["id"], {"action": "decline"})
        sent += work.start(client, "prompts/get", {"name": "late"}, 4) + rest(client)
        if revision == MODERN:
            sent += client.post(*STREAM, 5) + client.post(*STREAM, 6) + client.send(cancel(5))
        sent += work.start(client, *SLOW["async"], 7) + client.post(*QUESTION, 8)
        client.sent.clear()
        client.server.close(0)
        return [*sent, *asked, *client.replies()]

    @pytest.mark.requirement(
        "cancellation/own-requests", "cancellation/own-streams", "cancellation/nothing-else"
    )
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_what_the_server_cancels(self, work, revision):
        """
        Of a session it takes back the questions that are moot, of a modern client the
        stream that is; what it was asked for it never cancels, whatever becomes of that.
        """
        lines = self.lines(work, revision)

        cancelled = [sent["params"] for sent in lines if sent.get("method") == "notifications/cancelled"]
        questions = [sent["id"] for sent in lines if sent.get("method") == "elicitation/create"]
        expected = sorted(questions)[::2] if revision in ASKING else [6] if revision == MODERN else []
        assert cancelled == [{"requestId": number} for number in expected]
        assert len(questions) == (3 if revision in ASKING else 0)
        assert any("took longer" in str(sent.get("error")) for sent in lines)

    @pytest.mark.requirement("cancellation/late-answer")
    @pytest.mark.parametrize("revision", HANDSHAKES)
    @pytest.mark.parametrize("result", [{"action": "accept", "content": {"name": "Ada"}}, None], ids=str)
    def test_a_late_answer(self, work, revision, result):
        """
        Whatever answers a question that was taken back is ignored, and so is an answer to none.
        """
        client = work.client(revision)
        (asked,) = client.post(*QUESTION, 1)
        number = asked["id"] if asked.get("method") else "promptkit-1"
        client.send(cancel(1))

        assert client.answer(number, result) == []
        assert "result" in client.ask("prompts/get", {"name": "quick"}, 1)
