"""Where an import is, for those who wait for it."""

import sys
import threading
from contextlib import contextmanager
from queue import Queue

import pytest

from promptkit.cli.import_progress import import_progress
from promptkit.compiler.loading.loader import load

WAITS = """import sys

def wait():
    sys.gate.put("here")
    sys.gate.join()

wait()
"""


@contextmanager
def importing(folder, gate, name):
    """Import recipes on a thread of that name; each stops where it waits."""
    thread = threading.Thread(target=load, args=(folder,), name=name)
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
    with importing(folder, gate, "import"):
        told = import_progress(str(folder), "import")

    assert told == ": ops/slow.py is at line 7"


def test_the_line_of_the_recipe_is_named(recipes, gate):
    """
    Of what is called on the way, the outermost line is told: it is the recipe's own.
    """
    folder = recipes(a="", slow=WAITS)

    with importing(folder, gate, "import"):
        said = import_progress(str(folder), "import", "other")

    assert said == ": slow.py is at line 7"


def test_who_imports_a_helper_is_named(recipes, gate):
    """
    A recipe that waits for another module is at the line of its import.
    """
    folder = recipes(_slow=WAITS, user="import sys\nfrom . import _slow\n")

    with importing(folder, gate, "import"):
        said = import_progress(str(folder), "import")

    assert said == ": user.py is at line 2"


@pytest.mark.parametrize("names", [(), ("other",)])
def test_other_threads_are_not_looked_at(recipes, gate, names):
    """
    They may be in a recipe, too, but import nothing.
    """
    folder = recipes(slow=WAITS)

    with importing(folder, gate, "import"):
        assert import_progress(str(folder), *names) == ""


def test_nothing_is_said_of_what_is_over(recipes):
    """
    And nothing of a module, whose files are not known.
    """
    assert import_progress(str(recipes(a="")), "import") == ""
    assert import_progress("json", threading.current_thread().name) == ""
