"""What an import has read, and whether it is still the same."""

import os
import sqlite3
import sys
import time
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryFile

import pytest

from promptkit.compiler.reloading import Reloader
from promptkit.transports.read_files import StaleSet, noted_reads


def changes(files, *, are_copied=False):
    return list(files.changes({}, are_copied=are_copied))


@pytest.fixture
def file(tmp_path):
    """A file that was there before."""
    file = tmp_path / "words"
    file.write_text("x")
    return file


def read_by(call, folder="elsewhere"):
    """What is read while *call* runs."""
    with noted_reads(str(folder)) as reads:
        call()
    return reads.files()


def own(files, folder):
    """What is read in a folder."""
    return {path for path in files.read if path.startswith(str(folder))}


def edit(file, text):
    """Change a file so that neither its size nor its time gives it away."""
    before = file.stat()
    file.write_text(text)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def executed(file):
    """Execute a module without making it one that can be imported."""
    spec = spec_from_file_location("plugin", file)
    spec.loader.exec_module(module_from_spec(spec))


def make(path):
    """Make a file, and the folders that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


#: What a recipe reads, and what changes it.
SEEN = [
    ("sorted(os.listdir(here))", lambda folder: (folder / ".hidden").touch()),
    ("sorted(p.name for p in here.glob('.*'))", lambda folder: (folder / ".hidden").touch()),
    ("sorted(p.name for p in (here / 'late').glob('*'))", lambda folder: make(folder / "late" / "a.md")),
    ("sorted(p.name for p in (here / 'a' / 'b').glob('*'))", lambda folder: make(folder / "a" / "b" / "c")),
    ("sorted(p.name for p in here.glob('late/*.md'))", lambda folder: make(folder / "late" / "a.md")),
    ("sorted(p.name for p in here.glob('late/a.md'))", lambda folder: make(folder / "late" / "a.md")),
    ("sorted(p.name for p in here.rglob('*.md'))", lambda folder: make(folder / "more" / "b" / "a.md")),
    ("sorted(__import__('glob').glob(str(here / 'late' / '*')))", lambda folder: make(folder / "late" / "a")),
    (
        "sorted(n for w in os.walk(here) for n in w[2] if n[-3:] == '.md')",
        lambda f: make(f / "more" / "a.md"),
    ),
    ("(here / 'words.txt').open('r+').close()", lambda folder: (folder / "words.txt").write_text("two")),
    (
        "os.close(os.open(here / 'words.txt', os.O_RDONLY))",
        lambda folder: (folder / "words.txt").write_text("two"),
    ),
]


@pytest.mark.parametrize(("code", "change"), SEEN)
def test_what_recipes_read_counts(recipes, code, change):
    """
    Once anything has changed that decides what a list is, the lists are made anew.
    """
    source = "import os\nfrom pathlib import Path\nhere = Path(__file__).parent\n"
    folder = recipes(asks=f"{source}words = {code}\n")
    (folder / "words.txt").write_text("one")
    (folder / "more").mkdir()
    time.sleep(0.05)  # all of it is older than file systems can tell
    found = read_by(Reloader(folder, print).load, folder)
    before = changes(found)

    change(folder)

    assert before == ["sys.path has changed"]  # in this process: recipes may import from their project
    assert changes(found)[1:] != []


def test_what_is_opened_counts(tmp_path, file):
    """
    A file that is opened decides what recipes are, also if it is not there; so does each listed folder.
    """
    missing = tmp_path / "missing"

    def read():
        file.read_text()
        with pytest.raises(FileNotFoundError):
            missing.read_text()
        os.close(os.open(tmp_path / "words", os.O_RDONLY))
        list(os.scandir(tmp_path))

    found = read_by(read)

    assert own(found, tmp_path) == {str(file), str(missing), str(tmp_path)}
    assert changes(found) == []
    missing.touch()
    assert changes(found) == [f"{missing} has changed", f"{tmp_path} has changed"]


@pytest.mark.parametrize(
    "call",
    [
        lambda folder: (folder / "words").write_text("y"),
        lambda folder: (folder / "words").open("a").close(),
        lambda folder: (folder / "words").stat(),
        lambda folder: (folder / "words").exists(),
        lambda folder: TemporaryFile(dir=folder).close(),
        lambda folder: NamedTemporaryFile(dir=folder).close(),
    ],
    ids=["write", "append", "stat", "exists", "temporary", "named temporary"],
)
def test_what_is_not_read_does_not_count(tmp_path, file, call):
    """
    What is only written, or looked at from outside, is no input.
    """
    assert own(read_by(lambda: call(tmp_path)), tmp_path) == set()


def test_a_database_counts(tmp_path):
    """
    SQLite opens its files by itself.
    """
    found = read_by(lambda: sqlite3.connect(tmp_path / "words.db").close())

    assert own(found, tmp_path) == {str(tmp_path / "words.db")}


def test_of_a_module_its_source_counts(tmp_path, monkeypatch):
    """
    Also if only its bytecode is read.
    """
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    plugin = tmp_path / "plugin.py"
    plugin.write_text("NAME = 1")
    executed(plugin)

    assert own(read_by(lambda: executed(plugin)), tmp_path) == {str(plugin)}


def test_nothing_counts_before_and_after(tmp_path, file):
    """
    Once the import is over, what others read is not noted.
    """
    with noted_reads("elsewhere") as reads:
        pass
    file.read_text()

    assert own(reads.files(), tmp_path) == set()


def test_an_edit_is_seen(file):
    """
    Neither size nor time hide it.
    """
    found = read_by(file.read_text)
    edit(file, "y")

    assert changes(found) == [f"{file} has changed"]


@pytest.mark.parametrize("are_copied", [False, True])
def test_a_file_that_holds_the_same_is_the_same(file, are_copied):
    """
    Another stamp alone changes nothing: files may have been checked out again, or copied.
    """
    found = read_by(file.read_text)
    file.rename(file.parent / "before")
    file.write_text("x")

    assert changes(found, are_copied=are_copied) == []


def test_a_file_with_the_same_stamp_is_not_read_again(file, monkeypatch):
    """
    With thousands of files, that would take its time.
    """
    found = read_by(file.read_text)
    monkeypatch.setattr("promptkit.transports.read_files.read_regular_file", None)

    assert changes(found) == []


@pytest.mark.parametrize("are_copied", [False, True])
def test_a_large_file_is_compared_by_its_stamp(file, are_copied):
    """
    It is not read at each start. Whoever copies it stands for it.
    """
    file.write_bytes(b"x" * ((1 << 20) + 1))
    found = read_by(file.read_text)
    file.touch()

    assert changes(found, are_copied=are_copied) == ([] if are_copied else [f"{file} has changed"])


@pytest.mark.parametrize("are_copied", [False, True])
def test_installed_packages_are_compared_by_their_stamps(tmp_path, are_copied):
    """
    They are not read at each start. Whoever copies an image stands for them.
    """
    module = tmp_path / "lib" / "site-packages" / "module.py"
    module.parent.mkdir(parents=True)
    module.write_text("x")
    found = read_by(module.read_text)
    module.touch()

    assert changes(found, are_copied=are_copied) == ([] if are_copied else [f"{module} has changed"])


def test_a_recipe_that_changes_meanwhile(tmp_path, file):
    """
    A file that is written while recipes are imported may have been read before or after.
    """

    def import_it():
        file.read_text()
        file.write_text("y")

    assert own(read_by(import_it, folder="elsewhere"), tmp_path) == {str(file)}
    with pytest.raises(StaleSet, match=f"{file} was written while the recipes were imported"):
        read_by(import_it, folder=tmp_path)


def test_a_file_of_the_future(tmp_path, file):
    """
    It is named: whether it was written meanwhile cannot be told.
    """
    os.utime(file, (time.time() + 3600, time.time() + 3600))

    with pytest.raises(StaleSet, match=f"{file} was written .* or its time is in the future"):
        read_by(file.read_text, folder=tmp_path)


def test_a_relative_path(tmp_path, file, monkeypatch):
    """
    It means the folder that was the current one when it was opened.
    """
    monkeypatch.chdir(tmp_path)

    def read():
        Path("words").read_text()
        os.chdir(os.sep)

    assert own(read_by(read), tmp_path) == {str(file)}


def test_bytecode_in_a_listed_folder(tmp_path, file):
    """
    It is no change: imports write it themselves.
    """
    found = read_by(lambda: list(tmp_path.iterdir()))
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "recipes.compiled").touch()

    assert changes(found) == []


@pytest.mark.parametrize("change", ["before.py", "package"])
def test_a_module_that_would_be_found_first(tmp_path, monkeypatch, change):
    """
    It is seen in each folder in which modules are looked for; other files there are not.
    """
    monkeypatch.syspath_prepend(str(tmp_path))

    def look():
        with pytest.raises(ModuleNotFoundError):
            __import__("nothing_like_it")

    found = read_by(look)
    (tmp_path / "notes.txt").touch()
    assert changes(found) == []
    (tmp_path / change).mkdir()

    assert changes(found) == [f"{tmp_path} has changed"]


def test_another_path_of_modules(tmp_path, file, monkeypatch):
    """
    Modules might be found elsewhere.
    """
    found = read_by(file.read_text)
    monkeypatch.syspath_prepend(str(tmp_path))

    assert changes(found)[0] == "sys.path has changed"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_not_waited_for(tmp_path, file):
    """
    What has taken the place of a file is only looked at.
    """
    found = read_by(file.read_text)
    file.unlink()
    os.mkfifo(file)

    assert changes(found) == [f"{file} has changed"]


def test_files_of_the_system_do_not_count():
    """
    They are others whenever they are read.
    """

    def read():
        for path in (Path("/proc/uptime"), Path(os.devnull)):
            if path.exists():
                path.read_text()

    assert {path for path in read_by(read).read if path.startswith(("/proc", "/dev"))} == set()
