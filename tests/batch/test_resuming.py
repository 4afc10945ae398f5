"""A batch that is killed at any moment, and goes on."""

import os
import random
import resource
import signal
import subprocess
import sys
import time

import pytest

from tests.batch.conftest import requests_in

ROWS = 12_000


def command(*words):
    return [sys.executable, "-m", "promptkit", "batch", "triage", "t.csv", *words]


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
    began = time.monotonic()
    whole = subprocess.run(command(*words, "-o", "whole"), check=False, capture_output=True)
    took = time.monotonic() - began
    chance, kills = random.Random(20), 0
    assert whole.returncode == 1, whole.stderr

    while True:
        process = subprocess.Popen(
            command(*words, "-o", "killed", "--resume"),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.communicate(timeout=chance.uniform(0.2, 1.0) * took if kills < 20 else None)
            break
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            kills += 1

    assert kills > 3
    assert process.returncode == 1
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
    time.sleep(0.3)
    process.kill()

    assert process.stdout.read() == b""  # nobody holds the pipe any more
    process.wait()


def test_another_command_does_not_go_on(table):
    """
    With other options, other rows or another prompt, the rest would not fit what is there.
    """
    first = subprocess.Popen(command(*OPTIONS, "-o", "out"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
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
        command(*OPTIONS, "-o", "full"), check=False, capture_output=True, text=True, preexec_fn=have_little_room
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
    assert len(requests_in(table / "piped")) == ROWS - 50 - 11 - 1
