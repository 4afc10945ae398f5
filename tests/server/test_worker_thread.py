"""
Tests that threads for authors' code are stopped, but not in the middle of an import.
"""

import sys
import time
from functools import partial
from threading import Event
from types import SimpleNamespace

import pytest

from promptkit.errors.interruptions import call_interruptible
from promptkit.server.scheduling import worker_thread
from promptkit.server.scheduling.worker_thread import WorkerThread


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module whose import has begun when `begun` is set, and that ends when `gate` is."""
    events = SimpleNamespace(begun=Event(), gate=Event(), imported=Event())
    monkeypatch.setitem(sys.modules, "events_of_a_test", events)
    (tmp_path / "slow_module.py").write_text(
        "import time\nfrom events_of_a_test import begun, gate\nbegun.set()\n"
        "while not gate.is_set():\n    time.sleep(0.001)\nWHOLE = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield events
    events.gate.set()
    sys.modules.pop("slow_module", None)


@pytest.fixture
def importing(module):
    """A worker in the middle of that import, which would go on for ever after it."""

    def work():
        import slow_module

        assert slow_module.WHOLE
        module.imported.set()
        while True:
            time.sleep(0.001)

    worker = WorkerThread(partial(call_interruptible, work))
    worker.start()
    assert module.begun.wait(20)
    return worker


def test_an_import_ends_before_its_thread_is_stopped(importing, module):
    """
    The next import gets the whole module.
    """
    importing.abandon()
    importing.join(0.2)
    assert importing.is_alive()

    module.gate.set()
    importing.join(20)

    assert not importing.is_alive()
    assert module.imported.is_set() or sys.modules["slow_module"].WHOLE


def test_an_import_that_does_not_end_is_stopped(importing, module, monkeypatch):
    """
    A thread does not go on for ever. The module can be imported again.
    """
    monkeypatch.setattr(worker_thread, "_MAX_IMPORT_S", 0.1)

    importing.abandon()
    importing.join(20)

    assert not importing.is_alive()
    assert "slow_module" not in sys.modules


def test_a_thread_that_imports_nothing_is_stopped_at_once():
    """
    No other thread is needed for that.
    """
    begun = Event()

    def work():
        begun.set()
        while True:
            time.sleep(0.001)

    worker = WorkerThread(partial(call_interruptible, work))
    worker.start()
    assert begun.wait(20)
    worker.abandon()
    worker.join(20)

    assert not worker.is_alive()


def test_one_that_ends_by_itself_is_left_alone(importing, module, monkeypatch):
    """
    A thread that waited to stop it finds it over.
    """
    calls = []
    importing.over = lambda: calls.append(time.sleep(0.2))
    importing.abandon()
    importing.abandon()
    module.gate.set()
    importing.join(20)

    assert calls == [None]
