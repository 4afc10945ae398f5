"""Several targets loaded together: folders, files of one folder, and modules."""

import sys

import pytest

from promptkit.compiler.compilation import compile
from promptkit.errors.exceptions import LoadError
from promptkit.loader.loader import load
from promptkit.loader.targets import target_of

TEMPLATE = """
from promptkit import prompt
{line}

@prompt
def {name}() -> str:
    return {text}
"""


def make_recipe(name, text="'x'", line=""):
    """Return the source of a recipe with one prompt."""
    return TEMPLATE.format(name=name, text=text, line=line)


def render_all(targets):
    """Return the text of each prompt of valid targets, by name."""
    catalog = compile(targets)
    assert catalog.diagnostics == ()
    return {name: prompt.render().messages[0].content.text for name, prompt in catalog.items()}


class TestServedPrompts:
    def test_targets_of_all_kinds_are_served_together(self, recipes, tmp_path, monkeypatch):
        """A folder, a file, an object of a file, a module and a package are served together."""
        folder = recipes("prompts", plan=make_recipe("plan"))
        file = recipes("more", review=make_recipe("review"), other=make_recipe("other")) / "review.py"
        second_file = recipes("single", two=make_recipe("first") + make_recipe("second")) / "two.py"
        recipes("outer/shelf", __init__=make_recipe("about"), inner=make_recipe("inner"))
        recipes(".", loose=make_recipe("loose"))
        monkeypatch.chdir(tmp_path)

        loaded = load([folder, str(file), f"{second_file}:second", "loose", "outer.shelf"])

        served = {prompt.options.name for prompt in loaded.prompts}
        assert served == {"plan", "review", "second", "loose", "about", "inner"}
        assert loaded.diagnostics == ()

    def test_folders_with_the_same_name_are_separate_packages(self, recipes):
        """Folders with the same name are separate packages, and each recipe imports its own siblings."""
        names = ["prompts", "a/prompts", "b/prompts"]
        folders = [
            recipes(
                folder,
                _words=f"WORD = {folder!r}",
                **{f"from_{index}": make_recipe(f"from_{index}", "WORD", "from ._words import WORD")},
            )
            for index, folder in enumerate(names)
        ]

        assert render_all(folders) == {f"from_{index}": name for index, name in enumerate(names)}

    def test_subfolder_with_the_name_of_a_target(self, recipes):
        """A target is served even if a subfolder of another target has its name."""
        folders = [recipes("prompts", one=make_recipe("one")), recipes("shared", two=make_recipe("two"))]
        recipes("prompts/shared", three=make_recipe("three"))

        assert render_all(folders) == {"one": "x", "two": "x", "three": "x"}

    def test_late_imports_find_their_own_folder(self, recipes):
        """Imports inside a prompt's function find the modules of its own folder and project."""
        for name in ("one", "two"):
            (recipes(name) / "pyproject.toml").touch()
            recipes(name, **{f"words_of_{name}": f"WORD = {name!r}"})
        folders = [
            recipes(
                f"{name}/prompts",
                _late="",
                **{name: make_recipe(name, f"late_{name}()") + LATE.format(name=name)},
            )
            for name in ("one", "two")
        ]

        assert render_all(folders) == {"one": "one", "two": "two"}

    def test_files_of_one_folder_are_modules_of_one_package(self, recipes):
        """Files of one folder, as from a shell's `recipes/*.py`, are modules of one package."""
        folder = recipes(
            a=make_recipe("a", "b.render().messages[0].content.text", "from .b import b"),
            b=make_recipe("b"),
            c=make_recipe("c"),
        )

        assert render_all([folder / "a.py", folder / "b.py"]) == {"a": "x", "b": "x"}

    def test_duplicate_name_in_another_target_is_not_served(self, recipes):
        """Of two prompts with the same name in different targets, the second is not served."""
        catalog = compile(
            load([recipes("one", a=make_recipe("plan")), recipes("two", b=make_recipe("plan"))])
        )

        assert ([*catalog], [diagnostic.rule.value for diagnostic in catalog.diagnostics]) == (
            ["plan"],
            ["PK202"],
        )

    def test_project_module_exists_once(self, recipes, tmp_path):
        """Recipes of both targets import the same module of their project."""
        (tmp_path / "pyproject.toml").touch()
        recipes(".", common="print('imported')")
        folders = [
            recipes(name, **{name: make_recipe(name, "str(id(common))", "import common")})
            for name in ("one", "two")
        ]

        texts = render_all(folders)

        assert texts["one"] == texts["two"]

    def test_imported_modules_are_reused(self, recipes):
        """Modules that are already imported are reused, so that a test can patch them in every target."""
        folders = [
            recipes(name, **{name: make_recipe(name, "WORD", "WORD = 'x'")})
            for name in ("first_of", "second_of")
        ]
        load(folders)
        for name in ("first_of", "second_of"):
            sys.modules[f"{name}.{name}"].WORD = "patched"

        assert render_all(folders) == {"first_of": "patched", "second_of": "patched"}


LATE = """
def late_{name}():
    import words_of_{name}
    from . import _late
    return words_of_{name}.WORD
"""


class TestRejectedTargets:
    @pytest.fixture
    def folder(self, recipes, tmp_path, monkeypatch):
        """A folder of recipes with a subfolder, in the current folder."""
        monkeypatch.chdir(tmp_path)
        recipes("recipes/ops", b=make_recipe("b"))
        return recipes(a=make_recipe("a"))

    @pytest.mark.usefixtures("folder")
    @pytest.mark.parametrize(
        ("targets", "named", "other"),
        [
            (["recipes", "recipes/ops"], "recipes/ops", "recipes"),
            (["recipes/ops", "recipes"], "recipes", "recipes/ops"),
            (["recipes", "recipes/a.py"], "recipes/a.py", "recipes"),
            (["recipes/a.py:one", "recipes/a.py:two"], "recipes/a.py:two", "recipes/a.py:one"),
            (["recipes", "./recipes/"], "./recipes/", "recipes"),
        ],
        ids=["below", "above", "a file", "twice", "spelt"],
    )
    def test_overlapping_targets_are_rejected(self, targets, named, other):
        """A target inside another target is rejected, because its recipes would be imported twice."""
        with pytest.raises(LoadError) as caught:
            load(targets)

        reason = f"{other!r} includes some of the same files: pass only one of them"
        assert (caught.value.target, caught.value.reason) == (named, reason)

    def test_error_names_the_missing_target(self, recipes):
        """The error names the missing target."""
        with pytest.raises(LoadError) as caught:
            load([recipes(a=make_recipe("a")), "nowhere/at/all"])

        assert caught.value.target == "nowhere/at/all"

    def test_empty_list_is_rejected(self):
        """An empty list of targets is rejected."""
        with pytest.raises(LoadError, match="pass a folder, a file or a module"):
            load([])

    def test_ambiguous_import_is_an_error(self, recipes):
        """A plain import of a module that two targets have is an error, because it is ambiguous."""
        first = recipes("one", words="", a=make_recipe("a", line="import words"))
        second = recipes("two", words="", b=make_recipe("b", line="from . import words"))

        (diagnostic,) = compile(load([first, second])).diagnostics

        assert diagnostic.message.endswith(
            "ImportError: two targets have a module 'words' next to recipes: write 'from . import words'"
        )


class TestModulesAsTargets:
    @pytest.fixture
    def library(self, recipes, tmp_path, monkeypatch):
        """A package of prompts in the current folder, which is not a target."""
        recipes("library", __init__="", plans=make_recipe("plan") + make_recipe("review"))
        monkeypatch.chdir(tmp_path)

    @pytest.mark.parametrize("target", ["served", "served.py", "_served.py"])
    @pytest.mark.parametrize(
        "source",
        [
            "from library.plans import plan, review",
            "from library import plans\nPROMPTS = [plans.plan, plans.review]",
            "from library import plans\nPROMPTS = (plans.plan, plans.review)",
        ],
        ids=["imported", "listed", "in a tuple"],
    )
    def test_module_serves_the_prompts_it_lists(self, source, target, library, recipes):
        """A module named as target serves the prompts that it imports or lists, even if it is private."""
        recipes(".", **{target.removesuffix(".py"): source})

        assert {prompt.options.name for prompt in load(target).prompts} == {"plan", "review"}

    def test_package_serves_the_imports_of_its_init_file(self, library, recipes):
        """A package serves the prompts that its `__init__.py` imports, each of them once."""
        init = "from library.plans import plan\nfrom .own import own"
        recipes("outer/published", __init__=init, own=make_recipe("own"))

        served = [prompt.options.name for file in load("outer.published").by_file for prompt in file.prompts]

        assert sorted(served) == ["own", "plan"]

    def test_prompt_imported_to_be_called_is_not_served(self, library, recipes):
        """A recipe in a folder does not serve a prompt that it only imports to call."""
        folder = recipes(mine=make_recipe("mine", "plan()", "from library.plans import plan"))

        assert render_all(folder) == {"mine": "x"}


@pytest.mark.parametrize(
    ("file", "target"),
    [
        ("prompts/ops/deploy.py", "prompts"),
        ("one.py", "one.py:deploy"),
        ("elsewhere/library.py", "package.module"),
    ],
)
def test_the_target_of_a_file(file, target, tmp_path, monkeypatch):
    """The target of a file is the folder or file target that contains it, otherwise the module target."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prompts").mkdir()
    (tmp_path / "one.py").touch()

    assert target_of(str(tmp_path / file), ["prompts", "one.py:deploy", "package.module"]) == target
