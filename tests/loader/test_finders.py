"""
The finder that imports recipes, and makes the modules of their project importable while it is installed.
"""

import importlib
import os
import sys
from importlib.machinery import PathFinder

import pytest

from promptkit.loader.finder import active_finders
from promptkit.loader.loader import load

#: The files that make up each module of a project, by the module's name.
FILES = {
    "shared": ["shared.py"],
    "deep.shared": ["deep/__init__.py", "deep/shared.py"],
    "loose.shared": ["loose/shared.py"],
    "unrelated": ["unrelated.py"],
}
EACH_MODULE = pytest.mark.parametrize("name", [name for name in FILES if name != "unrelated"])


class Project:
    """A project with one recipe that imports a module of the project."""

    def __init__(self, root, name, word):
        self.root, self.name = root, name
        self.file = root / FILES[name][-1]
        for path in FILES[name]:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).touch()
        (root / "pyproject.toml").touch()
        (root / "recipes").mkdir()
        (root / "recipes" / "plan.py").write_text(f"from {name} import Own, WORD\n")
        self.write(word)

    def write(self, word):
        """Write the module with a modification time one second later than before."""
        moment = self.file.stat().st_mtime + 1
        self.file.write_text(f"WORD = {word!r}\nclass Own: pass\n")
        os.utime(self.file, (moment, moment))

    def load(self):
        """Load the recipes, assert that there are no diagnostics, and return the imported module."""
        assert load(self.root / "recipes").diagnostics == ()
        return sys.modules[self.name]


class Editable:
    """The kind of finder that an editable install adds to `sys.meta_path`."""

    def __init__(self, root):
        self.root = str(root)

    def find_spec(self, name, path=None, target=None):
        """Find top-level modules in one folder."""
        return PathFinder.find_spec(name, [self.root], target) if path is None else None


@pytest.fixture
def project(recipes, tmp_path, monkeypatch):
    """A function that creates a project in a folder, with a module of the given name and content."""
    for name in ("deep", "loose", *FILES):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return lambda folder, name="shared", word="one": Project(tmp_path / folder, name, word)


@pytest.fixture
def unrelated(project):
    """Another project, without a module of the same name."""
    return project("elsewhere", "unrelated")


#: Ways in which code other than promptkit makes a folder importable.
WAYS = {
    "first": lambda root: sys.path.insert(0, str(root)),
    "last": lambda root: sys.path.append(str(root)),
    "editable": lambda root: sys.meta_path.append(Editable(root)),
}


@EACH_MODULE
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("when", ["before", "between", "after"])
def test_otherwise_importable_module_stays(project, unrelated, name, way, when):
    """A module that is importable without its recipes stays, however it became importable."""
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

    for current in (own, unrelated, own, own, unrelated):
        current.load()

        assert importlib.import_module(name) is module


def test_module_on_a_patched_path_stays(project, unrelated):
    """Modules of a project that a test makes importable stay until the test removes the path again."""
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


@EACH_MODULE
def test_module_that_only_recipes_can_import_is_removed(project, unrelated, name):
    """
    Two projects can have modules of the same name, because loading one project removes the module of the
    other.
    """
    first, second = project("first", name, "one"), project("second", name, "two")

    assert [current.load().WORD for current in (first, second, first)] == ["one", "two", "one"]

    unrelated.load()

    assert not {name, name.partition(".")[0]} & sys.modules.keys()
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(name)


@EACH_MODULE
def test_own_project_takes_precedence_over_the_path(project, name):
    """
    A module comes from its own project, even if another folder on `sys.path` has one with the same name.
    """
    first, second = project("first", name, "one"), project("second", name, "two")
    first.load()
    sys.path.insert(0, str(second.root))

    assert second.load().WORD == "two"


@pytest.mark.parametrize("when", ["before", "after"])
@EACH_MODULE
def test_edited_module_is_imported_again(project, unrelated, name, when):
    """An edit takes effect whether it was made before or after other recipes were loaded."""
    own = project("own", name)
    sys.path.append(str(own.root))
    old = own.load()
    if when == "before":
        own.write("two")
    unrelated.load()
    assert (importlib.import_module(name) is old) == (when == "after")
    own.write("two")
    new = own.load()

    assert (old.WORD, new.WORD) == ("one", "two")


def test_entries_of_others_keep_their_position(project, unrelated):
    """An entry that a test adds to `sys.path` while recipes are loaded keeps its position."""
    own = project("own")
    own.load()
    sys.path.insert(0, str(own.root))
    unrelated.load()

    assert sys.path.index(str(own.root)) == 0
    assert sys.path.count(str(own.root)) == 1


class Uninstalling:
    """A finder that uninstalls all finders of recipes, as another thread does when it reloads them."""

    def find_spec(self, name, path=None, target=None):
        """Uninstall the finders, and find nothing."""
        for finder in active_finders():
            finder.uninstall()


def test_reload_does_not_break_an_import_on_another_thread(tmp_path, monkeypatch):
    """An import that began before a finder is uninstalled asks all other finders."""
    Project(tmp_path / "project", "shared", "one").load()
    monkeypatch.delitem(sys.modules, "tabnanny", raising=False)
    index = sys.meta_path.index(PathFinder)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path[:index], Uninstalling(), *sys.meta_path[index:]])

    assert importlib.import_module("tabnanny").__name__ == "tabnanny"
    assert active_finders() == []
