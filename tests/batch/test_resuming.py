"""Resuming a batch that was killed at any moment."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import pytest

from tests.batch.conftest import requests_in

pytestmark = pytest.mark.sampled

ROWS = 20_000


def command(*words, table="t.csv"):
    return [sys.executable, "-m", "promptkit", "batch", "triage", table, *words]


def rows_done(folder):
    """Return the number of rows in the checkpoint of a batch."""
    with suppress(FileNotFoundError):
        return json.loads((folder / ".promptkit-batch.json").read_bytes())["rows"]
    return 0


OPTIONS = ("--for", "openai-chat", "--model", "m", "--key", "id")


#: The end of the recipe's prompt: with STANDS_STILL set, it pauses at three quarters of the rows.
STANDS_STILL = f"""
    while "STANDS_STILL" in os.environ and ticket == "ticket {ROWS * 3 // 4}":
        time.sleep(1)
    return f"Ticket: {{ticket}}"""


@pytest.fixture
def table(folder):
    """A table with some invalid rows and some duplicate keys."""
    recipe = folder / "recipes" / "tickets.py"
    source = recipe.read_text(encoding="utf-8")
    source = source.replace('\n    return f"Ticket: {ticket}', STANDS_STILL)
    recipe.write_text(f"import os\nimport time\n{source}", encoding="utf-8")
    rows = (f"{n % (ROWS - 50)},ticket {n},{'many' if n % 1000 == 7 else n}\n" for n in range(ROWS))
    (folder / "t.csv").write_text("id,ticket,votes\n" + "".join(rows), encoding="utf-8")
    return folder


@contextmanager
def under_way(table, *words):
    """Run a batch that has finished some rows and not all; kill it after the block at the latest."""
    process = subprocess.Popen(
        command(*OPTIONS, *words, "-o", "out"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "STANDS_STILL": "1"},
    )
    with process:
        try:
            while rows_done(table / "out") < 500:
                assert process.poll() is None
                time.sleep(0.001)
            yield process
        finally:
            process.kill()


def files_in(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_killed_at_random_moments(table, workers):
    """A batch killed any number of times ends with the same bytes as one uninterrupted run."""
    words = [*OPTIONS, "--workers", workers]
    whole = subprocess.run(command(*words, "-o", "whole"), check=False, capture_output=True)
    assert whole.returncode == 1, whole.stderr
    chance, kills, rows = random.Random(20), 0, 0  # noqa: S311 (nothing is secret)

    code = -signal.SIGKILL
    while code == -signal.SIGKILL:
        process = subprocess.Popen(command(*words, "-o", "killed", "--resume"), stdout=subprocess.DEVNULL)
        rows += chance.randrange(2 * ROWS // 20)
        while process.poll() is None and rows_done(table / "killed") < rows:
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.01))
        process.kill()
        code = process.wait()
        kills += code == -signal.SIGKILL

    assert kills > 10
    assert code == 1
    assert files_in(table / "killed") == files_in(table / "whole")


def test_its_workers_end_with_it(table):
    """Workers exit when their parent process is killed."""
    with under_way(table, "--workers", "2") as process:
        process.kill()

        assert process.communicate()[0] == b""  # no process holds the pipe any more


def test_a_worker_that_is_killed(table):
    """When a worker is killed, the batch ends with a one-line error and can be resumed."""
    words = [*OPTIONS, "--workers", "2"]
    subprocess.run(command(*OPTIONS, "-o", "whole"), check=False, capture_output=True)
    recipe = table / "recipes" / "tickets.py"
    source, at = recipe.read_text(encoding="utf-8"), '    return f"Ticket: {ticket}'
    mortal = "    multiprocessing.parent_process() and os.kill(os.getpid(), 9)\n"
    recipe.write_text(f"import multiprocessing, os\n{source.replace(at, mortal + at)}", encoding="utf-8")

    broken = subprocess.run(command(*words, "-o", "out"), check=False, capture_output=True, text=True)
    recipe.write_text(source, encoding="utf-8")
    ended = subprocess.run(command(*words, "-o", "out", "--resume"), check=False, capture_output=True)

    assert broken.returncode == ended.returncode == 1
    assert broken.stderr == "promptkit: a process of --workers has ended: continue with --resume\n"
    assert files_in(table / "out") == files_in(table / "whole")


def test_another_command_does_not_go_on(table):
    """A batch is not resumed without --resume or with other options."""
    with under_way(table):
        pass

    unasked = subprocess.run(command(*OPTIONS, "-o", "out"), capture_output=True, text=True, check=False)
    other = subprocess.run(
        command(*OPTIONS, "--set", "severity=high", "--resume", "-o", "out"),
        capture_output=True,
        text=True,
        check=False,
    )

    assert "has an unfinished batch: continue it with --resume, or name another folder" in unasked.stderr
    assert (
        "holds the batch of another command, of other rows, or of a prompt that has changed" in other.stderr
    )
    assert (unasked.returncode, other.returncode) == (2, 2)


@pytest.mark.parametrize("change", ["a module beside the recipe", "the rows", "fewer rows"])
def test_something_else_does_not_go_on(table, change):
    """A batch is not resumed if its rows or the prompt's text changed: the last rows are rendered again."""
    recipe = table / "recipes" / "tickets.py"
    source = recipe.read_text(encoding="utf-8").replace("Ticket: {", "{WORD}: {")
    recipe.write_text(f"from ._word import WORD\n{source}", encoding="utf-8")
    (table / "recipes" / "_word.py").write_text("WORD = 'Ticket'\n", encoding="utf-8")
    with under_way(table):
        pass

    if change == "a module beside the recipe":
        (table / "recipes" / "_word.py").write_text("WORD = 'Case'\n", encoding="utf-8")
    else:
        rows = (table / "t.csv").read_text(encoding="utf-8")
        rows = rows.replace(",ticket ", ",case ") if change == "the rows" else rows[:100]
        (table / "t.csv").write_text(rows, encoding="utf-8")
    ran = subprocess.run(
        command(*OPTIONS, "--resume", "-o", "out"), capture_output=True, text=True, check=False
    )

    assert ran.returncode == 2
    assert ("of a prompt that has changed since" in ran.stderr) or ("now there are fewer" in ran.stderr)


def test_what_was_lost_is_noticed(table):
    """A batch is not resumed if a request file is missing."""
    with under_way(table):
        pass
    (table / "out" / "requests-00001.jsonl").unlink()

    ran = subprocess.run(
        command(*OPTIONS, "--resume", "-o", "out"), capture_output=True, text=True, check=False
    )

    assert ran.returncode == 2
    assert "'requests-00001.jsonl' has lost files of the batch: name another folder" in ran.stderr


def test_two_at_once(table):
    """Only one run writes to a folder at a time."""
    with under_way(table):
        second = subprocess.run(
            command(*OPTIONS, "--resume", "-o", "out"), capture_output=True, text=True, check=False
        )

    assert second.returncode == 2
    assert "'out' has a batch that is being written: wait for its end" in second.stderr


def test_a_full_disk(table):
    """After a full disk, the batch can be resumed with the same result."""
    subprocess.run(command(*OPTIONS, "-o", "whole"), check=False, capture_output=True)

    def have_little_room():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

    full = subprocess.run(
        command(*OPTIONS, "-o", "full"),
        check=False,
        capture_output=True,
        text=True,
        preexec_fn=have_little_room,
    )
    assert full.returncode == 1
    assert "cannot write to 'full': File too large: continue with --resume" in full.stderr
    assert len(full.stderr.splitlines()) == 1

    subprocess.run(command(*OPTIONS, "-o", "full", "--resume"), check=False, capture_output=True)
    assert files_in(table / "full") == files_in(table / "whole")


def test_rows_from_a_pipe(table):
    """Standard input is accepted as a table, although its size is unknown."""
    piped = subprocess.run(
        [sys.executable, "-m", "promptkit", "batch", "triage", "-", *OPTIONS, "-o", "piped"],
        input=(table / "t.csv").read_bytes(),
        check=False,
        capture_output=True,
    )
    subprocess.run(command(*OPTIONS, "-o", "file"), check=False, capture_output=True)

    assert piped.returncode == 1, piped.stderr
    assert files_in(table / "piped") == files_in(table / "file")
    assert len(requests_in(table / "piped")) == ROWS - 50 - ROWS // 1000 + 1  # a rejected row frees its key
