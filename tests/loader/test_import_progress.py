"""Progress reports of a running import."""

import sys
import threading
from contextlib import contextmanager
from queue import Queue

import pytest

from promptkit.loader.import_thread import import_progress
from promptkit.loader.loader import load

WAITS = """import sys

def wait():
    sys.gate.put("here")
    sys.gate.join()

wait()
"""


@contextmanager
def running(gate, call, *args):
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
    """A queue that a recipe under test waits at until the test releases it."""
    gate = Queue()
    monkeypatch.setattr(sys, "gate", gate, raising=False)
    return gate


def test_a_recipe_in_a_folder_below(recipes, gate):
    """A recipe in a subfolder is reported by its path, because another recipe can have the same name."""
    folder = recipes()
    recipes(folder="recipes/ops", slow=WAITS)
    with running(gate, load, folder):
        told = import_progress(str(folder))

    assert told == ": ops/slow.py is at line 7"


def test_the_line_of_the_recipe_is_named(recipes, gate):
    """The outermost line is reported: the recipe's own, not a line of a function that it calls."""
    folder = recipes(a="", slow=WAITS)

    with running(gate, load, folder):
        said = import_progress(str(folder))

    assert said == ": slow.py is at line 7"


def test_who_imports_a_helper_is_named(recipes, gate):
    """A recipe that waits for a helper's import is reported at the line of that import."""
    folder = recipes(_slow=WAITS, user="import sys\nfrom . import _slow\n")

    with running(gate, load, folder):
        said = import_progress(str(folder))

    assert said == ": user.py is at line 2"


def test_a_prompt_that_is_called_is_no_import(recipes, gate):
    """A running prompt function is not reported as an import, although its code is in a recipe."""
    folder = recipes(slow=WAITS.replace("\nwait()\n", ""))
    load(folder)
    (module,) = (module for name, module in sys.modules.items() if name.endswith(".slow"))

    with running(gate, module.wait):
        assert import_progress(str(folder)) == ""


def test_nothing_is_said_of_what_is_over(recipes):
    """Nothing is reported once the import has ended, or for a module, whose files are unknown."""
    assert import_progress(str(recipes(a=""))) == ""
    assert import_progress("json") == ""
