"""Disconnecting clients: at most one response is sent, the work stops, and no state remains."""

# ruff: noqa: ASYNC110 (the awaited conditions change on other threads)
import asyncio
import gc
import time
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from promptkit.transports.http.channel import HttpChannel
from promptkit.transports.http.connection import ConnectionLimits, Connections, HttpConnection, RequestCycle
from tests.posting import application, body_of, modern_headers, post
from tests.transports.http import recipes
from tests.wire import modern, request


def remaining_state(app):
    """Return the state that an application holds: pending requests, work, streams, and memory."""
    server = app._server
    return {
        "open": len(server._dispatcher._open),
        "alongside": len(server._dispatcher._alongside),
        "waiting": server._dispatcher.waiting_count,
        "streams": len(server._notifier._open),
        "memory": app._endpoint._budget._taken,
        "bodies": app._open.budget._taken,
        "pending": len(app._open._open),
    }


async def wait_until_idle(app, seconds=10.0):
    """Wait until no state remains."""
    deadline = time.monotonic() + seconds
    while any(remaining_state(app).values()) and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    assert not any(remaining_state(app).values()), remaining_state(app)


@asynccontextmanager
async def serving(**options):
    """Yield an application on this event loop, which must be idle at the end."""
    recipes.RELEASED.clear()
    recipes.STARTED.clear()
    recipes.ENDED.clear()
    app = application(recipes.catalog(), changes=True, **options)
    try:
        yield app
        await wait_until_idle(app)
    finally:
        recipes.RELEASED.set()
        app.close(0)
        recipes.RELEASED.clear()


def get(name, number=1, **arguments):
    """Return a request for a prompt."""
    return modern(
        number, "prompts/get", {"name": name, "arguments": {key: str(arguments[key]) for key in arguments}}
    )


async def wait_for_start(name):
    """Wait until a prompt has started."""
    async with asyncio.timeout(10):
        while name not in recipes.STARTED:
            await asyncio.sleep(0.001)


async def wait_for_end(name):
    """Wait until a prompt has ended."""
    async with asyncio.timeout(10):
        while name not in recipes.ENDED:
            await asyncio.sleep(0.001)


async def check_still_serving(app):
    """Check that the next request is served."""
    answer = await post(app, get("greet")).result()
    assert answer.json["result"]["messages"][0]["content"]["text"] == "Hello, you!"


LISTEN = modern(1, "subscriptions/listen", {"notifications": {"promptsListChanged": True}})


class TestDisconnecting:
    @pytest.mark.parametrize("name", ["works", "waits"])
    @pytest.mark.parametrize("action", ["close", "cancel"])
    def test_prompt_is_cancelled(self, name, action):
        """A disconnected client gets no response. Its prompt stops at the next await or progress report."""

        async def run():
            async with serving() as app:
                caller = post(app, get(name))
                await wait_for_start(name)
                if action == "close":
                    caller.gone.set()
                    await caller.result()
                else:  # some ASGI servers cancel the task
                    caller.task.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await caller.task
                await wait_for_end(name)
                await wait_until_idle(app)
                assert caller.answer.status == 0
                await check_still_serving(app)

        asyncio.run(run())

    @pytest.mark.parametrize("action", ["close", "cancel"])
    def test_prompt_on_the_leader_is_cancelled(self, action):
        """A prompt on the leader thread stops at the next progress report."""

        async def run():
            async with serving() as app:
                caller = post(app, get("works"))
                await wait_for_start("works")  # on the leader
                caller.task.cancel() if action == "cancel" else caller.gone.set()
                await asyncio.wait([caller.task])
                await wait_for_end("works")

        asyncio.run(run())

    def test_batch_is_cancelled(self):
        """When a client disconnects, all requests of its batch stop."""

        async def run():
            async with serving() as app:
                batch = [
                    request(number, "prompts/get", get(name)["params"] | {"_meta": {}})
                    for number, name in enumerate(["works", "waits", "greet"])
                ]
                caller = post(app, batch)
                await wait_for_start("works")
                await wait_for_start("waits")
                caller.gone.set()
                await caller.result()
                await wait_until_idle(app)
                assert sorted(recipes.ENDED) == ["waits", "works"]
                assert caller.answer.status == 0

        asyncio.run(run())

    @pytest.mark.parametrize("message", [get("works"), get("waits"), LISTEN])
    def test_queued_request_never_starts(self, message):
        """A queued request of a disconnected client is not started, and no stream is opened."""

        async def run():
            async with serving() as app:
                await check_still_serving(app)
                # No thread leads while this is posted: the messages wait, as they do after others.
                app._inbox.put(None)
                while app._server.is_reading:
                    await asyncio.sleep(0.001)
                app._inbox._messages.get()
                caller = post(app, message)
                await asyncio.sleep(0)
                posted = app._inbox._messages.get()
                events = app._inbox._receive(posted)
                caller.task.cancel()
                await asyncio.wait([caller.task])
                app._server._dispatcher.handle_events(events)
                await asyncio.sleep(0.05)
                assert recipes.STARTED == []
                del posted, events

        asyncio.run(run())

    @pytest.mark.parametrize("is_aside", [False, True], ids=["leader", "aside"])
    @pytest.mark.parametrize(
        ("step", "message"), [("call_on_loop", get("waits")), ("hold", LISTEN)], ids=["prompt", "stream"]
    )
    def test_disconnect_while_a_request_starts(self, is_aside, step, message):
        """The request ends even if its client disconnects just before its task starts or its stream opens."""

        async def run():
            async with serving() as app:
                await check_still_serving(app)
                dispatcher = app._server._dispatcher
                function, callers = getattr(dispatcher, step), []

                def call_late(pending, *args):
                    deadline = time.monotonic() + 10
                    while is_aside and not dispatcher._alongside and time.monotonic() < deadline:
                        time.sleep(0.001)
                    loop.call_soon_threadsafe(callers[0].task.cancel)
                    while not pending.is_answered and time.monotonic() < deadline:
                        time.sleep(0.0001)
                    return function(pending, *args)

                loop = asyncio.get_running_loop()
                setattr(dispatcher, step, call_late)
                callers.append(post(app, message))
                await asyncio.wait([callers[0].task])
                await wait_until_idle(app)
                delattr(dispatcher, step)

        asyncio.run(run())

    @pytest.mark.parametrize("message", [LISTEN, get("greet"), modern(1, "prompts/list")])
    def test_many_short_connections_leave_no_state(self, message):
        """Many short connections leave no state, at whatever moment the client disconnects."""

        async def run():
            async with serving() as app:
                for turn in range(60):
                    caller = post(app, message)
                    for _ in range(turn % 12):
                        await asyncio.sleep(0)
                    if turn % 2:
                        caller.gone.set()
                        if turn % 4 == 1:
                            await asyncio.sleep(0.002)
                    caller.task.cancel()
                    await asyncio.wait([caller.task])
                await wait_until_idle(app)
                await check_still_serving(app)

        asyncio.run(run())

    def test_memory_of_a_disconnected_client_is_released(self):
        """A large request whose client disconnects makes room for the next."""

        async def run():
            async with serving(held=200_000) as app:
                for name in ("works", "waits"):
                    message = get(name) | {"pad": "x" * 150_000}
                    caller = post(app, message)
                    await wait_for_start(name)
                    rejected = await post(app, get("greet") | {"pad": "x" * 150_000}).result()
                    assert (rejected.status, rejected.code) == (503, 429)
                    caller.gone.set()
                    await caller.result()
                    await wait_until_idle(app)
                await check_still_serving(app)

        asyncio.run(run())


def uncollected_objects(before=()):
    """Return connections and requests that only a garbage collection would free, except *before*."""
    kinds = (HttpConnection, RequestCycle, HttpChannel)
    known_ids = {id(obj) for obj in before}
    return [obj for obj in gc.get_objects() if issubclass(type(obj), kinds) and id(obj) not in known_ids]


class TestGarbage:
    @pytest.mark.parametrize("stays", [True, False], ids=["answered", "left"])
    def test_no_reference_cycles_remain(self, stays):
        """A client that disconnects during or after its request leaves no reference cycles."""
        message = get("waits", seconds=0.2 if stays else 20)
        fields = {"host": "localhost", "content-type": "application/json", **modern_headers(message)}
        lines = [f"{name}: {value}" for name, value in fields.items()]
        body = body_of(message)
        lines += [f"content-length: {len(body)}", "", ""]
        data = "\r\n".join(["POST /mcp HTTP/1.1", *lines]).encode() + body

        async def run():
            async with serving() as app:
                loop = asyncio.get_running_loop()
                connections = Connections(ConnectionLimits())
                server = await loop.create_server(
                    lambda: HttpConnection(app, connections, loop), "127.0.0.1", 0
                )
                reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
                writer.write(data)
                await wait_for_start("waits")
                if stays:
                    assert b" 200 OK" in await reader.readuntil(b"\r\n\r\n")
                else:
                    await asyncio.sleep(0.2)
                    writer.transport.abort()
                    while "waits" not in recipes.ENDED:
                        connections.sweep(loop.time())
                        await asyncio.sleep(0.01)
                await wait_until_idle(app)
                writer.close()
                server.close()
                while len(connections):
                    await asyncio.sleep(0.001)

        gc.collect()
        before = uncollected_objects()  # left by other tests, whose threads have not ended
        gc.disable()
        try:
            asyncio.run(run())
            # A thread that has sent its reply can still be in its function.
            deadline = time.monotonic() + 20
            while uncollected_objects(before) and time.monotonic() < deadline:
                time.sleep(0.01)
            assert uncollected_objects(before) == []
        finally:
            gc.enable()


class TestIncompleteBodies:
    def test_total_size_is_limited(self):
        """Incomplete bodies share a memory limit; requests beyond it get 503 with Retry-After."""

        async def run():
            async with serving(held=1_000_000) as app:
                stuck = []
                never = asyncio.Event()

                async def wait():
                    await never.wait()
                    return b""

                for _ in range(10):
                    caller = post(app, b"")
                    caller.pieces = [b"x" * 100_000, wait]
                    stuck.append(caller)
                    await asyncio.sleep(0)
                for pieces in ([b"x"], [b"x" * 100_000] * 9, [b"", b"x" * 500, b""]):
                    caller = post(app, b"")
                    caller.pieces = list(pieces)
                    rejected = await caller.result()
                    assert (rejected.status, rejected.code, rejected.header("retry-after")) == (503, 429, "1")
                    assert caller.pieces == []  # the body was read, so that the client sees the reply
                assert app._open.budget._taken == 1_000_000
                for each in stuck:
                    each.task.cancel()
                await asyncio.wait([each.task for each in stuck])
                large = post(app, body_of(request(1, "ping")).ljust(900_000))
                assert (await large.result()).status == 200
                await check_still_serving(app)

        asyncio.run(run())


KINDS = ["greet", "waits", "works", "fails", "leaves", "steps", "hurries", "unknown", "blocks"]


def message(kind, number):
    """Return a message of a kind."""
    if kind == "listen":
        return LISTEN | {"id": number}
    if kind == "batch":
        return [request(number, "prompts/get", {"name": "greet"}), request("p", "ping")]
    if kind == "broken":
        return b"{"
    return get(kind, number, **({"seconds": 0.05} if kind in {"waits", "blocks"} else {}))


async def disconnect(caller, action, ticks):
    """Disconnect, cancel or stay after some turns of the event loop."""
    for tick in range(ticks):
        await asyncio.sleep(0 if tick % 4 else 0.001)
    if action == "close":
        caller.gone.set()
    elif action == "cancel":
        caller.task.cancel()


class TestInterleavings:
    @settings(max_examples=25, deadline=None)
    @given(
        callers=st.lists(
            st.tuples(
                st.sampled_from([*KINDS, "listen", "batch", "broken"]),
                st.sampled_from(["stay", "close", "cancel"]),
                st.integers(0, 40),
            ),
            min_size=1,
            max_size=8,
        )
    )
    def test_random_interleavings(self, callers):
        """
        Whatever clients send, and whenever they disconnect, each gets at most one response, and all requests
        end.
        """

        async def run():
            async with serving() as app:
                posted = [post(app, message(kind, number)) for number, (kind, _, _) in enumerate(callers)]
                disconnecting = [
                    disconnect(each, action, ticks)
                    for each, (_, action, ticks) in zip(posted, callers, strict=True)
                ]
                await asyncio.gather(*disconnecting)
                recipes.RELEASED.set()
                for each, (kind, action, _) in zip(posted, callers, strict=True):
                    if kind == "listen":
                        each.gone.set()
                    await asyncio.wait([each.task], timeout=10)
                    assert each.task.done(), kind
                    if action == "stay" and kind != "listen":
                        assert each.answer.complete
                await check_still_serving(app)
                del posted

        asyncio.run(run())
