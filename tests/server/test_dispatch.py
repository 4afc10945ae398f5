"""Threads, time limits and the single reply of each request."""

import asyncio
import contextlib
import gc
import json
import os
import sys
import threading
import time
import weakref
from queue import Empty, Queue

import pytest

from promptkit import Context, prompt
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from promptkit.protocol.limits import Limits
from promptkit.server import Server
from promptkit.server import dispatch as dispatch_module
from promptkit.server.pending import reply_to
from promptkit.server.threads import DaemonThread, _Started
from tests.wire import initialize, line, modern, notification, request


class Exchange:
    """A server on background threads, and its output."""

    def __init__(self, *prompts, **options):
        self.sent, self._input = Queue(), Queue()
        self._ended = threading.Event()
        catalog = None if options.pop("is_importing", False) else compile(Recipes(prompts=prompts))
        self.server = Server(catalog, self.sent.put, **options)
        self.server.read_from(self._input.get, self._ended.set)

    def send(self, *messages):
        """Send messages in one write."""
        self._input.put(b"".join(map(line, messages)))

    def get(self, number, name, **arguments):
        """Send `prompts/get`."""
        self.send(modern(number, "prompts/get", {"name": name, "arguments": arguments}))

    def replies(self, count, timeout=30):
        """Return the next *count* replies by id."""
        messages = []
        while len(messages) < count:
            messages += map(json.loads, self.sent.get(timeout=timeout).splitlines())
        return {reply["id"]: reply for reply in messages}

    def close(self, grace=10):
        """End the input, and then the server."""
        self._input.put(b"")
        assert self._ended.wait(30)
        self.server.close(grace)

    def is_silent(self):
        """Whether no further reply arrives."""
        try:
            return not self.sent.get(timeout=0.1)
        except Empty:
            return True


@pytest.fixture
def serve():
    """Return a function that starts a server of some prompts."""
    started = []

    def make(*prompts, **options):
        started.append(Exchange(*prompts, **options))
        return started[-1]

    yield make
    for exchange in started:
        exchange.close(0)


@prompt
def quick():
    return "done"


class Gate:
    """A prompt that blocks until the gate is opened, and records its threads."""

    def __init__(self, name="gated", timeout=None):
        self.open, self.entered = threading.Event(), threading.Semaphore(0)
        self.threads = []

        @prompt(name=name, timeout=timeout)
        def gated():
            self.threads.append(threading.current_thread())
            self.entered.release()
            self.open.wait(30)
            return "done"

        self.prompt = gated


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.open.set()


def text_of(reply):
    return reply["result"]["messages"][0]["content"]["text"]


class TestLeading:
    def test_another_thread_leads_while_a_prompt_blocks(self, serve, gate):
        """Requests after a blocking prompt are answered, whether they arrive in the same write or later."""
        client = serve(gate.prompt, quick)
        client.send(modern(1, "prompts/get", {"name": "gated"}), modern(2, "prompts/get", {"name": "quick"}))
        assert text_of(client.replies(1)[2]) == "done"
        client.get(3, "quick")
        assert text_of(client.replies(1)[3]) == "done"
        gate.open.set()

        assert text_of(client.replies(1)[1]) == "done"

    def test_leader_role_is_handed_over_before_a_slow_prompt_runs(self, serve, gate):
        """
        The next request for a slow prompt delays no other request; after a quick run, the leader runs the
        prompt again.
        """
        client = serve(gate.prompt, quick)
        slow = client.server.snapshot.slow
        client.get(1, "gated")
        assert gate.entered.acquire(timeout=30)
        while not slow:
            time.sleep(0.001)
        gate.open.set()
        client.replies(1)
        client.get(2, "gated")
        client.replies(1)
        assert slow == set()
        client.get(3, "gated")
        client.get(4, "quick")
        client.replies(2)

        former, handed_on, leader = gate.threads
        assert former is not handed_on  # a second thread led, and a third one from then on
        assert leader not in (former, handed_on)

    @pytest.mark.parametrize("start", ["fails", "is too late"])
    def test_leader_stays_if_no_thread_can_start(self, serve, gate, monkeypatch, start):
        """If no thread can be started, all requests wait for the prompt and are answered afterwards."""

        def fail(*_):
            raise RuntimeError

        client = serve(gate.prompt, quick)
        client.get(1, "quick")
        client.replies(1)
        monkeypatch.setattr(*((DaemonThread, "start") if start == "fails" else (_Started, "wait")), fail)
        client.send(modern(2, "prompts/get", {"name": "gated"}), modern(3, "prompts/get", {"name": "quick"}))
        assert gate.entered.acquire(timeout=30)
        time.sleep(0.05)
        assert client.sent.empty()
        gate.open.set()

        assert client.replies(2).keys() == {2, 3}

    def test_thread_that_loses_the_leader_role_before_its_reply(self, monkeypatch, serve):
        """If a thread loses the leader role before it replies, it still sends the reply, once."""

        def lose_the_lead(pending, *arguments):
            dispatcher = client.server._dispatcher
            with dispatcher._lock:
                dispatcher._replace_leader(pending)
            return reply_to(pending, *arguments)

        client = serve(quick)
        monkeypatch.setattr(dispatch_module, "reply_to", lose_the_lead)
        for number in range(20):
            client.get(number, "quick")

        assert client.replies(20).keys() == {*range(20)}
        client.close()
        assert client.is_silent()

    def test_switch_interval_is_short_while_code_runs_alongside_the_leader(self, serve, gate):
        """The switch interval is restored when the last code that runs alongside the leader returns."""
        before = sys.getswitchinterval()
        client = serve(gate.prompt, quick)
        client.get(1, "gated")
        client.get(2, "quick")
        client.replies(1)
        assert sys.getswitchinterval() == pytest.approx(0.0005)
        gate.open.set()
        client.replies(1)
        client.close()

        assert sys.getswitchinterval() == before

    def test_unhandled_message_is_answered(self, serve, monkeypatch, capsys):
        """A request whose handling raises MemoryError gets an error, and the next request is served."""
        client = serve(quick)
        with monkeypatch.context() as patch:
            patch.setattr(client.server._dispatcher, "_accept", lambda *_: (_ for _ in ()).throw(MemoryError))
            client.get(1, "quick")
            assert client.replies(1)[1]["error"]["code"] == -32603
        client.get(2, "quick")

        assert text_of(client.replies(1)[2]) == "done"
        assert "a client's message could not be handled: MemoryError()" in capsys.readouterr().err


class TestOneReply:
    @pytest.mark.parametrize("answer", ["deadline", "cancelled", "end"])
    def test_late_result_is_dropped(self, serve, answer):
        """If code returns after its request was answered, its result is dropped."""
        gate = Gate(timeout=0.1 if answer == "deadline" else None)
        client = serve(gate.prompt, quick)
        client.send(initialize("2025-11-25", "hello"), notification("notifications/initialized"))
        client.replies(1)
        client.send(request(1, "prompts/get", {"name": "gated"}))
        assert gate.entered.acquire(timeout=30)
        if answer == "deadline":
            assert "took longer than its limit of 0.1 s" in client.replies(1)[1]["error"]["message"]
        elif answer == "cancelled":
            client.send(notification("notifications/cancelled", {"requestId": 1}))
            client.send(request(2, "prompts/get", {"name": "quick"}))
            assert client.replies(1).keys() == {2}
        else:
            client.close(0)
            assert "the server was shut down before" in client.replies(1)[1]["error"]["message"]
        gate.open.set()
        gate.threads[0].join(30)

        assert client.is_silent()

    def test_id_is_reusable_once_its_request_is_answered(self, serve, gate):
        """A second request with the id of a pending request is rejected."""
        client = serve(gate.prompt, quick)
        client.get(1, "gated")
        assert gate.entered.acquire(timeout=30)
        client.get(1, "quick")
        assert client.replies(1)[1]["error"]["message"] == "the id 1 is already in use by a pending request"
        gate.open.set()
        client.replies(1)
        client.get(1, "quick")

        assert text_of(client.replies(1)[1]) == "done"

    def test_stored_cancellation_error_is_an_ordinary_failure(self, serve):
        """A prompt that raises the stored error of an earlier, timed-out call has failed like any other."""
        events = []

        @prompt(timeout=0.1)
        def stores(context: Context):
            try:
                while True:
                    time.sleep(0.01)
                    context.report_progress(len(events))
                    events.append(None)
            except BaseException as error:
                events.append(error)
                raise

        @prompt
        def raises():
            raise events[-1]

        client = serve(stores, raises)
        client.get(1, "stores")
        assert "took longer" in client.replies(1)[1]["error"]["message"]
        while events[-1] is None:
            time.sleep(0.001)
        client.get(2, "raises")

        assert client.replies(1)[2]["error"]["message"].startswith("prompt 'raises' failed (error ")


class TestCancellation:
    def test_progress_report_stops_timed_out_code(self, serve):
        """A progress report after the reply raises an error that `except Exception` does not catch."""
        ended = threading.Event()

        @prompt(timeout=0.1)
        def works(context: Context):
            try:
                for step in range(3000):
                    time.sleep(0.01)
                    with contextlib.suppress(Exception):
                        context.report_progress(step)
            finally:
                ended.set()

        client = serve(works)
        client.get(1, "works")
        assert "error" in client.replies(1)[1]

        assert ended.wait(10)

    def test_coroutine_is_cancelled_at_its_deadline(self, serve):
        """
        A coroutine is cancelled at its deadline and can clean up; its request has already been answered.
        """
        ended = threading.Event()

        @prompt(timeout=0.1)
        async def waits():
            try:
                await asyncio.sleep(3600)
            finally:
                ended.set()

        client = serve(waits)
        client.get(1, "waits")
        assert "took longer than its limit of 0.1 s" in client.replies(1)[1]["error"]["message"]

        assert ended.wait(10)

    def test_coroutine_on_a_blocked_loop_frees_its_slot(self, serve):
        """A coroutine that never starts frees its slot at its deadline, so that other prompts run."""
        blocking = Gate()

        @prompt(name="blocks")
        async def blocks():
            blocking.prompt.function()
            return "done"

        @prompt(name="waits", timeout=0.1)
        async def waits():
            return "done"

        client = serve(blocks, waits, quick, limits=Limits(renders=3))
        client.get(1, "blocks")
        assert blocking.entered.acquire(timeout=30)
        for number in range(2, 8):
            client.get(number, "waits")
        replies = client.replies(6)
        assert all("took longer" in reply["error"]["message"] for reply in replies.values())
        client.get(9, "quick")
        assert text_of(client.replies(1)[9]) == "done"
        blocking.open.set()

        assert text_of(client.replies(1)[1]) == "done"


class TestWaiting:
    def test_prompts_above_the_limit_are_queued(self, serve, gate):
        """Prompts above the limit are queued and not rejected, and do not delay lists and pings."""
        client = serve(gate.prompt, limits=Limits(renders=2))
        for number in range(20):
            client.get(number, "gated")
        assert all(gate.entered.acquire(timeout=30) for _ in range(2))
        client.send(modern("list", "prompts/list"))
        assert "result" in client.replies(1)["list"]
        assert not gate.entered.acquire(timeout=0.05)
        gate.open.set()
        replies = client.replies(20)

        assert {text_of(reply) for reply in replies.values()} == {"done"}
        assert client.server._dispatcher.waiting_count == 0

    def test_full_queue_rejects_the_next_request(self, serve, gate):
        """
        A request that arrives when the queue is full gets an error with code 429, because it can succeed
        later.
        """
        client = serve(gate.prompt, quick, limits=Limits(renders=1, waiting=2))
        client.get(0, "gated")
        assert gate.entered.acquire(timeout=30)
        for number in (1, 2, 3):
            client.get(number, "quick")
        rejected = client.replies(1)[3]["error"]
        assert (rejected["code"], rejected["message"]) == (
            429,
            "2 requests are already waiting, which is the limit: try again later",
        )
        gate.open.set()

        assert client.replies(3).keys() == {0, 1, 2}

    def test_server_timeout_includes_the_time_in_the_queue(self, serve):
        """
        The time in the queue counts towards the server's timeout; the error explains that the request waited.
        """
        slow = Gate("slow", timeout=20)
        client = serve(slow.prompt, quick, limits=Limits(renders=1, timeout=0.3))
        client.get(0, "slow")
        assert slow.entered.acquire(timeout=30)
        client.get(1, "quick")
        message = client.replies(1)[1]["error"]["message"]
        slow.open.set()

        assert message.startswith("prompts/get waited longer than 0.3 s for other prompts (--max-renders)")
        assert text_of(client.replies(1)[0]) == "done"

    def test_prompt_timeout_starts_when_the_prompt_runs(self, serve, gate):
        """A request that has waited longer than its prompt's timeout is still rendered."""
        own = Gate("own", timeout=0.3)
        own.open.set()
        client = serve(gate.prompt, own.prompt, limits=Limits(renders=1))
        client.get(0, "gated")
        assert gate.entered.acquire(timeout=30)
        client.get(1, "own")
        time.sleep(0.5)
        gate.open.set()

        assert {text_of(reply) for reply in client.replies(2).values()} == {"done"}

    def test_cancelled_request_leaves_the_queue(self, serve, gate):
        """The slot of a cancelled request is free immediately."""
        client = serve(gate.prompt, quick, limits=Limits(renders=1, waiting=1))
        client.send(initialize("2025-11-25", "hello"), notification("notifications/initialized"))
        client.replies(1)
        client.send(request(0, "prompts/get", {"name": "gated"}), request("led", "ping"))
        client.replies(1)  # from now on another thread leads
        client.send(request(1, "prompts/get", {"name": "quick"}))
        client.send(notification("notifications/cancelled", {"requestId": 1}))
        client.send(request(2, "prompts/get", {"name": "quick"}), request("read", "ping"))
        client.replies(1)
        gate.open.set()

        assert client.replies(2).keys() == {0, 2}

    def test_queued_requests_get_an_error_at_the_end(self, serve, gate):
        """Queued requests get an error when the server closes."""
        client = serve(gate.prompt, quick, limits=Limits(renders=1))
        client.get(0, "gated")
        assert gate.entered.acquire(timeout=30)
        client.get(1, "quick")
        client.close(0)
        replies = client.replies(2)

        assert all("the server was shut down" in reply["error"]["message"] for reply in replies.values())

    @pytest.mark.parametrize("is_async", [False, True])
    def test_queue_continues_after_any_kind_of_prompt(self, serve, is_async):
        """The next request runs when a prompt ends, whether on a thread or on the event loop."""
        gate = Gate()

        @prompt(name="slow")
        async def slow():
            await asyncio.to_thread(gate.prompt.function)
            return "done"

        client = serve(
            slow if is_async else Gate("slow").prompt, gate.prompt, quick, limits=Limits(renders=1)
        )
        client.get(0, "slow" if is_async else "gated")
        assert gate.entered.acquire(timeout=30)
        client.get(1, "quick")
        gate.open.set()

        assert client.replies(2).keys() == {0, 1}


class TestImporting:
    """A server whose recipes are still being imported."""

    def test_handshake_and_pings_are_answered(self, serve):
        """Handshakes and pings are answered; all other requests wait until the recipes are loaded."""
        client = serve(is_importing=True)
        client.send(initialize("2025-11-25", "hello"), notification("notifications/initialized"))
        declared = client.replies(1)["hello"]["result"]["capabilities"]
        client.send(
            request(1, "prompts/list"),
            request(2, "ping"),
            request(3, "prompts/get", {"name": "quick"}),
            request(4, "skills/list"),
        )
        assert client.replies(1)[2]["result"] == {}
        assert client.sent.empty()
        client.server.load(compile(Recipes(prompts=(quick,))))
        replies = client.replies(3)

        assert [item["name"] for item in replies[1]["result"]["prompts"]] == ["quick"]
        assert (text_of(replies[3]), replies[4]["result"]["skills"]) == ("done", [])
        client.send(initialize("2025-11-25", "again"))
        other = serve(quick)
        other.send(initialize("2025-11-25", "hello"))
        assert other.replies(1)["hello"]["result"]["capabilities"] == declared

    def test_import_that_ends_while_a_request_arrives(self, serve, monkeypatch):
        """A request is never answered from the snapshot before the import."""
        client = serve(is_importing=True)
        load = threading.Thread(target=client.server.load, args=[compile(Recipes(prompts=(quick,)))])
        snapshot_for = client.server._snapshot_for

        def switch_threads(request):
            snapshot = snapshot_for(request)
            if load.ident is None:
                load.start()
                load.join(0.5)
            return snapshot

        monkeypatch.setattr(client.server._dispatcher, "_snapshot_for", switch_threads)
        client.get(1, "quick")

        assert text_of(client.replies(1)[1]) == "done"

    def test_timeout_names_the_slow_import(self, serve):
        """If a slow import delays a request until its timeout, the error names the file and the line."""
        client = serve(
            is_importing=True, describe_import=lambda: ": slow.py is at line 7", limits=Limits(timeout=0.2)
        )
        client.send(modern(1, "prompts/list"))

        message = client.replies(1)[1]["error"]["message"]
        assert message.startswith("the recipes are still being imported after 0.2 s: slow.py is at line 7")

    def test_close_during_an_import(self, serve):
        """Waiting requests get an error after the grace period."""
        client = serve(is_importing=True)
        client.send(modern(1, "prompts/list"))
        client.close(0.1)

        assert "the server was shut down before prompts/list" in client.replies(1)[1]["error"]["message"]


def test_closed_server_is_freed():
    """A program that serves many clients in turn keeps no thread, loop or catalog of a closed server."""

    @prompt
    async def waits():
        await asyncio.sleep(0.001)
        return "done"

    @prompt
    def sleeps():
        time.sleep(0.05)
        return "awake"

    def served():
        client = Exchange(waits, sleeps)
        for number, name in enumerate(["waits", "sleeps", "sleeps"]):
            client.get(number, name)
            client.replies(1)
        client.close()
        return weakref.ref(client.server)

    threads = set(threading.enumerate())
    servers = [served() for _ in range(5)]
    while running := set(threading.enumerate()) - threads:
        running.pop().join(30)
    gc.collect()

    assert [server() for server in servers] == [None] * 5


def test_hanging_threads_do_not_exhaust_the_executor(start):
    """Work that prompts delegate to threads is done even if earlier prompts left hanging threads."""
    source = """
        import asyncio, time
        from promptkit import prompt

        @prompt(timeout=0.2)
        async def hangs():
            await asyncio.to_thread(time.sleep, 3600)

        @prompt
        async def delegates():
            return await asyncio.to_thread(str, 1)
    """
    client = start(source=source)
    hanging = range(1, min(32, os.cpu_count() + 4) + 3)
    for number in hanging:
        client.ask(number, "prompts/get", {"name": "hangs"})
    assert all("error" in client.wait_for(number) for number in hanging)
    client.ask("last", "prompts/get", {"name": "delegates"})

    assert "result" in client.wait_for("last")
