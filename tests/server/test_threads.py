"""Threads that do not start, as memory runs out on them before they do."""

import threading
import time
from queue import Queue

import pytest

from promptkit import prompt
from promptkit.compiler.compilation import compile
from promptkit.compiler.loading.loader import Recipes
from promptkit.server import Server, threads
from promptkit.server.threads import DaemonThread
from tests.wire import initialize, line, request


@pytest.fixture
def memory_is_short(monkeypatch):
    """Threads end before they have started, which nobody waits long for."""

    def begin():
        monkeypatch.setattr(threads, "_START_WITHIN_S", 0.01)
        monkeypatch.setattr(DaemonThread, "_bootstrap", lambda _: None)

    return begin


def test_the_start_fails(memory_is_short):
    """
    It does not wait for the thread forever.
    """
    memory_is_short()

    with pytest.raises(RuntimeError, match="has not started"):
        DaemonThread(bool, "test").start()


def test_a_prompt_is_answered_without_a_second_leader(memory_is_short):
    """
    Where no thread can take the lead from one that is held up, that one goes on.
    """

    @prompt
    def holds_up():
        time.sleep(0.2)
        return "done"

    arrived, told, ended = Queue(), Queue(), threading.Event()
    server = Server(compile(Recipes(prompts=(holds_up,))), told.put)
    server.read_from(arrived.get, ended.set)
    arrived.put(line(initialize("2025-06-18")))
    told.get(timeout=20)
    memory_is_short()
    for number in (1, 2):
        arrived.put(line(request(number, "prompts/get", {"name": "holds_up"})))
        assert b"done" in told.get(timeout=20)
    arrived.put(b"")

    assert ended.wait(20)
