"""A slow import is reported on standard error, whichever command imports."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wire import initialize, line, request

#: The command line, in a process where half a second is long.
IMPATIENT = """
import sys
from promptkit.cli import main, serve
from promptkit.compiler.loading import import_clock
from promptkit.transports import stdio
import_clock._REPORT_AFTER_S, import_clock._LOOK_EVERY_S = 0.4, 0.05
serve._GREET_AFTER_S = stdio._LOOK_FOR_PARENT_EVERY_S = 0.1
sys.exit(main(sys.argv[1:]))
"""
QUICK = 'from promptkit import prompt\n\n@prompt\ndef quick():\n    """Say it."""\n    return "Quick."\n'
SLOW = """
import time
from promptkit import prompt

time.sleep(1.3)

@prompt
def slow():
    \"""Say that it is done.\"""
    return "Done."
"""
WHERE = "recipes/slow.py has", "recipes/slow.py", "4"
SAID = re.compile(r"promptkit: (.*) been importing for (\d) s, now at (.*):(\d+)")


@pytest.fixture
def ran(recipes, tmp_path):
    """A function that writes recipes and runs a command on them; it returns its output, and what it said."""

    def run(*argv, sent=b"", **files):
        recipes(**files)
        command = [sys.executable, "-c", IMPATIENT, *argv]
        found = subprocess.run(command, cwd=tmp_path, input=sent, capture_output=True, timeout=50, check=True)
        return found.stdout.decode(), found.stderr.decode().splitlines()

    return run


@pytest.mark.parametrize(
    "argv",
    [
        ["list"],
        ["check"],
        ["check", "--format", "json"],
        ["render", "slow"],
        ["render", "recipes/slow.py", "slow"],
    ],
    ids=" ".join,
)
def test_a_command(ran, tmp_path, argv):
    """
    It reports once which file is slow, for how long and at which line, and works as usual.
    """
    out, said = ran(*argv, quick=QUICK, slow=SLOW)

    reports = [SAID.fullmatch(text) for text in said if "importing" in text]
    (report,) = reports
    assert (report[1].removeprefix(f"{tmp_path}/"), report[2], report[3], report[4]) == (
        WHERE[0],
        "0",
        *WHERE[1:],
    )
    assert out


def test_a_server_on_standard_input(ran, tmp_path):
    """
    So does a server, whose client is answered meanwhile.
    """
    session = line(initialize("2025-11-25")) + line(request(1, "prompts/get", {"name": "slow"}))
    out, said = ran("serve", "--grace", "20", sent=session, quick=QUICK, slow=SLOW)

    reports = [SAID.fullmatch(text) for text in said if "importing" in text]
    assert "Done." in out
    assert reports
    assert (reports[0][1].removeprefix(f"{tmp_path}/"), reports[0][3], reports[0][4]) == WHERE


def test_a_server_over_http(recipes, tmp_path):
    """
    And one over HTTP, before it serves.
    """
    recipes(quick=QUICK, slow=SLOW)
    command = [sys.executable, "-c", IMPATIENT, "serve", "--http", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        said = [process.stderr.readline()]
        while said[-1] and "serving at" not in said[-1]:
            said.append(process.stderr.readline())
        process.kill()

    first = SAID.fullmatch(said[0].rstrip())
    assert (first[1].removeprefix(f"{tmp_path}/"), first[3], first[4]) == WHERE
    assert "serving at" in said[-1]


def test_a_module(ran):
    """
    Where no file is known, the line says which it is.
    """
    out, said = ran("list", "recipes.slow", slow=SLOW)

    assert "slow" in out
    assert said[0] == "promptkit: the recipes have been importing for 0 s, now at recipes/slow.py:4"


def test_what_a_recipe_imports(ran):
    """
    The line is that of the module that keeps it waiting.
    """
    _, said = ran("list", _helper="import time\ntime.sleep(0.8)\n", slow=f"from . import _helper\n{QUICK}")

    assert SAID.fullmatch(said[0])[1].endswith("slow.py has")
    assert SAID.fullmatch(said[0]).group(3, 4) == (str(Path("recipes", "_helper.py")), "2")


#: Names the threads of its process.
NAMES = """
import threading
from promptkit import prompt

@prompt
def names():
    return " ".join(sorted(thread.name for thread in threading.enumerate()))
"""


def test_it_leaves_no_thread(ran):
    """
    The thread that looks at an import ends with the import.
    """
    out, said = ran("render", "names", names=NAMES)

    assert "MainThread" in out
    assert "promptkit-clock" not in out
    assert said == []
