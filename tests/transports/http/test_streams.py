"""Event streams: their messages, recipients and order, and when they end."""

# ruff: noqa: ASYNC110 (the awaited conditions change on other threads)
import asyncio

import pytest

from promptkit import resource
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from tests.posting import application, post
from tests.transports.http import recipes
from tests.transports.http.test_disconnects import check_still_serving, get, wait_until_idle
from tests.wire import check, modern, request

ALL = {"promptsListChanged": True, "resourcesListChanged": True, "resourceSubscriptions": ["note://one"]}
ID = "io.modelcontextprotocol/subscriptionId"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
PROMPTS = "notifications/prompts/list_changed"
RESOURCES = "notifications/resources/list_changed"
UPDATED = "notifications/resources/updated"


def listen(number=1, **requested):
    """Return a request for a stream of the *requested* notifications."""
    return modern(number, "subscriptions/listen", {"notifications": requested})


def catalog_with_note(text):
    """Return a catalog with different prompts, and a resource that contains *text*."""

    @resource("note://one", name="one")
    def note() -> str:
        """Return a note."""
        return text

    return compile(Recipes(prompts=(recipes.greet,), resources=(note,)))


def notify_prompts_changed(app):
    """Notify all streams that the list of prompts has changed."""
    for streams in app._server._notifier.by_scopes.values():
        for stream in streams:
            stream.notify({"prompts/list"}, bool)


def methods(caller):
    """Return the methods of the messages on a stream so far; a result is called "result"."""
    return [event.get("method", "result") for event in caller.answer.events]


def wait_for_methods(caller, *expected):
    """Wait until a stream has sent all *expected* methods."""
    return caller.until(lambda answer: answer.body and set(expected) <= set(methods(caller)))


def run(scenario, *, changes=True, **options):
    """Run a scenario with an application, and check that it is idle afterwards."""

    async def serve():
        app = application(recipes.catalog(), changes=changes, **options)
        await scenario(app)
        await wait_until_idle(app)
        await asyncio.to_thread(app.close, 0)

    asyncio.run(serve())


class TestListening:
    @pytest.mark.parametrize("number", [0, 1, -7, "", "0", "a\u00df", "x" * 1000])
    def test_lifecycle_of_a_stream(self, number):
        """
        The acknowledgement comes first, notifications carry the id of the request as it was sent, and a
        result ends the stream.
        """

        async def scenario(app):
            caller = post(app, listen(number, **ALL))
            await wait_for_methods(caller, ACKNOWLEDGED)
            answer = caller.answer
            assert (answer.status, answer.header("content-type")) == (200, "text/event-stream")
            assert answer.header("cache-control") == "no-cache, no-transform"
            assert answer.header("x-accel-buffering") == "no"
            assert answer.header("content-length") is None
            read = modern("r", "resources/read", {"uri": "note://one"})
            assert (await post(app, read).result()).status == 200
            app.replace(catalog_with_note("Two."))
            await wait_for_methods(caller, PROMPTS, UPDATED)
            await asyncio.to_thread(app.close, 0)
            await caller.result()
            assert methods(caller)[0] == ACKNOWLEDGED
            assert "result" in methods(caller)
            assert answer.events[0]["params"]["notifications"] == ALL
            for event in answer.events:
                if "method" in event and event["method"] != "notifications/cancelled":
                    subscription_id = event["params"]["_meta"][ID]
                    assert (subscription_id, type(subscription_id)) == (number, type(number))
                elif "result" in event:
                    assert (event["id"], event["result"]["_meta"][ID]) == (number, number)
                    check(event, "2026-07-28", {number: "subscriptions/listen"})
            assert answer.complete

        run(scenario)

    @pytest.mark.parametrize(
        ("requested", "expected"),
        [
            ({}, []),
            ({"promptsListChanged": True}, [PROMPTS]),
            ({"promptsListChanged": False, "resourcesListChanged": True}, []),
            ({"resourceSubscriptions": ["note://one"]}, [UPDATED]),
            ({"resourceSubscriptions": ["note://two"]}, []),
            (ALL, [PROMPTS, UPDATED]),
        ],
    )
    def test_only_requested_notifications_are_sent(self, requested, expected):
        """A stream carries only the notifications that its client requested."""

        async def scenario(app):
            caller, witness = post(app, listen("s", **requested)), post(app, listen("w", **ALL))
            await wait_for_methods(caller, ACKNOWLEDGED)
            await wait_for_methods(witness, ACKNOWLEDGED)
            await post(app, modern("r", "resources/read", {"uri": "note://one"})).result()
            app.replace(catalog_with_note("Two."))
            await wait_for_methods(witness, PROMPTS, UPDATED)
            await asyncio.sleep(0.02)
            assert sorted(methods(caller)[1:]) == sorted(expected)
            for each in (caller, witness):
                each.gone.set()
                await each.result()

        run(scenario)

    def test_static_server_acknowledges_no_notifications(self):
        """Without reloading, none of the requested notifications is acknowledged."""

        async def scenario(app):
            caller = post(app, listen(1, **ALL))
            await wait_for_methods(caller, ACKNOWLEDGED)
            assert caller.answer.events[0]["params"]["notifications"] == {}
            caller.gone.set()
            await caller.result()

        run(scenario, changes=False)

    def test_clients_can_use_the_same_id(self):
        """Each client has its own stream, which ends independently."""

        async def scenario(app):
            callers = [post(app, listen(7, promptsListChanged=True)) for _ in range(5)]
            for caller in callers:
                await wait_for_methods(caller, ACKNOWLEDGED)
            callers[2].gone.set()
            await callers[2].result()
            assert len(app._server._notifier._open) == 4
            app.replace(catalog_with_note("Two."))
            for caller in callers[:2] + callers[3:]:
                await wait_for_methods(caller, PROMPTS)
                assert methods(caller) == [ACKNOWLEDGED, PROMPTS]
            assert methods(callers[2]) == [ACKNOWLEDGED]
            await check_still_serving(app)
            await asyncio.to_thread(app.close, 0)
            for caller in callers[:2] + callers[3:]:
                assert (await caller.result()).complete

        run(scenario)

    def test_number_of_streams_is_limited(self):
        """
        With 1,024 open streams, another one is rejected with status 200 and code 429 until one of them ends.
        """

        async def scenario(app):
            callers = [post(app, listen(1, promptsListChanged=True)) for _ in range(1024)]
            for caller in callers:
                await wait_for_methods(caller, ACKNOWLEDGED)
            rejected = await post(app, listen(2)).result()
            assert (rejected.status, rejected.code, rejected.json["id"]) == (200, 429, 2)
            await check_still_serving(app)
            callers.pop().gone.set()
            while len(app._server._notifier._open) == 1024:
                await asyncio.sleep(0.001)
            late = post(app, listen(3))
            await wait_for_methods(late, ACKNOWLEDGED)
            app.replace(catalog_with_note("Two."))
            for caller in callers:
                await wait_for_methods(caller, PROMPTS)
            await asyncio.to_thread(app.close, 0)
            for caller in [*callers, late]:
                assert (await caller.result()).complete

        run(scenario)

    def test_invalid_subscription_is_rejected(self):
        """The error for an invalid subscription is JSON, and no stream is opened."""

        async def scenario(app):
            rejected = await post(app, listen(1, resourceSubscriptions=["x" * 2049])).result()
            assert (rejected.status, rejected.code) == (200, -32602)
            unknown = await post(app, request(1, "subscriptions/listen", {"notifications": {}})).result()
            assert (unknown.status, unknown.code) == (200, -32601)

        run(scenario)


class TestKeepingAlive:
    def test_keep_alive_comments(self):
        """A keep-alive comment is sent at each interval."""

        async def scenario(app):
            caller = post(app, listen(1))
            await wait_for_methods(caller, ACKNOWLEDGED)
            await caller.until(
                lambda answer: answer.body.count(b"\n:\n\n") + answer.body.count(b"\n\n:\n\n") >= 1
            )
            assert methods(caller) == [ACKNOWLEDGED]
            caller.gone.set()
            await caller.result()

        run(scenario, comment_interval=0.05)

    def test_stalled_body_times_out(self):
        """A body that does not arrive in time is rejected with 408, and the connection is closed."""

        async def scenario(app):
            async def never():
                await asyncio.Event().wait()

            caller = post(app, b"")
            caller.pieces = [b"{", never]
            answer = await caller.result()
            assert (answer.status, answer.code, answer.header("connection")) == (408, -32600, "close")
            await check_still_serving(app)

        run(scenario, body_timeout=0.05)


class TestReaders:
    @pytest.mark.parametrize("number", [1, "x" * 1000])
    def test_slow_reader_is_dropped(self, number):
        """A stream with too many pending messages or bytes is dropped; other streams continue."""

        async def scenario(app):
            slow, normal = post(app, listen(number, **ALL)), post(app, listen(2, **ALL))
            await wait_for_methods(slow, ACKNOWLEDGED)
            await wait_for_methods(normal, ACKNOWLEDGED)
            slow.reads.clear()
            for turn in range(3000):
                notify_prompts_changed(app)
                if turn % 100 == 0:
                    await asyncio.sleep(0)
            async with asyncio.timeout(5):
                while len(app._server._notifier._open) > 1:
                    await asyncio.sleep(0.001)
            slow.reads.set()
            assert not (await slow.result()).complete
            normal.gone.set()
            await normal.result()

        run(scenario)

    def test_cancelled_stream_stops(self):
        """A stream that the ASGI server cancels stops, even if its client does not read."""

        async def scenario(app):
            caller = post(app, listen(1, **ALL))
            await wait_for_methods(caller, ACKNOWLEDGED)
            caller.reads.clear()
            notify_prompts_changed(app)
            await asyncio.sleep(0.01)
            caller.task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await caller.task

        run(scenario)


class TestProgress:
    def steps(self, **members):
        """Return a request for a prompt that reports progress."""
        return modern("p", "prompts/get", {"name": "steps"}, **members)

    def test_progress_with_a_token(self):
        """A client that sends a progress token gets a stream of notifications, and the reply at its end."""

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

    def test_no_progress_without_a_token_or_stream(self):
        """A client that sends no token or accepts no stream gets only the JSON reply."""

        async def scenario(app):
            assert (await post(app, self.steps()).result()).json["id"] == "p"
            assert (await post(app, self.steps(progressToken=1), accept="application/json").result()).json[
                "id"
            ] == "p"
            assert (await post(app, get("greet")).result()).json["id"] == 1

        run(scenario)
