"""Watching folders for changed files."""

import time
from threading import Event, Thread

import pytest
from msgspec.structs import replace

from promptkit.loader.watching import Debounce, changes_in

TIMES = Debounce(quiet=10, every=50)


@pytest.fixture
def changes(tmp_path):
    """The changes in a folder, until the test ends."""
    stop = Event()
    rounds = changes_in([str(tmp_path)], stop, TIMES)
    next(rounds)
    yield rounds
    stop.set()
    assert next(rounds, None) is None


def wait_for_paths(changes):
    """Return the next non-empty set of changed paths."""
    return next(filter(None, changes))


def test_changes_and_quiet_rounds_are_reported(changes, tmp_path):
    """Writing, replacing and removing a file is reported, and so is a round without changes."""
    file, other = tmp_path / "a.py", tmp_path / "b.py"

    file.write_text("one")
    assert wait_for_paths(changes) == {str(file)}
    other.write_text("two")
    assert wait_for_paths(changes) == {str(other)}
    other.replace(file)
    assert wait_for_paths(changes) == {str(file), str(other)}
    assert next(changes) == set()


def test_changing_file_is_reported_once_it_stays_unchanged(tmp_path):
    """A file is reported only once it stays unchanged, so that no partial content is read."""
    stop, file = Event(), tmp_path / "a.py"
    written = []

    def write():
        for _ in range(10):
            file.write_text("again")
            written.append(time.monotonic())
            time.sleep(0.01)

    rounds = changes_in([str(tmp_path)], stop, replace(TIMES, quiet=200))
    next(rounds)
    writer = Thread(target=write)
    writer.start()
    paths, reported_at = wait_for_paths(rounds), time.monotonic()
    writer.join()
    stop.set()
    list(rounds)

    assert paths == {str(file)}
    # File systems round timestamps to a clock tick, and a busy machine can delay the writer.
    before = [moment for moment in written if moment < reported_at]
    assert reported_at - before[-1] > 0.15


def test_constantly_changing_file_is_reported(tmp_path):
    """A file that changes all the time is reported after the maximum delay."""
    stop, file = Event(), tmp_path / "a.py"

    def write():
        while not stop.wait(0.001):
            file.write_text("again")

    rounds = changes_in([str(tmp_path)], stop, replace(TIMES, quiet=100, at_most=200))
    next(rounds)
    writer = Thread(target=write)
    writer.start()
    try:
        assert wait_for_paths(rounds) == {str(file)}
    finally:
        stop.set()
        writer.join()
        list(rounds)


def test_changes_in_subfolders_are_not_reported(changes, tmp_path):
    """Changes inside subfolders, such as the bytecode cache, are not reported."""
    below = tmp_path / "below"
    below.mkdir()
    assert wait_for_paths(changes) == {str(below)}

    (below / "a.py").write_text("")

    assert str(below / "a.py") not in next(changes)


def test_missing_folder_raises_an_error(tmp_path):
    """Watching a missing folder raises FileNotFoundError."""
    with pytest.raises(FileNotFoundError):
        next(changes_in([str(tmp_path / "gone")], Event(), TIMES))


def test_polling_reports_the_same_changes(tmp_path, monkeypatch):
    """Polling reports changes like the backend's events do."""
    monkeypatch.setenv("WATCHFILES_FORCE_POLLING", "true")
    monkeypatch.setattr("promptkit.loader.watching._POLL_EVERY_MS", 20)
    changes = changes_in([str(tmp_path)], Event(), TIMES)
    next(changes)

    (tmp_path / "a.py").write_text("one")

    assert str(tmp_path / "a.py") in wait_for_paths(changes)
