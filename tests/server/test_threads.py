"""Threads that do not start, as memory runs out on them before they do."""

import pytest

from promptkit.server import threads
from promptkit.server.threads import DaemonThread


def test_the_start_fails(monkeypatch):
    """
    It does not wait for the thread forever.
    """
    monkeypatch.setattr(threads, "_START_WITHIN_S", 0.01)
    monkeypatch.setattr(DaemonThread, "_bootstrap", lambda _: None)  # ends before it has started

    with pytest.raises(RuntimeError, match="has not started"):
        DaemonThread(bool, "test").start()
