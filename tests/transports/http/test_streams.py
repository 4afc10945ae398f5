"""Streams of events: what is said on them, to whom, in which order, and when they end."""

# ruff: noqa: ASYNC110 (what is waited for happens on other threads)
import asyncio

import pytest

from promptkit import resource
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from tests.posting import application, post
from tests.transports.http import recipes
from tests.transports.http.test_disconnects import calm, get, hello
from tests.wire import check, modern, request

ALL = {"promptsListChanged": True, "resourcesListChanged": True, "resourceSubscriptions": ["note://one"]}
ID = "io.modelcontextprotocol/subscriptionId"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
PROMPTS = "notifications/prompts/list_changed"
RESOURCES = "notifications/resources/list_changed"
UPDATED = "notifications/resources/updated"


def listen(number=1, **wanted):
    """Return a request for a stream."""
    return modern(number, "subscriptions/listen", {"notifications": wanted})


def saying(text):
    """A catalog with other prompts, and a resource that holds *text*."""

    @resource("note://one", name="one")
    def one() -> str:
        """Hold a note."""
        return text

    return compile(Recipes(prompts=(recipes.greet,), resources=(one,)))


def tell_of_prompts(app):
    """Tell all streams that the list of prompts has changed."""
    for streams in app._server._notifier.by_scopes.values():
        for stream in streams:
            stream.notify({"prompts/list"}, bool)


def methods(caller):
    """What was said on a stream so far, by method; a result is called so."""
    return [event.get("method", "result") for event in caller.answer.events]


def heard(caller, *wanted):
    """Wait until a stream has said all of this."""
    return caller.until(lambda answer: answer.body and set(wanted) <= set(methods(caller)))


def run(scenario, *, changes=True, **options):
    """Run a scenario with an application, which leaves nothing behind."""

    async def serve():
        app = application(recipes.catalog(), changes=changes, **options)
        await scenario(app)
        await calm(app)
        await asyncio.to_thread(app.close, 0)

    asyncio.run(serve())


class TestListening:
    @pytest.mark.parametrize("number", [0, 1, -7, "", "0", "a\u00df", "x" * 1000])
    def test_a_stream(self, number):
        """
        It is acknowledged first; whatever is said has the id of the request as it was sent; a result ends it.
        """

        async def scenario(app):
            caller = post(app, listen(number, **ALL))
            await heard(caller, ACKNOWLEDGED)
            answer = caller.answer
            assert (answer.status, answer.header("content-type")) == (200, "text/event-stream")
            assert answer.header("cache-control") == "no-cache, no-transform"
            assert answer.header("x-accel-buffering") == "no"
            assert answer.header("content-length") is None
            read = modern("r", "resources/read", {"uri": "note://one"})
            assert (await post(app, read).result()).status == 200
            app.replace(saying("Two."))
            await heard(caller, PROMPTS, UPDATED)
            await asyncio.to_thread(app.close, 0)
            await caller.result()
            assert methods(caller)[0] == ACKNOWLEDGED
            assert "result" in methods(caller)
            assert answer.events[0]["params"]["notifications"] == ALL
            for event in answer.events:
                if "method" in event and event["method"] != "notifications/cancelled":
                    found = event["params"]["_meta"][ID]
                    assert (found, type(found)) == (number, type(number))
                elif "result" in event:
                    assert (event["id"], event["result"]["_meta"][ID]) == (number, number)
                    check(event, "2026-07-28", {number: "subscriptions/listen"})
            assert answer.complete

        run(scenario)

    @pytest.mark.parametrize(
        ("wanted", "said"),
        [
            ({}, []),
            ({"promptsListChanged": True}, [PROMPTS]),
            ({"promptsListChanged": False, "resourcesListChanged": True}, []),
            ({"resourceSubscriptions": ["note://one"]}, [UPDATED]),
            ({"resourceSubscriptions": ["note://two"]}, []),
            (ALL, [PROMPTS, UPDATED]),
        ],
    )
    def test_only_what_was_asked_for(self, wanted, said):
        """
        A stream says what its client wanted, and nothing else.
        """

        async def scenario(app):
            caller, witness = post(app, listen("s", **wanted)), post(app, listen("w", **ALL))
            await heard(caller, ACKNOWLEDGED)
            await heard(witness, ACKNOWLEDGED)
            await post(app, modern("r", "resources/read", {"uri": "note://one"})).result()
            app.replace(saying("Two."))
            await heard(witness, PROMPTS, UPDATED)
            await asyncio.sleep(0.02)
            assert sorted(methods(caller)[1:]) == sorted(said)
            for each in (caller, witness):
                each.gone.set()
                await each.result()

        run(scenario)

    def test_nothing_changes(self):
        """
        A server whose recipes do not change acknowledges nothing of what was asked for.
        """

        async def scenario(app):
            caller = post(app, listen(1, **ALL))
            await heard(caller, ACKNOWLEDGED)
            assert caller.answer.events[0]["params"]["notifications"] == {}
            caller.gone.set()
            await caller.result()

        run(scenario, changes=False)

    def test_the_same_id_from_several_clients(self):
        """
        Each has its own stream, which ends without the others.
        """

        async def scenario(app):
            callers = [post(app, listen(7, promptsListChanged=True)) for _ in range(5)]
            for caller in callers:
                await heard(caller, ACKNOWLEDGED)
            callers[2].gone.set()
            await callers[2].result()
            assert len(app._server._notifier._open) == 4
            app.replace(saying("Two."))
            for caller in callers[:2] + callers[3:]:
                await heard(caller, PROMPTS)
                assert methods(caller) == [ACKNOWLEDGED, PROMPTS]
            assert methods(callers[2]) == [ACKNOWLEDGED]
            await hello(app)
            await asyncio.to_thread(app.close, 0)
            for caller in callers[:2] + callers[3:]:
                assert (await caller.result()).complete

        run(scenario)

    def test_too_many(self):
        """
        1,024 are open at once; the next is refused with 200 and -32603, and opens once another has ended.
        """

        async def scenario(app):
            callers = [post(app, listen(1, promptsListChanged=True)) for _ in range(1024)]
            for caller in callers:
                await heard(caller, ACKNOWLEDGED)
            refused = await post(app, listen(2)).result()
            assert (refused.status, refused.code, refused.json["id"]) == (200, -32603, 2)
            await hello(app)
            callers.pop().gone.set()
            while len(app._server._notifier._open) == 1024:
                await asyncio.sleep(0.001)
            late = post(app, listen(3))
            await heard(late, ACKNOWLEDGED)
            app.replace(saying("Two."))
            for caller in callers:
                await heard(caller, PROMPTS)
            await asyncio.to_thread(app.close, 0)
            for caller in [*callers, late]:
                assert (await caller.result()).complete

        run(scenario)

    def test_what_cannot_be_listened_to(self):
        """
        A refusal is JSON, and opens nothing.
        """

        async def scenario(app):
            refused = await post(app, listen(1, resourceSubscriptions=["x" * 2049])).result()
            assert (refused.status, refused.code) == (200, -32602)
            unknown = await post(app, request(1, "subscriptions/listen", {"notifications": {}})).result()
            assert (unknown.status, unknown.code) == (200, -32601)

        run(scenario)


class TestKeepingAlive:
    def test_comments(self):
        """
        From time to time something is said that says nothing, also before the client reads on.
        """

        async def scenario(app):
            caller = post(app, listen(1))
            await heard(caller, ACKNOWLEDGED)
            await caller.until(
                lambda answer: answer.body.count(b"\n:\n\n") + answer.body.count(b"\n\n:\n\n") >= 1
            )
            assert methods(caller) == [ACKNOWLEDGED]
            caller.gone.set()
            await caller.result()

        run(scenario, comment_interval=0.05)

    def test_a_body_that_stops(self):
        """
        408, once it has taken too long, and the connection is closed.
        """

        async def scenario(app):
            async def never():
                await asyncio.Event().wait()

            caller = post(app, b"")
            caller.pieces = [b"{", never]
            answer = await caller.result()
            assert (answer.status, answer.code, answer.header("connection")) == (408, -32600, "close")
            await hello(app)

        run(scenario, body_timeout=0.05)


class TestReaders:
    @pytest.mark.parametrize("number", [1, "x" * 1000])
    def test_one_that_does_not_read(self, number):
        """
        Once too much waits for it, lines or bytes, its stream is dropped; others go on.
        """

        async def scenario(app):
            lazy, honest = post(app, listen(number, **ALL)), post(app, listen(2, **ALL))
            await heard(lazy, ACKNOWLEDGED)
            await heard(honest, ACKNOWLEDGED)
            lazy.reads.clear()
            for turn in range(3000):
                tell_of_prompts(app)
                if turn % 100 == 0:
                    await asyncio.sleep(0)
            async with asyncio.timeout(5):
                await lazy.task
            assert not lazy.answer.complete
            assert len(app._server._notifier._open) == 1
            honest.gone.set()
            await honest.result()

        run(scenario)

    def test_a_server_that_cancels_it(self):
        """
        A stream that its server cancels is cancelled, whether or not it is read.
        """

        async def scenario(app):
            caller = post(app, listen(1, **ALL))
            await heard(caller, ACKNOWLEDGED)
            caller.reads.clear()
            tell_of_prompts(app)
            await asyncio.sleep(0.01)
            caller.task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await caller.task

        run(scenario)


class TestProgress:
    def steps(self, **members):
        """Return a request for a prompt that reports on the way."""
        return modern("p", "prompts/get", {"name": "steps"}, **members)

    def test_with_a_token(self):
        """
        A client that asks for reports gets a stream of them, and the reply at its end.
        """

        async def scenario(app):
            answer = await post(app, self.steps(progressToken="t")).result()
            *reports, reply = answer.events
            assert [report["params"]["progress"] for report in reports] == [1, 2, 3]
            assert {report["params"]["progressToken"] for report in reports} == {"t"}
            assert (reply["id"], reply["result"]["messages"][0]["content"]["text"]) == ("p", "Arrived.")
            assert answer.complete
            legacy = request(1, "prompts/get", {"name": "steps", "_meta": {"progressToken": 0}})
            assert len((await post(app, legacy).result()).events) == 4

        run(scenario)

    @pytest.mark.parametrize("accept", ["application/json", "application/json, text/event-stream;q=0"])
    def test_without_a_stream(self, accept):
        """
        Without a token, or without a stream, the reply is JSON alone.
        """

        async def scenario(app):
            assert (await post(app, self.steps()).result()).json["id"] == "p"
            assert (await post(app, self.steps(progressToken=1), accept=accept).result()).json["id"] == "p"
            assert (await post(app, get("greet")).result()).json["id"] == 1

        run(scenario)
