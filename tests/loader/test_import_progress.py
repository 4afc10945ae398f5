"""Where an import is, for those who wait for it."""

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
    """Call something on a thread, until it stops where it waits."""
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
    """What a recipe waits at until it is told to go on."""
    gate = Queue()
    monkeypatch.setattr(sys, "gate", gate, raising=False)
    return gate


def test_a_recipe_in_a_folder_below(recipes, gate):
    """
    It is named by its path, as another may have its name.
    """
    folder = recipes()
    recipes(folder="recipes/ops", slow=WAITS)
    with running(gate, load, folder):
        told = import_progress(str(folder))

    assert told == ": ops/slow.py is at line 7"


def test_the_line_of_the_recipe_is_named(recipes, gate):
    """
    Of what is called on the way, the outermost line is told: it is the recipe's own.
    """
    folder = recipes(a="", slow=WAITS)

    with running(gate, load, folder):
        said = import_progress(str(folder))

    assert said == ": slow.py is at line 7"


def test_who_imports_a_helper_is_named(recipes, gate):
    """
    A recipe that waits for another module is at the line of its import.
    """
    folder = recipes(_slow=WAITS, user="import sys\nfrom . import _slow\n")

    with running(gate, load, folder):
        said = import_progress(str(folder))

    assert said == ": user.py is at line 2"


def test_a_prompt_that_is_called_is_no_import(recipes, gate):
    """
    Its code stands in a recipe, too.
    """
    folder = recipes(slow=WAITS.replace("\nwait()\n", ""))
    load(folder)
    (module,) = (module for name, module in sys.modules.items() if name.endswith(".slow"))

    with running(gate, module.wait):
        assert import_progress(str(folder)) == ""


def test_nothing_is_said_of_what_is_over(recipes):
    """
    And nothing of a module, whose files are not known.
    """
    assert import_progress(str(recipes(a=""))) == ""
    assert import_progress("json") == ""
