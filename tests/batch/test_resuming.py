"""A batch that is killed at any moment, and goes on."""

import os
import random
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from tests.batch.conftest import requests_in

ROWS = 30_000


def command(*words, table="t.csv"):
    return [sys.executable, "-m", "promptkit", "batch", "triage", table, *words]


def time_of(*words, table="t.csv"):
    began = time.monotonic()
    subprocess.run(command(*words, table=table), check=False, capture_output=True)
    return time.monotonic() - began


OPTIONS = ("--for", "openai-chat", "--model", "m", "--key", "id")


@pytest.fixture
def table(folder):
    """Rows, some of which are bad, and some twice."""
    rows = (f"{n % (ROWS - 50)},ticket {n},{'many' if n % 1000 == 7 else n}\n" for n in range(ROWS))
    (folder / "t.csv").write_text("id,ticket,votes\n" + "".join(rows), encoding="utf-8")
    return folder


def files_in(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_killed_at_random_moments(table, workers):
    """
    However often it is killed, the result is what one run gives, byte for byte.
    """
    words = [*OPTIONS, "--workers", workers]
    whole = subprocess.run(command(*words, "-o", "whole"), check=False, capture_output=True)
    empty = time_of(*words, "--dry-run", table=os.devnull)
    took = time_of(*words, "--dry-run") - empty
    chance, kills = random.Random(20), 0  # noqa: S311 (nothing is secret)
    assert whole.returncode == 1, whole.stderr

    code = None
    while code is None:
        process = subprocess.Popen(command(*words, "-o", "killed", "--resume"), stdout=subprocess.DEVNULL)
        with suppress(subprocess.TimeoutExpired):
            code = process.wait(empty + chance.uniform(0, 0.2) * took if kills < 20 else None)
        process.kill()
        process.wait()
        kills += code is None

    assert kills > 3
    assert code == 1
    assert files_in(table / "killed") == files_in(table / "whole")


def test_its_workers_end_with_it(table):
    """
    No process is left behind when the one that began them is killed.
    """
    process = subprocess.Popen(
        command(*OPTIONS, "--workers", "2", "-o", "out"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    while not list((table / "out").glob("requests-*")):
        time.sleep(0.01)
    process.kill()

    assert process.communicate()[0] == b""  # nobody holds the pipe any more


def test_another_command_does_not_go_on(table):
    """
    With other options, other rows or another prompt, the rest would not fit what is there.
    """
    first = subprocess.Popen(
        command(*OPTIONS, "-o", "out"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while not list((table / "out").glob(".promptkit-batch.json")):
        time.sleep(0.01)
    first.kill()
    first.wait()

    unasked = subprocess.run(command(*OPTIONS, "-o", "out"), capture_output=True, text=True, check=False)
    other = subprocess.run(
        command(*OPTIONS, "--set", "severity=high", "--resume", "-o", "out"),
        capture_output=True,
        text=True,
        check=False,
    )

    assert "has a batch that was not finished: go on with --resume, or name another folder" in unasked.stderr
    assert "has a batch of another command, of other rows, or of a prompt that has changed" in other.stderr
    assert (unasked.returncode, other.returncode) == (2, 2)


def test_a_full_disk(table):
    """
    What was written stays; with room, the batch goes on to the same result.
    """
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
    assert "what was written stays: go on with --resume" in full.stderr
    assert len(full.stderr.splitlines()) == 1

    subprocess.run(command(*OPTIONS, "-o", "full", "--resume"), check=False, capture_output=True)
    assert files_in(table / "full") == files_in(table / "whole")


def test_rows_from_a_pipe(table):
    """
    Standard input is a table, too, of which nobody knows the size.
    """
    piped = subprocess.run(
        [sys.executable, "-m", "promptkit", "batch", "triage", "-", *OPTIONS, "-o", "piped"],
        input=(table / "t.csv").read_bytes(),
        check=False,
        capture_output=True,
    )
    subprocess.run(command(*OPTIONS, "-o", "file"), check=False, capture_output=True)

    assert piped.returncode == 1, piped.stderr
    assert files_in(table / "piped") == files_in(table / "file")
    assert len(requests_in(table / "piped")) == ROWS - 50 - ROWS // 1000 + 1  # a bad row's key is free again
