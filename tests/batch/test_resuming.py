"""Resuming a batch that was interrupted at any moment."""

import json
import random
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from types import SimpleNamespace

import pytest

from promptkit.batch.shards import BatchWriter, open_batch
from promptkit.batch.vendor_formats import LINE_FORMATS
from promptkit.files.folder import Folder
from tests.batch.conftest import requests_in

ROWS = 4_000

OPTIONS = ("--key", "id")


def command(*arguments):
    vendor = ("--for", "openai-chat", "--model", "m")
    return [sys.executable, "-m", "promptkit", "batch", "triage", "t.csv", *vendor, *OPTIONS, *arguments]


def rows_done(folder):
    """Return the number of rows in the checkpoint of a batch."""
    with suppress(FileNotFoundError, ValueError):
        return json.loads((folder / ".promptkit-batch.json").read_bytes())["rows"]
    return 0


@pytest.fixture
def table(folder):
    """The folder of a table with some invalid rows and some duplicate keys."""
    rows = (f"{n % (ROWS - 50)},ticket {n},{'many' if n % 1000 == 7 else n}\n" for n in range(ROWS))
    (folder / "t.csv").write_text("id,ticket,votes\n" + "".join(rows), encoding="utf-8")
    return folder


@pytest.fixture
def uninterrupted(table, batch):
    """The files of an uninterrupted run."""
    assert batch("triage", "t.csv", *OPTIONS, out="whole").code == 1
    return files_in(table / "whole")


@pytest.fixture
def run_and_interrupt(batch):
    """A function that starts a batch and stops it after some chunks, as if a worker had exited."""

    def run():
        write = BatchWriter.write

        def write_some(writer, chunk):
            if writer.progress.rows >= 500:
                raise EOFError
            write(writer, chunk)

        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(BatchWriter, "write", write_some)
            assert batch("triage", "t.csv", *OPTIONS).code == 1

    return run


def files_in(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_killed_at_random_moments(table, uninterrupted):
    """A batch that is killed any number of times ends with the same bytes as an uninterrupted run."""
    randomness, kills, rows = random.Random(20), 0, 0  # noqa: S311 (nothing is secret)

    code = -signal.SIGKILL
    while code == -signal.SIGKILL:
        arguments = ("--workers", str(kills % 2 + 1), "-o", "killed", "--resume")
        process = subprocess.Popen(command(*arguments), stdout=subprocess.DEVNULL)
        rows += randomness.randrange(2 * ROWS // 6)
        while process.poll() is None and rows_done(table / "killed") < rows:
            time.sleep(0.001)
        time.sleep(randomness.uniform(0, 0.01))
        process.kill()
        code = process.wait()
        kills += code == -signal.SIGKILL

    assert kills > 2
    assert code == 1
    assert files_in(table / "killed") == uninterrupted


def test_killed_worker(table, uninterrupted, batch):
    """When a worker is killed, the batch ends with a one-line error and can be resumed."""
    recipe = table / "recipes" / "tickets.py"
    source, last_line = recipe.read_text(encoding="utf-8"), '    return f"Ticket: {ticket}'
    killing_line = "    multiprocessing.parent_process() and os.kill(os.getpid(), 9)\n"
    recipe.write_text(
        f"import multiprocessing, os\n{source.replace(last_line, killing_line + last_line)}", encoding="utf-8"
    )

    broken = batch("triage", "t.csv", *OPTIONS, "--workers", "2")
    recipe.write_text(source, encoding="utf-8")
    resumed = batch("triage", "t.csv", *OPTIONS, "--resume")

    assert broken.code == resumed.code == 1
    assert broken.err == "promptkit: a worker process exited unexpectedly: continue with --resume\n"
    assert files_in(table / "out") == uninterrupted


def test_batch_is_resumed_only_on_request(table, run_and_interrupt, batch, uninterrupted):
    """A batch is resumed only with --resume and the same options."""
    run_and_interrupt()

    without_resume = batch("triage", "t.csv", *OPTIONS)
    with_other_options = batch("triage", "t.csv", *OPTIONS, "--set", "severity=high", "--resume")
    resumed = batch("triage", "t.csv", *OPTIONS, "--resume")

    assert (
        "contains an unfinished batch: continue it with --resume, replace it with --force, or"
        in without_resume.err
    )
    assert (
        "contains an unfinished batch: continue it with --resume, replace it with --force, or choose another"
        in without_resume.err
    )
    assert (
        "contains a batch from another command, from other rows, or from an older version"
        in with_other_options.err
    )
    assert (without_resume.code, with_other_options.code, resumed.code) == (2, 2, 1)
    assert files_in(table / "out") == uninterrupted


@pytest.mark.parametrize("change", ["a module next to the recipe", "the rows", "fewer rows"])
def test_changed_batch_is_not_resumed(table, run_and_interrupt, batch, change):
    """A batch is not resumed if a new rendering of its last rows shows that rows or the prompt changed."""
    recipe = table / "recipes" / "tickets.py"
    source = recipe.read_text(encoding="utf-8").replace("Ticket: {", "{WORD}: {")
    recipe.write_text(f"from ._word import WORD\n{source}", encoding="utf-8")
    (table / "recipes" / "_word.py").write_text("WORD = 'Ticket'\n", encoding="utf-8")
    run_and_interrupt()

    if change == "a module next to the recipe":
        (table / "recipes" / "_word.py").write_text("WORD = 'Another'\n", encoding="utf-8")
    else:
        rows = (table / "t.csv").read_text(encoding="utf-8")
        rows = rows.replace(",ticket ", ",case ") if change == "the rows" else rows[:100]
        (table / "t.csv").write_text(rows, encoding="utf-8")
    resumed = batch("triage", "t.csv", *OPTIONS, "--resume")

    assert resumed.code == 2
    assert ("from an older version of the prompt" in resumed.err) or (
        "but the table has fewer" in resumed.err
    )


def test_concurrent_runs(table, batch):
    """Only one run writes to a folder at a time."""
    with open_batch(Folder(table / "out"), LINE_FORMATS["openai-chat"], "it", resume=False):
        second = batch("triage", "t.csv", *OPTIONS, "--resume")

    assert second.code == 2
    assert "another process is writing a batch to 'out': wait until it finishes" in second.err


def test_full_disk(table, uninterrupted, batch):
    """A batch that failed because of a full disk can be resumed with the same result."""

    def limit_file_size():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

    result = subprocess.run(
        command("-o", "full"), check=False, capture_output=True, text=True, preexec_fn=limit_file_size
    )
    assert result.returncode == 1
    assert "cannot write to 'full': File too large: continue with --resume" in result.stderr
    assert len(result.stderr.splitlines()) == 1

    batch("triage", "t.csv", *OPTIONS, "--resume", out="full")
    assert files_in(table / "full") == uninterrupted


def test_rows_from_standard_input(table, uninterrupted, batch, monkeypatch):
    """Standard input is accepted as a table, although its size is unknown."""
    with (table / "t.csv").open("rb") as stream:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
        piped = batch("triage", "-", *OPTIONS, out="piped")

    assert piped.code == 1, piped.err
    assert files_in(table / "piped") == uninterrupted
    assert len(requests_in(table / "piped")) == ROWS - 50 - ROWS // 1000 + 1  # a rejected row frees its key
