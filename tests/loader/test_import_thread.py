"""Imports that hang are abandoned."""

from threading import Event
from types import SimpleNamespace

import pytest

from promptkit.loader.import_thread import Importer, ImportTimeoutError


@pytest.fixture
def end():
    """An event that ends every hanging import after the test."""
    end = Event()
    yield end
    end.set()


def test_each_version_of_a_hanging_file_is_abandoned(tmp_path, monkeypatch, end):
    """Each version of a hanging file is abandoned after the same time and is not imported again."""
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr("promptkit.loader.import_thread.time", clock)
    monkeypatch.setattr("promptkit.loader.import_thread._CHECK_EVERY_S", 0.01)
    file, imported = tmp_path / "endless.py", []

    def work(before_import):
        before_import(file)
        imported.append(file.read_text())
        clock.now += 6  # just above the limit for a slow import
        end.wait()

    importer = Importer(work, Event())
    for version in ("1", "22", "333"):
        file.write_text(version)
        for _ in range(2):
            with pytest.raises(ImportTimeoutError):
                importer.run({}, lambda: True)

    assert imported == ["1", "22", "333"]


def test_slow_import_is_not_abandoned(tmp_path, monkeypatch):
    """A slow import is not abandoned unless a file changes in the meantime."""
    monkeypatch.setattr("promptkit.loader.import_thread._REPORT_AFTER_S", 0.0)
    monkeypatch.setattr("promptkit.loader.import_thread._CHECK_EVERY_S", 0.01)

    def work(before_import):
        before_import(tmp_path / "slow.py")
        return Event().wait(0.1) or "imported"

    assert Importer(work, Event()).run({}, lambda: False) == "imported"
