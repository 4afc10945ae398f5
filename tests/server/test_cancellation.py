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
from promptkit.protocol.capabilities import Capabilities, ServerInfo
from promptkit.protocol.jsonrpc import InternalError, Reply
from promptkit.protocol.limits import Limits
from promptkit.protocol.session import Session
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
#: The revisions in which the server sends a question as a request.
ASKING = ["2025-06-18", "2025-11-25"]

#: The kinds of slow work: methods and params.
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

#: Every kind of request that can be pending, in every revision that has it.
PENDING = [
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


#: The events that can complete a pending request.
COMPLETIONS = {
    "work": lambda dispatcher, pending: dispatcher.answer(pending, Reply(b"done\n")),
    "client": lambda dispatcher, _: dispatcher.cancel(1),
    "deadline": lambda dispatcher, _: dispatcher._expire_requests(math.inf),
    "end": lambda dispatcher, _: dispatcher.close(0, lambda _: InternalError("the end")),
}


def cancel(number, **params):
    """Return the line that cancels a request."""
    return line(notification("notifications/cancelled", {"requestId": number, **params}))


class Work:
    """Prompts that do not end by themselves, and a record of how they ended."""

    def __init__(self):
        self.started, self.ended, self.release = Queue(), Queue(), threading.Event()

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
                self.release.wait(50)
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
        slow = (prompt(name="waits")(wait), prompt(name="blocks", timeout=30)(block))
        self.catalog = compile(Recipes(prompts=(*slow, late, offers, asks, quick)))

    def client(self, revision):
        """Return a client with the elicitation capability."""
        return Client(self.catalog, revision, capabilities=FORM, changes=True, threads=True)

    def start(self, client, method, params, number=1):
        """Send a request, wait until its work has started, and return the messages sent so far."""
        messages = client.post(method, params, number)
        if not messages:
            self.started.get(timeout=50)
        return messages


@pytest.fixture
def work():
    """Return the prompts, and release them after the test."""
    work = Work()
    yield work
    work.release.set()


def drain(client):
    """Close the server once no request is pending, and return the messages sent until then."""
    client.sent.clear()
    client.server.close(10)
    return client.replies()


class TestPendingRequests:
    @pytest.mark.requirement("cancellation/stops", "cancellation/frees")
    @pytest.mark.parametrize("revision", REVISIONS)
    @pytest.mark.parametrize("kind", ["async", "completion"])
    def test_cancelled_coroutine_stops(self, work, revision, kind):
        """A coroutine is cancelled where it awaits, so that it can clean up."""
        client = work.client(revision)
        work.start(client, *SLOW[kind])

        messages = client.send(cancel(1, reason="closed the tab"))

        assert messages == []
        assert work.ended.get(timeout=50) is asyncio.CancelledError
        assert drain(client) == []

    @pytest.mark.requirement("cancellation/no-reply", "cancellation/nothing-more")
    @pytest.mark.parametrize(("revision", "method", "params"), PENDING)
    def test_cancelled_request_is_not_answered(self, work, revision, method, params):
        """A cancelled request gets no reply, not even at shutdown, and later requests are answered."""
        client = work.client(revision)
        work.start(client, method, params)

        messages = client.send(cancel(1))
        work.release.set()
        answer = client.ask("prompts/list", {}, 2)

        assert answer["id"] == 2
        assert [message.get("method") for message in messages] == (
            ["notifications/cancelled"] if params == QUESTION[1] else []
        )
        assert drain(client) == []

    @pytest.mark.requirement("cancellation/frees")
    @pytest.mark.parametrize(("revision", "method", "params"), PENDING)
    def test_id_is_reusable_after_cancellation(self, work, revision, method, params):
        """The id of a pending request is rejected for other requests until it is cancelled."""
        client = work.client(revision)
        work.start(client, method, params)
        rejected = client.ask("prompts/get", {"name": "quick"}, 1)

        client.send(cancel(1))

        assert rejected["error"]["code"] == -32600
        assert "result" in client.ask("prompts/get", {"name": "quick"}, 1)

    @pytest.mark.requirement("cancellation/no-reply")
    def test_cancelled_request_in_a_batch(self, work):
        """The reply to a batch omits the cancelled request and contains all others."""
        client = work.client("2025-03-26")
        batch = [request(1, *SLOW["async"]), request(2, "ping"), request(3, "ping")]
        client.send(line(batch))
        work.started.get(timeout=50)

        (replies,) = client.send(cancel(1))

        assert [reply["id"] for reply in replies] == [2, 3]

    def test_cancelled_batch_is_not_answered(self, work):
        """A batch whose requests are all cancelled gets no reply."""
        client = work.client("2025-03-26")
        client.send(line([request(1, *SLOW["async"])]))
        work.started.get(timeout=50)

        assert client.send(cancel(1)) == []

    def test_other_requests_continue(self, work):
        """Cancelling one request does not affect the others."""
        client = work.client("2025-06-18")
        for number in (1, 2, 3):
            work.start(client, *SLOW["thread"], number)

        client.send(cancel(2))
        client.sent.clear()
        work.release.set()
        client.server.close(10)

        assert sorted(reply["id"] for reply in client.replies()) == [1, 3]

    def test_cancellation_applies_to_both_eras(self, work):
        """A cancellation carries no revision, so it applies to pending requests of both eras."""
        client = Client(work.catalog, None, threads=True)
        client.send(line(initialize("2025-06-18")) + line(modern(1, *SLOW["async"])))
        work.started.get(timeout=50)

        client.send(cancel(1))

        assert work.ended.get(timeout=50) is asyncio.CancelledError


class TestNothingToCancel:
    @pytest.mark.requirement("cancellation/unknown")
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_unknown_id_is_ignored(self, work, revision):
        """A cancellation with an unknown id, or with an id of another type, is ignored."""
        client = work.client(revision)
        work.start(client, *SLOW["thread"])

        for number in (999, "1", "", -1, 2**70):
            assert client.send(cancel(number)) == []
        self.assert_answered(client, work)

    @pytest.mark.requirement("cancellation/malformed")
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_malformed_cancellation_is_ignored(self, work, revision):
        """A malformed cancellation is ignored, and the request continues."""
        client = work.client(revision)
        work.start(client, *SLOW["thread"])

        for members in MALFORMED:
            assert client.send(line({**notification("notifications/cancelled"), **members})) == []
        self.assert_answered(client, work)

    @pytest.mark.requirement("cancellation/completed", "cancellation/races")
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_answered_request(self, work, revision):
        """A cancellation of an answered request is ignored, and a later request with that id is served."""
        client = work.client(revision)
        client.ask("prompts/get", {"name": "quick"}, 1)

        assert client.send(cancel(1)) == []
        assert "result" in client.ask("prompts/get", {"name": "quick"}, 1)

    @pytest.mark.requirement("cancellation/completed", "cancellation/races")
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_request_answered_by_another_thread(self, work, revision):
        """A cancellation of a slow request that another thread has answered is ignored."""
        client = work.client(revision)
        work.start(client, *SLOW["thread"])
        work.release.set()
        (reply,) = drain(client)

        assert (reply["id"], "result" in reply) == (1, True)
        assert client.send(cancel(1)) == []
        assert "result" in client.ask("prompts/get", {"name": "quick"}, 1)

    @pytest.mark.requirement("cancellation/initialize")
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_handshake_cannot_be_cancelled(self, work, revision):
        """A handshake is answered before the cancellation is read, and the session works."""
        client = Client(work.catalog, None)

        (opened,) = client.send(line(initialize(revision, number=0)) + cancel(0))
        (listed,) = client.send(line(request(1, "prompts/list")))

        assert opened["result"]["protocolVersion"] == revision
        assert "result" in listed

    def assert_answered(self, client, work):
        """Check that the request is still answered."""
        client.sent.clear()
        work.release.set()
        client.server.close(10)
        (reply,) = client.replies()
        assert (reply["id"], "result" in reply) == (1, True)


class TestRaces:
    def test_cancellation_while_the_coroutine_starts(self, work, monkeypatch):
        """A cancellation that arrives while a coroutine starts is not lost."""
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
        assert drain(client) == []

    @pytest.mark.parametrize("kind", ["async", "thread"])
    def test_cancellation_of_a_queued_request(self, work, kind):
        """A request that is cancelled while it waits in the queue never runs and is not answered."""
        client = Client(work.catalog, MODERN, threads=True, limits=Limits(renders=1))
        work.start(client, *SLOW["thread"])
        client.post(*SLOW[kind], 2)
        client.post("prompts/get", {"name": "quick"}, 3)

        client.send(cancel(2))
        work.release.set()

        assert sorted(reply["id"] for reply in drain(client)) == [1, 3]
        assert work.started.empty()

    @pytest.mark.requirement("cancellation/races")
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_second_cancellation_is_ignored(self, work, revision):
        """A second cancellation of the same request is ignored."""
        client = work.client(revision)
        work.start(client, *SLOW["async"])

        assert client.send(cancel(1) + cancel(1)) == []
        assert "result" in client.ask("prompts/list", {}, 1)

    @pytest.mark.requirement("cancellation/races")
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_cancellation_in_one_write_with_the_request(self, revision):
        """The request gets at most one reply, and the next request is served."""

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
    def test_cancellation_while_the_reply_is_sent(self, work, revision):
        """A reply that is being sent is not stopped, and is sent once."""
        sending, release, sent = threading.Event(), threading.Event(), []

        def send(data):
            if b'"id":1,' in data:
                sending.set()
                release.wait(50)
            sent.extend(data.splitlines())

        server = Server(work.catalog, send)
        stdin = Input(server)
        get = modern if revision == MODERN else request
        if revision != MODERN:
            stdin.write(line(initialize(revision)))
        stdin.write(line(get(1, *SLOW["thread"])))
        work.release.set()
        assert sending.wait(50)
        stdin.write(cancel(1) + line(get(2, "prompts/list")))
        release.set()
        server.close(10)
        stdin.end()

        assert [json.loads(reply)["id"] for reply in sent][-2:] == [2, 1]


class TestFirstCompletion:
    @pytest.fixture
    def pending(self):
        """Return a dispatcher, a pending request, and the list of sent lines."""
        sent, dispatched = [], []
        identity = ServerInfo("shelf", "1")
        (event,) = Session(identity).receive_data(line(modern(1, *QUESTION)))
        snapshot = Snapshot(Catalog(), identity, 10, Capabilities())
        dispatcher = Dispatcher(
            {"prompts/get": dispatched.append},
            lambda _: snapshot,
            bool,
            bool,
            sent.append,
            Limits(),
            describe_import=str,
            many_clients=False,
        )
        dispatcher.handle_events([event])
        return dispatcher, dispatched[0], sent

    @pytest.mark.requirement("cancellation/races")
    @pytest.mark.parametrize("first", COMPLETIONS)
    @pytest.mark.parametrize("second", COMPLETIONS)
    def test_first_completion_wins(self, pending, first, second):
        """
        A request is completed once: by its result, a cancellation, its deadline or the server's shutdown.
        """
        dispatcher, held, sent = pending
        COMPLETIONS[first](dispatcher, held)
        after_first = list(sent)
        COMPLETIONS[second](dispatcher, held)

        assert len(after_first) == (0 if first == "client" else 1)
        assert sent == after_first

    @pytest.mark.requirement("cancellation/races")
    def test_late_result_does_not_answer_another_request(self, pending):
        """The result of a cancelled request does not answer the next request with its id."""
        dispatcher, held, sent = pending
        dispatcher.cancel(1)
        dispatcher.handle_events([held.request])

        assert not dispatcher.answer(held, Reply(b"late\n"))
        assert not dispatcher.release(held)
        assert sent == []


class TestServerCancellations:
    def messages(self, work, revision):
        """Return the messages of a session in which every request is cancelled or ends."""
        client = work.client(revision)
        sent = work.start(client, *SLOW["async"], 1) + client.send(cancel(1))
        sent += client.post(*QUESTION, 2) + client.send(cancel(2))
        question = client.post(*QUESTION, 3)
        if question[0].get("method"):
            sent += client.answer(question[0]["id"], {"action": "decline"})
        sent += work.start(client, "prompts/get", {"name": "late"}, 4) + drain(client)
        if revision == MODERN:
            sent += client.post(*STREAM, 5) + client.post(*STREAM, 6) + client.send(cancel(5))
        sent += work.start(client, *SLOW["async"], 7) + client.post(*QUESTION, 8)
        client.sent.clear()
        client.server.close(0)
        return [*sent, *question, *client.replies()]

    @pytest.mark.requirement(
        "cancellation/own-requests", "cancellation/own-streams", "cancellation/nothing-else"
    )
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_cancellations_sent_by_the_server(self, work, revision):
        """The server cancels its own obsolete questions and streams, and never a client's request."""
        messages = self.messages(work, revision)

        cancelled = [
            message["params"] for message in messages if message.get("method") == "notifications/cancelled"
        ]
        questions = [message["id"] for message in messages if message.get("method") == "elicitation/create"]
        expected = sorted(questions)[::2] if revision in ASKING else [6] if revision == MODERN else []
        assert cancelled == [{"requestId": number} for number in expected]
        assert len(questions) == (3 if revision in ASKING else 0)
        assert any("took longer" in str(message.get("error")) for message in messages)

    @pytest.mark.requirement("cancellation/late-answer")
    @pytest.mark.parametrize("revision", HANDSHAKES)
    @pytest.mark.parametrize("result", [{"action": "accept", "content": {"name": "Ada"}}, None], ids=str)
    def test_late_answer_is_ignored(self, work, revision, result):
        """An answer to a cancelled question, or to a question that was never asked, is ignored."""
        client = work.client(revision)
        (message,) = client.post(*QUESTION, 1)
        number = message["id"] if message.get("method") else "promptkit-1"
        client.send(cancel(1))

        assert client.answer(number, result) == []
        assert "result" in client.ask("prompts/get", {"name": "quick"}, 1)
