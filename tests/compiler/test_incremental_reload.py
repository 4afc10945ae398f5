"""
Claims about what a reload imports and compiles: what an edit concerns, and nothing else.
"""

import os
import sys
from itertools import count

import pytest

from promptkit.catalog.catalog import Catalog
from promptkit.compiler import reloading
from promptkit.compiler.reloading import Reloader
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.pages import lists_the_same, pages_of
from promptkit.protocol.revisions import REVISIONS

LOWERING = lowering_for(list(REVISIONS.values())[-1])

RECIPE = '''
import sys
from promptkit import prompt
{imports}
sys.executed.append(__name__.partition(".")[2])

@prompt
def {name}() -> str:
    """Says something."""
    return {says!r}
'''


class Author:
    """
    Edits recipes, and reloads them without a thread that watches.
    """

    def __init__(self, folder):
        self.folder = folder
        self._seconds = count(1_000_000_000)
        self._reloader = None
        self.catalog = Catalog()
        self.published = lambda: None

    def write(self, name, imports="", says="old"):
        """Write a module, as if some time ago."""
        source = RECIPE.format(name=name.strip("_").replace("/", "_"), imports=imports, says=says)
        self.write_bytes(f"{name}.py", source.encode())

    def write_bytes(self, name, content):
        """Write any file, as if some time ago."""
        path = self.folder / name
        path.write_bytes(content)
        moment = next(self._seconds)
        os.utime(path, (moment, moment))

    def start(self):
        """Load the recipes for the first time."""
        self._reloader = Reloader(self.folder, lambda _: None)
        self.catalog = self._reloader.load()
        self._reloader._publish = self._take
        sys.executed.clear()

    def _take(self, catalog):
        self.catalog = catalog
        self.published()

    def reload(self, *told):
        """Reload, told that some files have changed; return the modules that were executed, sorted."""
        sys.executed.clear()
        self._reloader._reload([str(self.folder / name) for name in told])
        return sorted(sys.executed)

    def let_go(self):
        """Do what is done once nothing has changed for a moment."""
        self._reloader._release()

    @property
    def is_settled(self):
        """Whether nothing is left to reload."""
        return self._reloader._settled

    def modules(self):
        """The modules of the recipes, by their names in the package."""
        inside = f"{self.folder.name}."
        return {
            name.removeprefix(inside): one for name, one in sys.modules.items() if name.startswith(inside)
        }

    def texts(self):
        """What each prompt says."""
        return {name: one.render().messages[0].content.text for name, one in self.catalog.items()}


@pytest.fixture
def author(recipes, monkeypatch):
    """An author of recipes that note when they are executed."""
    monkeypatch.setattr(sys, "executed", [], raising=False)
    return Author(recipes("shelf"))


def test_a_saved_file_is_executed_and_nothing_else(author):
    """
    The modules of other files, and what was compiled of them, are the same objects.
    """
    for name in ("a", "b", "c"):
        author.write(name)
    author.start()
    modules, before = author.modules(), dict(author.catalog)

    author.write("b", says="new")

    assert author.reload() == ["b"]
    assert author.texts() == {"a": "old", "b": "new", "c": "old"}
    kept = {name for name, module in author.modules().items() if module is modules[name]}
    assert kept == {"a", "c"}
    assert {name for name in before if author.catalog[name] is before[name]} == {"a", "c"}


@pytest.mark.parametrize(
    ("imports", "executed"),
    [
        ("from . import _h", ["_h", "a"]),
        ("from ._h import prompt", ["_h", "a"]),
        ("from ._h import *", ["_h", "a"]),
        ("import _h", ["_h", "a"]),
        ("from _h import prompt", ["_h", "a"]),
        ("import shelf._h", ["_h", "a"]),
        ("from shelf import _h", ["_h", "a"]),
        ("def late(): from ._h import prompt\nlate()", ["_h", "a"]),
        ("import importlib; importlib.import_module('shelf._h')", ["_h", "a"]),
        ("try:\n    from ._h import nothing\nexcept ImportError: pass", ["_h", "a"]),
        ("import json", []),
        ("x = 1", []),
    ],
)
def test_who_imports_a_saved_file_is_executed(author, imports, executed):
    """
    However it imports it. A helper that nobody imports is not executed at all.
    """
    author.write("a", imports)
    author.write("b")
    author.write("_h")
    author.start()

    author.write("_h", says="new")

    assert author.reload() == executed


def test_importers_are_found_through_other_modules(author):
    """
    A saved helper executes those that import it, those that import these, and so on, also in circles.
    """
    author.write("a", "from ._g import prompt")
    author.write("b", "from . import c")
    author.write("c", "from . import b")
    author.write("d")
    author.write("_g", "from ._h import prompt")
    author.write("_h")
    author.start()

    author.write("_h", says="new")
    through_helpers = author.reload()
    author.write("c", "from . import b", says="new")
    in_a_circle = author.reload()

    assert through_helpers == ["_g", "_h", "a"]
    assert in_a_circle == ["b", "c"]


def test_a_new_file_concerns_those_that_have_looked_for_it(author):
    """
    So does a file that is removed.
    """
    author.write("a", "try: from . import _h\nexcept ImportError: pass")
    author.write("b")
    author.start()

    author.write("_h")
    added = author.reload()
    (author.folder / "_h.py").unlink()
    removed = author.reload()

    assert (added, removed) == (["_h", "a"], ["a"])


def test_only_files_are_looked_at_that_are_told_of(author, monkeypatch):
    """
    Until what follows from them is served. Files that are new, or gone, have all looked at.
    """
    for name in ("a", "b", "c"):
        author.write(name)
    author.start()
    looks = []
    find = reloading.find_files
    monkeypatch.setattr(reloading, "find_files", lambda *args: looks.append("all") or find(*args))
    author.published = lambda: looks.append("published")

    author.write("b", says="new")
    author.reload("b.py")
    author.write("d")
    author.reload("d.py")
    (author.folder / "a.py").unlink()
    author.reload("a.py")

    assert looks == ["published", "all", *["all", "published", "all"] * 2]
    assert author.texts() == {"b": "new", "c": "old", "d": "old"}


def test_a_pipe_in_the_place_of_a_file(author):
    """
    It is no recipe, and is not opened.
    """
    author.write("a")
    author.write("b")
    author.start()

    (author.folder / "b.py").unlink()
    os.mkfifo(author.folder / "b.py")
    os.utime(author.folder / "b.py", (1, 1))

    assert author.reload("b.py") == []
    assert author.texts() == {"a": "old", "b": "old"}
    assert [found.message for found in author.catalog.diagnostics] == [
        "recipe 'b' cannot be read: it is a pipe, a socket or a device"
    ]


def test_what_nobody_tells_of_is_found_all_the_same(author):
    """
    A link to a file that was edited has changed, too, and so has a file of which no news arrived.
    """
    for name in ("a", "b", "_c"):
        author.write(name)
    (author.folder / "c.py").symlink_to("_c.py")
    author.start()

    author.write("_c", says="new")
    first = author.reload("_c.py")
    left = author.is_settled
    again = author.reload()
    author.write("a", says="new")
    author.write("b", says="new")
    told = author.reload("b.py")

    assert (first, left, again, author.is_settled) == ([], False, ["c"], False)
    assert (told, author.reload(), author.is_settled) == (["b"], ["a"], True)


def test_a_file_that_failed_is_tried_again(author):
    """
    Whatever was edited: what it needs may be there now.
    """
    author.write("a", "import sys; assert hasattr(sys, 'ready')")
    author.write("b")
    author.write("c")
    author.start()

    sys.ready = True
    try:
        author.write("b", says="new")
        assert author.reload() == ["a", "b"]
    finally:
        del sys.ready
    author.write("b", says="newer")
    assert author.reload() == ["b"]


def test_a_file_that_is_no_module_concerns_everybody(author, png):
    """
    Any module may have read it.
    """
    author.write_bytes("cat.png", png)
    author.write("a", "from promptkit import Image\nImage.from_path('cat.png')")
    author.write("b")
    author.start()

    author.write_bytes("cat.png", png)

    assert author.reload() == ["a", "b"]


@pytest.mark.parametrize(
    "before",
    [
        "sys.path.append(f'/nowhere/{len(sys.path)}')",
        "import types; sys.modules[__name__] = types.ModuleType(__name__)",
    ],
)
def test_everything_is_executed_if_the_effects_cannot_be_told(author, before):
    """
    That is so if imports may lead elsewhere now, or if a module is not what it was.
    """
    author.write("a")
    author.write("b")
    author.start()

    exec(before, {"sys": sys, "__name__": "shelf.a"})  # noqa: S102 (as a prompt may do)
    author.write("b", says="new")

    assert author.reload() == ["a", "b"]


def test_an_edit_of_the_package_itself_executes_everything(author):
    """
    Every module of a package is below its ``__init__.py``.
    """
    author.write("a")
    author.write("b")
    author.write_bytes("__init__.py", b"")
    author.start()

    author.write_bytes("__init__.py", b"x = 1")

    assert author.reload() == ["a", "b"]


def test_a_module_in_a_folder_below_that_is_imported_by_a_short_name(author):
    """
    It is the recipe in that folder, which is executed once.
    """
    (author.folder / "below").mkdir()
    author.write("below/part")
    author.write("a", "from below.part import prompt")
    author.write("b")
    author.start()

    author.write("below/part", says="new")

    assert author.reload() == ["a", "below.part"]


def test_prompts_belong_to_their_file_whoever_makes_them(author):
    """
    A prompt that another file has made of a function here goes when that file no longer makes it.
    """
    author.write("a", "def make(name):\n    return prompt(name=name)(lambda: name)")
    author.write("b", "from .a import make; x = make('made')")
    author.start()
    assert set(author.catalog) == {"a", "b", "made"}

    author.write("b", "from .a import make; x = make('other')")

    assert author.reload() == ["b"]
    assert set(author.catalog) == {"a", "b", "other"}


def test_a_file_that_a_recipe_reads_as_text(author):
    """
    It may be Python that nobody imports: who reads it is executed anew.
    """
    author.write("a", "from pathlib import Path\ntext = Path(__file__).with_name('_example.py').read_text()")
    author.write("b")
    author.write_bytes("_example.py", b"x = 1")
    author.start()

    author.write_bytes("_example.py", b"x = 2")

    assert author.reload() == ["a"]


def test_prompts_go_with_the_last_import_of_what_makes_them(author):
    """
    A module that is no recipe makes a prompt of a recipe's function. When nobody imports it, that is gone.
    """
    author.write("a", "def make(name):\n    return prompt(name=name)(lambda: name)")
    author.write("_maker", "from .a import make; x = make('made')")
    author.write("b", "from . import _maker")
    author.start()
    assert set(author.catalog) == {"a", "b", "made"}

    author.write("b")

    assert author.reload() == ["b"]
    assert set(author.catalog) == {"a", "b"}


def test_items_that_two_catalogs_share_are_encoded_once(author):
    """
    If all are shared, so is the whole list, and nobody has to be told.
    """
    for name in ("a", "b", "c"):
        author.write(name)
    author.start()
    before = author.catalog
    listed = pages_of("prompts/list", before, LOWERING)

    author.write("b", says="new")
    author.reload()
    again = pages_of("prompts/list", author.catalog, LOWERING, before=(before, listed))

    shared = [new is old for new, old in zip(again.items, listed.items, strict=True)]
    assert shared == [True, False, True]
    assert again.page() == listed.page()
    assert lists_the_same("prompts/list", before, author.catalog, LOWERING)
    assert pages_of("prompts/list", before, LOWERING, before=(before, listed)) is listed
