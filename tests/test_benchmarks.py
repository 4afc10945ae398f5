"""The benchmark's report, with made-up figures, and its recipes."""

import json
import os
import re
import sys
import time

import pytest

from benchmarks import busy, many_files, peers, pictures, recipes, report, rows
from benchmarks.budgets import BUDGETS, compute_verdicts
from benchmarks.cases import PICTURE, PLAIN, TYPED, echo_case, list_case
from benchmarks.peers import OURS, RECIPES, Peer
from benchmarks.rounds import LOOPS, Figure
from benchmarks.runner import FULL, Plan, Runner
from benchmarks.session import ServerFailedError, Session
from benchmarks.wire import ERAS, MODERN
from promptkit.compiler.compilation import compile
from promptkit.loader.loader import load

PEERS = [Peer(OURS, OURS, ()), Peer("bare", "bare loop", ()), Peer("mcp", "mcp 1.0", ())]
PLAN = Plan(seconds=0, min_requests=1, max_requests=5, sizes=(10,), many=20)
ECHO = peers.PEERS["echo"]()
FIGURES = {
    rows.first_list(10): {OURS: 0.05, "bare": 0.1, "mcp": 0.6},
    rows.memory(10): {OURS: 20.0, "bare": 25.0, "mcp": 40.0},
    rows.pipelined(TYPED): {OURS: 1e-5, "mcp": 1.5e-3},
    rows.size(list_case(10)): {OURS: 1.5},
}
NOTES = {("mcp", "the modern era"): "it answered with an error"}


@pytest.fixture
def content():
    """The content of a report with the figures above."""
    figures = {
        row: {name: Figure.of([value]) for name, value in values.items()} for row, values in FIGURES.items()
    }
    results = {era.name: figures for era in ERAS}
    return report.as_json(PEERS, results, compute_verdicts(results), NOTES, {"compile": 0.08})


def cells(text, title):
    """Return the cells of the first row with that title."""
    return next(
        row.strip("| ").split(" | ")[1:] for row in text.splitlines() if row.startswith(f"| {title} |")
    )


def test_cells_have_medians_and_ratios(content):
    """Each cell shows a median, and its ratio to promptkit's."""
    block = report.format_page(content)

    assert cells(block, "start to prompts/list of 10") == ["50.0 ms", "100 ms (2.0x)", "600 ms (12.0x)"]
    assert cells(block, "prompts/get, typed arguments: pipelined") == ["10.0 µs", "1.50 ms (150x)"]
    assert cells(block, "prompts/list of 10: size") == ["1.5 KiB", "-"]


def test_rows_of_different_sizes_are_adjacent(content):
    """Rows that differ only in the number of prompts are adjacent."""
    handshake_rows = content["eras"]["handshake"]
    handshake_rows["start to prompts/list of 1,000"] = handshake_rows["start to prompts/list of 10"]
    titles = [line.split(" | ")[0] for line in report.format_page(content).splitlines()]
    index = titles.index("| start to prompts/list of 10")

    assert titles[index + 1] == "| start to prompts/list of 1,000"


def test_budgets_and_skipped_servers_are_listed(content):
    """Every measured budget is listed as kept or missed, and skipped servers are listed with the reason."""
    block = report.format_page(content)
    kept_row, missed_row = "| 60.0x | 150x | kept |", "| 2.5x | 2.0x | **missed** |"

    assert (block.count(kept_row), block.count(missed_row)) == (2, 2)
    assert "**Budgets** (4 of 6 kept)" in block
    assert "- skipped: mcp: the modern era: it answered with an error" in block


def test_origin_of_the_figures(content):
    """The report names the date, the versions, the machine and the command."""
    block = report.format_page(content)
    expected = [
        content["date"],
        *(f"{name} {version}" for name, version in content["versions"].items()),
        f"{content['machine']['processors']} processors",
        "mcp 1.0",
        report.COMMAND,
    ]

    assert [text for text in expected if text not in block] == []


def test_both_eras_are_shown(content):
    """The first era is expanded, and the other one is folded."""
    expanded, _, folded = report.format_page(content).partition("<details>")

    assert "handshake era" in expanded
    assert "modern era" not in expanded
    assert "**Requests, modern era**" in folded.partition("</details>")[0]


def test_one_round_has_no_spread():
    """The range of the rounds is shown only if there are several."""
    row = {"unit": "s", "servers": {OURS: {"median": 1e-3, "rounds": [1e-3]}}}
    assert report.format_cell(row, OURS, spread=True) == "1.00 ms"

    row["servers"][OURS]["rounds"] = [1e-3, 1.2e-3]
    assert report.format_cell(row, OURS, spread=True) == "1.00 ms ±10%"


def test_summary_for_the_readme(content):
    """The README has one row for each measured figure of the selection, and one plot."""
    summary = report.summary(content)

    assert cells(summary, "start to the first list of prompts") == ["50.0 ms", "600 ms (12.0x)"]
    assert cells(summary, "a prompt with typed arguments, pipelined") == ["10.0 µs", "1.50 ms (150x)"]
    assert summary.count("![") == 1


def test_only_the_block_is_replaced(content, tmp_path):
    """The text around the marks is unchanged, and a second run replaces the first block."""
    file = tmp_path / "README.md"
    file.write_text(f"before\n\n{report.BEGIN}\nold\n{report.END}\n\nafter\n", encoding="utf-8")
    report.write(report.format_page(content), file)
    report.write(report.format_page(content), file)
    text = file.read_text(encoding="utf-8")

    assert (text.startswith("before\n\n<!--"), text.endswith("-->\n\nafter\n")) == (True, True)
    assert report.extract_figures(text) == report.format_page(content)


@pytest.mark.parametrize("text", ["", report.BEGIN, report.END, report.END + report.BEGIN])
def test_file_without_marks_is_unchanged(content, text, tmp_path):
    """A file without marks is an error, and stays unchanged."""
    file = tmp_path / "README.md"
    file.write_text(text, encoding="utf-8")

    with pytest.raises(ValueError, match="there is no <!-- benchmarks:begin -->"):
        report.write(report.format_page(content), file)
    assert file.read_text(encoding="utf-8") == text


def test_block_survives_a_json_file(content, tmp_path):
    """The report is the same after a round trip through a JSON file."""
    file = tmp_path / "results.json"
    report.write_json(content, file)

    assert report.format_page(json.loads(file.read_text(encoding="utf-8"))) == report.format_page(content)


def test_number_of_prompts_in_a_folder(tmp_path, monkeypatch):
    """
    A folder of recipes has as many prompts as its name states, with the names that peers use in a loop.
    """
    monkeypatch.setenv("BENCHMARK_PICTURES", str(tmp_path))
    (tmp_path / "picture.png").write_bytes(b"")
    recipes.write(tmp_path, (12,))
    folder = recipes.folder(tmp_path, 12)
    names = [prompt.name for prompt in compile(load(folder)).prompts]

    assert sorted(names) == sorted(list_case(12).expected)
    assert Peer("x", "x", ("serve", RECIPES)).command_for(folder) == ("serve", str(folder))


def test_number_of_files_in_a_folder(tmp_path):
    """A folder of files has as many files as its name states, with five prompts each."""
    recipes.write_files(tmp_path, (3,))

    files = sorted(recipes.folder_of_files(tmp_path, 3).glob("*.py"))

    assert [file.name for file in files] == ["generated_00000.py", "generated_00001.py", "prompts.py"]
    assert [file.read_text().count("@prompt") for file in files] == [5, 5, 5]
    assert "generated_00009" in files[1].read_text()


@pytest.fixture
def runner(tmp_path):
    """A runner with the shortest measurements, in a folder that contains the image and the recipes."""
    pictures.write(tmp_path)
    recipes.write(tmp_path, PLAN.counts)
    recipes.write_files(tmp_path, (2,))
    recipes.write_extra(tmp_path)
    return Runner(PLAN, tmp_path)


@pytest.fixture
def ours():
    """The server under test."""
    return peers.PEERS[OURS]()


def test_many_files_are_measured(runner, ours):
    """With many files, the start, a save, the slowest request around the save, and a check are measured."""
    figures = dict(many_files.measure_saves(runner, ours, ERAS[0], 2))
    figures |= dict(many_files.measure_check(runner, 2))

    measured = [rows.list_of_files, rows.saved_file, rows.slowest_request, rows.check_of_files]
    assert list(figures) == [row(2) for row in measured]
    assert 0 < min(figures.values()) <= max(figures.values()) < 60


def test_busy_server_is_measured(runner, ours):
    """
    The first reply does not wait for a recipe whose import takes 10 s, and other prompts do not wait for a
    busy loop.
    """
    figures = dict(busy.measure_slow_start(runner, ours, ERAS[0]))
    figures |= dict(busy.measure_loops(runner, ours, ERAS[0], 1))

    assert list(figures) == [rows.SLOW_OPENING, rows.next_to_loops(1)]
    assert max(figures.values()) < 5


def test_each_save_changes_the_file(tmp_path):
    """Each save changes the file, so no earlier version can pass for the saved one."""
    recipes.write_files(tmp_path, (2,))
    file = recipes.folder_of_files(tmp_path, 2) / recipes.SAVED
    first = file.read_text()
    recipes.save(tmp_path, 2, 7)

    assert file.read_text() == first.replace("Review this", "Review 7, this")
    assert next(many_files.EDITS) < next(many_files.EDITS)


@pytest.mark.parametrize("size", [1, 100_000, 1_000_000])
@pytest.mark.parametrize("era", ERAS, ids=lambda era: era.name)
def test_echo_has_the_requested_size(era, size):
    """An echo server replies with the requested number of bytes, then returns small requests unchanged."""
    with Session(ECHO.command, os.environ, era) as session:
        case = echo_case(PICTURE, size)

        assert case.has_expected_content(session.ask(case))
        assert session.measure_pipelined(case, 3) > 0
        assert bytes(session.ask(PLAIN)) == b"null"  # a request has no result


def test_server_that_exits_is_rejected():
    """A server that exits during a measurement is rejected with its exit code."""
    reply = '{"jsonrpc":"2.0","id":0,"result":{}}'
    ends = f"input(); print({reply!r}, flush=True); input(); raise SystemExit(3)"

    with (
        Session((sys.executable, "-c", ends), os.environ, MODERN) as session,
        pytest.raises(ServerFailedError, match="it exited with code 3 instead of replying"),
    ):
        session.measure_one_at_a_time(PLAIN, 0.0, 1, 1)


def test_server_that_does_not_reply_times_out(monkeypatch):
    """A server that does not reply is killed after a timeout, which only applies to pending requests."""
    reply = '{"jsonrpc":"2.0","id":0,"result":{}}'
    hangs = f"import time; input(); print({reply!r}, flush=True); input(); time.sleep(60)"

    with Session((sys.executable, "-c", hangs), os.environ, MODERN) as session:
        monkeypatch.setattr("benchmarks.session.TIMEOUT_S", 0.05)
        time.sleep(0.2)
        assert session.memory()
        with pytest.raises(ServerFailedError, match="it exited with code -9 instead of replying"):
            session.ask(PLAIN)


def test_large_reply_is_compared_with_an_echo(tmp_path):
    """A large reply is compared with an echo of the same size, in the same row."""
    figures = dict(Runner(PLAN, tmp_path).measure_echo(ECHO, ERAS[0], PICTURE, 64.0))

    assert list(figures) == [rows.alone(PICTURE)]
    assert {budget.peer for budget in BUDGETS if budget.ours == rows.alone(PICTURE)} == {"echo"}


def test_stdio_budgets():
    """The stdio budgets match the design."""
    budgets = [
        (budget.peer, budget.ours, budget.min_ratio) for budget in BUDGETS if budget.ours.table != rows.HTTP
    ]

    assert budgets == [
        ("mcp", rows.pipelined(TYPED), 60),
        ("typescript", rows.pipelined(TYPED), 3),
        ("bare", rows.pipelined(TYPED), 0.3),
        ("mcp", rows.alone(TYPED), 20),
        ("typescript", rows.alone(TYPED), 2),
        ("mcp", rows.first_list(10), 4),
        ("typescript", rows.first_list(10), 1 / 0.7),
        ("mcp", rows.first_get(10), 4),
        ("typescript", rows.first_get(10), 1 / 0.7),
        (OURS, rows.SLOW_OPENING, 1 / 1.2),
        ("mcp", rows.first_get(1_000), 5),
        ("typescript", rows.first_get(1_000), 1 / 0.8),
        ("1 ms", rows.next_to_loops(1), 1),
        ("8 ms", rows.next_to_loops(8), 1),
        ("150 ms", rows.saved_file(20), 1),
        ("2.5 s", rows.saved_file(2_000), 1),
        ("50 ms", rows.slowest_request(20), 1),
        ("50 ms", rows.slowest_request(2_000), 1),
        ("echo", rows.alone(list_case(1_000)), 1 / 1.3),
        ("echo", rows.alone(PICTURE), 1 / 1.3),
        ("mcp", rows.memory(10), 2.5),
        (OURS, rows.LOADED, 1 / 1.5),
        (OURS, rows.among(TYPED, 10_000), 1 / 1.25),
        (OURS, rows.first_list(10_000), 1 / 11),
        ("5 s", rows.check_of_files(1_000), 1),
    ]


def test_full_run_measures_all_budgets():
    """A full run measures all sizes, files and loops that budgets refer to."""
    measured = {
        *(rows.next_to_loops(count) for count in LOOPS),
        *(row(count) for count in FULL.files for row in (rows.saved_file, rows.slowest_request)),
        *(row(count) for count in FULL.counts for row in (rows.first_list, rows.first_get)),
        rows.check_of_files(FULL.checked),
    }
    named = {budget.ours for budget in BUDGETS if budget.ours not in measured}

    assert [row.title for row in named if re.search("loops|saved|check|start to prompts", row.title)] == []


def test_budget_compares_figures_of_the_same_round():
    """
    A budget compares figures of the same round, so a machine that slows down between rounds changes no ratio.
    """
    row = rows.pipelined(TYPED)
    (budget,) = [budget for budget in BUDGETS if (budget.peer, budget.ours) == ("bare", row)]
    figures = {row: {OURS: Figure.of([2.0, 4.0, 2.0]), "bare": Figure.of([1.0, 2.0, 1.0, 9.0])}}

    assert budget.ratio(figures) == pytest.approx(0.5)


def test_fixed_limit_is_compared_with_the_median():
    """A fixed limit is compared with the median, not with a peer's figures."""
    row = rows.next_to_loops(8)
    (budget,) = [budget for budget in BUDGETS if budget.ours == row]

    assert budget.ratio({row: {OURS: Figure.of([0.002, 0.004, 0.1])}}) == pytest.approx(2)
    assert budget.ratio({}) is None


@pytest.mark.parametrize("count", PLAN.counts)
def test_many_prompts_are_measured(count, runner, ours):
    """The start, the memory, the list, and a prompt are measured for a server with *count* prompts."""
    with runner.start(ours, ERAS[0], count) as session:
        started = [row for row, _ in runner.measure_size(session, count)]
        listed = [row for row, _ in runner.measure_list(session, ours, count)]
        among = [row for row, _ in runner.measure_among(session, count)]
        memory = [rows.memory(count)] if session.memory() else []  # not available on every system

    assert started == [rows.first_list(count), rows.first_get(count), *memory]
    assert listed == [rows.size(list_case(count)), rows.alone(list_case(count))]
    assert among == [rows.among(TYPED, count)]
