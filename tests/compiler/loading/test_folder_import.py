"""
Tests that a folder's recipes are imported one by one, when they are asked for.
"""

from pathlib import Path
from threading import Thread

from promptkit.compiler.loading.folder_import import FolderImport
from promptkit.compiler.loading.loader import begin, load

RECIPE = '''from promptkit import prompt
{before}
print("imports", {name!r})

@prompt
def {name}() -> str:
    """A prompt."""
    return ""
'''


def folder_of(place: Path, **before: str) -> Path:
    for name, lines in before.items():
        (place / f"{name}.py").write_text(RECIPE.format(before=lines, name=name))
    return place


def begun(place: Path) -> FolderImport:
    found = begin(place).only_folder
    assert found is not None
    return found


def test_a_file_is_imported_when_it_is_asked_for(tmp_path, capsys):
    """
    The others wait until they are asked for, or until the import is finished.
    """
    found = begun(folder_of(tmp_path, first="", second="", third=""))

    loaded = found.load("second.py")
    early = capsys.readouterr().out
    recipes = found.finish()

    assert found.names == ("first.py", "second.py", "third.py")
    assert ([one.options.name for one in loaded.prompts], early) == (["second"], "imports second\n")
    assert capsys.readouterr().out == "imports first\nimports third\n"
    assert loaded == recipes.by_file[1]


def test_a_file_that_another_one_imports_is_imported_once(tmp_path, capsys):
    """
    Asking twice, or for what was imported on the way, imports nothing.
    """
    found = begun(folder_of(tmp_path, first="from . import second", second=""))

    found.load("first.py")
    found.load("second.py")
    again = found.load("first.py")

    assert capsys.readouterr().out == "imports second\nimports first\n"
    assert [one.options.name for one in again.prompts] == ["first"]


def test_files_asked_for_in_any_order_make_the_same_recipes(tmp_path):
    """
    What is found does not depend on what was asked for first.
    """
    folder_of(tmp_path, first="from . import second", second="", third="1 / 0")
    expected = load(tmp_path)
    found = begun(tmp_path)

    threads = [Thread(target=found.load, args=[name]) for name in reversed(found.names)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recipes = found.finish()

    assert [str(one.diagnostics) for one in expected.by_file] == [
        str(one.diagnostics) for one in recipes.by_file
    ]
    assert [one.location for one in expected.prompts] == [one.location for one in recipes.prompts]
