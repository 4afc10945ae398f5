"""
Tests that recipes are imported one by one, first those that are asked for.
"""

import time
from concurrent.futures import Future
from threading import Thread
from types import SimpleNamespace

import pytest

from promptkit.compiler.compilation import compile
from promptkit.compiler.lazy_import import LazyImport
from promptkit.compiler.linking import link
from promptkit.compiler.loading.folder_import import do_nothing
from promptkit.compiler.loading.loader import load
from promptkit.errors.exceptions import LoadError, UnknownPrompt

#: A recipe that says when it is imported.
RECIPE = '''
from promptkit import prompt, resource
{before}
print({name!r})

@prompt
def {name}() -> str:
    """A prompt."""
    return {name!r}

@resource("notes://{name}")
def notes() -> str:
    return "nothing"
'''


@pytest.fixture
def folder(recipes):
    """A function that writes recipes, each with a prompt of its name, and what they begin with."""
    return lambda **before: recipes(
        **{name: RECIPE.format(name=name, before=lines) for name, lines in before.items()}
    )


@pytest.fixture
def pool():
    """Runs calls on threads, which no test waits for if it fails."""

    def submit(call, *args):
        future = Future()

        def run():
            try:
                future.set_result(call(*args))
            except BaseException as error:  # noqa: BLE001 (the test looks at it)
                future.set_exception(error)

        Thread(target=run, daemon=True).start()
        return future

    return SimpleNamespace(submit=submit)


def own_names(*files):
    """What a set says of recipes that declare a prompt of their own name."""
    return {f"{name}.py": [name] for name in files}


def waits(lazy, number=1):
    """Return once so many threads wait."""
    while lazy._waiting < number:
        time.sleep(0.001)


def import_all(lazy):
    """Import everything, as the background does."""
    loaded = lazy.load(do_nothing)
    catalog = link(loaded.files, root=loaded.recipes.root).catalog
    lazy.end(catalog)
    return catalog


def test_a_file_that_is_asked_for_comes_first(folder, pool, capsys):
    """
    The others follow in order, and each is imported once.
    """
    lazy = LazyImport(folder(first="", second="", third=""), own_names("first", "second", "third"))
    asked = pool.submit(lazy.find, "third")
    waits(lazy)

    import_all(lazy)

    assert asked.result(20).name == "third"
    assert capsys.readouterr().out.split() == ["third", "first", "second"]


def test_a_file_that_is_expected_comes_first(folder, capsys):
    """
    A file is imported before all others if a request for it came before the import began.
    """
    lazy = LazyImport(folder(a="", b="", c=""), own_names("a", "b", "c"), ["c", "unknown"])

    import_all(lazy)

    assert capsys.readouterr().out.split() == ["c", "a", "b"]


def test_a_prompt_is_found_before_other_files_are_imported(folder, pool, capsys):
    """
    Nothing but its own file, and what that imports, has been imported by then.
    """
    place = folder(first="", second="from . import fourth", third="", fourth="")
    lazy = LazyImport(place, own_names("first", "second", "third", "fourth"))
    asked = pool.submit(lazy.find, "second")
    waits(lazy)
    found = {}

    def importing(file):
        if file.stem == "first":
            found.setdefault(asked.result(20).name, capsys.readouterr().out.split())

    lazy.load(importing)

    assert found == {"second": ["fourth", "second"]}


def test_a_prompt_is_found_before_the_rest_of_its_file_is_compiled(recipes, pool, tmp_path):
    """
    Compiling a file of many prompts takes long, and nothing is compiled twice for that.
    """
    gate = tmp_path / "gate"
    place = recipes(
        many=f"""
import os, time
from typing import Annotated
from promptkit import Arg, prompt

class Slow:
    def __iter__(self):
        while not os.path.exists({str(gate)!r}):
            time.sleep(0.001)
        return iter(["a"])

@prompt
def first(word: Annotated[str, Arg(complete=Slow())]) -> str:
    return word

@prompt
def second() -> str:
    return "second"
"""
    )
    lazy = LazyImport(place, {"many.py": ["first", "second"]})
    asked = pool.submit(lazy.find, "second")
    waits(lazy)
    imported = pool.submit(import_all, lazy)

    found = asked.result(20)
    early = imported.done()
    gate.touch()

    assert not early
    assert imported.result(20)["second"] is found
    assert lazy.find("first").arguments.by_name["word"].completer.source == ("a",)


def test_a_slow_import_delays_only_those_who_need_it(folder, pool, tmp_path, capsys):
    """
    Another file is imported beside it when it is asked for, and none is imported twice.
    """
    slow = f"import os, time\nwhile not os.path.exists({str(tmp_path / 'gate')!r}): time.sleep(0.001)"
    place = folder(first=slow, second="1 / 0", third="from . import fourth", fourth="", fifth="")
    lazy = LazyImport(place, own_names("first", "second", "third", "fourth", "fifth"))
    stuck = pool.submit(lazy.find, "first")
    waits(lazy)
    imported = pool.submit(import_all, lazy)

    found = lazy.find("third")
    early = stuck.done(), imported.done()
    (tmp_path / "gate").touch()

    assert found is imported.result(20)["third"]
    assert stuck.result(20) is imported.result()["first"]
    assert early == (False, False)
    assert sorted(capsys.readouterr().out.split()) == ["fifth", "first", "fourth", "third"]


def test_the_same_prompt_is_found_early_and_late(folder, pool):
    """
    What was compiled for a request is what the whole catalog holds.
    """
    lazy = LazyImport(folder(first="", second=""), own_names("first", "second"))
    asked = pool.submit(lazy.find, "second")
    waits(lazy)

    catalog = import_all(lazy)

    assert asked.result(20) is catalog["second"] is lazy.find("second")


def test_what_is_imported_lazily_is_what_is_imported_at_once(folder):
    """
    Also if a file is broken, and if one imports another.
    """
    place = folder(first="1 / 0", second="from .third import third", third="")

    lazily = import_all(LazyImport(place, own_names("first", "second", "third")))
    at_once = compile(load(place))

    assert list(lazily) == list(at_once) == ["second", "third"]
    assert str(lazily.diagnostics) == str(at_once.diagnostics)
    assert [one.uri_template for one in lazily.resources] == [one.uri_template for one in at_once.resources]


@pytest.mark.parametrize(
    "names", [{"first.py": ["second"]}, {"gone.py": ["second"]}, {}], ids=["elsewhere", "gone", "unknown"]
)
def test_a_prompt_that_is_not_where_it_was_is_found_once_all_is_imported(folder, pool, names):
    """
    What the set says of a file speeds an answer up, and never makes it wrong.
    """
    lazy = LazyImport(folder(first="", second=""), names)
    asked = pool.submit(lazy.find, "second")
    waits(lazy)

    catalog = import_all(lazy)

    assert asked.result(20) is catalog["second"]


@pytest.mark.parametrize("name", ["broken", "unknown"])
def test_a_prompt_that_does_not_exist_is_unknown(folder, pool, name):
    """
    That is known once all is imported.
    """
    lazy = LazyImport(folder(broken="1 / 0", second=""), own_names("broken", "second"))
    asked = pool.submit(lazy.find, name)
    waits(lazy)

    import_all(lazy)

    with pytest.raises(UnknownPrompt, match=name):
        asked.result(20)


def test_who_waits_hears_that_nothing_can_be_imported(folder, pool, tmp_path):
    """
    Now and later, whether a prompt or everything is wanted.
    """
    lazy = LazyImport(tmp_path / "gone", own_names("first"))
    asked = [pool.submit(lazy.find, "first"), pool.submit(lazy.whole)]
    waits(lazy, 2)

    with pytest.raises(LoadError) as error:
        lazy.load(do_nothing)
    lazy.end(error.value)

    assert [one.exception(20) for one in asked] == [error.value] * 2
    with pytest.raises(LoadError):
        lazy.find("first")


def test_at_the_end_of_the_input_it_is_waited_for_those_who_wait(folder, pool):
    """
    But not for ever: after a while they are refused.
    """
    lazy = LazyImport(folder(first=""), own_names("first"))
    lazy.hold(60, ValueError)
    asked = pool.submit(lazy.find, "first")
    waits(lazy)
    lazy.hold(0.01, ValueError)

    with pytest.raises(ValueError, match=r"^$"):
        asked.result(20)
    lazy.hold(60, ValueError)
    assert lazy._waiting == 0


def test_it_is_imported_on_a_thread(folder):
    """
    Whoever waits for all files gets the catalog; after that, something more may be done.
    """
    done = Future()
    lazy = LazyImport(folder(first=""), {})
    early = lazy.wait(0)
    lazy.start(lambda load: link(load(do_nothing).files).catalog, done.set_result, done.cancel, ValueError())
    catalog = lazy.wait(20)
    lazy.finish(20)

    assert (early, list(catalog)) == (None, ["first"])
    assert done.result() is catalog


def test_an_import_that_fails(folder, tmp_path, pool):
    """
    Its error is raised in the thread that serves; others are refused.
    """
    failed = Future()
    lazy = LazyImport(tmp_path / "gone", own_names("first"))
    asked = pool.submit(lazy.find, "first")
    waits(lazy)
    lazy.start(lambda load: load(do_nothing), failed.set_result, failed.cancel, ValueError())

    assert isinstance(asked.exception(20), ValueError)
    for wait in (lazy.wait, lazy.finish):
        with pytest.raises(LoadError):
            wait(20)
    assert failed.cancelled()
