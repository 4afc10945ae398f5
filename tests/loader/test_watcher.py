"""Watching folders with the backend of watchfiles only, with the same results as the package."""

import platform
import subprocess
import sys
import time
from threading import Event, Thread

import pytest
from msgspec.structs import replace
from watchfiles import main

from promptkit.loader import watching
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


@pytest.mark.parametrize("setting", [None, "", "true", "1", "false", "Disable", "disabled"])
@pytest.mark.parametrize("release", ["6.1.0", "5.15.0-Microsoft-Standard-WSL2"])
def test_files_are_polled_where_watchfiles_would(setting, release, monkeypatch):
    """Polling is used where watchfiles would use it, because shared folders send no events."""
    uname_module = main.platform if hasattr(main, "platform") else platform
    monkeypatch.setattr(
        uname_module, "uname", lambda: uname_module.uname_result("Linux", "", release, "", "")
    )
    monkeypatch.delenv("WATCHFILES_FORCE_POLLING", raising=False)
    if setting is not None:
        monkeypatch.setenv("WATCHFILES_FORCE_POLLING", setting)

    assert watching._must_poll() is main._default_force_polling(None)


def test_polling_reports_the_same_changes(tmp_path, monkeypatch):
    """Polling reports changes like the backend's events do."""
    monkeypatch.setenv("WATCHFILES_FORCE_POLLING", "true")
    monkeypatch.setattr("promptkit.loader.watching._POLL_EVERY_MS", 20)
    changes = changes_in([str(tmp_path)], Event(), TIMES)
    next(changes)

    (tmp_path / "a.py").write_text("one")

    assert str(tmp_path / "a.py") in wait_for_paths(changes)


def test_watchfiles_package_is_not_imported(tmp_path):
    """The watchfiles package, which takes 2 MiB, is not imported, but shares its backend."""
    program = f"""
import sys
import time
from threading import Event, Thread
from promptkit.loader import watching

next(watching.changes_in([{str(tmp_path)!r}], Event(), watching.Debounce(quiet=10, every=50)))
print(sorted({{"watchfiles", "anyio", "logging", "multiprocessing"}} & sys.modules.keys()))
import watchfiles
print(watchfiles.main.RustNotify is watching._load_backend())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines() == ["[]", "True"]


def test_error_names_the_missing_backend(monkeypatch):
    """The error names the missing backend."""
    monkeypatch.delitem(sys.modules, "watchfiles._rust_notify")
    monkeypatch.setattr(watching, "find_spec", lambda _: None)

    with pytest.raises(ModuleNotFoundError, match=r"No module named 'watchfiles\._rust_notify'"):
        watching._load_backend()
