"""Every command reports a slow import on standard error."""

import re
import subprocess
import sys

import pytest

from tests.wire import initialize, line, request

#: Runs a command that reports imports after 0.1 s. A recipe can wait until the report was written.
IMPATIENT = """
import sys
from threading import Event
from promptkit.cli import main
from promptkit.loader import import_thread
from promptkit.transports import stdio

def say_and_note(text):
    say(text)
    if "slow.py" in text:
        sys.reported.set()

sys.reported, say, import_thread.say = Event(), import_thread.say, say_and_note
import_thread._REPORT_AFTER_S, import_thread._POLL_EVERY_S = 0.1, 0.05
stdio._CHECK_PARENT_EVERY_S = 0.1
sys.exit(main(sys.argv[1:]))
"""
QUICK = (
    'from promptkit import prompt\n\n@prompt\ndef quick():\n    """Answer quickly."""\n    return "Quick."\n'
)
SLOW = """
import sys
from promptkit import prompt

sys.reported.wait(30)

@prompt
def slow():
    \"""Say that it is done.\"""
    return "Done."
"""
EXPECTED_REPORT = "recipes/slow.py", "recipes/slow.py", "4"
REPORT = re.compile(r"promptkit: importing (.*) has taken \d+ s so far, now at (.*slow.py):(\d+)")


def parse_reports(lines, folder):
    """Return the files and lines that were reported as slow."""
    matches = [match.groups() for match in map(REPORT.fullmatch, lines) if match]
    return [(file.removeprefix(f"{folder}/"), *position) for file, *position in matches]


@pytest.fixture
def run_command(recipes, tmp_path):
    """A function that runs a command on recipes, and returns its output and its lines on stderr."""

    def run(*argv, stdin=b"", **files):
        recipes(**files)
        command = [sys.executable, "-c", IMPATIENT, *argv]
        result = subprocess.run(
            command, cwd=tmp_path, input=stdin, capture_output=True, timeout=50, check=True
        )
        return result.stdout.decode(), result.stderr.decode().splitlines()

    return run


@pytest.mark.parametrize(
    "argv",
    [
        ["list"],
        ["check", "--format", "json"],
        ["render", "recipes/slow.py", "slow"],
    ],
    ids=" ".join,
)
def test_command_reports_a_slow_import(run_command, tmp_path, argv):
    """A command reports the slow file once, with the time and line, and otherwise works as usual."""
    out, stderr_lines = run_command(*argv, quick=QUICK, slow=SLOW)

    assert parse_reports(stderr_lines, tmp_path) == [EXPECTED_REPORT]
    assert out


def test_stdio_server_reports_a_slow_import(recipes, tmp_path):
    """A server on stdio reports the slow file, and answers its client."""
    recipes(quick=QUICK, slow=SLOW)
    session = line(initialize("2025-11-25")) + line(request(1, "prompts/get", {"name": "slow"}))
    command = [sys.executable, "-c", IMPATIENT, "serve"]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, **streams) as process:
        process.stdin.write(session)
        process.stdin.flush()
        replies = [process.stdout.readline() for _ in range(2)]
        _, stderr = process.communicate(timeout=50)

    assert b"Done." in replies[1]
    assert parse_reports(stderr.decode().splitlines(), tmp_path) == [EXPECTED_REPORT]


def test_http_server_reports_a_slow_import(recipes, tmp_path):
    """An HTTP server reports the slow file before it starts to serve."""
    recipes(quick=QUICK, slow=SLOW)
    command = [sys.executable, "-c", IMPATIENT, "serve", "--http", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        stderr_lines = [process.stderr.readline()]
        while stderr_lines[-1] and "serving at" not in stderr_lines[-1]:
            stderr_lines.append(process.stderr.readline())
        process.kill()

    assert parse_reports(map(str.rstrip, stderr_lines), tmp_path) == [EXPECTED_REPORT]
    assert "serving at" in stderr_lines[-1]


def test_report_for_a_module_names_its_file(run_command, tmp_path):
    """For a module as target, the report names the file that contains the line."""
    out, stderr_lines = run_command("list", "recipes.slow", slow=SLOW)

    assert "slow" in out
    assert parse_reports(stderr_lines, tmp_path) == [("the recipes", "recipes/slow.py", "4")]


def test_report_for_a_helper_names_its_line(run_command, tmp_path):
    """For a slow helper, the report names the recipe and the helper's line."""
    _, stderr_lines = run_command(
        "list", _slow="import sys\nsys.reported.wait(30)\n", reads=f"from . import _slow\n{QUICK}"
    )

    assert parse_reports(stderr_lines, tmp_path) == [("recipes/reads.py", "recipes/_slow.py", "2")]


#: A recipe whose prompt returns the names of the threads in its process.
NAMES = """
import threading
from promptkit import prompt

@prompt
def names():
    return " ".join(sorted(thread.name for thread in threading.enumerate()))
"""


def test_watching_thread_ends_with_the_import(run_command):
    """The thread that watches an import ends with the import."""
    out, stderr_lines = run_command("render", "names", names=NAMES)

    assert "MainThread" in out
    assert "promptkit-clock" not in out
    assert stderr_lines == []
