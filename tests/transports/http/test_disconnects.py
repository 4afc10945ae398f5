"""Clients that leave: at most one response, the work ends, and nothing is left behind."""

# ruff: noqa: ASYNC110 (what is waited for happens on other threads)
import asyncio
import gc
import time
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from promptkit.transports.http.channel import HttpChannel
from promptkit.transports.http.connection import HttpConnection
from promptkit.transports.http.connection_limits import ConnectionLimits, Connections
from promptkit.transports.http.request_cycle import RequestCycle
from tests.posting import agreeing, application, body_of, post
from tests.transports.http import recipes
from tests.wire import modern, request


def left_behind(app):
    """What an application still holds: pending requests, work, streams, and memory."""
    server = app._server
    return {
        "open": len(server._dispatcher._open),
        "aside": len(server._dispatcher._aside),
        "waiting": server._dispatcher.waiting,
        "streams": len(server._notifier._open),
        "memory": app._endpoint._budget._taken,
        "bodies": app._open.budget._taken,
        "looked after": len(app._open._open),
    }


async def calm(app, seconds=10.0):
    """Wait until nothing is left behind."""
    end = time.monotonic() + seconds
    while any(left_behind(app).values()) and time.monotonic() < end:
        await asyncio.sleep(0.01)
    assert not any(left_behind(app).values()), left_behind(app)


@asynccontextmanager
async def serving(**options):
    """An application, on this event loop, that leaves nothing behind."""
    recipes.RELEASED.clear()
    recipes.BEGUN.clear()
    recipes.ENDED.clear()
    app = application(recipes.catalog(), changes=True, **options)
    try:
        yield app
        await calm(app)
    finally:
        recipes.RELEASED.set()
        app.close(0)
        recipes.RELEASED.clear()


def get(name, number=1, **arguments):
    """Return a request for a prompt."""
    return modern(
        number, "prompts/get", {"name": name, "arguments": {key: str(arguments[key]) for key in arguments}}
    )


async def begun(name):
    """Wait until a prompt has begun."""
    async with asyncio.timeout(10):
        while name not in recipes.BEGUN:
            await asyncio.sleep(0.001)


async def ended(name):
    """Wait until a prompt has ended."""
    async with asyncio.timeout(10):
        while name not in recipes.ENDED:
            await asyncio.sleep(0.001)


async def hello(app):
    """Check that the next honest request is served."""
    answer = await post(app, get("greet")).result()
    assert answer.json["result"]["messages"][0]["content"]["text"] == "Hello, you!"


LISTEN = modern(1, "subscriptions/listen", {"notifications": {"promptsListChanged": True}})


class TestLeaving:
    @pytest.mark.parametrize("name", ["works", "waits"])
    @pytest.mark.parametrize("how", ["close", "cancel"])
    def test_the_work_ends(self, name, how):
        """
        A client that closes its connection is sent nothing. Its prompt ends where it awaits something, or
        reports progress.
        """

        async def run():
            async with serving() as app:
                caller = post(app, get(name))
                await begun(name)
                if how == "close":
                    caller.gone.set()
                    await caller.result()
                else:  # as some servers do
                    caller.task.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await caller.task
                await ended(name)
                await calm(app)
                assert caller.answer.status == 0
                await hello(app)

        asyncio.run(run())

    @pytest.mark.parametrize("how", ["close", "cancel"])
    def test_of_a_prompt_in_place(self, how):
        """A prompt that runs on the leader at that moment ends where it reports progress."""

        async def run():
            async with serving() as app:
                caller = post(app, get("works"))
                await begun("works")  # on the leader
                caller.task.cancel() if how == "cancel" else caller.gone.set()
                await asyncio.wait([caller.task])
                await ended("works")

        asyncio.run(run())

    def test_of_a_batch(self):
        """All of its requests end."""

        async def run():
            async with serving() as app:
                batch = [
                    request(number, "prompts/get", get(name)["params"] | {"_meta": {}})
                    for number, name in enumerate(["works", "waits", "greet"])
                ]
                caller = post(app, batch)
                await begun("works")
                await begun("waits")
                caller.gone.set()
                await caller.result()
                await calm(app)
                assert sorted(recipes.ENDED) == ["waits", "works"]
                assert caller.answer.status == 0

        asyncio.run(run())

    @pytest.mark.parametrize("message", [get("works"), get("waits"), LISTEN])
    def test_of_what_has_not_begun(self, message):
        """What waits behind another request is never begun, and no stream is opened for nobody."""

        async def run():
            async with serving() as app:
                await hello(app)
                # Nobody leads while this is posted: the messages wait, as they do behind others.
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
                assert recipes.BEGUN == []
                del posted, events

        asyncio.run(run())

    @pytest.mark.parametrize("is_aside", [False, True], ids=["leader", "aside"])
    @pytest.mark.parametrize(
        ("step", "message"), [("call_on_loop", get("waits")), ("hold", LISTEN)], ids=["prompt", "stream"]
    )
    def test_while_a_request_starts(self, is_aside, step, message):
        """A request whose client leaves just before its task starts, or its stream opens, ends."""

        async def run():
            async with serving() as app:
                await hello(app)
                dispatcher = app._server._dispatcher
                function, callers = getattr(dispatcher, step), []

                def call_late(pending, *args):
                    end = time.monotonic() + 10
                    while is_aside and not dispatcher._aside and time.monotonic() < end:
                        time.sleep(0.001)
                    loop.call_soon_threadsafe(callers[0].task.cancel)
                    while not pending.is_answered and time.monotonic() < end:
                        time.sleep(0.0001)
                    return function(pending, *args)

                loop = asyncio.get_running_loop()
                setattr(dispatcher, step, call_late)
                callers.append(post(app, message))
                await asyncio.wait([callers[0].task])
                await calm(app)
                delattr(dispatcher, step)

        asyncio.run(run())

    @pytest.mark.parametrize("message", [LISTEN, get("greet"), modern(1, "prompts/list")])
    def test_a_stream_closes_with_its_client(self, message):
        """Many that come and go leave nothing, however early they go."""

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
                await calm(app)
                await hello(app)

        asyncio.run(run())

    def test_memory_of_large_requests(self):
        """A large request whose client leaves makes room for the next."""

        async def run():
            async with serving(held=200_000) as app:
                for name in ("works", "waits"):
                    message = get(name) | {"pad": "x" * 150_000}
                    caller = post(app, message)
                    await begun(name)
                    refused = await post(app, get("greet") | {"pad": "x" * 150_000}).result()
                    assert (refused.status, refused.code) == (503, 429)
                    caller.gone.set()
                    await caller.result()
                    await calm(app)
                await hello(app)

        asyncio.run(run())


def left_to_the_collector(before=()):
    """Objects of clients and requests that only a garbage collection finds, except those in *before*."""
    kinds = (HttpConnection, RequestCycle, HttpChannel)
    known = {id(one) for one in before}
    return [one for one in gc.get_objects() if issubclass(type(one), kinds) and id(one) not in known]


class TestGarbage:
    @pytest.mark.parametrize("stays", [True, False], ids=["answered", "left"])
    def test_nothing_is_left_to_its_collector(self, stays):
        """
        A client that was watched and is gone takes its replies with it: no circle of objects keeps them.
        """
        message = get("waits", seconds=0.2 if stays else 20)
        fields = {"host": "localhost", "content-type": "application/json", **agreeing(message)}
        lines = [f"{name}: {value}" for name, value in fields.items()]
        body = body_of(message)
        lines += [f"content-length: {len(body)}", "", ""]
        data = "\r\n".join(["POST /mcp HTTP/1.1", *lines]).encode() + body

        async def run():
            async with serving() as app:
                loop = asyncio.get_running_loop()
                connections = Connections(ConnectionLimits(), bool)
                server = await loop.create_server(
                    lambda: HttpConnection(app, connections, loop), "127.0.0.1", 0
                )
                reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
                writer.write(data)
                await begun("waits")
                if stays:
                    assert b" 200 OK" in await reader.readuntil(b"\r\n\r\n")
                else:
                    await asyncio.sleep(0.2)
                    writer.transport.abort()
                    while "waits" not in recipes.ENDED:
                        connections.sweep(loop.time())
                        await asyncio.sleep(0.01)
                await calm(app)
                writer.close()
                server.close()
                while len(connections):
                    await asyncio.sleep(0.001)

        gc.collect()
        before = left_to_the_collector()  # of other tests, whose threads have not ended
        gc.disable()
        try:
            asyncio.run(run())
            # A thread that has sent its reply may not have left its function yet.
            until = time.monotonic() + 20
            while left_to_the_collector(before) and time.monotonic() < until:
                time.sleep(0.01)
            assert left_to_the_collector(before) == []
        finally:
            gc.enable()


class TestHeldBodies:
    def test_they_are_bounded_together(self):
        """Bodies that are not whole yet take so much memory together, and no more; 503 with Retry-After."""

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
                    refused = await caller.result()
                    assert (refused.status, refused.code, refused.header("retry-after")) == (503, 429, "1")
                    assert caller.pieces == []  # it was read on, so that the client sees the reply
                assert app._open.budget._taken == 1_000_000
                for each in stuck:
                    each.task.cancel()
                await asyncio.wait([each.task for each in stuck])
                large = post(app, body_of(request(1, "ping")).ljust(900_000))
                assert (await large.result()).status == 200
                await hello(app)

        asyncio.run(run())


KINDS = ["greet", "waits", "works", "fails", "leaves", "steps", "hurries", "nobody", "blocks"]


def message(kind, number):
    """Return a message of some kind."""
    if kind == "listen":
        return LISTEN | {"id": number}
    if kind == "batch":
        return [request(number, "prompts/get", {"name": "greet"}), request("p", "ping")]
    if kind == "broken":
        return b"{"
    return get(kind, number, **({"seconds": 0.05} if kind in {"waits", "blocks"} else {}))


async def leave(caller, how, ticks):
    """Let a client leave after some turns of the event loop."""
    for tick in range(ticks):
        await asyncio.sleep(0 if tick % 4 else 0.001)
    if how == "close":
        caller.gone.set()
    elif how == "cancel":
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
    def test_any_of_them(self, callers):
        """Whatever is asked, and whenever clients leave, each gets one response at most, and all ends."""

        async def run():
            async with serving() as app:
                made = [post(app, message(kind, number)) for number, (kind, _, _) in enumerate(callers)]
                leaving = [
                    leave(each, how, ticks) for each, (_, how, ticks) in zip(made, callers, strict=True)
                ]
                await asyncio.gather(*leaving)
                recipes.RELEASED.set()
                for each, (kind, how, _) in zip(made, callers, strict=True):
                    if kind == "listen":
                        each.gone.set()
                    await asyncio.wait([each.task], timeout=10)
                    assert each.task.done(), kind
                    if how == "stay" and kind != "listen":
                        assert each.answer.complete
                await hello(app)
                del made

        asyncio.run(run())
