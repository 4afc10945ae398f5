"""
Tests that imports that hang are given up.
"""

import time
from threading import Event
from types import SimpleNamespace

from promptkit.compiler.loading.import_thread import Importer, ImportHangs
from promptkit.errors.interruptions import call_interruptible


def test_a_file_that_hangs_again_is_given_up_as_soon(tmp_path, monkeypatch):
    """
    A file whose import hangs in one version after the other delays the edits of others no longer each time.
    """
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr("promptkit.compiler.loading.import_thread.time", clock)
    monkeypatch.setattr("promptkit.compiler.loading.import_thread._CHECK_EVERY_S", 0.01)
    file = tmp_path / "endless.py"

    def work(importing):
        enough = time.monotonic() + 2
        try:
            importing(file)
            call_interruptible(hang, enough)
        except ImportHangs:
            return "given up"
        return "waited for"

    def hang(enough):
        clock.now += 6  # a little more than may pass until an import is given up
        while time.monotonic() < enough:
            pass

    importer = Importer(work, Event())
    ends = []
    for version in ("1", "22", "333"):
        file.write_text(version)
        ends.append(importer.run({}, lambda: True))

    assert ends == ["given up"] * 3
