"""Workers: how they share the load, die, and are replaced."""

import errno
import os
import signal
import sys
import time
from collections import Counter
from contextlib import ExitStack, suppress

import pytest

from promptkit.transports.http.supervisor import Supervisor
from tests.transports.http.conftest import PATIENCE

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot fork")]


def workers_of(served, number):
    """The processes of all workers."""
    found, until = set(), time.monotonic() + PATIENCE
    while len(found) < number and time.monotonic() < until:
        found.add(served.get()["pid"])
    return found


def listed(served):
    """The prompts that each worker lists."""
    return {said["pid"]: said["prompts"] for said in (served.get() for _ in range(30))}


def wait_for_prompts(served, names, without=0):
    """Wait until all workers list these, and one of them is gone."""
    until = time.monotonic() + PATIENCE
    while without in (now := listed(served)) or any(found != names for found in now.values()):
        assert time.monotonic() < until


def is_alive(pid):
    """Whether there is a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for_end(pid, seconds=PATIENCE):
    """How long it takes until a process has ended."""
    started = time.monotonic()
    while is_alive(pid):
        assert time.monotonic() - started < seconds
        time.sleep(0.01)
    return time.monotonic() - started


def test_one_worker_is_the_process_itself(serve):
    """
    Without --workers, no other process is started.
    """
    served = serve("--http", "0")

    assert served.get()["pid"] == served.process.pid


def test_workers_share_the_load(serve):
    """
    Of many connections, each of two workers gets within 20 % as many as the other.
    """
    served = serve("--http", "0", "--workers", "2")
    counted = Counter(served.get()["pid"] for _ in range(2000))

    assert len(counted) == 2
    assert min(counted.values()) > 0.8 * max(counted.values())


def test_workers_share_few_connections(serve):
    """
    Of the 32 connections of one client, too: chance alone would often leave a third to one of two.
    """
    served = serve("--http", "0", "--workers", "2")
    connections = [served.connect() for _ in range(32)]
    counted = Counter(connection.ask().json["pid"] for connection in connections)
    for connection in connections:
        connection.socket.close()

    assert len(counted) == 2
    assert min(counted.values()) > 0.8 * max(counted.values())


def test_a_worker_that_is_killed_is_replaced(serve):
    """
    Standard error says what happened, and within a second another process serves in its place.
    """
    served = serve("--http", "0", "--workers", "2")
    first, second = workers_of(served, 2)

    os.kill(first, signal.SIGKILL)
    served.wait_for(rf"worker \d \(process {first}\) was killed by SIGKILL: another takes its place", 1)

    assert first not in workers_of(served, 2)
    assert second in workers_of(served, 2)


NO_FILES = "Too many open files"


def few_files():
    """Allow a process few files."""
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))


def test_a_worker_that_cannot_accept_connections_any_more_is_replaced(serve):
    """
    It ends and says why, and all who connect meanwhile are answered by the other one, or the next.
    """
    options = ["--http", "0", "--workers", "2", "--grace", "1", "--no-watch"]
    served = serve(*options, limits={"connections": 20}, preexec_fn=few_files)
    workers_of(served, 2)
    deaf = served.get("/greedy")["pid"]
    with ExitStack() as stack:
        connections = [stack.enter_context(served.connect()) for _ in range(10)]
        for connection in connections:
            connection.request()
        served.wait_for(f"this process exits because it can no longer accept connections: {NO_FILES}")
        served.wait_for(rf"\(process {deaf}\) exited with code 1: another takes its place")
        assert {connection.reply().status for connection in connections} == {200}

    assert deaf not in workers_of(served, 2)


def test_a_server_that_cannot_accept_connections_any_more_ends(serve):
    """
    Without others, it ends with an error, so that what has started it can start it again.
    """
    served = serve("--http", "0", "--grace", "1", limits={"connections": 20}, preexec_fn=few_files)
    with ExitStack() as stack:
        served.get("/greedy")
        with suppress(ConnectionRefusedError):
            for _ in range(5):
                stack.enter_context(served.connect())

        assert served.process.wait(PATIENCE) == 1
    assert served.said().splitlines()[-1].endswith(f"it can no longer accept connections: {NO_FILES}")


def test_a_worker_that_may_open_no_more_files_for_a_while(serve):
    """
    It goes on once it can: what waits is answered.
    """
    limits = {"connections": 20, "keep_alive": 0.2, "deaf_s": PATIENCE}  # it does not end before it can
    served = serve("--http", "0", limits=limits, preexec_fn=few_files)
    with ExitStack() as stack:
        connections = [stack.enter_context(served.connect()) for _ in range(2)]
        assert connections[0].ask("/greedy").status == 200
        with served.connect() as late:
            late.request()
            served.wait_for("connections wait because they cannot be accepted: Too many open files")
            assert late.reply().status == 200  # once the others were idle for too long


def test_what_waits_for_a_worker_that_dies_is_served(serve):
    """
    While a worker dies and is replaced, nobody who connects is refused: only what it had accepted is lost.
    """
    served = serve("--http", "0", "--workers", "2")
    before = workers_of(served, 2)
    os.kill(min(before), signal.SIGKILL)

    answered = [served.get()["pid"] for _ in range(300)]

    assert len(answered) == 300
    assert set(answered) - before


def test_a_request_that_kills_its_worker_loses_itself_alone(serve):
    """
    Its connection ends, and the next requests are served.
    """
    served = serve("--http", "0", "--workers", "2")
    with served.connect() as connection:
        connection.request("/crash")
        assert connection.ended() < PATIENCE
        assert connection.rest == b""

    assert len(workers_of(served, 2)) == 2


def test_workers_that_die_at_once_are_replaced_with_pauses(serve):
    """
    Standard error says that they do, and when the next one starts.
    """
    served = serve("--http", "0", "--workers", "2")
    for _ in range(3):
        with served.connect() as connection:
            connection.request("/crash")
            connection.ended()

    assert served.wait_for(r"at once, (\d) times in a row: the next one starts in 0.25 s")


def test_a_worker_that_dies_for_hours_is_still_replaced(capsys):
    """
    However often a worker has died at once, the next one starts after the longest pause.
    """
    supervisor = Supervisor(1, print, stop_connecting=bool, grace=0)
    (slot,) = supervisor._slots
    slot.failures, slot.since = 5000, time.monotonic()

    supervisor._plan(0, slot, 1)

    assert 9 < slot.due - time.monotonic() <= 10
    assert "5001 times in a row: the next one starts in 10 s" in capsys.readouterr().err


def test_a_worker_that_is_told_to_end_is_replaced(serve):
    """
    It answers what it has, and another takes over its socket.
    """
    served = serve("--http", "0", "--workers", "2")
    first, _ = workers_of(served, 2)

    os.kill(first, signal.SIGTERM)
    wait_for_end(first)

    assert len(workers_of(served, 2)) == 2
    served.wait_for(rf"\(process {first}\) ended: another takes its place")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda one: one.name)
def test_the_parent_ends_all(serve, number):
    """
    A signal to the parent ends all workers, and the exit code is 0.
    """
    served = serve("--http", "0", "--workers", "2")
    workers = workers_of(served, 2)

    code, _ = served.end(number)

    assert code == 0
    assert not any(map(is_alive, workers))


def test_the_death_of_the_parent_ends_the_workers(serve):
    """
    No worker is left behind, even if the parent is killed.
    """
    served = serve("--http", "0", "--workers", "2")
    workers = workers_of(served, 2)

    served.process.kill()
    served.process.wait()

    assert all(wait_for_end(pid) < PATIENCE for pid in workers)
    with pytest.raises(ConnectionRefusedError):
        served.connect()


def test_a_worker_that_cannot_be_started_is_tried_again(capsys):
    """
    If the system allows no more processes, that is said, and the others go on.
    """

    class Full(Supervisor):
        def _fork(self, number):
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    supervisor = Full(2, print, stop_connecting=print, grace=0)
    supervisor._replace()
    supervisor._replace()

    assert capsys.readouterr().err.splitlines() == [
        f"promptkit: worker {number} cannot be started, and is tried again in 10 s: "
        "Resource temporarily unavailable"
        for number in (1, 2)
    ]


def test_a_worker_that_hangs_is_killed(serve):
    """
    A worker that does not end within its grace is ended by force.
    """
    served = serve("--http", "0", "--workers", "2", "--grace", "0.1")
    workers = workers_of(served, 2)
    os.kill(min(workers), signal.SIGSTOP)

    code, seconds = served.end()

    assert code == 0
    assert seconds < 10
    assert not any(map(is_alive, workers))


def test_a_second_signal_ends_all_at_once(serve):
    """
    After a second signal, nothing that runs is waited for.
    """
    served = serve("--http", "0", "--workers", "2", "--grace", "60")
    workers = workers_of(served, 2)
    with served.connect() as connection, served.connect() as idle:
        connection.request("/slow?30")
        idle.ask()
        served.process.send_signal(signal.SIGTERM)
        idle.ask_to_the_last()
        assert served.process.poll() is None
        code, seconds = served.end()

    assert (code, seconds < 5) == (-signal.SIGTERM, True)
    assert not any(map(is_alive, workers))


def test_one_worker_speaks_for_all(serve, tmp_path):
    """
    What is wrong with recipes that were saved is said once, and once more if they are saved with it again.
    """
    served = serve("--http", "0", "--workers", "2")
    workers_of(served, 2)
    path = tmp_path / "recipes" / "more.py"
    head = "from promptkit import prompt\n\n@prompt\ndef more():\n"

    for number in (1, 2):
        path.write_text(f"{head}    return {number} +\n")
        served.wait_for(rf"(?s)(reloaded; .*?){{{number}}}")
        time.sleep(0.5)  # the other worker has had its time to say the same
        path.write_text(f"{head}    return '{number}'\n")
        wait_for_prompts(served, ["greet", "more"])

    assert served.said().count("SyntaxError") == 2
    assert served.said().count("reloaded; ") == 2


def test_a_replacement_serves_what_was_changed_meanwhile(serve, tmp_path):
    """
    Each worker reloads on its own, and one that is forked later sees what has changed since the start.
    """
    served = serve("--http", "0", "--workers", "2")
    before = workers_of(served, 2)
    (tmp_path / "recipes" / "more.py").write_text(
        "from promptkit import prompt\n\n@prompt\ndef more():\n    return 'More.'\n"
    )

    wait_for_prompts(served, ["greet", "more"])
    os.kill(min(before), signal.SIGKILL)
    wait_for_prompts(served, ["greet", "more"], without=min(before))

    assert len(listed(served)) == 2
