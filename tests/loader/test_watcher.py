"""
Tests that folders are watched with the backend of watchfiles alone, and as the package would.
"""

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
    """What is told of a folder, until the test ends."""
    stop = Event()
    rounds = changes_in([str(tmp_path)], stop, TIMES)
    next(rounds)
    yield rounds
    stop.set()
    assert next(rounds, None) is None


def next_paths(changes):
    """The next paths that are told."""
    return next(filter(None, changes))


def test_a_change_is_told_and_so_is_none(changes, tmp_path):
    """
    A file that is written, replaced and removed; and that nothing has changed for a while.
    """
    file, other = tmp_path / "a.py", tmp_path / "b.py"

    file.write_text("one")
    assert next_paths(changes) == {str(file)}
    other.write_text("two")
    assert next_paths(changes) == {str(other)}
    other.replace(file)
    assert next_paths(changes) == {str(file), str(other)}
    assert next(changes) == set()


def test_what_is_written_again_and_again_is_told_once_it_rests(tmp_path):
    """
    So no half of it is read.
    """
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
    paths, told = next_paths(rounds), time.monotonic()
    writer.join()
    stop.set()
    list(rounds)

    assert paths == {str(file)}
    # Systems note the times of files by the tick, and a busy machine may hold up the writer itself.
    before = [moment for moment in written if moment < told]
    assert told - before[-1] > 0.15


def test_what_never_rests_is_told_all_the_same(tmp_path):
    """
    No later than so long after its first change.
    """
    stop, file = Event(), tmp_path / "a.py"

    def write():
        while not stop.wait(0.001):
            file.write_text("again")

    rounds = changes_in([str(tmp_path)], stop, replace(TIMES, quiet=100, at_most=200))
    next(rounds)
    writer = Thread(target=write)
    writer.start()
    try:
        assert next_paths(rounds) == {str(file)}
    finally:
        stop.set()
        writer.join()
        list(rounds)


def test_what_lies_below_the_folder_does_not_count(changes, tmp_path):
    """
    Such as the cache of bytecode.
    """
    below = tmp_path / "below"
    below.mkdir()
    assert next_paths(changes) == {str(below)}

    (below / "a.py").write_text("")

    assert str(below / "a.py") not in next(changes)


def test_a_folder_that_does_not_exist(tmp_path):
    """
    Whoever watches has to look again later.
    """
    with pytest.raises(FileNotFoundError):
        next(changes_in([str(tmp_path / "gone")], Event(), TIMES))


@pytest.mark.parametrize("told", [None, "", "true", "1", "false", "Disable", "disabled"])
@pytest.mark.parametrize("release", ["6.1.0", "5.15.0-Microsoft-Standard-WSL2"])
def test_files_are_polled_where_watchfiles_would(told, release, monkeypatch):
    """
    The system tells nothing of folders that other systems share, such as in Docker on macOS.
    """
    known = main.platform if hasattr(main, "platform") else platform
    monkeypatch.setattr(known, "uname", lambda: known.uname_result("Linux", "", release, "", ""))
    monkeypatch.delenv("WATCHFILES_FORCE_POLLING", raising=False)
    if told is not None:
        monkeypatch.setenv("WATCHFILES_FORCE_POLLING", told)

    assert watching._polls() is main._default_force_polling(None)


def test_polling_tells_the_same(tmp_path, monkeypatch):
    """
    Only later.
    """
    monkeypatch.setenv("WATCHFILES_FORCE_POLLING", "true")
    monkeypatch.setattr("promptkit.loader.watching._POLL_EVERY_MS", 20)
    changes = changes_in([str(tmp_path)], Event(), TIMES)
    next(changes)

    (tmp_path / "a.py").write_text("one")

    assert str(tmp_path / "a.py") in next_paths(changes)


def test_nothing_else_is_imported_and_authors_can_import_the_package(tmp_path):
    """
    The package takes 2 MiB. One that is imported later, or before, uses the same backend.
    """
    program = f"""
import sys
import time
from threading import Event, Thread
from promptkit.loader import watching

next(watching.changes_in([{str(tmp_path)!r}], Event(), watching.Debounce(quiet=10, every=50)))
print(sorted({{"watchfiles", "anyio", "logging", "multiprocessing"}} & sys.modules.keys()))
import watchfiles
print(watchfiles.main.RustNotify is watching._backend())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines() == ["[]", "True"]


def test_a_package_without_the_backend(monkeypatch):
    """
    The error names it.
    """
    monkeypatch.delitem(sys.modules, "watchfiles._rust_notify")
    monkeypatch.setattr(watching, "find_spec", lambda _: None)

    with pytest.raises(ModuleNotFoundError, match=r"No module named 'watchfiles\._rust_notify'"):
        watching._backend()
