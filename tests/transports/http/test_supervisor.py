"""The supervisor: load balancing between workers, and replacing workers that exit."""

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


def workers_of(server, number):
    """Return the process ids of all workers."""
    pids, deadline = set(), time.monotonic() + PATIENCE
    while len(pids) < number and time.monotonic() < deadline:
        pids.add(server.get()["pid"])
    return pids


def prompts_by_worker(server):
    """Return the prompts that each worker lists."""
    return {reply["pid"]: reply["prompts"] for reply in (server.get() for _ in range(30))}


def wait_for_prompts(server, names, without=0):
    """Wait until all workers list *names*, and the worker *without* is gone."""
    deadline = time.monotonic() + PATIENCE
    while without in (now := prompts_by_worker(server)) or any(prompts != names for prompts in now.values()):
        assert time.monotonic() < deadline


def is_alive(pid):
    """Return whether the process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for_exit(pid, seconds=PATIENCE):
    """Wait until a process has exited, and return the duration."""
    started = time.monotonic()
    while is_alive(pid):
        assert time.monotonic() - started < seconds
        time.sleep(0.01)
    return time.monotonic() - started


def test_workers_share_the_load(serve):
    """The kernel distributes connections to all workers."""
    server = serve("--http", "0", "--workers", "2")
    counts = Counter(server.get()["pid"] for _ in range(100))

    assert len(counts) == 2


def test_worker_that_exits_is_replaced(serve):
    """
    However a worker exits (killed by a signal or a request, or properly), a new worker replaces it, and no
    connection is refused. Standard error reports how the worker exited.
    """
    server = serve("--http", "0", "--workers", "2")
    first, second = workers_of(server, 2)
    os.kill(first, signal.SIGKILL)
    assert len([server.get() for _ in range(50)]) == 50
    server.wait_for(rf"worker \d \(process {first}\) was killed by SIGKILL; starting a new worker")
    assert first not in workers_of(server, 2)

    with server.connect() as connection:
        connection.request("/crash")
        assert connection.wait_for_close() < PATIENCE
        assert connection.rest == b""
    remaining = workers_of(server, 2)
    assert len(remaining) == 2

    last = (remaining & {second} or remaining).pop()
    os.kill(last, signal.SIGTERM)
    wait_for_exit(last)
    assert len(workers_of(server, 2)) == 2
    server.wait_for(rf"\(process {last}\) exited; starting a new worker")


NO_FILES = "Too many open files"


def limit_open_files():
    """Limit the number of open files of a process."""
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))


def test_worker_that_cannot_accept_connections_is_replaced(serve):
    """The worker exits with the reason, and pending connections are answered by another worker."""
    options = ["--http", "0", "--workers", "2", "--grace", "1", "--no-watch"]
    server = serve(*options, limits={"connections": 20}, preexec_fn=limit_open_files)
    workers_of(server, 2)
    deaf_pid = server.get("/greedy")["pid"]
    with ExitStack() as stack:
        connections = [stack.enter_context(server.connect()) for _ in range(10)]
        for connection in connections:
            connection.request()
        server.wait_for(f"this process will exit because it can no longer accept connections: {NO_FILES}")
        server.wait_for(rf"\(process {deaf_pid}\) exited with code 1; starting a new worker")
        assert {connection.reply().status for connection in connections} == {200}

    assert deaf_pid not in workers_of(server, 2)


def test_server_that_cannot_accept_connections_exits(serve):
    """A single process exits with an error, so that its supervisor can restart it."""
    server = serve("--http", "0", "--grace", "1", limits={"connections": 20}, preexec_fn=limit_open_files)
    with ExitStack() as stack:
        server.get("/greedy")
        with suppress(ConnectionRefusedError):
            for _ in range(5):
                stack.enter_context(server.connect())

        assert server.process.wait(PATIENCE) == 1
    assert server.stderr().splitlines()[-1].endswith(f"it can no longer accept connections: {NO_FILES}")


def test_worker_recovers_from_a_lack_of_file_descriptors(serve):
    """Pending connections are answered once descriptors are available again."""
    limits = {
        "connections": 20,
        "keep_alive": 0.2,
        "deaf_s": PATIENCE,
    }  # the worker does not exit before that
    server = serve("--http", "0", limits=limits, preexec_fn=limit_open_files)
    with ExitStack() as stack:
        connections = [stack.enter_context(server.connect()) for _ in range(2)]
        assert connections[0].ask("/greedy").status == 200
        with server.connect() as late:
            late.request()
            server.wait_for("connections are waiting because they cannot be accepted: Too many open files")
            assert late.reply().status == 200  # once the idle connections are closed


def test_crashing_worker_is_started_once_a_second():
    """There is at least a second between two starts of a crashing worker."""

    class CrashingSupervisor(Supervisor):
        starts = 0

        def _fork(self, number):
            self.starts += 1
            return 0

    supervisor = CrashingSupervisor(1, print, stop_listening=bool, grace=0)
    for _ in range(3):
        supervisor._replace()
    assert supervisor.starts == 1
    supervisor._slots[0].due -= 1.0
    supervisor._replace()

    assert supervisor.starts == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda signal_: signal_.name)
def test_signal_to_the_parent_stops_all_workers(serve, number):
    """A signal to the parent stops all workers; the exit code is 0."""
    server = serve("--http", "0", "--workers", "2")
    workers = workers_of(server, 2)

    code, _ = server.stop(number)

    assert code == 0
    assert not any(map(is_alive, workers))


def test_workers_exit_when_the_parent_is_killed(serve):
    server = serve("--http", "0", "--workers", "2")
    workers = workers_of(server, 2)

    server.process.kill()
    server.process.wait()

    assert all(wait_for_exit(pid) < PATIENCE for pid in workers)
    with pytest.raises(ConnectionRefusedError):
        server.connect()


def test_failed_fork_is_retried(capsys):
    """If the system allows no more processes, the failure is reported, and the other workers continue."""

    class FailingSupervisor(Supervisor):
        def _fork(self, number):
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    supervisor = FailingSupervisor(2, print, stop_listening=print, grace=0)
    supervisor._replace()
    supervisor._replace()

    assert capsys.readouterr().err.splitlines() == [
        f"promptkit: worker {number} cannot be started (trying again soon): Resource temporarily unavailable"
        for number in (1, 2)
    ]


def test_hanging_worker_is_killed(serve):
    """A worker that does not exit within the grace period is killed."""
    server = serve("--http", "0", "--workers", "2", "--grace", "0.1")
    workers = workers_of(server, 2)
    os.kill(min(workers), signal.SIGSTOP)

    code, seconds = server.stop()

    assert code == 0
    assert seconds < 10
    assert not any(map(is_alive, workers))


def test_second_signal_stops_all_workers_immediately(serve):
    """A second signal stops all workers immediately; running requests are abandoned."""
    server = serve("--http", "0", "--workers", "2", "--grace", "60")
    workers = workers_of(server, 2)
    with server.connect() as connection, server.connect() as idle:
        connection.request("/slow?30")
        idle.ask()
        server.process.send_signal(signal.SIGTERM)
        idle.ask_until_close()
        assert server.process.poll() is None
        code, seconds = server.stop()

    assert (code, seconds < 5) == (-signal.SIGTERM, True)
    assert not any(map(is_alive, workers))


def test_reload_errors_are_reported_by_one_worker(serve, tmp_path):
    """An error in a saved recipe is reported once, and again if the recipe is saved again with the error."""
    server = serve("--http", "0", "--workers", "2")
    workers_of(server, 2)
    path = tmp_path / "recipes" / "more.py"
    head = "from promptkit import prompt\n\n@prompt\ndef more():\n"

    for number in (1, 2):
        path.write_text(f"{head}    return {number} +\n")
        server.wait_for(rf"(?s)(reloaded; .*?){{{number}}}")
        time.sleep(0.5)  # enough time for the other worker to report the same
        path.write_text(f"{head}    return '{number}'\n")
        wait_for_prompts(server, ["greet", "more"])

    assert server.stderr().count("SyntaxError") == 2
    assert server.stderr().count("reloaded; ") == 2


def test_replacement_worker_serves_the_current_recipes(serve, tmp_path):
    """Each worker reloads by itself, and a worker forked later has the changes since the start."""
    server = serve("--http", "0", "--workers", "2")
    before = workers_of(server, 2)
    (tmp_path / "recipes" / "more.py").write_text(
        "from promptkit import prompt\n\n@prompt\ndef more():\n    return 'More.'\n"
    )

    wait_for_prompts(server, ["greet", "more"])
    os.kill(min(before), signal.SIGKILL)
    wait_for_prompts(server, ["greet", "more"], without=min(before))

    assert len(prompts_by_worker(server)) == 2
