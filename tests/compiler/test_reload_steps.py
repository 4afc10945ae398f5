"""Single reloads, without a thread that watches."""

import os
import sys
from itertools import count

import pytest

from promptkit.catalog.catalog import Catalog
from promptkit.compiler import reloading
from promptkit.compiler.reloading import Reloader

RECIPE = '''
import sys
from promptkit import prompt
{imports}
sys.executed.append(__name__.partition(".")[2])

@prompt
def {name}() -> str:
    """Says something."""
    return {text!r}
'''


class Author:
    """An author who edits recipes, and reloads them without a thread that watches."""

    def __init__(self, folder):
        self.folder = folder
        self._seconds = count(1_000_000_000)
        self._reloader = None
        self.catalog = Catalog()

    def write(self, name, imports="", text="old"):
        """Write a module, with a modification time in the past."""
        source = RECIPE.format(name=name.strip("_").replace("/", "_"), imports=imports, text=text)
        self.write_bytes(f"{name}.py", source.encode())

    def write_bytes(self, name, content):
        """Write a file, with a modification time in the past."""
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

    def free(self):
        """Free the old versions, as an idle server does."""
        self._reloader._free_if_idle()

    def _take(self, catalog):
        self.catalog = catalog

    def reload(self):
        """Reload, and return the names of the executed modules, sorted."""
        sys.executed.clear()
        self._reloader._reload()
        return sorted(sys.executed)

    @property
    def is_settled(self):
        """Whether no file has changed since it was loaded."""
        return self._reloader._is_settled

    def texts(self):
        """Return the text of each prompt."""
        return {name: prompt.render().messages[0].content.text for name, prompt in self.catalog.items()}


@pytest.fixture
def author(recipes, monkeypatch):
    """An author of recipes that record when they are executed."""
    monkeypatch.setattr(sys, "executed", [], raising=False)
    monkeypatch.setattr(reloading, "free_unused_versions", lambda: None)  # slow with millions of objects
    return Author(recipes("shelf"))


def test_every_module_is_executed_once(author):
    """A reload imports all recipes and the helpers that they import once, whichever file was saved."""
    author.write("a", "from . import _h, c")
    author.write("b", "import _h")
    author.write("c", "from shelf._h import prompt")
    author.write("_h")
    author.write("_unused")
    author.start()

    author.write("b", text="new")

    assert author.reload() == ["_h", "a", "b", "c"]
    assert author.texts() == {"a": "old", "b": "new", "c": "old"}


def test_a_file_saved_during_its_import_is_imported_again(author):
    """A version that changes during its import is not served; the file is imported again."""
    author.write("a")
    author.start()
    catalog, module = author.catalog, sys.modules["shelf.a"]

    author.write("a", "from pathlib import Path\nPath(__file__).touch()", text="new")
    author.reload()
    unsettled = not author.is_settled, author.catalog is catalog, sys.modules["shelf.a"] is module
    author.write("a", text="newest")
    author.reload()

    assert unsettled == (True, True, True)
    assert author.is_settled
    assert author.texts() == {"a": "newest"}


def test_a_file_that_appears_during_an_import_is_loaded_next(author):
    """A file that appears during an import is loaded by the next reload."""
    author.write("a")
    author.start()

    source = RECIPE.format(name="b", imports="", text="found")
    author.write("a", f"from pathlib import Path; Path(__file__).with_name('b.py').write_text({source!r})")
    author.reload()
    assert (author.texts(), author.is_settled) == ({"a": "old"}, False)

    author.write("a")
    os.utime(author.folder / "b.py", (1, 1))
    author.reload()
    assert (author.texts(), author.is_settled) == ({"a": "old", "b": "found"}, True)


def test_a_file_that_a_recipe_writes_does_not_block_reloads(author):
    """A file that changes with every import, and that no recipe reads, does not block the recipes."""
    author.write("a")
    author.start()

    author.write("a", "from pathlib import Path\nPath(__file__).with_name('log').touch()", text="new")
    author.reload()

    assert author.texts() == {"a": "new"}


def test_a_pipe_in_place_of_a_file_is_reported(author):
    """A pipe in place of a recipe is reported and not opened; the recipe's last version is served."""
    author.write("a")
    author.write("b")
    author.start()

    (author.folder / "b.py").unlink()
    os.mkfifo(author.folder / "b.py")
    os.utime(author.folder / "b.py", (1, 1))
    author.reload()

    assert author.texts() == {"a": "old", "b": "old"}
    assert [diagnostic.message for diagnostic in author.catalog.diagnostics] == [
        "recipe 'b' cannot be read: it is a pipe, a socket or a device"
    ]


def test_prompts_belong_to_the_file_that_creates_them(author):
    """A prompt made from another file's function is removed with the code that makes the prompt."""
    author.write("a", "def make(name):\n    return prompt(name=name)(lambda: name)")
    author.write("b", "from .a import make; x = make('made')")
    author.start()
    assert set(author.catalog) == {"a", "b", "made"}

    author.write("b", "from .a import make; x = make('other')")
    author.reload()

    assert set(author.catalog) == {"a", "b", "other"}


def test_a_helpers_prompts_are_removed_with_its_last_import(author):
    """A prompt made by a helper is removed when no recipe imports the helper any more."""
    author.write("a", "def make(name):\n    return prompt(name=name)(lambda: name)")
    author.write("_maker", "from .a import make; x = make('made')")
    author.write("b", "from . import _maker")
    author.start()
    assert set(author.catalog) == {"a", "b", "made"}

    author.write("b")
    author.reload()

    assert set(author.catalog) == {"a", "b"}
