"""The HTTP benchmark, with real servers and with load from wrk."""

import shutil

import attrs
import pytest

from benchmarks import pictures, plots, recipes, rows
from benchmarks.budgets import BUDGETS
from benchmarks.cases import TYPED
from benchmarks.http.load import send_load
from benchmarks.http.peers import HTTP_PEERS
from benchmarks.http.rounds import COUNT, POST, HttpPlan, HttpRounds
from benchmarks.http.server import Post, free_port
from benchmarks.peers import OURS
from benchmarks.session import ServerFailedError
from benchmarks.wire import read_reply

needs_wrk = pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk is not installed")


@pytest.fixture
def rounds(tmp_path):
    """Rounds of promptkit and of the baseline, with the shortest possible durations."""
    pictures.write(tmp_path)
    recipes.write(tmp_path, (COUNT,))
    servers = [HTTP_PEERS[name]() for name in (OURS, "asgi")]
    return HttpRounds(HttpPlan(warm_up=1, seconds=1), tmp_path, servers, bool)


def test_posted_request_is_answered(rounds):
    """The posted request gets a reply with the text that every server must render."""
    with rounds._start(rounds.peers[0], 1, free_port()) as server:
        server.check(POST)

        assert POST.case.has_expected_content(read_reply(server.reply).result)
        assert server.processor_time() > 0
        assert server.memory() > 1
        assert server.opened > 0


def test_server_with_the_wrong_text_is_rejected(rounds):
    """A server is rejected if its reply has the right size but the wrong text, such as the baseline's."""
    rounds._answers_correctly(rounds.peers[0])
    with rounds._start(rounds.peers[1], 1, free_port()) as server:
        assert len(server.reply) == rounds._size > 200
        with pytest.raises(ServerFailedError, match="its reply has unexpected content"):
            server.check(POST)


def test_server_that_exits_is_skipped(rounds):
    """A server that exits is skipped and reported with its exit code."""
    broken = attrs.evolve(rounds.peers[0], name="broken", command=("false",))

    assert not rounds._answers_correctly(broken)
    assert rounds.notes == {("broken", "HTTP"): "it exited with code 1, or it does not accept connections"}


def test_missing_wrk(rounds, monkeypatch):
    """Without wrk nothing is measured, and a note gives the reason."""
    monkeypatch.setenv("PATH", "")

    assert rounds.run(1) == {}
    assert rounds.notes == {
        ("wrk", "everything over HTTP"): "it is not installed; Debian's package wrk has it"
    }


@needs_wrk
def test_load_counts_answered_requests(rounds):
    """A load returns the number of answered requests and their times; a failed request is an error."""
    port = free_port()
    with rounds._start(rounds.peers[0], 1, port) as server:
        measured = send_load(port, POST, seconds=1, connections=2)

        assert measured.requests > 100
        assert 0.9 < measured.seconds < 5
        assert 0 < measured.median <= measured.slowest
        assert server.processor_time() > 0
        with pytest.raises(ServerFailedError, match="requests failed"):
            send_load(port, Post(attrs.evolve(TYPED, method="unknown")), seconds=1, connections=2)


def test_http_budgets():
    """The HTTP budgets match the design, and refer to rows that every run has."""
    budgets = {
        (budget.peer, budget.ours.title): budget.min_ratio
        for budget in BUDGETS
        if budget.ours.table == rows.HTTP
    }

    assert budgets == {
        ("mcp", "1 worker, 32 connections: time for each"): 8,
        ("asgi", "1 worker, 32 connections: time for each"): 0.6,
        ("mcp", "1 worker, 32 connections: 99th percentile"): 10,
    }


def test_http_results_give_no_plots(tmp_path):
    """HTTP results alone give no plots, because all plots show results over stdio."""
    row = {"unit": "s", "servers": {OURS: {"median": 1.0}}}

    plots.draw({"eras": {"modern": {rows.HTTP: row}}, "servers": {OURS: OURS}}, (), tmp_path)

    assert list(tmp_path.iterdir()) == []
