import shlex
import sys

import pytest

from promptkit.diagnostics import Rule
from promptkit.errors import LoadError
from promptkit.loader import load

HELLO = '''
from promptkit import prompt

@prompt
def hello(name: str) -> str:
    """Say hello."""
    return f"Hello, {name}."
'''


def names(loaded):
    return sorted(prompt.options.name for prompt in loaded.prompts)


class TestTargets:
    def test_a_folder(self, recipes):
        """
        Every file of a folder is a recipe, in a fixed order.
        """
        folder = recipes(b=HELLO.replace("hello", "b"), a=HELLO.replace("hello", "a"))

        loaded = load(folder)

        assert names(loaded) == ["a", "b"]
        assert [file.name for file in loaded.files] == ["a.py", "b.py"]

    def test_helpers_and_tests_are_no_recipes(self, recipes):
        """
        Files that begin with '_' and pytest's own are not imported.
        """
        folder = recipes(
            hello=HELLO,
            _helper="raise RuntimeError",
            test_hello="raise RuntimeError",
            hello_test="raise RuntimeError",
            conftest="raise RuntimeError",
        )

        loaded = load(folder)

        assert (names(loaded), loaded.diagnostics) == (["hello"], ())

    def test_a_file(self, recipes):
        """
        A file is served without its neighbours, which it can import all the same.
        """
        folder = recipes(
            hello="from .other import other\n" + HELLO,
            other=HELLO.replace("hello", "other"),
        )

        assert names(load(folder / "hello.py")) == ["hello", "other"]

    def test_one_object_of_a_file(self, recipes):
        """
        What stands behind the colon alone is served.
        """
        folder = recipes(hello=HELLO + HELLO.replace("hello", "other"))

        assert names(load(f"{folder / 'hello.py'}:other")) == ["other"]

    def test_several_objects(self, recipes):
        """
        The object may be a list of prompts.
        """
        folder = recipes(hello=HELLO + HELLO.replace("hello", "other") + "\nALL = [hello, other]")

        assert names(load(f"{folder / 'hello.py'}:ALL")) == ["hello", "other"]

    def test_a_dotted_module(self, recipes, tmp_path, monkeypatch):
        """
        A module is found from the current folder, as Python would find it.
        """
        recipes(folder="shelf/inner", __init__="", hello=HELLO)
        monkeypatch.chdir(tmp_path)

        assert names(load("shelf.inner.hello")) == ["hello"]

    def test_a_dotted_package(self, recipes, tmp_path, monkeypatch):
        """
        A package is a folder of recipes.
        """
        recipes(folder="drawer", __init__="", hello=HELLO)
        monkeypatch.chdir(tmp_path)

        assert names(load("drawer")) == ["hello"]

    def test_an_object_of_a_module(self, recipes, tmp_path, monkeypatch):
        """
        ``module:object`` names one prompt.
        """
        recipes(folder="closet", __init__="", hello=HELLO + HELLO.replace("hello", "other"))
        monkeypatch.chdir(tmp_path)

        assert names(load("closet.hello:hello")) == ["hello"]

    @pytest.mark.parametrize(
        ("target", "reason"),
        [
            ("nowhere", "it is no folder, no file and no module"),
            ("nowhere.py", "there is no such file or folder"),
            ("some/where", "there is no such file or folder"),
            ("nowhere:thing", "it is no folder, no file and no module"),
        ],
    )
    def test_nothing_there(self, target, reason, tmp_path, monkeypatch):
        """
        A target that is not there is refused in words that say how it was read.
        """
        monkeypatch.chdir(tmp_path)

        with pytest.raises(LoadError) as refused:
            load(target)

        assert f"cannot load '{target}': {reason}" == str(refused.value)

    @pytest.mark.parametrize(
        ("attribute", "reason"),
        [
            ("nope", "has no 'nope'"),
            ("NUMBER", "'NUMBER' is neither a prompt nor a resource, nor several of them"),
        ],
    )
    def test_no_such_object(self, recipes, attribute, reason):
        """
        An object that is not there, or no prompt, is refused.
        """
        folder = recipes(hello=HELLO + "\nNUMBER = 3")

        with pytest.raises(LoadError, match=reason):
            load(f"{folder / 'hello.py'}:{attribute}")


class TestImports:
    def test_relative_and_sibling_imports_find_one_module(self, recipes):
        """
        ``from ._words``, ``import _words`` and ``from recipes._words`` are the same module.
        """
        folder = recipes(
            folder="phrases",
            _words="class Word: pass",
            hello="""
                import _words as sibling
                from . import _words as relative
                from phrases import _words as absolute
                from promptkit import prompt

                @prompt
                def same() -> str:
                    return str(sibling is relative is absolute)
            """,
        )

        (same,) = load(folder).prompts

        assert same() == "True"

    @pytest.mark.parametrize("name", ["json", "typing", "mcp", "promptkit", "attrs"])
    def test_a_folder_shadows_nothing(self, recipes, name):
        """
        A folder may be called like a module of the standard library or an installed one.
        """
        before = sys.modules.get(name)
        folder = recipes(folder=name, hello=HELLO)

        assert names(load(folder)) == ["hello"]
        assert before is sys.modules.get(name)

    def test_a_recipe_shadows_nothing(self, recipes):
        """
        A recipe called like a module of the standard library leaves that module alone.
        """
        folder = recipes(
            string=HELLO,
            upper="""
                import string
                from promptkit import prompt

                @prompt
                def letters() -> str:
                    return string.ascii_letters
            """,
        )

        loaded = load(folder)
        letters = next(prompt for prompt in loaded.prompts if prompt.options.name == "letters")

        assert names(loaded) == ["hello", "letters"]
        assert letters().startswith("abc")

    @pytest.mark.parametrize("name", ["my-prompts", "2026 prompts", "提示"])
    def test_any_folder_name(self, recipes, name):
        """
        The folder's name need not be a Python name.
        """
        folder = recipes(folder=name, _word="WORD = 'x'", hello="from ._word import WORD\n" + HELLO)

        loaded = load(folder)

        assert (names(loaded), loaded.diagnostics) == (["hello"], ())

    def test_a_package_inside_a_package(self, recipes):
        """
        Recipes that are part of a larger package import from all of it.
        """
        recipes(folder="app", __init__="NAME = 'app'")
        folder = recipes(folder="app/prompts", __init__="", hello="from .. import NAME\n" + HELLO)

        loaded = load(folder)

        assert (names(loaded), loaded.diagnostics) == (["hello"], ())

    def test_loading_again_reads_the_files_again(self, recipes):
        """
        What was loaded before does not come back once its file has changed.
        """
        load(recipes(hello=HELLO))

        folder = recipes(hello=HELLO.replace("def hello", "def goodbye") + "# changed, and of another size")

        assert names(load(folder)) == ["goodbye"]

    def test_a_sibling_is_never_another_folders(self, recipes):
        """
        ``import _words`` finds the file beside the recipe, also after other folders were loaded.
        """
        source = "import _words\n" + HELLO.replace('f"Hello, {name}."', "_words.WORD")
        said = []
        for folder in ("first", "second", "first"):
            path = recipes(folder=folder, word=source, _words=f"WORD = {folder!r}")
            said += [prompt("") for prompt in load(path).prompts]

        assert said == ["first", "second", "first"]

    def test_prompts_of_other_packages_are_not_served(self, recipes):
        """
        A prompt that is imported to be called is not served here, unless it is named.
        """
        recipes(folder="library", __init__="", shared=HELLO)
        sys.path.append(str(recipes(folder=".")))
        folder = recipes(mine="from library.shared import hello\n" + HELLO.replace("def hello", "def mine"))

        assert names(load(folder)) == ["mine"]

    def test_a_prompt_is_loaded_once(self, recipes):
        """
        A prompt that a neighbour imports is the same prompt.
        """
        folder = recipes(hello=HELLO, other="from .hello import hello as greeting")

        assert names(load(folder)) == ["hello"]


class TestOddFiles:
    def test_what_editors_and_archives_leave_behind(self, recipes):
        """
        Lock files, forks of files and folders are no recipes.
        """
        folder = recipes(hello=HELLO)
        (folder / ".#hello.py").symlink_to("nowhere")
        (folder / "._hello.py").write_bytes(b"\0\5\x16\7")
        (folder / "folder.py").mkdir()

        loaded = load(folder)

        assert (names(loaded), loaded.diagnostics) == (["hello"], ())

    def test_a_name_with_a_dot(self, recipes):
        """
        A file that cannot be imported by its name is to be renamed.
        """
        folder = recipes()
        (folder / "a.b.py").write_text(HELLO)

        (found,) = load(folder).diagnostics

        assert found.remedy == "rename the file: a module's name has no dot, as in a_b.py"

    @pytest.mark.parametrize("target", ["", "notes.txt"])
    def test_what_is_no_python(self, target, tmp_path, monkeypatch):
        """
        Nothing is imported that was not named as Python.
        """
        (tmp_path / "notes.txt").write_text("raise SystemExit")
        monkeypatch.chdir(tmp_path)

        with pytest.raises(LoadError):
            load(target)


class TestBrokenRecipes:
    @pytest.mark.parametrize(
        ("source", "line", "message", "remedy"),
        [
            pytest.param(
                "import os\nimport no_such_module",
                2,
                "recipe 'broken' cannot be imported: ModuleNotFoundError: No module named 'no_such_module'",
                f"install it: {shlex.quote(sys.executable)} -m pip install no_such_module",
                id="missing-module",
            ),
            pytest.param(
                "x = 1\n\ndef (:\n",
                3,
                "recipe 'broken' cannot be imported: SyntaxError: invalid syntax",
                "correct the syntax",
                id="syntax",
            ),
            pytest.param(
                "def f():\n    return 1 / 0\n\nf()",
                2,
                "recipe 'broken' cannot be imported: ZeroDivisionError: division by zero",
                "correct the line",
                id="exception",
            ),
            pytest.param(
                "class Odd(BaseException):\n    __module__ = 'builtins'\n"
                "    def __str__(self): return 1 / 0\n\nraise Odd",
                5,
                "recipe 'broken' cannot be imported: Odd: <exception str() failed>",
                "correct the line",
                id="odd-exception",
            ),
            pytest.param(
                "import sys\nsys.exit(3)",
                2,
                "recipe 'broken' cannot be imported: SystemExit: 3",
                "do not exit while a recipe is imported",
                id="exit",
            ),
        ],
    )
    def test_one_broken_recipe_is_one_diagnostic(self, recipes, source, line, message, remedy):
        """
        A recipe that fails to import is named with its line; the others are loaded.
        """
        folder = recipes(broken=source, hello=HELLO)

        loaded = load(folder)

        (found,) = loaded.diagnostics
        assert names(loaded) == ["hello"]
        assert (Rule.IMPORT_FAILED, str(folder / "broken.py"), line) == (
            found.rule,
            found.location.file,
            found.location.line,
        )
        assert message == found.message
        assert found.remedy.startswith(remedy)

    def test_a_package_that_cannot_be_imported(self, recipes):
        """
        A failing ``__init__.py`` is one diagnostic too.
        """
        folder = recipes(__init__="1 / 0", hello=HELLO)

        loaded = load(folder)

        assert [diagnostic.message.partition("imported: ")[2] for diagnostic in loaded.diagnostics] == [
            "ZeroDivisionError: division by zero"
        ]

    def test_a_module_that_cannot_be_imported(self, recipes, tmp_path, monkeypatch):
        """
        A dotted module that fails is a diagnostic, not "no such module".
        """
        recipes(folder="cellar", __init__="", dark="import no_such_module")
        monkeypatch.chdir(tmp_path)

        (found,) = load("cellar.dark").diagnostics

        assert found.message.endswith("No module named 'no_such_module'")
