"""Threads that fail to start because memory is short."""

import pytest

from promptkit.server import threads
from promptkit.server.threads import DaemonThread


def test_failed_start(monkeypatch):
    """Starting a thread that never runs raises an error."""
    monkeypatch.setattr(threads, "_START_WITHIN_S", 0.01)
    monkeypatch.setattr(DaemonThread, "_bootstrap", lambda _: None)  # ends before it has started

    with pytest.raises(RuntimeError, match="did not start"):
        DaemonThread(bool, "test").start()
