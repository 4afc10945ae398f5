"""Requests change threads: each is answered once, whichever thread is slow, stuck or cannot be started."""

import asyncio
import gc
import os
import threading
import time
import weakref
from math import inf
from queue import Queue

import pytest

from promptkit import prompt
from promptkit.catalog.catalog import Catalog
from promptkit.compiler.compilation import compile
from promptkit.compiler.loading.loader import Recipes
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import InternalError
from promptkit.protocol.limits import Limits
from promptkit.protocol.revisions import REVISIONS
from promptkit.protocol.wire import Params
from promptkit.server import Server
from promptkit.server.exchange import Exchange, State
from promptkit.server.replies import reply_to
from promptkit.server.scheduling.executor import Executor
from promptkit.server.scheduling.in_flight import InFlight, Job
from promptkit.server.scheduling.leader import LeaderFollowers
from promptkit.server.scheduling.watchdog import Watchdog
from promptkit.server.scheduling.worker_thread import WorkerThread
from promptkit.server.server import PROMPTKIT
from promptkit.server.snapshot import Snapshot
from tests.wire import initialize, line, modern, request

LATE = InternalError("too late")


def asked(number=1):
    request = Request(number, "prompts/get", Params(), REVISIONS["2025-11-25"], None, {})
    return Exchange(request, Snapshot(Catalog(), PROMPTKIT, 10, changes=False))


def job_of(asked_for, stopped=lambda: None):
    return Job(asked_for, stopped, lambda: LATE, time.monotonic() + 60)


#: Where each step leads. One that is missing comes too late, and changes nothing.
TRANSITIONS = {
    (State.IN_PLACE, "enter"): State.IN_FLIGHT,
    (State.IN_FLIGHT, "enter"): State.IN_FLIGHT,  # by a thread that was relieved: the new work answers
    (State.IN_PLACE, "relieve"): State.IN_FLIGHT,
    (State.IN_FLIGHT, "release"): State.IN_PLACE,
    (State.IN_PLACE, "fail"): State.ANSWERED,
    (State.IN_FLIGHT, "fail"): State.ANSWERED,
    (State.IN_FLIGHT, "answer"): State.ANSWERED,
}


@pytest.mark.parametrize("step", ["enter", "relieve", "release", "answer", "fail"])
@pytest.mark.parametrize("state", State)
def test_steps(state, step):
    """
    A step leads where the table says, or comes too late and changes nothing. One reply is sent at most.
    """
    sent = []
    in_flight, exchange = InFlight(sent.append), asked()
    job = job_of(exchange)
    if state is not State.IN_PLACE:
        in_flight.enter(job)
    if state is State.ANSWERED:
        in_flight.answer(job, b"first\n")
    steps = {
        "enter": lambda: in_flight.enter(job_of(exchange)),
        "relieve": lambda: in_flight.enter(job_of(exchange), relieves=True),
        "release": lambda: in_flight.release(job),
        "answer": lambda: in_flight.answer(job, b"second\n"),
        "fail": lambda: in_flight.fail(exchange, b"second\n"),
    }
    steps[step]()

    assert exchange.state is TRANSITIONS.get((state, step), state)
    assert len(sent) == (exchange.state is State.ANSWERED)
    assert (exchange.request.id in in_flight.ids) == (exchange.state is State.IN_FLIGHT)


class TestInFlight:
    def test_what_is_answered_later_already_is_not_taken_away(self):
        """
        A thread that is relieved after it has given its request away leaves it where it is.
        """
        sent = []
        in_flight = InFlight(sent.append)
        wanted = asked()
        held = in_flight.enter(job_of(wanted))
        adopted = in_flight.enter(job_of(wanted), relieves=True)

        in_flight.answer(adopted, b"wrong\n")
        in_flight.answer(held, b"right\n")

        assert sent == [b"right\n"]

    def test_what_is_answered_is_not_answered_again(self):
        """
        A thread that is relieved after its request was answered elsewhere has nothing to answer.
        """
        sent = []
        in_flight = InFlight(sent.append)
        wanted = asked()
        in_flight.answer(in_flight.enter(job_of(wanted)), b"first\n")

        for late in (in_flight.enter(job_of(wanted), relieves=True), in_flight.enter(job_of(wanted))):
            in_flight.answer(late, b"second\n")

        assert (sent, wanted.request.id in in_flight.ids) == ([b"first\n"], False)

    def test_what_was_released_may_be_held_again(self):
        """
        A request whose question was answered may be answered later once more.
        """
        sent = []
        in_flight = InFlight(sent.append)
        wanted = asked()
        in_flight.release(in_flight.enter(job_of(wanted)))
        in_flight.answer(in_flight.enter(job_of(wanted), relieves=True), b"done\n")

        assert sent == [b"done\n"]

    def test_what_fails_while_a_reply_is_noted_does_not_keep_it_back(self, capsys):
        """
        The reply is sent, the failure is logged, and the end waits for nothing.
        """
        sent = []
        in_flight = InFlight(sent.append)
        wanted = asked()
        wanted.request.when_answered(lambda _: 1 / 0)
        in_flight.answer(in_flight.enter(job_of(wanted)), b"done\n")
        started = time.monotonic()
        in_flight.close(20, lambda _: LATE)

        assert sent == [b"done\n"]
        assert "a reply could not be noted: ZeroDivisionError('division by zero')" in capsys.readouterr().err
        assert time.monotonic() - started < 10


class TestExecutor:
    def test_a_thread_that_cannot_be_started(self, monkeypatch):
        """
        Its request is not in flight any more, and takes no place.
        """
        in_flight = InFlight(lambda _: None)
        executor = Executor(in_flight, Limits(renders=1))

        def refuse(_thread):
            msg = "can't start new thread"
            raise RuntimeError(msg)

        monkeypatch.setattr(threading.Thread, "start", refuse)
        for number in (1, 2):
            with pytest.raises(RuntimeError, match="can't start new thread"):
                executor.call_on_thread(asked(number), lambda: b"{}")

        assert [number in in_flight.ids for number in (1, 2)] == [False, False]

    def test_work_that_is_given_to_a_thread_by_one_that_was_relieved(self):
        """
        The work answers, whichever thread first noted that the request is answered later.
        """
        for relieved_first in (True, False):
            sent, done = [], threading.Event()
            in_flight = InFlight(lambda line, sent=sent, done=done: (sent.append(line), done.set()))
            executor = Executor(in_flight, Limits(renders=9))
            wanted = asked()
            if relieved_first:
                in_flight.enter(job_of(wanted), relieves=True)
            executor.call_on_thread(wanted, lambda: b'"done"')
            if not relieved_first:
                in_flight.enter(job_of(wanted), relieves=True)

            assert done.wait(50)
            assert [b'"result":"done"' in line for line in sent] == [True]

    def test_a_request_takes_one_place(self):
        """
        What a relieved thread gives to an event loop takes no second place until that thread ends.
        """
        in_flight = InFlight(lambda _: None)
        executor = Executor(in_flight, Limits(renders=2))
        wanted, given, go_on = asked(), threading.Event(), threading.Event()

        def relieved():
            executor.call_on_loop(wanted, asyncio.sleep(60), lambda _: b"{}")
            given.set()
            go_on.wait(50)

        worker = WorkerThread(relieved)
        executor.detach(wanted, worker)
        worker.start()

        assert given.wait(50)
        assert (executor.busy, executor.full) == (True, False)
        go_on.set()
        worker.join(50)
        assert (executor.busy, executor.full) == (True, False)
        in_flight.cancel(1)

    def test_what_goes_on_after_it_was_cancelled_takes_its_place(self):
        """
        A coroutine that is cancelled and does not stop counts until it does.
        """
        in_flight = InFlight(lambda _: None)
        executor = Executor(in_flight, Limits(renders=1))
        begun, release, ended = threading.Event(), threading.Event(), threading.Event()

        async def block():
            begun.set()
            release.wait(50)
            ended.set()

        executor.call_on_loop(asked(), block(), lambda _: b"{}")
        begun.wait(50)
        in_flight.cancel(1)
        with pytest.raises(Exception, match="1 requests are being worked on"):
            executor.check_room()
        release.set()

        assert ended.wait(50)

    def test_what_never_begins_gives_its_place_back(self):
        """
        A coroutine that waits behind one that blocks the loop takes no place once its request is answered.
        """
        in_flight = InFlight(lambda _: None)
        executor = Executor(in_flight, Limits(renders=2))
        begun, release = threading.Event(), threading.Event()

        async def block():
            begun.set()
            release.wait(50)

        executor.call_on_loop(asked(1), block(), lambda _: b"{}")
        begun.wait(50)
        for number in range(2, 9):
            executor.call_on_loop(asked(number), asyncio.sleep(0), lambda _: b"{}")
            assert executor.full
            in_flight.cancel(number)
            assert not executor.full
        release.set()
        in_flight.cancel(1)
        deadline = time.monotonic() + 50
        while executor.busy and time.monotonic() < deadline:
            time.sleep(0.01)

        assert not executor.busy

    def test_a_loop_that_fails_goes_on(self):
        """
        Where memory is short for the loop itself, the next coroutine runs on it all the same.
        """
        done, sent = threading.Event(), []
        in_flight = InFlight(lambda line: (sent.append(line), done.set()))
        executor = Executor(in_flight, Limits(renders=1))
        loop = executor._event_loop()
        run_once = loop._loop._run_once

        def fail():
            loop._loop._run_once = run_once
            failed.set()
            raise MemoryError

        failed = threading.Event()
        loop._loop._run_once = fail
        loop._loop.call_soon_threadsafe(bool)
        assert failed.wait(50)
        executor.call_on_loop(asked(1), asyncio.sleep(0, b'"done"'), lambda result: result())

        assert done.wait(50)
        assert [b'"result":"done"' in line for line in sent] == [True]


def watching(look):
    """A watchdog that looks at something else than a server."""
    in_flight = InFlight(lambda _: None)
    executor = Executor(in_flight, Limits())
    watchdog = Watchdog(LeaderFollowers(None, None, in_flight, executor), in_flight, executor)
    watchdog.look = look
    return watchdog


class TestWatchdog:
    def test_one_that_ends_is_started_again(self, monkeypatch):
        """
        Where not even a fault can be said, the thread ends, and the next to work wakes another.
        """
        threads = []
        watchdog = watching(lambda: threads.append(threading.current_thread()) or 1 / 0)
        looked = threading.Event()

        def refuse(_message):
            raise MemoryError

        with monkeypatch.context() as patch:
            patch.setattr("promptkit.server.scheduling.watchdog.say", refuse)
            patch.setattr(threading, "excepthook", bool)
            watchdog.wake()
            deadline = time.monotonic() + 50
            while not threads and time.monotonic() < deadline:
                time.sleep(0.001)
            threads[0].join(50)
        assert watchdog.asleep

        watchdog.look = lambda: (looked.set(), inf)[1]
        watchdog.wake()
        assert looked.wait(50)
        watchdog.end()

    def test_one_that_is_woken_while_it_ends_looks_again(self):
        """
        Work that comes while its thread ends is looked after, by that thread or by another one.
        """
        looks = []
        watchdog = watching(lambda: looks.append(threading.current_thread()) or inf)
        for _ in range(200):
            watchdog.wake()
            watchdog.end()
            seen = len(looks)
            watchdog.wake()
            deadline = time.monotonic() + 50
            while len(looks) == seen and time.monotonic() < deadline:
                time.sleep(0)
            assert len(looks) > seen
        for thread in set(looks):
            thread.join(50)

        assert watchdog._thread is None

    def test_a_look_that_fails(self, capsys):
        """
        It is logged, and the next look follows.
        """
        looks, again = [], threading.Event()

        def look():
            looks.append(1)
            if len(looks) == 1:
                msg = "no"
                raise ValueError(msg)
            again.set()
            return inf

        watching(look).wake()

        assert again.wait(50)
        assert "looking after requests failed: ValueError('no')" in capsys.readouterr().err

    def test_one_that_looks_again_much_later_is_asleep(self):
        """
        It says so: a thread that gives it earlier work sees that it has to be woken.
        """
        waits = threading.Event()

        def look():
            if watchdog.asleep:
                waits.set()
            return 60.0

        watchdog = watching(look)
        watchdog.wake()

        assert waits.wait(50)


SLOW_TO_READ = """
import time
import attrs
from promptkit import prompt

@attrs.frozen
class Change:
    title: str

    def __attrs_post_init__(self):
        time.sleep(0.1)

@prompt
def review(change: Change):
    return change.title

@prompt
async def later(change: Change):
    return change.title

@prompt(timeout=5)
def timed(change: Change):
    return change.title
"""


@prompt
def greet():
    """Say hello."""
    return "Hello."


def test_a_thread_that_is_relieved_before_it_begins(monkeypatch):
    """
    A request whose thread was held up right before the work on it is not taken for its own double.
    """
    sent, ended = [], threading.Event()
    server = Server(compile(Recipes(prompts=(greet,))), sent.append)

    def reply_relieved(exchange, *others):
        server._leader_followers.relieve(exchange)
        return reply_to(exchange, *others)

    monkeypatch.setattr("promptkit.server.server.reply_to", reply_relieved)
    lines = [line(initialize("2025-11-25")), line(request(1, "prompts/get", {"name": "greet"})), b""]
    server.read_from(iter(lines).__next__, ended.set)
    assert ended.wait(50)
    server.close(10)

    assert b"Hello." in sent[-1]
    assert b"".join(sent).count(b'"id":1,') == 1


@pytest.mark.parametrize("options", [[], ["--max-renders", "1"]], ids=["", "one at a time"])
@pytest.mark.parametrize("name", ["review", "later", "timed"])
def test_arguments_that_take_long_to_read(start, name, options):
    """
    A thread that is relieved while it reads arguments goes on with the prompt, and answers.
    """
    client = start(*options, source=SLOW_TO_READ)
    for number in (1, 2):
        client.ask(number, "prompts/get", {"name": name, "arguments": {"change": '{"title": "Faster"}'}})
        said = client.wait_for(number)["result"]["messages"]

        assert said[0]["content"]["text"] == "Faster"


def test_a_stuck_prompt_while_another_is_awaited(start):
    """
    It is noticed, though nothing has happened for a while but that a prompt is awaited.
    """
    client = start()
    client.ask(1, "prompts/get", {"name": "awaits"})
    time.sleep(1.5)  # so long it is looked every few milliseconds
    client.write(request(2, "prompts/get", {"name": "sleeps"}), request(3, "ping"))

    assert client.wait_for(3)["result"] == {}


def all_workers():
    """Every worker that is still referenced."""
    return weakref.WeakSet(found for found in gc.get_objects() if issubclass(type(found), WorkerThread))


def test_threads_that_were_relieved_are_forgotten():
    """
    However often reading has changed hands, no thread that has ended is kept.
    """

    def sleeping(number):
        @prompt(name=f"sleeps_{number}")
        def sleeps():
            time.sleep(0.05)
            return "awake"

        return sleeps

    others = all_workers()  # other tests have left some
    arrived, told, ended = Queue(), Queue(), threading.Event()
    server = Server(compile(Recipes(prompts=tuple(map(sleeping, range(10))))), told.put)
    server.read_from(arrived.get, ended.set)
    arrived.put(line(initialize("2025-06-18")))
    told.get(timeout=50)
    for number in range(10):
        arrived.put(line(request(number, "prompts/get", {"name": f"sleeps_{number}"})))
        told.get(timeout=50)
    kept = all_workers() - others
    arrived.put(b"")
    assert ended.wait(50)
    del server
    gc.collect()

    assert len([worker for worker in kept if not worker.is_alive()]) <= 3


def test_an_end_that_was_kept_from_another_request_is_an_error(start):
    """
    A prompt that raises again what has ended an earlier one harms neither reading nor the requests behind it.
    """
    source = """
        import time
        from promptkit import prompt

        kept = []

        @prompt(timeout=0.2)
        def keeps():
            try:
                while True:
                    time.sleep(0.01)
            except BaseException as error:
                kept.append(error)
                raise

        @prompt
        def raises():
            raise kept[0] if kept else ValueError("not yet")
    """
    client = start(source=source)
    client.ask("first", "prompts/get", {"name": "keeps"})
    assert "took longer" in client.wait_for("first")["error"]["message"]
    numbers = range(1, 31)
    client.write(*(request(number, "prompts/get", {"name": "raises"}) for number in numbers))

    told = [client.wait_for(number)["error"]["message"] for number in numbers]
    assert all(message.startswith("prompt 'raises' failed (error ") for message in told)
    client.ask("last", "ping", {})
    assert client.wait_for("last")["result"] == {}


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
        arrived, told, ended = Queue(), Queue(), threading.Event()
        server = Server(compile(Recipes(prompts=(waits, sleeps))), told.put)
        server.read_from(arrived.get, ended.set)
        for number, name in enumerate(["waits", "sleeps"]):
            arrived.put(line(modern(number, "prompts/get", {"name": name})))
            assert b"result" in told.get(timeout=50)
        arrived.put(b"")
        assert ended.wait(50)
        server.close(10)
        return weakref.ref(server)

    threads = set(threading.enumerate())
    servers = [served() for _ in range(5)]
    while left := set(threading.enumerate()) - threads:
        left.pop().join()
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


def test_a_relieved_thread_that_fails_once_its_request_is_open_elsewhere(monkeypatch):
    """
    A request whose thread is relieved before a question is asked, which cannot be sent, is refused.
    """

    @prompt(elicit=True)
    def asks(name: str):
        return name

    arrived, told, ended = Queue(), Queue(), threading.Event()
    server = Server(compile(Recipes(prompts=(asks,))), told.put)
    elicitation = server._elicitation

    def reply_relieved(exchange, *others):
        server._leader_followers.relieve(exchange)
        return reply_to(exchange, *others)

    def fail(_line):
        raise MemoryError

    monkeypatch.setattr("promptkit.server.server.reply_to", reply_relieved)
    server.read_from(arrived.get, ended.set)
    arrived.put(line(initialize("2025-11-25", capabilities={"elicitation": {}})))
    told.get(timeout=50)
    arrived.put(line({"jsonrpc": "2.0", "method": "notifications/initialized"}))
    with monkeypatch.context() as patch:
        patch.setattr(elicitation, "_send", fail)
        arrived.put(line(request(1, "prompts/get", {"name": "asks"})))
        reply = told.get(timeout=50)
    arrived.put(b"")
    assert ended.wait(50)
    server.close(10)

    assert b'"id":1,"error"' in reply
    assert told.empty()
