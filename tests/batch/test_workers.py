"""The processes of ``--workers``: how they begin, and end."""

import subprocess
import sys
import time

import pytest

from tests.batch.conftest import requests_in

RECIPE = '''
import os
import time
from pathlib import Path
from threading import Thread

from promptkit import prompt

with Path("imported").open("a") as file:
    print(os.getpid(), file=file)
{more}

@prompt
def triage(ticket: str) -> str:
    """Triage a ticket."""
    return ticket
'''

THREAD = "Thread(target=time.sleep, args=(60,), daemon=True).start()"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere they are never forked")
@pytest.mark.parametrize(("more", "imports"), [("", 1), (THREAD, 2)])
def test_how_they_begin(folder, more, imports):
    """
    They are forked, with what is imported. Where a recipe has threads, which may hold locks, they begin anew.
    """
    (folder / "triage.py").write_text(RECIPE.format(more=more), encoding="utf-8")
    (folder / "t.csv").write_text("ticket\n" + "".join(f"t{n}\n" for n in range(2000)), encoding="utf-8")
    words = ("batch", "triage", "t.csv", "--target", "triage.py", "--for", "openai-chat", "--model", "m")

    for workers in ("1", "2"):
        command = (sys.executable, "-m", "promptkit", *words, "--workers", workers, "-o", workers)
        (folder / "imported").unlink(missing_ok=True)
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)

    assert len((folder / "imported").read_text().split()) == imports
    assert requests_in(folder / "1") == requests_in(folder / "2")
    assert len(requests_in(folder / "1")) == 2000


HELPED = """
    if parent_process() is not None and ticket != "0":
        while not Path("helped").exists():
            time.sleep(0.01)
    if parent_process() is None and ticket == "63":
        Path("helped").touch()
    return ticket
"""


def test_who_has_nothing_to_do_helps(folder):
    """
    What another process was given is rendered here, if it has not begun it when nothing else is left.
    """
    source = f"from multiprocessing import parent_process{RECIPE.format(more='')}"
    (folder / "triage.py").write_text(source.replace("\n    return ticket\n", HELPED), encoding="utf-8")
    (folder / "t.csv").write_text("ticket\n" + "".join(f"{n}\n" for n in range(200)), encoding="utf-8")
    words = ("batch", "triage", "t.csv", "--target", "triage.py", "--for", "openai-chat", "--model", "m")
    command = (sys.executable, "-m", "promptkit", *words, "--workers", "2", "-o", "out")

    subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, timeout=30)

    assert [request["body"]["messages"][0]["content"] for request in requests_in(folder / "out")] == [
        str(n) for n in range(200)
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")
def test_they_end_with_the_one_that_began_them(folder):
    """
    Without a word, also if it is killed.
    """
    (folder / "triage.py").write_text(RECIPE.format(more=""), encoding="utf-8")
    (folder / "t.csv").write_text("ticket\n" + "".join(f"t{n}\n" for n in range(200_000)), encoding="utf-8")
    words = ("batch", "triage", "t.csv", "--target", "triage.py", "--for", "openai-chat", "--model", "m")
    command = (sys.executable, "-m", "promptkit", *words, "--workers", "3", "-o", "out")

    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE) as process:
        while not any(file.stat().st_size for file in folder.glob("out/*.jsonl")):
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
        _, said = process.communicate(timeout=20)  # the others would keep the pipe open

    assert said == b""
