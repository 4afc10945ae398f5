import errno
import gc
import importlib.util
import os
import shutil
import sys
import threading
import time
import weakref
from pathlib import Path
from queue import Queue
from types import ModuleType

import pytest

from promptkit.compiler import reloading
from promptkit.compiler.reloading import Reloader, clear_recipe_caches
from promptkit.errors.rules import Rule
from promptkit.lints.linter import lint_file
from promptkit.loader.loader import load
from promptkit.loader.watching import Debounce, find_files

TIMEOUT_S = 10

GREET = '''
from promptkit import prompt

@prompt
def {name}() -> str:
    """Say hello."""
    return {text!r}
'''
BROKEN = "def broken(:\n"

#: Recipe code that notifies the test when the recipe is imported.
RAN = "import sys; sys.imported.put(__name__)"

#: Recipe code that uses the processor until the end of the test.
SPINS = "while not sys.release.wait(0.01): pass"


def greet(text, name="greet"):
    return GREET.format(text=text, name=name)


class Author:
    """An author who writes recipes while they are watched, and receives the resulting catalogs."""

    def __init__(self, folder, target=None):
        self.folder = folder
        self.published, self.reports = Queue(), Queue()
        self.reloader = Reloader(target or folder, self.reports.put)
        self.first = self.reloader.load()

    def start(self):
        """Start to watch."""
        self.reloader.start(self.published.put)

    def write(self, name, source):
        """Write a file in the folder of recipes."""
        (self.folder / name).write_text(source)

    def next(self):
        """Return the next published catalog."""
        return self.published.get(timeout=TIMEOUT_S)

    def wait_for(self, **expected):
        """Return the next published catalog whose prompts have exactly this text."""
        while texts(catalog := self.next()) != expected:
            pass
        return catalog

    def wait_for_import(self):
        """Wait until a recipe with `RAN` is imported."""
        sys.imported.get(timeout=TIMEOUT_S)

    def codes(self):
        """Return the codes of the next reported diagnostics."""
        return [diagnostic.rule.value for diagnostic in self.reports.get(timeout=TIMEOUT_S).diagnostics]


def texts(catalog):
    """Return the text of each prompt of a catalog, by name."""
    return {name: prompt.render().messages[0].content.text for name, prompt in catalog.items()}


@pytest.fixture
def make_author(recipes, monkeypatch):
    """A function that makes an author of recipes, which are watched once `start` is called."""
    monkeypatch.setattr(sys, "imported", Queue(), raising=False)
    monkeypatch.setattr("promptkit.compiler.reloading.DEBOUNCE", Debounce(quiet=10, every=50))
    monkeypatch.setattr("promptkit.loader.import_thread._CHECK_EVERY_S", 0.05)
    monkeypatch.setattr(reloading, "free_unused_versions", lambda: None)  # slow with millions of objects
    authors = []

    def make(target=None, **files):
        folder = recipes(**files)
        authors.append(Author(folder, target and folder / target))
        return authors[-1]

    yield make
    for started in authors:
        started.reloader.close()
    for thread in threading.enumerate():
        if thread.name == "promptkit-reload":
            thread.join(TIMEOUT_S)


@pytest.fixture
def watch_recipes(make_author):
    """A function that makes an author whose recipes are already being watched."""

    def make(target=None, **files):
        author = make_author(target, **files)
        (author.folder / "_probe.py").write_text("")
        author.start()
        author.next()
        return author

    return make


def test_default_of_elicit_applies_after_an_edit(make_author):
    """The option `elicit` applies to each new catalog as well."""
    author = make_author(greet=greet("one"))
    author.reloader = Reloader(author.folder, author.reports.put, elicit=False)
    assert author.reloader.load()["greet"].elicit is False
    author.start()

    author.write("greet.py", greet("two"))
    assert author.wait_for(greet="two")["greet"].elicit is False


class TestSeveralTargets:
    def test_an_edit_in_any_target_is_published(self, make_author, recipes):
        """An edit in any target is published, and prompts of other targets stay."""
        other = recipes("other", part=greet("Bye", "part"))
        author = make_author(greet=greet("one"))
        author.reloader = Reloader([author.folder, other / "part.py"], author.reports.put)
        author.reloader.load()
        author.start()

        author.write("greet.py", greet("two"))
        first = author.wait_for(greet="two", part="Bye")
        (other / "part.py").write_text(greet("See you", "part"))
        second = author.wait_for(greet="two", part="See you")

        assert author.reloader.has_watched_files
        assert first.diagnostics == second.diagnostics == ()

    def test_a_broken_file_keeps_its_last_version(self, make_author, recipes):
        """A broken file keeps its last version while other targets are reloaded."""
        other = recipes("other", part=greet("Bye", "part"))
        author = make_author(greet=greet("one"))
        author.reloader = Reloader([author.folder, other], author.reports.put)
        author.reloader.load()
        author.start()

        (other / "part.py").write_text(BROKEN)
        assert author.codes() == ["PK101"]
        author.write("greet.py", greet("two"))

        author.wait_for(greet="two", part="Bye")


class TestMarkdown:
    """Edits of Markdown prompts, in a folder with a recipe in Python."""

    @pytest.fixture
    def author(self, make_author):
        """An author whose Markdown prompt, and the text file that it includes, are being watched."""
        author = make_author(greet=greet("one"))
        author.write("fix.prompt.md", "Fix it. {{> style.md}}")
        author.write("style.md", "Be kind.")
        author.reloader.load()
        author.start()
        return author

    def test_saved_files(self, author):
        """A saved prompt, and a saved text file that a prompt includes, are published."""
        author.write("fix.prompt.md", "Fix all. {{> style.md}}")
        author.wait_for(greet="one", fix="Fix all. Be kind.")
        author.write("style.md", "Be brief.")

        author.wait_for(greet="one", fix="Fix all. Be brief.")

    def test_new_renamed_and_removed_files(self, author):
        """New, renamed and removed prompts change the catalog."""
        author.write("tidy.prompt.md", "Tidy up.")
        author.wait_for(greet="one", fix="Fix it. Be kind.", tidy="Tidy up.")
        (author.folder / "tidy.prompt.md").rename(author.folder / "clean.prompt.md")
        author.wait_for(greet="one", fix="Fix it. Be kind.", clean="Tidy up.")
        (author.folder / "clean.prompt.md").unlink()

        author.wait_for(greet="one", fix="Fix it. Be kind.")

    @pytest.mark.parametrize(
        ("name", "text", "code"),
        [("fix.prompt.md", "---\ntitel: x\n---\nFix it.", "PK701"), ("style.md", b"\xff", "PK702")],
    )
    def test_an_invalid_save_keeps_the_last_version(self, author, name, text, code):
        """
        A prompt that becomes invalid, even because of a text file that it includes, keeps its last version.
        """
        (author.folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        assert author.codes() == [code]
        author.write("greet.py", greet("two"))

        author.wait_for(greet="two", fix="Fix it. Be kind.")

    def test_files_of_a_pattern(self, make_author):
        """New and saved files of a pattern are published."""
        author = make_author()
        (author.folder / "commands").mkdir()
        author.write("commands/fix.md", "Fix it.")
        author.reloader = Reloader(str(author.folder / "commands" / "*.md"), author.reports.put)
        author.reloader.load()
        author.start()

        author.write("commands/fix.md", "Fix all.")
        author.wait_for(fix="Fix all.")
        author.write("commands/tidy.md", "Tidy up.")

        author.wait_for(fix="Fix all.", tidy="Tidy up.")


class TestPublishing:
    def test_an_edit_is_published(self, watch_recipes):
        """The new version of an edited recipe is served."""
        author = watch_recipes(greet=greet("one"))
        author.write("greet.py", greet("two"))

        assert texts(author.next()) == {"greet": "two"}

    def test_a_replaced_file_is_reloaded(self, watch_recipes):
        """A file that is replaced by a rename, as many editors do, is reloaded."""
        author = watch_recipes(greet=greet("one"))
        author.write(".greet.py.tmp", greet("two"))
        (author.folder / ".greet.py.tmp").replace(author.folder / "greet.py")

        assert texts(author.next()) == {"greet": "two"}

    def test_added_renamed_and_deleted_files_are_published(self, watch_recipes):
        """New, renamed and deleted recipes change the catalog."""
        author = watch_recipes(greet=greet("one"))
        author.write("part.py", greet("bye", "part"))
        author.wait_for(greet="one", part="bye")
        (author.folder / "part.py").rename(author.folder / "leave.py")
        author.wait_for(greet="one", part="bye")
        (author.folder / "leave.py").unlink()

        author.wait_for(greet="one")

    def test_a_changed_helper_reloads_the_recipes(self, watch_recipes):
        """A change of an imported helper reloads the recipes, however it is imported."""
        author = watch_recipes(
            _text="WORD = 'one'",
            greet=greet("")
            .replace("return ''", "return WORD")
            .replace("\n", "\nfrom _text import WORD\n", 1),
        )
        author.write("_text.py", "WORD = 'two'")

        assert texts(author.next()) == {"greet": "two"}

    def test_a_new_subfolder_is_watched(self, watch_recipes):
        """A folder that is created while watching is watched as well."""
        author = watch_recipes(greet=greet("one"))
        nook = author.folder / "nook"
        nook.mkdir()
        (nook / "word.py").write_text("WORD = 'two'")
        late = greet("").replace("return ''", "return WORD")
        author.write("greet.py", f"from nook.word import WORD\n{late}")
        author.wait_for(greet="two")
        (nook / "word.py").write_text("WORD = 'tri'")

        author.wait_for(greet="tri")

    def test_a_file_read_from_elsewhere_is_watched(self, watch_recipes, tmp_path, png):
        """A file outside the folder is watched if a recipe read it when it was imported."""
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        picture = elsewhere / "dot.png"
        picture.write_bytes(png)
        author = watch_recipes(
            greet=f"""
            from promptkit import Image, prompt
            DOT = Image.from_path({str(picture)!r})

            @prompt
            def greet() -> str:
                return str(len(DOT.data))
            """
        )
        picture.write_bytes(png + b"\0")

        assert texts(author.next()) == {"greet": str(len(png) + 1)}

    def test_files_next_to_the_target_are_watched(self, watch_recipes):
        """If the target is a file, the Python files next to it are watched, because it can import them."""
        author = watch_recipes(
            target="greet.py", greet="from ._text import WORD\n" + greet("one"), _text="WORD = 1"
        )
        author.write("notes.txt", "no recipe")
        author.write("_text.py", "WORD = 2; raise ValueError")

        assert author.codes() == ["PK101"]

    def test_an_edit_before_watching_is_not_missed(self, make_author):
        """An edit between loading and watching is not missed."""
        author = make_author(greet=greet("one"))
        author.write("greet.py", greet("two"))
        author.start()

        assert texts(author.next()) == {"greet": "two"}

    def test_prompts_in_test_files_are_checked_again(self, watch_recipes):
        """
        A reload checks again which files define prompts that are not served; a new such file is found when a
        new recipe is loaded.
        """
        author = watch_recipes(greet=greet("one"), test_zoo=greet("z", "zoo"))
        author.write("test_zoo.py", greet("z", "zoo") + "\ndef test_zoo():\n    assert zoo\n")
        author.write("greet.py", greet("two"))

        later = author.wait_for(greet="two")
        assert [diagnostic.rule for diagnostic in author.first.diagnostics] == [Rule.NOT_SERVED]
        assert later.diagnostics == ()
        author.write("test_new.py", greet("n", "new"))
        author.write("part.py", greet("bye", "part"))
        assert author.codes() == ["PK107"]

    def test_irrelevant_files_cause_no_reload(self, watch_recipes):
        """Tests, caches and editors' temporary files cause no reload."""
        author = watch_recipes(greet=greet("one"))
        for name in ("test_greet.py", ".greet.py.swp", "greet.py~", "#greet.py#"):
            author.write(name, BROKEN)
        author.write("greet.py", greet("two"))

        assert texts(author.next()) == {"greet": "two"}
        assert author.published.empty()


class TestBrokenRecipes:
    def test_a_broken_edit_keeps_the_last_version(self, watch_recipes, capsys):
        """While a file is broken, its last good version is served and the error is reported."""
        author = watch_recipes(greet=greet("one"))
        author.write("greet.py", BROKEN)
        codes = author.codes()
        author.write("greet.py", greet("two"))

        assert codes == ["PK101"]
        assert texts(author.next()) == {"greet": "two"}
        assert capsys.readouterr().err == "promptkit: reloaded; unchanged until fixed: greet.py\n"

    def test_a_diagnostic_is_reported_once(self, watch_recipes):
        """A diagnostic is not reported again by later reloads."""
        author = watch_recipes(greet=greet("one"))
        author.write("greet.py", BROKEN)
        first = author.codes()
        author.write("greet.py", f"{RAN}\n1 / 0")
        author.wait_for_import()
        second = author.codes()
        author.write("greet.py", f"{RAN}\n1 / 0")
        author.wait_for_import()
        author.write("other.py", BROKEN)

        assert (first, second) == (["PK101"], ["PK101"])
        assert author.codes() == ["PK101", "PK101"]

    def test_a_target_that_disappears_keeps_the_last_version(self, watch_recipes):
        """If the target's object disappears, the last version is served until it is back."""
        author = watch_recipes(target="greet.py:greet", greet=greet("one"))
        author.write("greet.py", RAN + greet("two", "renamed"))
        author.wait_for_import()
        author.write("greet.py", greet("tri"))

        author.wait_for(greet="tri")

    def test_an_initially_broken_file_does_not_block_others(self, watch_recipes):
        """A file that was always broken does not block edits of other files."""
        author = watch_recipes(greet=greet("one"), bad=BROKEN)
        author.write("greet.py", greet("two"))

        assert texts(author.next()) == {"greet": "two"}
        assert author.reports.empty()

    def test_a_briefly_empty_folder_keeps_its_prompts(self, watch_recipes):
        """An empty folder, as while switching branches, does not remove the served prompts."""
        author = watch_recipes(greet=greet("one"))
        (author.folder / "greet.py").unlink()
        codes = author.codes()
        author.write("greet.py", greet("two"))

        assert codes == ["PK102"]
        assert texts(author.next()) == {"greet": "two"}

    @pytest.mark.parametrize(
        "source",
        ["raise SystemExit(3)", "raise KeyboardInterrupt", "print('x'); 1 / 0", "import nowhere_at_all"],
    )
    def test_a_failing_import_does_not_stop_the_watching(self, watch_recipes, source):
        """Whatever a recipe raises, watching continues."""
        author = watch_recipes(greet=greet("one"))
        author.write("extra.py", f"{RAN}\n{source}")
        author.wait_for_import()
        author.write("extra.py", greet("last", "last"))

        author.wait_for(greet="one", last="last")

    def test_a_failing_publisher_is_reported(self, make_author, capsys):
        """An error in the publisher is reported, and the next change is published."""
        author = make_author(greet=greet("one"))
        seen = Queue()
        refusals = [RuntimeError("no room")]

        def publish(catalog):
            seen.put(texts(catalog))
            if refusals:
                raise refusals.pop()

        author.write("greet.py", greet("two"))
        author.reloader.start(publish)
        first = seen.get(timeout=TIMEOUT_S)
        author.write("greet.py", greet("tri"))
        second = seen.get(timeout=TIMEOUT_S)
        message = "promptkit: cannot publish the changed recipes: RuntimeError: no room\n"

        assert (first, second) == ({"greet": "two"}, {"greet": "tri"})
        assert capsys.readouterr().err == message


BAD_PROMPT = """
@prompt
def bad(text) -> str:
    return text
"""
NOTE = """
from promptkit import resource

@resource("note:{word}")
def note() -> str:
    return {text!r}
"""


def note(text, word="it"):
    return NOTE.format(text=text, word=word)


class TestIndependentFiles:
    def test_a_broken_file_keeps_its_prompts_while_others_change(self, watch_recipes, capsys):
        """
        While one file is broken, others can be edited, added and removed; each reload reports the files that
        were not updated and those with errors.
        """
        author = watch_recipes(greet=greet("one"), part=greet("bye", "part"), leave=greet("go", "leave"))
        author.write("greet.py", BROKEN)
        author.codes()
        author.write("part.py", greet("see you", "part"))
        author.wait_for(greet="one", part="see you", leave="go")
        author.write("extra.py", greet("more", "extra"))
        author.wait_for(greet="one", part="see you", leave="go", extra="more")
        (author.folder / "leave.py").unlink()
        author.wait_for(greet="one", part="see you", extra="more")
        author.write("greet.py", greet("two"))
        author.wait_for(greet="two", part="see you", extra="more")

        lines = capsys.readouterr().err.splitlines()
        assert set(lines) == {"promptkit: reloaded; unchanged until fixed: greet.py"}
        assert len(lines) >= 4

    def test_one_invalid_prompt_keeps_the_whole_previous_file(self, watch_recipes):
        """One invalid prompt keeps the whole previous file, because its prompts belong together."""
        author = watch_recipes(pair=greet("one") + greet("bye", "part"), other=greet("x", "other"))
        author.write("pair.py", greet("two") + greet("see you", "part") + BAD_PROMPT)
        codes = author.codes()
        author.write("other.py", greet("y", "other"))

        author.wait_for(greet="one", part="bye", other="y")
        assert codes == ["PK301"]

    def test_an_initially_invalid_file_is_updated_as_far_as_possible(self, watch_recipes, capsys):
        """A file that was never valid is updated as far as possible, unless an edit would lose a prompt."""
        author = watch_recipes(pair=greet("one") + BAD_PROMPT)
        author.write("pair.py", greet("two") + BAD_PROMPT)
        author.wait_for(greet="two")
        author.write("pair.py", BROKEN)
        author.codes()
        author.write("other.py", greet("x", "other"))
        author.wait_for(greet="two", other="x")
        author.write("pair.py", greet("tri"))

        author.wait_for(greet="tri", other="x")
        assert "promptkit: reloaded; with errors: pair.py" in capsys.readouterr().err

    def test_an_initially_broken_file_is_served_once_it_is_fixed(self, watch_recipes):
        """A file that was broken from the start is served once it can be imported."""
        author = watch_recipes(greet=greet("one"), late=BROKEN)
        author.write("late.py", greet("now", "late"))

        author.wait_for(greet="one", late="now")

    def test_a_file_is_fixed_after_another_one_breaks(self, watch_recipes):
        """One file can be fixed after another one breaks."""
        author = watch_recipes(greet=greet("one"), part=greet("bye", "part"))
        author.write("greet.py", BROKEN)
        author.codes()
        author.write("part.py", BROKEN)
        author.codes()
        author.write("greet.py", greet("two"))
        author.wait_for(greet="two", part="bye")
        author.write("part.py", greet("see you", "part"))

        author.wait_for(greet="two", part="see you")

    def test_a_broken_helper_keeps_the_files_that_import_it(self, watch_recipes):
        """Files that import a broken helper keep their last version; other files are updated."""
        uses = "from _text import WORD\n"
        author = watch_recipes(
            _text="WORD = 'w'",
            greet=uses + greet("").replace("return ''", "return WORD"),
            part=uses + greet("", "part").replace("return ''", "return WORD"),
            other=greet("x", "other"),
        )
        author.write("_text.py", BROKEN)
        author.codes()
        author.write("other.py", greet("y", "other"))
        author.wait_for(greet="w", part="w", other="y")
        author.write("_text.py", "WORD = 'v'")

        author.wait_for(greet="v", part="v", other="y")

    def test_the_newest_version_of_a_shared_prompt_is_served(self, watch_recipes):
        """
        If one of two files that share a helper's prompt breaks, the newest version of the prompt is served.
        """
        author = watch_recipes(
            _text=greet("one"), first="from ._text import greet", second="from ._text import greet"
        )
        author.write("first.py", BROKEN)
        author.codes()
        author.write("_text.py", greet("two"))
        author.wait_for(greet="two")
        author.write("second.py", BROKEN)
        author.codes()
        author.write("third.py", greet("x", "third"))

        author.wait_for(greet="two", third="x")

    def test_a_broken_package_keeps_its_files(self, watch_recipes):
        """While the package's `__init__.py` is broken, files are kept, and removed ones are still removed."""
        author = watch_recipes(__init__="", greet=greet("one"), part=greet("bye", "part"))
        author.write("__init__.py", BROKEN)
        codes = author.codes()
        (author.folder / "part.py").unlink()
        author.wait_for(greet="one")
        author.write("__init__.py", "")
        author.write("greet.py", greet("two"))

        author.wait_for(greet="two")
        assert codes == ["PK101"]

    def test_an_edit_cannot_take_the_name_of_another_file(self, watch_recipes):
        """A file keeps the names that it serves when an edit of another file duplicates them."""
        author = watch_recipes(b=greet("bee") + greet("mine", "own"), c=greet("x", "c"))
        author.write("a.py", greet("usurped") + greet("a", "first"))
        (diagnostic,) = author.reports.get(timeout=TIMEOUT_S).diagnostics
        author.wait_for(greet="bee", own="mine", c="x", first="a")
        author.write("c.py", greet("y", "c") + greet("mine, too", "own"))
        author.codes()
        author.write("a.py", greet("a2", "first"))
        author.wait_for(greet="bee", own="mine", c="x", first="a2")
        author.write("b.py", greet("bee"))

        author.wait_for(greet="bee", own="mine, too", c="y", first="a2")
        assert diagnostic.location.file == str(author.folder / "a.py")
        assert f"already defined at {author.folder / 'b.py'}" in diagnostic.message

    def test_a_prompt_that_moves_out_of_a_broken_file(self, watch_recipes):
        """A valid file takes precedence over the last version of a broken file for the same name."""
        author = watch_recipes(a=greet("one") + greet("bye", "part"))
        author.write("a.py", BROKEN)
        author.codes()
        author.write("b.py", greet("two"))

        author.wait_for(greet="two", part="bye")

    def test_resources_are_kept_like_prompts(self, watch_recipes):
        """Resources are kept like prompts, even in a folder without prompts."""
        author = watch_recipes(a=note("one"), b=note("two", "that"))
        author.write("a.py", BROKEN)
        author.codes()
        author.write("b.py", note("tri", "that"))
        catalog = author.next()
        while catalog.read("note:that").text != "tri":
            catalog = author.next()
        (author.folder / "b.py").unlink()
        (author.folder / "a.py").unlink()
        author.reports.get(timeout=TIMEOUT_S)
        author.write("c.py", note("for", "more"))
        last = author.next()
        while [resource.uri_template for resource in last.resources] != ["note:more"]:
            last = author.next()

        assert catalog.read("note:it").text == "one"
        assert last.read("note:more").text == "for"

    def test_a_single_object_keeps_its_last_version(self, watch_recipes):
        """A target that is one object of a file keeps its last version while the file is broken."""
        author = watch_recipes(target="greet.py:greet", greet=greet("one"))
        author.write("greet.py", BROKEN)
        author.codes()
        author.write("greet.py", greet("two"))

        author.wait_for(greet="two")

    def test_a_renamed_file_is_a_new_file(self, watch_recipes):
        """A renamed file is a new file, and the old one is removed."""
        author = watch_recipes(greet=greet("one"), part=greet("bye", "part"))
        (author.folder / "greet.py").rename(author.folder / "hello.py")
        author.wait_for(greet="one", part="bye")
        author.write("hello.py", BROKEN)
        author.codes()
        author.write("part.py", greet("see you", "part"))

        author.wait_for(greet="one", part="see you")


class TestProjectModules:
    @pytest.fixture
    def project(self, tmp_path, monkeypatch):
        """The project's folder `lib`, with a module."""
        monkeypatch.delitem(sys.modules, "lib", raising=False)
        monkeypatch.delitem(sys.modules, "lib.util", raising=False)
        (tmp_path / "pyproject.toml").touch()
        lib = tmp_path / "lib"
        lib.mkdir()
        (lib / "util.py").write_text("WORD = 'one'")
        return lib

    def test_an_edited_project_module_is_imported_again(self, watch_recipes, project):
        """A project module that recipes import is watched and imported again after a change."""
        uses = "from lib.util import WORD\n" + greet("").replace("return ''", "return WORD")
        author = watch_recipes(greet=uses)
        (project / "util.py").write_text("WORD = 'two'")
        author.wait_for(greet="two")
        (project / "util.py").write_text(BROKEN)
        author.codes()
        author.write("part.py", greet("bye", "part"))
        author.wait_for(greet="two", part="bye")
        (project / "util.py").write_text("WORD = 'tri'")

        author.wait_for(greet="tri", part="bye")

    def test_an_initially_broken_project_module_is_imported_once_it_is_fixed(self, watch_recipes, project):
        """A project module that was broken from the start is imported once it is fixed."""
        (project / "util.py").write_text(BROKEN)
        author = watch_recipes(greet="from lib import util\n" + greet("one"))
        (project / "util.py").write_text("")

        author.wait_for(greet="one")

    @pytest.mark.parametrize(
        ("code", "file"),
        [
            ("import lost", "lost.py"),
            ("import lost", "lost/__init__.py"),
            ("from lost.deep import word", "lost/deep.py"),
            ("from lib.lost import word", "lib/lost.py"),
        ],
    )
    def test_a_missing_module_is_imported_once_it_exists(self, watch_recipes, project, code, file):
        """A recipe that imports a missing module is served once the module exists."""
        for name in ("lost", "lost.deep", "lib.lost"):
            sys.modules.pop(name, None)
        author = watch_recipes(greet=f"{code}\n{greet('one')}", part=greet("bye", "part"))
        module = project.parent / file
        module.parent.mkdir(exist_ok=True)
        module.write_text("word = 1")

        author.wait_for(greet="one", part="bye")

    def test_an_optional_module_is_used_once_it_exists(self, watch_recipes, project):
        """An optional module is used once it exists, even if the last reload did not import the recipe."""
        optional = "try:\n    from lost import word\nexcept ImportError:\n    word = 'none'\n"
        sys.modules.pop("lost", None)
        author = watch_recipes(greet=optional + greet("").replace("return ''", "return word"))
        author.write("part.py", greet("bye", "part"))
        author.wait_for(greet="none", part="bye")
        (project.parent / "lost.py").write_text("word = 'found'")

        author.wait_for(greet="found", part="bye")

    def test_a_new_sibling_takes_precedence(self, watch_recipes, project):
        """A new module next to the recipes takes precedence over the project's module."""
        uses = "from lib.util import WORD\n" + greet("").replace("return ''", "return WORD")
        author = watch_recipes(greet=uses)
        (author.folder / "lib").mkdir()
        author.write("lib/util.py", "WORD = 'near'")

        author.wait_for(greet="near")

    @pytest.mark.parametrize("location", ["recipes", "recipes/inner", "src"])
    def test_project_modules_on_the_path_are_reloaded(self, watch_recipes, project, monkeypatch, location):
        """Project modules are reloaded, however a recipe makes them importable."""
        monkeypatch.setattr(sys, "path", list(sys.path))
        monkeypatch.delitem(sys.modules, "spoken", raising=False)
        folder = project.parent / location
        folder.mkdir(exist_ok=True, parents=True)
        (folder / "spoken.py").write_text("WORD = 'one'")
        uses = f"import sys\nsys.path.insert(0, {str(folder)!r})\nfrom spoken import WORD\n"
        author = watch_recipes(greet=uses + greet("").replace("return ''", "return WORD"))
        (folder / "spoken.py").write_text("WORD = 'two'")

        author.wait_for(greet="two")

    def test_project_modules_of_other_finders_are_reloaded(self, watch_recipes, project, monkeypatch):
        """Project modules found by another finder, such as an editable install's, are reloaded."""
        monkeypatch.delitem(sys.modules, "spoken", raising=False)
        (project / "spoken.py").write_text("WORD = 'one'")

        class Editable:
            @staticmethod
            def find_spec(name, path=None, target=None):
                spec = importlib.util.spec_from_file_location(name, project / "spoken.py")
                return spec if name == "spoken" else None

        monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Editable])
        author = watch_recipes(
            greet="from spoken import WORD\n" + greet("").replace("return ''", "return WORD")
        )
        (project / "spoken.py").write_text("WORD = 'two'")

        author.wait_for(greet="two")

    def test_a_recipe_edit_does_not_import_project_modules_again(self, watch_recipes, project):
        """An edit of a recipe does not cause another import of the project's unchanged modules."""
        (project / "util.py").write_text(f"{RAN}")
        author = watch_recipes(greet="import lib.util\n" + greet("one"))
        author.wait_for_import()
        author.write("greet.py", "import lib.util\n" + greet("two"))
        author.wait_for(greet="two")

        assert sys.imported.empty()


class TestHangingImports:
    @pytest.fixture(autouse=True)
    def detect_hangs_early(self, monkeypatch):
        """Slow imports are detected early, and hanging imports end with the test."""
        monkeypatch.setattr("promptkit.loader.import_thread._REPORT_AFTER_S", 0.2)
        monkeypatch.setattr(sys, "release", threading.Event(), raising=False)
        yield
        sys.release.set()
        for thread in threading.enumerate():
            if thread.name == "promptkit-import":
                thread.join(TIMEOUT_S)

    @pytest.mark.parametrize(
        "hangs", [SPINS, "sys.release.wait()", "from ._endless import x"], ids=["python", "waiting", "helper"]
    )
    def test_later_edits_are_served(self, watch_recipes, capsys, hangs):
        """A hanging file is reported; other edits are served, and so is the file once it is fixed."""
        author = watch_recipes(greet=greet("one"), part=greet("bye", "part"), zoo=greet("z", "zoo"))
        author.write("_endless.py", "import sys\nwhile not sys.release.wait(0.01): pass\nx = 1")
        author.write("greet.py", f"{RAN}\n{hangs}\n" + greet("two"))
        author.wait_for_import()
        author.write("part.py", greet("see you", "part"))
        author.wait_for(greet="one", part="see you", zoo="z")
        (diagnostic,) = author.reports.get(timeout=TIMEOUT_S).diagnostics
        author.write("greet.py", greet("tri"))
        author.wait_for(greet="tri", part="see you", zoo="z")

        stderr = capsys.readouterr().err
        assert f"promptkit: importing {author.folder / 'greet.py'} has taken 0 s so far, now at " in stderr
        assert "; the previous recipes are still served" in stderr
        assert "unchanged until fixed: greet.py" in stderr
        assert "the import did not finish and was abandoned; save the file to try again" in diagnostic.message

    def test_a_hanging_import_is_abandoned_after_the_timeout(self, watch_recipes, monkeypatch):
        """A hanging import is abandoned after the timeout, without another edit, and is not repeated."""
        monkeypatch.setattr("promptkit.loader.import_thread._TIMEOUT_S", 0.3)
        author = watch_recipes(greet=greet("one"))
        author.write("greet.py", f"{RAN}\n{SPINS}\n" + greet("two"))
        codes = author.codes()
        author.write("part.py", greet("bye", "part"))
        author.wait_for(greet="one", part="bye")

        assert codes == ["PK101"]
        assert sys.imported.qsize() == 1

    def test_the_results_of_an_abandoned_import_are_not_served(self, watch_recipes, monkeypatch):
        """The results of an abandoned import that ends later are not served."""
        monkeypatch.setattr(sys, "hanging", None, raising=False)
        hangs = "import threading\nsys.hanging = threading.current_thread()\nsys.release.wait()\n"
        author = watch_recipes(greet=greet("one"), part=greet("bye", "part"))
        author.write("greet.py", f"{RAN}\n{hangs}" + greet("two"))
        author.wait_for_import()
        author.write("part.py", greet("see you", "part"))
        author.wait_for(greet="one", part="see you")
        sys.release.set()
        sys.hanging.join(TIMEOUT_S)
        author.write("part.py", greet("so long", "part"))

        author.wait_for(greet="one", part="so long")

    @pytest.mark.parametrize("hangs", [SPINS, "sys.release.wait()"])
    def test_a_hanging_compilation_does_not_block_other_files(self, watch_recipes, hangs):
        """If compiling a file hangs, for example in a completer, edits of other files are still served."""
        author = watch_recipes(greet=greet("one"), part=greet("bye", "part"))
        endless = f"""
from typing import Annotated
from promptkit import Arg, prompt
{RAN}

class Endless:
    def __iter__(self):
        {hangs}
        return iter(())

@prompt
def greet(a: Annotated[str, Arg(complete=Endless())] = "") -> str:
    return a
"""
        author.write("greet.py", endless)
        author.wait_for_import()
        author.write("part.py", greet("see you", "part"))
        author.wait_for(greet="one", part="see you")
        author.write("greet.py", greet("two"))

        author.wait_for(greet="two", part="see you")

    @pytest.mark.parametrize("target", [None, "greet.py", "greet.py:greet"])
    def test_a_hanging_package_is_loaded_once_it_is_fixed(self, watch_recipes, target):
        """A package that hangs is kept as it was; once it is fixed, the current files are served."""
        author = watch_recipes(target=target, __init__="", greet=greet("one"))
        author.write("__init__.py", f"{RAN}\n{SPINS}")
        author.wait_for_import()
        author.write("greet.py", greet("two"))
        codes = author.codes()
        author.write("__init__.py", "")

        author.wait_for(greet="two")
        assert codes == ["PK101"]

    def test_a_hanging_helper_is_imported_once_it_is_fixed(self, watch_recipes):
        """A recipe whose helper hangs is imported again when the helper is saved."""
        author = watch_recipes(greet=greet("one"), _text="")
        author.write("_text.py", f"{RAN}\n{SPINS}")
        author.write("greet.py", "from . import _text\n" + greet("two"))
        author.wait_for_import()
        author.write("part.py", greet("bye", "part"))
        author.wait_for(greet="one", part="bye")
        author.write("_text.py", "")

        author.wait_for(greet="two", part="bye")

    def test_closing_while_an_import_hangs(self, watch_recipes):
        """Watching stops promptly even if an import hangs."""
        author = watch_recipes(greet=greet("one"))
        author.write("greet.py", f"{RAN}\n{SPINS}")
        author.wait_for_import()
        (thread,) = [t for t in threading.enumerate() if t.name == "promptkit-reload"]
        author.reloader.close()
        thread.join(TIMEOUT_S)

        assert not thread.is_alive()


class TestWatching:
    def test_a_folder_that_returns_is_watched_again(self, watch_recipes, capsys):
        """A folder that disappears and returns is watched again."""
        author = watch_recipes(greet=greet("one"))
        away = author.folder.with_name("away")
        author.folder.rename(away)
        (away / "greet.py").write_text(greet("two"))
        away.rename(author.folder)
        author.wait_for(greet="two")
        shutil.rmtree(author.folder)
        author.folder.mkdir()
        author.write("greet.py", greet("tri"))
        author.wait_for(greet="tri")
        author.write("greet.py", greet("for"))

        author.wait_for(greet="for")

    def test_a_link_can_be_pointed_at_another_folder(self, make_author, recipes, tmp_path):
        """If the target is a symbolic link, it can be pointed at another folder."""
        recipes(folder="first", greet=greet("one"))
        recipes(folder="second", greet=greet("two"))
        link = tmp_path / "now"
        link.symlink_to("first")
        author = Author(tmp_path, link)
        author.start()
        (tmp_path / "next").symlink_to("second")
        (tmp_path / "next").replace(link)
        author.wait_for(greet="two")
        (tmp_path / "second" / "greet.py").write_text(greet("tri"))
        author.wait_for(greet="tri")
        author.reloader.close()

    def test_a_change_without_a_notification_is_found(self, watch_recipes, monkeypatch):
        """A change without a notification, as on a shared folder, is found by a periodic check."""
        monkeypatch.setattr("promptkit.compiler.reloading.CHECK_EVERY_S", 0.05)
        rounds = reloading.changes_in
        monkeypatch.setattr(reloading, "changes_in", lambda *args: (set() for _ in rounds(*args)))
        author = watch_recipes(greet=greet("one"))

        author.write("greet.py", greet("two"))

        assert author.wait_for(greet="two")

    def test_changes_are_polled_if_the_system_cannot_watch(self, make_author, monkeypatch, capsys):
        """If the system cannot watch, one line reports it, and changes are found by polling."""

        def raise_limit_error(*_, **__):
            raise OSError("OS file watch limit reached")
            yield

        monkeypatch.setattr("promptkit.compiler.reloading.changes_in", raise_limit_error)
        monkeypatch.setattr("promptkit.compiler.reloading.POLL_EVERY_S", 0.05)
        author = make_author(greet=greet("one"))
        author.start()
        author.write("greet.py", greet("two"))
        author.wait_for(greet="two")
        author.write("greet.py", greet("tri"))
        author.wait_for(greet="tri")

        assert capsys.readouterr().err == (
            f"promptkit: {str(author.folder)!r} cannot be watched; it is checked every second instead: "
            "OS file watch limit reached\n"
        )

    def test_a_file_that_is_replaced_continuously(self, watch_recipes):
        """However often a file is replaced, the last version is served in the end."""
        author = watch_recipes(greet=greet("000"), part=greet("bye", "part"))
        until = time.monotonic() + 0.5
        number = 0
        while time.monotonic() < until:
            number += 1
            author.write(".new", greet(f"{number:03}"))
            (author.folder / ".new").replace(author.folder / "greet.py")
            author.reloader._stop.wait(0.01)  # never set: a wait only
        last = {"greet": f"{number:03}", "part": "bye"}
        seen = [author.next()]
        while texts(seen[-1]) != last:
            seen.append(author.next())

        assert [catalog for catalog in seen if not catalog.healthy or len(catalog) != 2] == []

    def test_a_file_that_is_being_written_is_not_loaded(self, make_author, monkeypatch):
        """A file that is briefly empty while it is written is not loaded at that moment."""
        author = make_author(greet=greet("one"), part=greet("bye", "part"))
        monkeypatch.setattr("promptkit.compiler.reloading.DEBOUNCE", Debounce(quiet=60_000))
        author.reloader._publish = author.published.put
        author.write("greet.py", "")
        author.reloader._reload()
        before = author.published.qsize()
        os.utime(author.folder / "greet.py", (1, 1))
        os.utime(author.folder / "part.py", (1, 1))
        author.reloader._reload()

        assert (before, texts(author.next())) == (0, {"part": "bye"})

    def test_closing_stops_the_thread(self, make_author):
        """Closing ends the thread promptly."""
        author = make_author(greet=greet("one"))
        author.start()
        (thread,) = [t for t in threading.enumerate() if t.name == "promptkit-reload"]
        author.reloader.close()
        thread.join(TIMEOUT_S)

        assert not thread.is_alive()

    def test_a_module_is_not_watched(self, recipes, tmp_path, monkeypatch):
        """A dotted module is loaded once and not watched."""
        recipes(folder="wardrobe", __init__="", hello=greet("one"))
        monkeypatch.chdir(tmp_path)
        threads = set(threading.enumerate())  # threads of other tests may end meanwhile
        reloader = Reloader("wardrobe.hello", print)
        catalog = reloader.load()
        reloader.start(print)

        assert texts(catalog) == {"greet": "one"}
        assert set(threading.enumerate()) <= threads


class TestLoadAgain:
    @pytest.fixture(autouse=True)
    def bytecode(self, monkeypatch):
        """Enable writing bytecode, whatever the environment."""
        monkeypatch.setattr(sys, "dont_write_bytecode", False)

    def test_edits_within_one_second_are_loaded(self, recipes):
        """Edits of equal length within one second are loaded, although Python's own check misses them."""
        results = []
        for word in ("one", "two", "tri"):
            folder = recipes(greet="from ._text import WORD\n" + greet(word), _text=f"WORD = {word!r}")
            for file in folder.glob("*.py"):
                os.utime(file, (1_700_000_000, 1_700_000_000))
            (prompt,) = load(folder).prompts
            results.append((prompt(), prompt.function.__globals__["WORD"]))

        assert results == [("one", "one"), ("two", "two"), ("tri", "tri")]

    @pytest.mark.parametrize("kind", ["Image", "EmbeddedResource"])
    @pytest.mark.parametrize("root", ["", ", root='.'"])
    def test_read_files_are_recorded(self, recipes, png, root, kind):
        """The loader returns the files that recipes read or looked for, including helpers and media."""
        folder = recipes(
            greet=f"""
            from promptkit import {kind}
            from . import _text
            DOT = {kind}.from_path("dot.png"{root})
            GONE = {kind}.from_path("gone.png"{root})
            """,
            _text="",
            other="",
        )
        (folder / "dot.png").write_bytes(png)

        assert {Path(file).name for file in load(folder / "greet.py").read_paths} == {
            "greet.py",
            "_text.py",
            "dot.png",
            "gone.png",
        }

    def test_old_versions_are_freed(self, recipes):
        """Modules, prompts and types of a catalog are freed once it is no longer served."""
        folder = recipes(
            _shape="import attrs\n@attrs.frozen\nclass Shape:\n    side: int",
            greet='''
            from dataclasses import dataclass
            from enum import Enum
            from typing import NamedTuple, TypedDict
            import msgspec
            from promptkit import prompt
            from promptkit.answers import parse_answer
            from promptkit.fragments import answer_format
            from ._shape import Shape

            class Colour(Enum):
                RED = "red"

            @dataclass
            class Point:
                x: int

            class Struct(msgspec.Struct):
                y: int

            class Row(TypedDict):
                z: int

            class Pair(NamedTuple):
                a: int

            @prompt
            def greet(c: Colour, p: list[Point], s: Struct, r: Row, q: Pair, t: Shape | None = None) -> str:
                """Say hello."""
                assert parse_answer('[{"x": 1}]', list[Point]) == p
                return f"hello {answer_format(list[Point])}"
            ''',
        )
        arguments = {
            "c": "red",
            "p": '[{"x": 1}]',
            "s": '{"y": 1}',
            "r": '{"z": 1}',
            "q": "[1]",
            "t": '{"side": 1}',
        }
        reloader = Reloader(folder, print)
        catalog = reloader.load()
        catalog.render("greet", arguments)
        module = sys.modules[catalog["greet"].renderer.function.__module__]
        module_values = [
            value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__
        ]
        references = [weakref.ref(value) for value in (module, *module_values)]
        del module, module_values, catalog
        served = []
        reloader._publish = served.append
        os.utime(folder / "_shape.py", (1, 1))
        for _ in range(2):
            os.utime(folder / "greet.py", (1, 1))
            reloader._reload()
            served.pop().render("greet", arguments)
        reloader._free_old_versions()

        assert len(references) == 7
        assert [ref() for ref in references if ref() is not None] == []

    @pytest.mark.parametrize("next_step", ["idle", "reloads"])
    def test_old_versions_are_freed_when_the_server_is_idle(self, recipes, next_step):
        """Freeing old versions pauses all threads, so it waits for an idle server or for five reloads."""
        folder = recipes(greet="from promptkit import prompt\n@prompt\ndef greet():\n    return 'hello'\n")
        reloader = Reloader(folder, print)
        catalog = reloader.load()
        reference = weakref.ref(catalog["greet"].renderer.function)
        del catalog
        is_idle = False
        reloader._is_idle = lambda: is_idle
        os.utime(folder / "greet.py", (1, 1))
        reloader._reload()

        reloader._free_if_idle()
        gc.collect()
        assert reference() is not None

        if next_step == "idle":
            is_idle = True
            reloader._free_if_idle()
        else:
            for _ in range(5):
                assert reference() is not None
                reloader._reload()
        assert reference() is None


class TestFindFiles:
    def test_relevant_files_are_found(self, tmp_path):
        """All files below a folder are found, except hidden, generated and test files."""
        for name in ("a.py", "b/c.txt", ".git/d", "__pycache__/e", "test_f.py", "g.py~", "conftest.py"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).touch()
        scan = find_files({tmp_path: ""})

        assert sorted(Path(path).relative_to(tmp_path).as_posix() for path in scan.files) == [
            "a.py",
            "b/c.txt",
        ]
        assert scan.folders_to_watch == [str(tmp_path), str(tmp_path / "b")]

    def test_link_targets_are_watched(self, tmp_path):
        """The target of a symbolic link is watched, and circular links do not cause an endless loop."""
        real = tmp_path / "real.py"
        real.touch()
        folder = tmp_path / "recipes"
        folder.mkdir()
        (folder / "a.py").symlink_to(real)
        (folder / "round").symlink_to(folder)
        scan = find_files({folder: ""})

        assert scan.concerns(str(real))
        assert set(scan.files) == {str(folder / "a.py"), str(real)}

    @pytest.mark.parametrize("end", ["/", "../..", "/proc/self/root", "/proc/self"])
    def test_links_out_of_the_folder_are_not_followed(self, tmp_path, end):
        """Links out of the folder are not followed; a missing folder is recorded as missing."""
        folder = tmp_path / "recipes"
        (folder / "below").mkdir(parents=True)
        (folder / "a.py").touch()
        (folder / "below" / "all").symlink_to(end)
        scan = find_files({folder: ""})

        assert scan.scanned.keys() == {str(folder), str(folder / "below")}
        assert set(scan.files) == {str(folder / "a.py")}
        assert find_files({tmp_path / "none": ""}).folders == {str(tmp_path / "none"): None}

    def test_unreadable_links_are_tolerated(self, tmp_path, monkeypatch):
        """Links that cannot be read, such as some in /proc, are tolerated."""
        (tmp_path / "a.py").symlink_to("b.py")
        (tmp_path / "b.py").touch()
        (tmp_path / "below").mkdir()
        (tmp_path / "link").symlink_to("below")

        def refuse(path, **options):
            raise PermissionError(errno.EACCES, "Permission denied", path)

        monkeypatch.setattr(os, "readlink", refuse)

        assert set(find_files({tmp_path: ""}).files) == {str(tmp_path / "a.py"), str(tmp_path / "b.py")}

    def test_a_missing_file_is_watched_for(self, tmp_path):
        """If a recipe looked for a missing file, the reloader watches for the file."""
        scan = find_files({tmp_path / "recipes": ""}, [str(tmp_path / "dot.png")])
        (tmp_path / "dot.png").touch()

        assert scan.concerns(str(tmp_path / "dot.png"))
        assert scan.files != find_files({tmp_path / "recipes": ""}, [str(tmp_path / "dot.png")]).files

    @pytest.fixture
    def deep(self, tmp_path):
        """A folder with 1,200 nested folders, which pytest could not remove."""
        here = os.open(tmp_path, os.O_RDONLY)
        for _ in range(1200):
            os.mkdir("d", dir_fd=here)
            below = os.open("d", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        os.close(here)
        yield tmp_path
        top, remainder = tmp_path / "d", tmp_path / "rest"
        while (top / "d").exists():
            (top / "d").rename(remainder)
            top.rmdir()
            remainder.rename(top)

    def test_deeply_nested_folders_are_walked(self, deep):
        """Deeply nested folders are walked."""
        (deep / "a.py").touch()
        scan = find_files({deep: ""})

        assert set(scan.files) == {str(deep / "a.py")}
        assert len(scan.folders_to_watch) == 1201

    def test_the_number_of_folders_is_limited(self, tmp_path, monkeypatch):
        """The walk ends at the limit on folders."""
        monkeypatch.setattr("promptkit.loader.discovery._MAX_FOLDERS", 3)
        for name in "abcd":
            (tmp_path / name).mkdir()

        scan = find_files({tmp_path: ""})

        assert len(scan.scanned) == 3

    @pytest.mark.parametrize("end", ["loop", "nowhere", "a.py/x", "x" * 300])
    def test_broken_links_are_missing_files(self, tmp_path, end):
        """Dangling links count as missing files, and all other files are found."""
        (tmp_path / "a.py").touch()
        (tmp_path / "loop").symlink_to(end)

        assert str(tmp_path / "a.py") in find_files({tmp_path: ""}).files

    @pytest.mark.parametrize("error", [errno.EACCES, errno.ELOOP, errno.ENAMETOOLONG, errno.EIO])
    def test_unreadable_folders_are_skipped(self, tmp_path, monkeypatch, error):
        """Unreadable folders, and folders that have just been deleted, are skipped."""
        for name in ("locked", "gone", "open"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "a.py").touch()
        scandir = os.scandir

        def scan_folder(path):
            if str(path).endswith("locked"):
                raise OSError(error, os.strerror(error), path)
            if str(path).endswith("gone"):
                raise FileNotFoundError(errno.ENOENT, "gone", path)
            return scandir(path)

        monkeypatch.setattr(os, "scandir", scan_folder)
        scan = find_files({tmp_path: ""})

        assert set(scan.files) == {str(tmp_path / "open" / "a.py")}

    def test_folder_names_that_are_not_utf8(self, tmp_path):
        """A folder whose name is not UTF-8 cannot be watched, but its files are found."""
        odd = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
        Path(odd).mkdir()
        Path(odd, "a.py").touch()
        scan = find_files({tmp_path: ""})

        assert scan.folders_to_watch == [str(tmp_path)]
        assert str(Path(odd, "a.py")) in scan.files


class TestSubfolders:
    def test_files_with_the_same_name_are_separate_recipes(self, watch_recipes):
        """Files with the same name in two folders are separate recipes, and their imports are watched."""
        author = watch_recipes(ship=greet("here"), _tone="TONE = 'kind'")
        below = author.folder / "ops" / "deep"
        below.mkdir(parents=True)
        (below / "ship.py").write_text(
            "from promptkit import prompt\nfrom ..._tone import TONE\n"
            "@prompt\ndef deep() -> str:\n    return TONE\n"
        )
        author.wait_for(greet="here", deep="kind")
        author.write("_tone.py", "TONE = 'curt'")
        author.wait_for(greet="here", deep="curt")
        (below / "ship.py").unlink()
        author.wait_for(greet="here")
        author.write("ship.py", greet("there"))
        author.wait_for(greet="there")

    def test_a_broken_file_is_reported_by_its_path(self, watch_recipes, capsys):
        """A broken file in a subfolder is reported by its path."""
        author = watch_recipes(ship=greet("here"))
        (author.folder / "ops").mkdir()
        (author.folder / "ops" / "ship.py").write_text(greet("deep", "deep"))
        author.wait_for(greet="here", deep="deep")
        (author.folder / "ops" / "ship.py").write_text("(")
        author.codes()

        assert "unchanged until fixed: ops/ship.py" in capsys.readouterr().err

    def test_a_module_imported_through_a_link_is_watched(self, watch_recipes, tmp_path):
        """A module imported through a link is watched, although the link itself is not followed."""
        (tmp_path / "shared").mkdir()
        (tmp_path / "shared" / "tone.py").write_text("TONE = 'kind'")
        author = watch_recipes(ship=greet("here"))
        (author.folder / "_shared").symlink_to(tmp_path / "shared")
        imports = "from promptkit import prompt\nfrom ._shared.tone import TONE\n"
        author.write("tell.py", imports + "@prompt\ndef tell() -> str:\n    return TONE\n")
        author.wait_for(greet="here", tell="kind")
        (tmp_path / "shared" / "tone.py").write_text("TONE = 'curt'")

        author.wait_for(greet="here", tell="curt")


class TestOddEntriesWhileWatching:
    def test_odd_entries_do_not_stop_the_watcher(self, make_author, capsys):
        """Links, pipes and invalid names do not stop the watcher, at the start or later."""
        author = make_author(greet=greet("one"))
        folder = author.folder

        def add_odd_entries(word):
            (folder / f"loop{word}").symlink_to(f"loop{word}")
            (folder / f"{word}.py").symlink_to(f"{word}.py")
            (folder / f"up{word}").symlink_to(folder.parent, target_is_directory=True)
            os.mkfifo(folder / f"pipe{word}.py")
            Path(os.fsdecode(os.fsencode(folder) + b"/\xff" + word.encode())).mkdir()
            Path(os.fsdecode(os.fsencode(folder) + b"/\xfe\n" + word.encode() + b".py")).write_text("")

        add_odd_entries("early")
        author.start()
        author.write("greet.py", greet("two"))
        author.wait_for(greet="two")
        add_odd_entries("late")
        author.write("greet.py", greet("tri"))
        author.wait_for(greet="tri")
        author.write("greet.py", greet("for"))
        author.wait_for(greet="for")

        assert "cannot be watched" not in capsys.readouterr().err

    def test_a_deleted_current_folder_does_not_stop_the_watching(self, make_author, tmp_path, monkeypatch):
        """Recipes are watched even if the current folder was deleted."""
        gone = tmp_path / "gone"
        gone.mkdir()
        monkeypatch.chdir(gone)
        gone.rmdir()
        author = make_author(greet=greet("one"))
        author.start()
        author.write("greet.py", greet("two"))

        author.wait_for(greet="two")

    def test_an_unreadable_file_keeps_its_last_version(self, watch_recipes):
        """A file that becomes unreadable keeps its last version."""
        author = watch_recipes(greet=greet("one"), part=greet("bye", "part"))
        (author.folder / "greet.py").unlink()
        (author.folder / "greet.py").symlink_to("greet.py")
        codes = author.codes()
        author.write("part.py", greet("see you", "part"))

        author.wait_for(greet="one", part="see you")
        assert codes == ["PK101"]


def test_a_reload_reports_lints(recipes, monkeypatch):
    """With a linter, a reload reports warnings, both at first and after a change."""
    monkeypatch.setattr(reloading, "free_unused_versions", lambda: None)  # slow with millions of objects
    source = "from promptkit import prompt\n@prompt\ndef {}():\n    print('Hello.')\n"
    folder = recipes(greet=source.format("one"))
    catalogs = Queue()
    reloader = Reloader(folder, catalogs.put, lint=lint_file)
    before = reloader.load()
    reloader.start(catalogs.put)
    (folder / "greet.py").write_text(source.format("other"))
    after = catalogs.get(timeout=TIMEOUT_S)
    reloader.close()

    assert [diagnostic.rule for diagnostic in Reloader(folder, bool).load().diagnostics] == []
    rules = [diagnostic.rule for diagnostic in (*before.diagnostics, *after.diagnostics)]
    assert rules == [Rule.NO_MESSAGE] * 2


@pytest.mark.parametrize(
    "name",
    [
        "promptkit.fragments.text",
        "promptkit.types.caching",
        "promptkit.types.pydantic",
        "promptkit.types.structuring",
    ],
)
def test_clearing_caches_tolerates_a_module_being_imported(name, monkeypatch):
    """Clearing caches tolerates a module that another thread is still importing."""
    monkeypatch.setitem(sys.modules, name, ModuleType(name))

    clear_recipe_caches(all_are_new=True)
