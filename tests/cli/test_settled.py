"""
Tests that garbage collections need not look at what was loaded, and that nothing is kept for ever by that.
"""

import gc
import weakref
from queue import Queue

import pytest

from promptkit import prompt
from promptkit.catalog.catalog import Catalog
from promptkit.cli.settled import SettledCatalog
from promptkit.compiler.compilation import compile
from promptkit.compiler.loading.loader import Recipes
from promptkit.compiler.reloading import Reloader

RECIPE = """
from promptkit import prompt

class Own:
    pass

@prompt(description={says!r})
def a() -> str:
    return ""
"""


class Circle:
    """
    Something that refers to itself, as the modules of recipes do: only a collection frees it.
    """

    def __init__(self):
        self.itself = self


class Served:
    """
    What is served, in place of a server.
    """

    def __init__(self, count):
        self.catalog = compile(Recipes(prompts=self._prompts(count)))

    def replace(self, count):
        """Serve *count* new prompts in place of the first ones."""
        new = compile(Recipes(prompts=self._prompts(count)))
        self.catalog = Catalog((*new.prompts, *self.catalog.prompts[count:]))

    def _prompts(self, count):
        return tuple(prompt(name=f"p{number:05}")(lambda: "x") for number in range(count))


@pytest.fixture(autouse=True)
def _frozen(monkeypatch):
    monkeypatch.setattr("promptkit.cli.settled._LEAST_REPLACED", 10)
    yield
    gc.unfreeze()


def test_what_was_loaded_is_looked_at_by_no_collection():
    """
    All that is there when a catalog settles is kept out of collections.
    """
    served = Served(3)
    SettledCatalog(lambda: served.catalog)
    gone = weakref.ref(Circle())
    frozen = gc.get_freeze_count()

    gc.collect()

    assert gone() is None
    assert 1000 < gc.get_freeze_count() <= frozen


@pytest.mark.parametrize(
    ("count", "replaced", "freed"),
    [(20, [10], True), (20, [9], False), (20, [5, 5], True), (100, [24], False), (100, [13, 12], True)],
)
def test_what_was_replaced_is_collected_at_last(count, replaced, freed):
    """
    Once many prompts were replaced, and a quarter of all, what is left of them is freed.
    """
    served = Served(count)
    left = weakref.ref(circle := Circle())
    settled = SettledCatalog(lambda: served.catalog)
    del circle

    for number in replaced:
        served.replace(number)
        settled.look()
    settled.look()

    assert (left() is None) is freed
    assert gc.get_freeze_count() > 0


def test_the_first_version_of_a_module_is_freed(recipes, monkeypatch):
    """
    After a reload nothing holds the module that it replaced, so that the look that follows frees it.
    """
    monkeypatch.setattr("promptkit.cli.settled._LEAST_REPLACED", 1)
    folder = recipes(a=RECIPE.format(says="one"))
    reloader = Reloader(folder, print)
    served = Served(0)
    served.catalog = reloader.load()
    own = weakref.ref(served.catalog["a"].renderer.function.__globals__["Own"])
    settled = SettledCatalog(lambda: served.catalog)
    looks = Queue()

    def look():
        settled.look()
        looks.put(own() is None)

    reloader.start(lambda catalog: setattr(served, "catalog", catalog), look)
    (folder / "a.py").write_text(RECIPE.format(says="two"))
    freed = []
    while served.catalog["a"].description != "two" or not freed:
        freed = [looks.get(timeout=10)]
    reloader.close()

    assert freed == [True]
