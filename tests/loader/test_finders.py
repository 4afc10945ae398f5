"""
Tests of the finder that imports recipes, makes the modules of their project importable, and takes them away.
"""

import importlib.util
import os
import sys
from importlib.machinery import PathFinder

import pytest

from promptkit.loader.loader import load
from promptkit.loader.packages import ImportSnapshot

#: The ways in which a module lies in its project, by its name.
PLACES = {
    "shared": ["shared.py"],
    "deep.shared": ["deep/__init__.py", "deep/shared.py"],
    "loose.shared": ["loose/shared.py"],
    "unrelated": ["unrelated.py"],
}
ALL = pytest.mark.parametrize("name", [name for name in PLACES if name != "unrelated"])


class Project:
    """
    A project of one recipe, which imports a module of the project.
    """

    def __init__(self, root, name, word):
        self.root, self.name = root, name
        self.file = root / PLACES[name][-1]
        for path in PLACES[name]:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).touch()
        (root / "pyproject.toml").touch()
        (root / "recipes").mkdir()
        (root / "recipes" / "plan.py").write_text(f"from {name} import Own, WORD\n")
        self.write(word)

    def write(self, word):
        """Write the module, as if a second had passed since the last time."""
        moment = self.file.stat().st_mtime + 1
        self.file.write_text(f"WORD = {word!r}\nclass Own: pass\n")
        os.utime(self.file, (moment, moment))

    def load(self):
        """Load the recipes, which have to be sound, and return the module that they have imported."""
        assert load(self.root / "recipes").diagnostics == ()
        return sys.modules[self.name]


class Editable:
    """
    What an editable installation puts into `sys.meta_path`.
    """

    def __init__(self, root):
        self.root = str(root)

    def find_spec(self, name, path=None, target=None):
        """Find the modules of one folder."""
        return PathFinder.find_spec(name, [self.root], target) if path is None else None


@pytest.fixture
def project(recipes, tmp_path, monkeypatch):
    """A function that makes a project in a folder, with a module of some name and content."""
    for name in ("deep", "loose", *PLACES):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return lambda folder, name="shared", word="one": Project(tmp_path / folder, name, word)


@pytest.fixture
def unrelated(project):
    """Another project, which has no module of the same name."""
    return project("elsewhere", "unrelated")


#: The ways in which others than promptkit make a folder importable.
WAYS = {
    "first": lambda root: sys.path.insert(0, str(root)),
    "last": lambda root: sys.path.append(str(root)),
    "editable": lambda root: sys.meta_path.append(Editable(root)),
}


@ALL
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("when", ["before", "between", "after"])
def test_what_others_can_import_stays(project, unrelated, name, way, when):
    """
    Whether a test imports a module before its recipes, after them or after those of another project, and
    however it makes the module importable: there is one from then on.
    """
    own = project("own", name)
    make_importable = WAYS[way]
    if when == "before":
        make_importable(own.root)
        importlib.import_module(name)
    module = own.load()
    if when == "between":
        make_importable(own.root)
    unrelated.load()
    if when == "after":
        make_importable(own.root)
        module = importlib.import_module(name)

    for one in (own, unrelated, own, own, unrelated):
        one.load()

        assert importlib.import_module(name) is module


def test_what_pytest_puts_into_the_path(project, unrelated):
    """
    As long as a test makes a project importable, modules of the project stay, and no longer.
    """
    own = project("own")
    module = own.load()
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.syspath_prepend(own.root)
        unrelated.load()

        assert importlib.import_module("shared") is module
    own.load()
    unrelated.load()

    assert "shared" not in sys.modules
    assert str(own.root) not in sys.path


@ALL
def test_what_only_recipes_can_import_goes(project, unrelated, name):
    """
    Two projects may each have a module of one name, which nobody finds without them.
    """
    first, second = project("first", name, "one"), project("second", name, "two")

    assert [one.load().WORD for one in (first, second, first)] == ["one", "two", "one"]

    unrelated.load()

    assert not {name, name.partition(".")[0]} & sys.modules.keys()
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(name)


@ALL
def test_a_module_of_the_same_name_elsewhere_keeps_nothing(project, name):
    """
    That others can import a module of that name says nothing, if they get that of another place.
    """
    first, second = project("first", name, "one"), project("second", name, "two")
    first.load()
    sys.path.insert(0, str(second.root))

    assert second.load().WORD == "two"


@pytest.mark.parametrize("moment", ["before", "after"])
@ALL
def test_what_was_edited_is_imported_anew(project, unrelated, name, moment):
    """
    An edit is seen, whether it was made before or after other recipes were loaded.
    """
    own = project("own", name)
    sys.path.append(str(own.root))
    old = own.load()
    if moment == "before":
        own.write("two")
    unrelated.load()
    assert (importlib.import_module(name) is old) == (moment == "after")
    own.write("two")
    new = own.load()

    assert (old.WORD, new.WORD) == ("one", "two")


def test_a_load_that_is_taken_back(project, unrelated):
    """
    Where other recipes were loaded in vain, the earlier ones have their modules again, and see edits.
    """
    own = project("own")
    module = own.load()
    before = ImportSnapshot()
    unrelated.load()
    before.restore()

    assert own.load() is module
    own.write("two")
    assert own.load().WORD == "two"


def test_the_path_is_left_to_others(project, unrelated):
    """
    What a test puts into `sys.path` while recipes are loaded stays in its place.
    """
    own = project("own")
    own.load()
    sys.path.insert(0, str(own.root))
    unrelated.load()

    assert sys.path.index(str(own.root)) == 0
    assert sys.path.count(str(own.root)) == 1
