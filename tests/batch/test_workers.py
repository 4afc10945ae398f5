"""The processes of ``--workers``: start, exit and memory."""

import signal
import subprocess
import sys
import time

import pytest

from promptkit.batch.tables import Chunk
from promptkit.batch.workers import start_workers
from tests.batch.conftest import requests_in

RECIPE = '''
import os
import time
from pathlib import Path
from threading import Thread

from promptkit import prompt

with Path("imported").open("a") as file:
    print(os.getpid(), file=file)
{statement}

@prompt
def triage(ticket: str) -> str:
    """Triage a ticket."""
    return ticket
'''

THREAD = "Thread(target=time.sleep, args=(60,), daemon=True).start()"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere they are never forked")
@pytest.mark.parametrize(("statement", "imports"), [("", 1), (THREAD, 3)])
def test_workers_are_forked_if_no_threads_run(folder, statement, imports):
    """Workers are forked unless a recipe has started threads, which can hold locks."""
    (folder / "triage.py").write_text(RECIPE.format(statement=statement), encoding="utf-8")
    (folder / "t.csv").write_text("ticket\n" + "".join(f"t{n}\n" for n in range(2000)), encoding="utf-8")
    arguments = ("batch", "triage", "t.csv", "--target", "triage.py", "--for", "openai-chat", "--model", "m")

    command = (sys.executable, "-m", "promptkit", *arguments, "--workers", "2", "-o", "out")
    subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)

    assert len((folder / "imported").read_text().split()) == imports
    assert len(requests_in(folder / "out")) == 2000


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")
@pytest.mark.parametrize(
    ("number", "printed"),
    [("SIGKILL", ""), ("SIGINT", "promptkit: interrupted: continue with --resume\n")],
)
def test_workers_exit_with_the_command(folder, number, printed):
    """Workers exit when the command is killed or interrupted, even if a prompt hangs."""
    hangs = '    Path("hangs").touch()\n    while True:\n        pass\n    return ticket\n'
    source = RECIPE.format(statement="").replace("    return ticket\n", hangs)
    (folder / "triage.py").write_text(source, encoding="utf-8")
    (folder / "t.csv").write_text("ticket\nt\n", encoding="utf-8")
    arguments = ("batch", "triage", "t.csv", "--target", "triage.py", "--for", "openai-chat", "--model", "m")
    command = (sys.executable, "-m", "promptkit", *arguments, "--workers", "3", "-o", "out")

    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        while not (folder / "hangs").exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.Signals[number])
        _, errors = process.communicate(timeout=20)  # a remaining worker would keep the pipe open

    assert errors == printed
    assert process.returncode == (-signal.SIGKILL if number == "SIGKILL" else 130)


def _unchanged(chunk):
    return chunk


def test_few_chunks_are_read_ahead():
    """At most six chunks are read ahead, so that memory does not grow with the table."""
    read = 0

    def chunks():
        nonlocal read
        for read in range(1, 101):
            yield Chunk(read, [(read, b"{}")], read)

    with start_workers(_unchanged, 2) as render:
        for done, chunk in enumerate(render(chunks()), 1):
            assert chunk.first == done
            assert read - done <= 6

    assert done == read == 100
