"""Which thread runs a request, how long it may take, and that it gets exactly one reply."""

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
from promptkit.server.replies import reply_to
from promptkit.server.threads import DaemonThread, _Started
from tests.wire import initialize, line, modern, notification, request


class Exchange:
    """
    A server on threads of its own, and what it sends.
    """

    def __init__(self, *prompts, **options):
        self.sent, self._input = Queue(), Queue()
        self._ended = threading.Event()
        catalog = None if options.pop("is_importing", False) else compile(Recipes(prompts=prompts))
        self.server = Server(catalog, self.sent.put, **options)
        self.server.read_from(self._input.get, self._ended.set)

    def send(self, *messages):
        """
        Send messages in one piece.
        """
        self._input.put(b"".join(map(line, messages)))

    def get(self, number, name, **arguments):
        """
        Ask for a prompt.
        """
        self.send(modern(number, "prompts/get", {"name": name, "arguments": arguments}))

    def replies(self, count, timeout=30):
        """
        The next replies by their ids.
        """
        found = []
        while len(found) < count:
            found += map(json.loads, self.sent.get(timeout=timeout).splitlines())
        return {reply["id"]: reply for reply in found}

    def close(self, grace=10):
        """
        End the input, and then the server.
        """
        self._input.put(b"")
        assert self._ended.wait(30)
        self.server.close(grace)

    def is_silent(self):
        """
        Whether no reply is left.
        """
        try:
            return not self.sent.get(timeout=0.1)
        except Empty:
            return True


@pytest.fixture
def serve():
    """
    A function that starts a server of some prompts.
    """
    started = []

    def make(*prompts, **options):
        started.append(Exchange(*prompts, **options))
        return started[-1]

    yield make
    for one in started:
        one.close(0)


@prompt
def quick():
    return "done"


class Gate:
    """
    A prompt that waits until it is opened, and counts how often it runs.
    """

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
        """
        The requests behind it are answered, in the same piece of input and after it.
        """
        client = serve(gate.prompt, quick)
        client.send(modern(1, "prompts/get", {"name": "gated"}), modern(2, "prompts/get", {"name": "quick"}))
        assert text_of(client.replies(1)[2]) == "done"
        client.get(3, "quick")
        assert text_of(client.replies(1)[3]) == "done"
        gate.open.set()

        assert text_of(client.replies(1)[1]) == "done"

    def test_a_prompt_that_was_slow_gives_up_the_lead_before_it_runs(self, serve, gate):
        """
        The next request for it delays no other one by a tick. A quick run makes the leader call it again.
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
    def test_the_lead_changes_only_with_a_thread_to_take_it(self, serve, gate, monkeypatch, start):
        """
        Where no thread can be started, everything waits for the prompt, and is answered then.
        """

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

    def test_a_thread_that_loses_the_lead_right_before_it_is_done(self, monkeypatch, serve):
        """
        The reply is sent once, by the thread that has made it.
        """

        def lose_the_lead(pending, *others):
            dispatcher = client.server._dispatcher
            with dispatcher._lock:
                dispatcher._replace_leader(pending)
            return reply_to(pending, *others)

        client = serve(quick)
        monkeypatch.setattr(dispatch_module, "reply_to", lose_the_lead)
        for number in range(20):
            client.get(number, "quick")

        assert client.replies(20).keys() == {*range(20)}
        client.close()
        assert client.is_silent()

    def test_the_switch_interval_is_short_while_code_runs_next_to_the_leader(self, serve, gate):
        """
        It is restored when the last of it returns.
        """
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

    def test_a_message_that_cannot_be_handled_is_answered(self, serve, monkeypatch, capsys):
        """
        Memory may be short anywhere. The request gets an error, and the next one is served.
        """
        client = serve(quick)
        with monkeypatch.context() as patch:
            patch.setattr(client.server._dispatcher, "_accept", lambda *_: (_ for _ in ()).throw(MemoryError))
            client.get(1, "quick")
            assert client.replies(1)[1]["error"]["code"] == -32603
        client.get(2, "quick")

        assert text_of(client.replies(1)[2]) == "done"
        assert "a message could not be handled: MemoryError()" in capsys.readouterr().err


class TestOneReply:
    @pytest.mark.parametrize("how", ["deadline", "cancelled", "end"])
    def test_code_that_returns_after_its_reply_changes_nothing(self, serve, how):
        """
        Its result is dropped, whatever has answered the request.
        """
        gate = Gate(timeout=0.1 if how == "deadline" else None)
        client = serve(gate.prompt, quick)
        client.send(initialize("2025-11-25", "hello"), notification("notifications/initialized"))
        client.replies(1)
        client.send(request(1, "prompts/get", {"name": "gated"}))
        assert gate.entered.acquire(timeout=30)
        if how == "deadline":
            assert "took longer than its limit of 0.1 s" in client.replies(1)[1]["error"]["message"]
        elif how == "cancelled":
            client.send(notification("notifications/cancelled", {"requestId": 1}))
            client.send(request(2, "prompts/get", {"name": "quick"}))
            assert client.replies(1).keys() == {2}
        else:
            client.close(0)
            assert "the server ended before" in client.replies(1)[1]["error"]["message"]
        gate.open.set()
        gate.threads[0].join(30)

        assert client.is_silent()

    def test_an_id_is_free_once_its_request_is_answered(self, serve, gate):
        """
        Until then, a second request with it is refused.
        """
        client = serve(gate.prompt, quick)
        client.get(1, "gated")
        assert gate.entered.acquire(timeout=30)
        client.get(1, "quick")
        assert client.replies(1)[1]["error"]["message"] == "id 1 is in use by a request that still runs"
        gate.open.set()
        client.replies(1)
        client.get(1, "quick")

        assert text_of(client.replies(1)[1]) == "done"

    def test_an_error_of_a_cancelled_request_that_is_raised_again(self, serve):
        """
        A prompt that keeps the error which ended an earlier one, and raises it, has failed like any other.
        """
        kept = []

        @prompt(timeout=0.1)
        def keeps(context: Context):
            try:
                while True:
                    time.sleep(0.01)
                    context.report_progress(len(kept))
                    kept.append(None)
            except BaseException as error:
                kept.append(error)
                raise

        @prompt
        def raises():
            raise kept[-1]

        client = serve(keeps, raises)
        client.get(1, "keeps")
        assert "took longer" in client.replies(1)[1]["error"]["message"]
        while kept[-1] is None:
            time.sleep(0.001)
        client.get(2, "raises")

        assert client.replies(1)[2]["error"]["message"].startswith("prompt 'raises' failed (error ")


class TestCancellation:
    def test_code_that_reports_progress_after_its_reply_ends(self, serve):
        """
        It cannot be stopped elsewhere, and the error passes `except Exception`.
        """
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

    def test_a_coroutine_is_cancelled_at_its_deadline(self, serve):
        """
        It cleans up, and its request has been answered by then.
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

    def test_a_coroutine_that_a_blocked_loop_never_begins_takes_no_place(self, serve):
        """
        Its deadline frees its place, so that other prompts run while the loop is blocked.
        """
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
        found = client.replies(6)
        assert all("took longer" in reply["error"]["message"] for reply in found.values())
        client.get(9, "quick")
        assert text_of(client.replies(1)[9]) == "done"
        blocking.open.set()

        assert text_of(client.replies(1)[1]) == "done"


class TestWaiting:
    def test_more_prompts_than_may_run_wait_in_line(self, serve, gate):
        """
        Not one of them is refused. Lists and pings do not wait with them.
        """
        client = serve(gate.prompt, limits=Limits(renders=2))
        for number in range(20):
            client.get(number, "gated")
        assert all(gate.entered.acquire(timeout=30) for _ in range(2))
        client.send(modern("list", "prompts/list"))
        assert "result" in client.replies(1)["list"]
        assert not gate.entered.acquire(timeout=0.05)
        gate.open.set()
        found = client.replies(20)

        assert {text_of(reply) for reply in found.values()} == {"done"}
        assert client.server._dispatcher.waiting == 0

    def test_a_full_line_refuses_the_next_request(self, serve, gate):
        """
        The error is that of a limit: the same request may be served later.
        """
        client = serve(gate.prompt, quick, limits=Limits(renders=1, waiting=2))
        client.get(0, "gated")
        assert gate.entered.acquire(timeout=30)
        for number in (1, 2, 3):
            client.get(number, "quick")
        refused = client.replies(1)[3]["error"]
        assert (refused["code"], refused["message"]) == (
            429,
            "2 requests wait already, which is the limit: try again later",
        )
        gate.open.set()

        assert client.replies(3).keys() == {0, 1, 2}

    def test_the_limit_of_the_server_counts_while_a_request_waits(self, serve):
        """
        The error says that it has waited.
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

    def test_a_prompts_own_limit_begins_when_it_runs(self, serve, gate):
        """
        A request that has waited for longer than its prompt's own limit is rendered.
        """
        own = Gate("own", timeout=0.3)
        own.open.set()
        client = serve(gate.prompt, own.prompt, limits=Limits(renders=1))
        client.get(0, "gated")
        assert gate.entered.acquire(timeout=30)
        client.get(1, "own")
        time.sleep(0.5)
        gate.open.set()

        assert {text_of(reply) for reply in client.replies(2).values()} == {"done"}

    def test_a_cancelled_request_leaves_the_line(self, serve, gate):
        """
        Its place is free at once.
        """
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

    def test_requests_that_wait_at_the_end_are_refused(self, serve, gate):
        """
        None is left without a reply.
        """
        client = serve(gate.prompt, quick, limits=Limits(renders=1))
        client.get(0, "gated")
        assert gate.entered.acquire(timeout=30)
        client.get(1, "quick")
        client.close(0)
        found = client.replies(2)

        assert all("the server ended before" in reply["error"]["message"] for reply in found.values())

    @pytest.mark.parametrize("is_async", [False, True])
    def test_what_waits_runs_when_any_kind_of_prompt_ends(self, serve, is_async):
        """
        A coroutine that ends on the event loop starts the next request, too.
        """
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

    def test_the_handshake_and_pings_are_answered(self, serve):
        """
        All other requests wait for the recipes, and are answered once they are loaded.
        """
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
        found = client.replies(3)

        assert [one["name"] for one in found[1]["result"]["prompts"]] == ["quick"]
        assert (text_of(found[3]), found[4]["result"]["skills"]) == ("done", [])
        client.send(initialize("2025-11-25", "again"))
        other = serve(quick)
        other.send(initialize("2025-11-25", "hello"))
        assert other.replies(1)["hello"]["result"]["capabilities"] == declared

    def test_a_request_that_waits_too_long_learns_what_is_imported(self, serve):
        """
        The error names the file and the line.
        """
        client = serve(
            is_importing=True, importing=lambda: ": slow.py is at line 7", limits=Limits(timeout=0.2)
        )
        client.send(modern(1, "prompts/list"))

        message = client.replies(1)[1]["error"]["message"]
        assert message.startswith("the recipes are still being imported after 0.2 s: slow.py is at line 7")

    def test_the_end_during_an_import(self, serve):
        """
        What waits gets an error after the grace.
        """
        client = serve(is_importing=True)
        client.send(modern(1, "prompts/list"))
        client.close(0.1)

        assert "the server ended before prompts/list" in client.replies(1)[1]["error"]["message"]


def test_a_server_that_was_closed_leaves_nothing_behind():
    """
    A program that serves many clients one after the other keeps no thread, loop or catalog of theirs.
    """

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
    while left := set(threading.enumerate()) - threads:
        left.pop().join(30)
    gc.collect()

    assert [server() for server in servers] == [None] * 5


def test_threads_that_hang_keep_none_from_those_that_come_later(start):
    """
    What prompts delegate to threads is done though other prompts have left hanging ones behind.
    """
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
