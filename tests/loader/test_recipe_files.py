import os

import pytest

from promptkit.compiler.compilation import compile
from promptkit.errors.rules import Rule
from promptkit.loader.discovery import FolderWalk, holds_recipes
from promptkit.loader.loader import load

PROMPT = "from promptkit import prompt\n@prompt\ndef {0}() -> str:\n    return '{0}'\n"


def served(folder):
    return sorted(prompt.options.name for prompt in load(folder).prompts)


@pytest.fixture
def put(recipes):
    """A function that writes a recipe or a text to a path inside a folder of recipes."""
    folder = recipes()

    def put(path, name="", text=""):
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text or (PROMPT.format(name) if name else ""))
        return file

    put.folder = folder
    return put


class TestFoldersBelow:
    def test_their_recipes_are_served(self, put):
        """Files with the same name in two folders are two recipes, and can import from folders above."""
        put("_tone.py", text="TONE = 'kind'")
        put("ops/_own.py", text="from .._tone import TONE")
        put("ops/deploy.py", text="from ._own import TONE\n" + PROMPT.format("one"))
        put("ops/deep/deploy.py", text="from ..deploy import one\n" + PROMPT.format("two"))
        put("deploy.py", "three")

        loaded = load(put.folder)

        assert [one.file.relative_to(put.folder).as_posix() for one in loaded.by_file] == [
            "deploy.py",
            "ops/deep/deploy.py",
            "ops/deploy.py",
        ]
        assert [[one.options.name for one in file.prompts] for file in loaded.by_file] == [
            ["three"],
            ["two"],
            ["one"],
        ]
        assert loaded.prompts[2].__module__.endswith("recipes.ops.deploy")

    @pytest.mark.parametrize("name", ["_private", ".hidden", "tests", "node_modules", "__pycache__"])
    def test_that_are_never_entered(self, put, name):
        """Folders with these names are never entered, and nothing is reported about them."""
        put("hello.py", "hello")
        put(f"{name}/other.py", text="raise RuntimeError")
        put(f"deep/{name}/below/other.py", text="raise RuntimeError")
        put(f"{name}/test_other.py", "other")

        assert (served(put.folder), load(put.folder).diagnostics) == (["hello"], ())

    def test_virtual_environments(self, put):
        """Virtual environments inside the target are not entered, but the target itself can be one."""
        put("hello.py", "hello")
        put("pyvenv.cfg")
        put("other/pyvenv.cfg")
        put("other/scripts/run.py", text="raise RuntimeError")

        assert (served(put.folder), load(put.folder).diagnostics) == (["hello"], ())

    @pytest.mark.parametrize("skill", ["", "other/"])
    def test_skills(self, put, skill):
        """Nothing inside a skill's folder is imported, even if the target itself is one."""
        put("hello.py", "hello" if skill else "", text="" if skill else "raise RuntimeError")
        put(f"{skill}SKILL.md")
        put(f"{skill}scripts/run.py", text="raise RuntimeError")

        assert (served(put.folder), load(put.folder).diagnostics) == (["hello"] if skill else [], ())

    def test_links(self, put, tmp_path):
        """Links are followed only within the target, and no folder is entered twice."""
        put(".data/ops/deploy.py", "deploy")
        put("real/hello.py", "hello")
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside" / "other.py").write_text("raise RuntimeError")
        for name, end in {
            "ops": ".data/ops",
            "again": "real",
            "round": ".",
            "up": "..",
            "root": "/",
            "away": tmp_path / "outside",
        }.items():
            (put.folder / name).symlink_to(end)

        loaded = load(put.folder)

        assert sorted(str(one.file.relative_to(put.folder)) for one in loaded.by_file) == [
            "ops/deploy.py",
            "real/hello.py",
        ]
        assert loaded.diagnostics == ()

    def test_what_cannot_be_read_is_said(self, put, monkeypatch):
        """An unreadable folder is reported, and the other folders are served."""
        put("hello.py", "hello")
        put("locked/other.py", "other")
        scandir = os.scandir

        def refuse(path):
            if str(path).endswith("locked"):
                raise PermissionError(13, os.strerror(13), path)
            return scandir(path)

        monkeypatch.setattr(os, "scandir", refuse)

        (found,) = load(put.folder).diagnostics

        assert str(found.location.file) == str(put.folder / "locked")
        assert found.rule is Rule.NOT_SERVED
        assert found.message == f"the folder 'locked' is not served: {os.strerror(13)}"
        assert served(put.folder) == ["hello"]

    @pytest.mark.parametrize(
        ("files", "file", "hint"),
        [
            (["x.py", "x/__init__.py"], "x.py", "rename the file, or the folder 'x' next to it"),
            (["v1.2/y.py"], "v1.2/y.py", "rename the folder: a module's name has no dot, as in 'v1_2'"),
        ],
    )
    def test_names_that_cannot_be_imported(self, put, files, file, hint):
        """The hint for a name that cannot be imported says what to rename."""
        for place in files:
            put(place)

        (found,) = load(put.folder).diagnostics

        assert (found.location.file, found.hint) == (str(put.folder / file), hint)

    def test_a_target_that_imports_from_above_it(self, put):
        """The hint for a recipe that imports from above the target is to name the folder above."""
        put("_tone.py")
        file = put("ops/deploy.py", text="from .. import _tone\n" + PROMPT.format("deploy"))

        (found,) = load(file).diagnostics

        assert found.hint.startswith(f"name the folder {put.folder} instead of a folder below it")

    def test_a_package_below_that_fails(self, put):
        """An error in a subpackage's `__init__.py` is reported once; other recipes are served."""
        put("ops/__init__.py", text="\n1 / 0\n")
        put("ops/deploy.py", "deploy")
        put("hello.py", "hello")

        (found,) = load(put.folder).diagnostics

        assert (found.location.file, found.location.line) == (str(put.folder / "ops" / "__init__.py"), 2)
        assert served(put.folder) == ["hello"]

    def test_a_guess_agrees_with_the_loader(self, put):
        """`holds_recipes` finds recipes in subfolders and ignores private folders, like the loader."""
        put("_private/hello.py", "hello")
        assert not holds_recipes(str(put.folder))
        put("ops/hello.py", "hello")

        assert holds_recipes(str(put.folder))
        assert not holds_recipes(str(put.folder), depth=0)

    def test_so_many_that_they_are_not_entered(self, put, monkeypatch):
        """The walk stops at the limit on folders and reports it."""
        for name in "abcd":
            put(f"{name}/{name}.py", name)
        monkeypatch.setattr("promptkit.loader.discovery._MAX_FOLDERS", 3)

        (found,) = load(put.folder).diagnostics

        assert found.message.endswith("is not served: there are too many folders")
        assert len(served(put.folder)) == 2

    def test_a_folder_that_is_gone(self, tmp_path):
        """A missing folder has no entries."""
        walk = FolderWalk(str(tmp_path / "none"))

        assert (list(walk), walk.entered, walk.skipped) == ([], set(), [])


class TestPromptsThatAreNotServed:
    @pytest.mark.parametrize(
        ("file", "function"),
        [
            ("test_coverage.py", "test_coverage"),
            ("coverage_test.py", "cover"),
            ("conftest.py", "cover"),
            ("ops/__init__.py", "cover"),
            ("ops/test_ship.py", "cover"),
        ],
    )
    def test_their_file_is_named_with_the_hint(self, put, file, function):
        """A prompt in a file that is not served is a warning with a hint to move it."""
        put("review.py", "review")
        put("ops/other.py", "other")
        place = put(file, function)

        catalog = compile(load(put.folder))
        (found,) = catalog.diagnostics

        assert (found.rule, found.location.file, found.location.line) == (Rule.NOT_SERVED, str(place), 3)
        assert found.message.startswith(f"{function!r} is not served: {place.name} is ")
        assert found.hint == "rename the file, or move its prompts to another one"
        assert (catalog.healthy, sorted(catalog)) == (True, ["other", "review"])

    @pytest.mark.parametrize(
        "decorated",
        [
            "import promptkit\n@promptkit.prompt\ndef one() -> str: return ''",
            "import promptkit as kit\n@kit.prompt(name='x')\nasync def one() -> str: return ''",
            "from promptkit import resource\n@resource('x://y')\ndef one() -> str: return ''",
        ],
    )
    def test_however_they_are_made(self, put, decorated):
        """The decorators are recognized by name, however they are imported."""
        put("conftest.py", text=decorated)

        (found,) = load(put.folder).diagnostics

        assert found.message == "'one' is not served: conftest.py is pytest's by its name"

    @pytest.mark.parametrize("besides", ["def test_it()", "class TestIt", "async def test_it()"])
    def test_tests_that_make_prompts_are_tests(self, put, besides):
        """Nothing is reported for a test file that has tests as well as prompts."""
        put("hello.py", "hello")
        put("test_hello.py", text=f"{PROMPT.format('other')}\n{besides}: ...\n")

        assert load(put.folder).diagnostics == ()

    @pytest.mark.parametrize("text", ["promptkit: @prompt (", '"""promptkit\n\n@prompt\ndef x(): ..."""'])
    def test_what_only_speaks_of_prompts(self, put, text):
        """Text that mentions @prompt and files with syntax errors are not reported as unserved prompts."""
        put("hello.py", "hello")
        put("test_hello.py", text=text)

        assert load(put.folder).diagnostics == ()

    def test_what_a_recipe_imports_is_served(self, put):
        """A prompt that a recipe imports is served, so nothing is reported for its file."""
        put("__init__.py", "hello")
        put("other.py", text="from . import hello")

        assert (served(put.folder), load(put.folder).diagnostics) == (["hello"], ())

    def test_a_package_that_fails_is_said_once(self, put):
        """For a package that fails to import, only the import error is reported."""
        put("__init__.py", text=PROMPT.format("hello") + "1 / 0\n")

        assert [found.rule for found in load(put.folder).diagnostics] == [Rule.IMPORT_FAILED]
