"""Progress reports of a running import."""

import sys
import threading
from contextlib import contextmanager
from queue import Queue

import pytest

from promptkit.loader.import_thread import import_progress
from promptkit.loader.loader import load

WAITING = """import sys

def wait():
    sys.gate.put("here")
    sys.gate.join()

wait()
"""


@contextmanager
def run_until_gate(gate, call, *args):
    """Run *call* on a thread, and enter the block once it waits at the gate."""
    thread = threading.Thread(target=call, args=args)
    thread.start()
    while gate.unfinished_tasks == 0:
        threading.Event().wait(0.001)
    try:
        yield
    finally:
        gate.task_done()
        thread.join()


@pytest.fixture
def gate(monkeypatch):
    """A queue at which a recipe waits until the test releases the recipe."""
    gate = Queue()
    monkeypatch.setattr(sys, "gate", gate, raising=False)
    return gate


def test_recipe_in_a_subfolder_is_reported_by_its_path(recipes, gate):
    """A recipe in a subfolder is reported by its path, because another recipe can have the same name."""
    folder = recipes()
    recipes(folder="recipes/ops", slow=WAITING)
    with run_until_gate(gate, load, folder):
        progress = import_progress(str(folder))

    assert progress == ": ops/slow.py is at line 7"


def test_outermost_line_is_reported(recipes, gate):
    """The outermost line is reported: the recipe's own, not a line of a function that it calls."""
    folder = recipes(a="", slow=WAITING)

    with run_until_gate(gate, load, folder):
        progress = import_progress(str(folder))

    assert progress == ": slow.py is at line 7"


def test_importer_of_a_helper_is_reported(recipes, gate):
    """A recipe that waits for a helper's import is reported at the line of that import."""
    folder = recipes(_slow=WAITING, user="import sys\nfrom . import _slow\n")

    with run_until_gate(gate, load, folder):
        progress = import_progress(str(folder))

    assert progress == ": user.py is at line 2"


def test_running_prompt_is_not_an_import(recipes, gate):
    """A running prompt function is not reported as an import, although its code is in a recipe."""
    folder = recipes(slow=WAITING.replace("\nwait()\n", ""))
    load(folder)
    (module,) = (module for name, module in sys.modules.items() if name.endswith(".slow"))

    with run_until_gate(gate, module.wait):
        assert import_progress(str(folder)) == ""


def test_finished_import_is_not_reported(recipes):
    """Nothing is reported after an import, or if the target is a module, because its files are unknown."""
    assert import_progress(str(recipes(a=""))) == ""
    assert import_progress("json") == ""
