import os

import pytest

from promptkit.compiler.compilation import compile
from promptkit.errors.rules import Rule
from promptkit.loader.discovery import FolderWalk, holds_recipes
from promptkit.loader.loader import load

PROMPT = "from promptkit import prompt\n@prompt\ndef {0}() -> str:\n    return '{0}'\n"


def list_served(folder):
    return sorted(prompt.options.name for prompt in load(folder).prompts)


@pytest.fixture
def write_file(recipes):
    """A function that writes a recipe or a text file to a path inside a folder of recipes."""
    folder = recipes()

    def write_file(path, name="", text=""):
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text or (PROMPT.format(name) if name else ""))
        return file

    write_file.folder = folder
    return write_file


class TestSubfolders:
    def test_recipes_in_subfolders_are_served(self, write_file):
        """Files with the same name in two folders are two recipes, and can import from folders above."""
        write_file("_tone.py", text="TONE = 'kind'")
        write_file("ops/_own.py", text="from .._tone import TONE")
        write_file("ops/deploy.py", text="from ._own import TONE\n" + PROMPT.format("one"))
        write_file("ops/deep/deploy.py", text="from ..deploy import one\n" + PROMPT.format("two"))
        write_file("deploy.py", "three")

        loaded = load(write_file.folder)

        assert [file.file.relative_to(write_file.folder).as_posix() for file in loaded.by_file] == [
            "deploy.py",
            "ops/deep/deploy.py",
            "ops/deploy.py",
        ]
        assert [[prompt.options.name for prompt in file.prompts] for file in loaded.by_file] == [
            ["three"],
            ["two"],
            ["one"],
        ]
        assert loaded.prompts[2].__module__.endswith("recipes.ops.deploy")

    @pytest.mark.parametrize("name", ["_private", ".hidden", "tests", "node_modules", "__pycache__"])
    def test_special_folders_are_never_entered(self, write_file, name):
        """Folders with these names are never entered, and nothing is reported about them."""
        write_file("hello.py", "hello")
        write_file(f"{name}/other.py", text="raise RuntimeError")
        write_file(f"deep/{name}/below/other.py", text="raise RuntimeError")
        write_file(f"{name}/test_other.py", "other")

        assert (list_served(write_file.folder), load(write_file.folder).diagnostics) == (["hello"], ())

    def test_virtual_environments_are_not_entered(self, write_file):
        """Virtual environments inside the target are not entered, but the target itself can be one."""
        write_file("hello.py", "hello")
        write_file("pyvenv.cfg")
        write_file("other/pyvenv.cfg")
        write_file("other/scripts/run.py", text="raise RuntimeError")

        assert (list_served(write_file.folder), load(write_file.folder).diagnostics) == (["hello"], ())

    @pytest.mark.parametrize("skill", ["", "other/"])
    def test_skill_folders_are_not_imported(self, write_file, skill):
        """Nothing inside a skill's folder is imported, even if the target itself is one."""
        write_file("hello.py", "hello" if skill else "", text="" if skill else "raise RuntimeError")
        write_file(f"{skill}SKILL.md")
        write_file(f"{skill}scripts/run.py", text="raise RuntimeError")

        assert (list_served(write_file.folder), load(write_file.folder).diagnostics) == (
            ["hello"] if skill else [],
            (),
        )

    def test_links_are_followed_within_the_target_only(self, write_file, tmp_path):
        """Links are followed only within the target, and no folder is entered twice."""
        write_file(".data/ops/deploy.py", "deploy")
        write_file("real/hello.py", "hello")
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside" / "other.py").write_text("raise RuntimeError")
        for name, target in {
            "ops": ".data/ops",
            "again": "real",
            "round": ".",
            "up": "..",
            "root": "/",
            "away": tmp_path / "outside",
        }.items():
            (write_file.folder / name).symlink_to(target)

        loaded = load(write_file.folder)

        assert sorted(str(file.file.relative_to(write_file.folder)) for file in loaded.by_file) == [
            "ops/deploy.py",
            "real/hello.py",
        ]
        assert loaded.diagnostics == ()

    @pytest.mark.parametrize("file", ["other.py", "ops/other.py", "SKILL.md", "skills/one/SKILL.md"])
    def test_link_to_recipes_outside_is_reported(self, write_file, tmp_path, file):
        """A link to a folder outside of the target is reported if there are recipes or skills in it."""
        write_file("hello.py", "hello")
        outside = tmp_path / "outside" / file
        outside.parent.mkdir(parents=True)
        outside.write_text(PROMPT.format("other"))
        (tmp_path / "data").mkdir()
        for name, target in {"linked": "outside", "_private": "outside", "data": "data"}.items():
            (write_file.folder / name).symlink_to(tmp_path / target)

        (diagnostic,) = load(write_file.folder).diagnostics

        assert diagnostic.rule is Rule.NOT_SERVED
        assert diagnostic.location.file == str(write_file.folder / "linked")
        assert diagnostic.message.endswith("is not served: it is a link to a folder outside the target")
        assert diagnostic.hint.startswith(f"pass {tmp_path / 'outside'} as another target")
        assert list_served(write_file.folder) == ["hello"]

    @pytest.mark.parametrize(
        "path",
        [
            *("setup.py", "noxfile.py", "docs/conf.py", "web/manage.py", "gunicorn.conf.py"),
            *(
                "build/lib/other.py",
                "build/lib.linux-x86_64-cpython-311/other.py",
                "build/bdist.win32/other.py",
            ),
            *("vendor/site-packages/other.py", "env/lib/other.py"),
        ],
    )
    def test_project_files_and_build_output_are_not_recipes(self, write_file, path):
        """Files of well-known tools, build output and installed packages are not imported."""
        write_file("prompts/hello.py", "hello")
        write_file("env/conda-meta/history")
        write_file(path, text="raise RuntimeError")

        assert (list_served(write_file.folder), load(write_file.folder).diagnostics) == (["hello"], ())

    @pytest.mark.parametrize("path", ["setup.py", "build/fix.py", "lib/fix.py", "dist/fix.py"])
    def test_prompts_in_files_with_such_names_are_served(self, write_file, path):
        """
        Prompts in files with the names of tools' files are served, and so are prompts in a folder `build`.
        """
        write_file(path, "hello")

        assert list_served(write_file.folder) == ["hello"]

    def test_unreadable_folder_is_reported(self, write_file, monkeypatch):
        """An unreadable folder is reported, and the other folders are served."""
        write_file("hello.py", "hello")
        write_file("locked/other.py", "other")
        scandir = os.scandir

        def refuse(path):
            if str(path).endswith("locked"):
                raise PermissionError(13, os.strerror(13), path)
            return scandir(path)

        monkeypatch.setattr(os, "scandir", refuse)

        (diagnostic,) = load(write_file.folder).diagnostics

        assert str(diagnostic.location.file) == str(write_file.folder / "locked")
        assert diagnostic.rule is Rule.NOT_SERVED
        assert diagnostic.message == f"the folder 'locked' is not served: {os.strerror(13)}"
        assert list_served(write_file.folder) == ["hello"]

    @pytest.mark.parametrize(
        ("files", "file", "hint"),
        [
            (["x.py", "x/__init__.py"], "x.py", "correct the line; the other recipes are still served"),
            (
                ["v1.2/y.py"],
                "v1.2/y.py",
                "rename the folder, for example to 'v1_2': module names cannot contain dots",
            ),
        ],
    )
    def test_hint_for_a_name_that_cannot_be_imported(self, write_file, files, file, hint):
        """The hint for a name that cannot be imported says what to rename."""
        for path in files:
            write_file(path)

        (diagnostic,) = load(write_file.folder).diagnostics

        assert (diagnostic.location.file, diagnostic.hint) == (str(write_file.folder / file), hint)

    def test_import_from_above_the_target_gets_a_hint(self, write_file):
        """The hint for a recipe that imports from above the target is to pass the folder above."""
        write_file("_tone.py")
        file = write_file("ops/deploy.py", text="from .. import _tone\n" + PROMPT.format("deploy"))

        (diagnostic,) = load(file).diagnostics

        assert diagnostic.hint.startswith(f"pass the folder {write_file.folder} instead of a folder below it")

    def test_failing_subpackage_is_reported_once(self, write_file):
        """An error in a subpackage's `__init__.py` is reported once; other recipes are served."""
        write_file("ops/__init__.py", text="\n1 / 0\n")
        write_file("ops/deploy.py", "deploy")
        write_file("hello.py", "hello")

        (diagnostic,) = load(write_file.folder).diagnostics

        assert (diagnostic.location.file, diagnostic.location.line) == (
            str(write_file.folder / "ops" / "__init__.py"),
            2,
        )
        assert list_served(write_file.folder) == ["hello"]

    def test_holds_recipes_agrees_with_the_loader(self, write_file):
        """`holds_recipes` finds recipes in subfolders and ignores private folders, like the loader."""
        write_file("_private/hello.py", "hello")
        assert not holds_recipes(str(write_file.folder))
        write_file("ops/hello.py", "hello")

        assert holds_recipes(str(write_file.folder))
        assert not holds_recipes(str(write_file.folder), depth=0)

    def test_walk_stops_at_the_folder_limit(self, write_file, monkeypatch):
        """The walk stops at the limit on folders and reports it."""
        for name in "abcd":
            write_file(f"{name}/{name}.py", name)
        monkeypatch.setattr("promptkit.loader.discovery._MAX_FOLDERS", 3)

        (diagnostic,) = load(write_file.folder).diagnostics

        assert diagnostic.message.endswith("is not served: the target has more than 3 folders")
        assert len(list_served(write_file.folder)) == 2

    def test_missing_folder_has_no_entries(self, tmp_path):
        """A missing folder has no entries."""
        walk = FolderWalk(str(tmp_path / "none"))

        assert (list(walk), walk.entered, walk.skipped) == ([], set(), [])


class TestUnservedPrompts:
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
    def test_unserved_prompt_is_a_warning(self, write_file, file, function):
        """A prompt in a file that is not served is a warning with a hint to move it."""
        write_file("review.py", "review")
        write_file("ops/other.py", "other")
        path = write_file(file, function)

        catalog = compile(load(write_file.folder))
        (diagnostic,) = catalog.diagnostics

        assert (diagnostic.rule, diagnostic.location.file, diagnostic.location.line) == (
            Rule.NOT_SERVED,
            str(path),
            3,
        )
        assert diagnostic.message.startswith(f"{function!r} is not served: {path.name} ")
        assert diagnostic.hint == "rename the file, or move its prompts to another file"
        assert (catalog.healthy, sorted(catalog)) == (True, ["other", "review"])

    @pytest.mark.parametrize(
        "source",
        [
            "import promptkit\n@promptkit.prompt\ndef one() -> str: return ''",
            "import promptkit as kit\n@kit.prompt(name='x')\nasync def one() -> str: return ''",
            "from promptkit import resource\n@resource('x://y')\ndef one() -> str: return ''",
        ],
    )
    def test_decorators_are_recognized_by_name(self, write_file, source):
        """The decorators are recognized by name, however they are imported."""
        write_file("conftest.py", text=source)

        (diagnostic,) = load(write_file.folder).diagnostics

        assert diagnostic.message == "'one' is not served: conftest.py has the name of a pytest file"

    @pytest.mark.parametrize("definition", ["def test_it()", "class TestIt", "async def test_it()"])
    def test_file_with_tests_is_not_reported(self, write_file, definition):
        """Nothing is reported for a test file that has tests as well as prompts."""
        write_file("hello.py", "hello")
        write_file("test_hello.py", text=f"{PROMPT.format('other')}\n{definition}: ...\n")

        assert load(write_file.folder).diagnostics == ()

    @pytest.mark.parametrize("text", ["promptkit: @prompt (", '"""promptkit\n\n@prompt\ndef x(): ..."""'])
    def test_text_about_prompts_is_not_reported(self, write_file, text):
        """Text that mentions @prompt and files with syntax errors are not reported as unserved prompts."""
        write_file("hello.py", "hello")
        write_file("test_hello.py", text=text)

        assert load(write_file.folder).diagnostics == ()

    def test_imported_prompt_is_served(self, write_file):
        """A prompt that a recipe imports is served, so nothing is reported for its file."""
        write_file("__init__.py", "hello")
        write_file("other.py", text="from . import hello")

        assert (list_served(write_file.folder), load(write_file.folder).diagnostics) == (["hello"], ())

    def test_failing_package_is_reported_once(self, write_file):
        """For a package that fails to import, only the import error is reported."""
        write_file("__init__.py", text=PROMPT.format("hello") + "1 / 0\n")

        assert [diagnostic.rule for diagnostic in load(write_file.folder).diagnostics] == [Rule.IMPORT_FAILED]
